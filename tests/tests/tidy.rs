//! The rules of architecture.md that a test can see ("Rules"). Each is its own test; its
//! message says how to mend a breach.

#![expect(clippy::unwrap_used, reason = "what helps a test may stop it")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A text file of the repository; `path` is relative to its root.
struct File {
    path: String,
    text: String,
}

impl File {
    /// The text without comments and without what is compiled for tests alone, which by
    /// custom stands last in its file. Lines keep their numbers.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = if self.is_test() { "" } else { &self.text }.lines();
        lines
            .take_while(|line| line.trim() != "#[cfg(test)]")
            .enumerate()
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
            .map(|(index, line)| (index + 1, line))
    }

    fn is_test(&self) -> bool {
        let in_folder = self.path.starts_with("tests/") || self.path.contains("/tests/");
        in_folder || self.path.ends_with("/tests.rs")
    }

    /// The lines of code that hold one of the words, as breaches.
    fn holding(&self, words: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        for (line, text) in self.code() {
            for word in words.iter().filter(|word| begins_in(text, word)) {
                found.push(format!("{}:{line}: {word}", self.path));
            }
        }
        found
    }
}

/// Whether `word` stands in `text` and does not go on from a longer one.
fn begins_in(text: &str, word: &str) -> bool {
    let inside = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let mut places = text.match_indices(word);
    places.any(|(at, _)| !text[..at].ends_with(inside))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every file that is text, but for what is built or fetched.
fn files() -> Vec<File> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            let path = entry.path();
            if path.is_dir() {
                let made = [
                    "target",
                    "node_modules",
                    "artifacts",
                    "sluicegate-data",
                    ".git",
                ];
                if !made.contains(&&*name) {
                    folders.push(path);
                }
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let path = path.strip_prefix(root()).unwrap().to_str().unwrap();
                let path = path.to_owned();
                found.push(File { path, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 50, "the repository was not found");
    found
}

fn ending(end: &str) -> Vec<File> {
    let mut files = files();
    files.retain(|file| file.path.ends_with(end));
    files
}

fn core_sources() -> Vec<File> {
    let mut files = ending(".rs");
    files.retain(|file| file.path.starts_with("core/src/"));
    files
}

#[track_caller]
fn none(breaches: &[String], mend: &str) {
    assert!(breaches.is_empty(), "{}\n{mend}\n", breaches.join("\n"));
}

#[test]
fn crates_depend_only_along_the_arrows() {
    let allowed = BTreeMap::from([
        ("core", &[][..]),
        ("wasm", &["core"]),
        ("app", &["core"]),
        ("server", &["core"]),
        ("tests", &["core", "server"]),
    ]);
    let mut breaches = Vec::new();
    for (name, allowed) in allowed {
        let manifest = std::fs::read_to_string(root().join(name).join("Cargo.toml")).unwrap();
        for line in manifest.lines() {
            let other = line.strip_prefix("sluicegate-").map(|rest| {
                let end = rest.find(|c: char| !c.is_ascii_lowercase());
                &rest[..end.unwrap_or(rest.len())]
            });
            if other.is_some_and(|other| !allowed.contains(&other)) {
                breaches.push(format!("{name}/Cargo.toml: {line}"));
            }
        }
    }
    let mend = "The arrows are core ← wasm, core ← app, core ← server, server ← tests. Move what \
                both sides need into core; types of requests and responses live in core/src/api.";
    none(&breaches, mend);
}

/// What every module of core may use.
const BASE: [&str; 6] = ["actor", "code", "ids", "limits", "node_type", "time"];

/// What a module of core may use besides [`BASE`].
const ARROWS: &[(&str, &[&str])] = &[
    ("actor", &[]),
    ("code", &[]),
    ("ids", &[]),
    ("limits", &[]),
    ("time", &[]),
    ("node_type", &["value"]),
    ("value", &[]),
    ("schema", &["value"]),
    ("gate", &["value", "schema"]),
    ("mapping", &["value", "schema"]),
    ("evidence", &["value", "schema"]),
    ("catalogue", &["value", "schema"]),
    ("audit", &["value"]),
    ("graph", &["value", "schema", "gate", "mapping"]),
    ("plan", &["value", "schema", "gate", "mapping", "catalogue"]),
    (
        "validate",
        &["value", "schema", "gate", "mapping", "graph", "catalogue"],
    ),
    (
        "compile",
        &[
            "value",
            "schema",
            "gate",
            "mapping",
            "graph",
            "catalogue",
            "plan",
            "validate",
        ],
    ),
    (
        "run",
        &[
            "value",
            "schema",
            "gate",
            "mapping",
            "evidence",
            "plan",
            "catalogue",
        ],
    ),
    (
        "simulate",
        &[
            "value",
            "schema",
            "gate",
            "mapping",
            "evidence",
            "plan",
            "catalogue",
            "run",
        ],
    ),
    ("edit", &["value", "schema", "gate", "mapping", "graph"]),
    (
        "api",
        &[
            "value",
            "schema",
            "evidence",
            "catalogue",
            "audit",
            "graph",
            "plan",
            "validate",
            "compile",
            "run",
            "simulate",
            "edit",
        ],
    ),
];

/// The modules that `code` names after `crate::`, in groups too: `crate::{a::B, c::{D, E}}`.
fn modules_named(code: &str) -> BTreeSet<&str> {
    let word = |text: &'_ str| text.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    let mut named = BTreeSet::new();
    for (at, prefix) in code.match_indices("crate::") {
        let rest = &code[at + prefix.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            named.insert(&rest[..word(rest).unwrap_or(rest.len())]);
            continue;
        };
        let (mut depth, mut start) = (1, true);
        for (index, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => start = true,
                c if depth == 1 && start && !c.is_whitespace() => {
                    let rest = &group[index..];
                    named.insert(&rest[..word(rest).unwrap_or(rest.len())]);
                    start = false;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    named
}

#[test]
fn modules_named_sees_paths_and_groups() {
    let code = "use crate::{a::{B, c},\n d, e::F};\nfn f(x: crate::g::H) {}\nuse crate::{i};";
    assert_eq!(
        modules_named(code),
        BTreeSet::from(["a", "d", "e", "g", "i"])
    );
}

#[test]
fn modules_of_core_depend_only_along_the_arrows() {
    let arrows: BTreeMap<_, _> = ARROWS.iter().copied().collect();
    let mut breaches = Vec::new();
    for file in core_sources() {
        let inside = file.path.strip_prefix("core/src/").unwrap();
        let module = inside.split(['/', '.']).next().unwrap();
        if module == "lib" {
            continue;
        }
        let Some(allowed) = arrows.get(module) else {
            breaches.push(format!(
                "{}: the module {module} has no row in ARROWS",
                file.path
            ));
            continue;
        };
        let code: Vec<&str> = file.code().map(|(_, line)| line).collect();
        for used in modules_named(&code.join("\n")) {
            let known = arrows.contains_key(used) && used != module;
            if known && !BASE.contains(&used) && !allowed.contains(&used) {
                breaches.push(format!("{}: {module} uses {used}", file.path));
            }
        }
    }
    let mend = "Inside core: value ← schema, gate, mapping, plan, graph ← validate ← compile; plan, \
                gate, mapping, schema, evidence ← run ← simulate; graph ← edit. Move the thing that \
                both need down, or hand it in as an argument. A new module gets a row in ARROWS.";
    none(&breaches, mend);
}

#[test]
fn core_touches_nothing_of_the_world() {
    let words = [
        "std::time",
        "std::fs",
        "std::net",
        "std::env",
        "std::thread",
        "std::process",
        "Instant::now",
        "SystemTime",
        "Utc::now",
        "Timestamp::now",
        "Zoned::now",
        "rand::",
        "getrandom",
        "new_v4",
        "now_v7",
        "println!",
        "eprintln!",
        "tokio",
        "async fn",
    ];
    let breaches: Vec<_> = core_sources()
        .iter()
        .flat_map(|file| file.holding(&words))
        .collect();
    let mend = "Core reads no clock, draws no random number and does no I/O: take the instant, the \
                identifier or the text as an argument; the shell in server or app makes it.";
    none(&breaches, mend);
}

/// Every package that core's build rests on, by the lock; what its tests need is left out.
fn packages_of_core() -> BTreeSet<String> {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let lock = read("Cargo.lock");
    let mut needs: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let name = package.split('"').nth(1).unwrap();
        let list = package.split("dependencies = [").nth(1).unwrap_or_default();
        // Of a package that is there twice, the version follows the name; both are taken.
        let names = list.split('"').skip(1).step_by(2);
        let names = names.map(|need| need.split(' ').next().unwrap());
        needs.entry(name).or_default().extend(names);
    }
    let manifest = read("core/Cargo.toml");
    let (_, own) = manifest.split_once("\n[dependencies]\n").unwrap();
    let own = own.split("\n[").next().unwrap().lines();
    let mut open: Vec<&str> = own
        .filter_map(|line| Some(line.split_once(" = ")?.0))
        .collect();
    let mut found = BTreeSet::new();
    while let Some(name) = open.pop() {
        if found.insert(name.to_owned()) {
            open.extend(needs.get(name).unwrap());
        }
    }
    found
}

#[test]
fn core_rests_on_nothing_that_reaches_the_world() {
    let worldly = [
        "async-std",
        "chrono",
        "dirs",
        "filetime",
        "hyper",
        "hyper-util",
        "jiff",
        "memmap2",
        "mio",
        "native-tls",
        "notify",
        "openssl",
        "polling",
        "rand",
        "reqwest",
        "rusqlite",
        "rustix",
        "rustls",
        "socket2",
        "sqlx",
        "tempfile",
        "time",
        "tokio",
        "ureq",
        "url",
        "walkdir",
    ];
    let found = packages_of_core();
    assert!(found.contains("jsonschema") && found.contains("regex-automata"));
    let breaches: Vec<_> = worldly
        .iter()
        .filter(|name| found.contains(**name))
        .map(|name| {
            format!("core rests on {name}; `cargo tree -p sluicegate-core -i {name}` says why")
        })
        .collect();
    let mend = "Core's dependencies do no I/O: turn the feature off that asks for it. The one thing that \
                is drawn from outside are the seeds of hash maps inside jsonschema.";
    none(&breaches, mend);
}

#[test]
fn core_has_no_order_of_chance() {
    let words = ["HashMap", "HashSet", "RandomState"];
    let breaches: Vec<_> = core_sources()
        .iter()
        .flat_map(|file| file.holding(&words))
        .collect();
    let mend = "The same input gives the same bytes everywhere (X4), and a hash map's order is \
                drawn at random: use BTreeMap or BTreeSet.";
    none(&breaches, mend);
}

#[test]
fn every_module_begins_with_the_clause_that_it_keeps() {
    let pages = [
        "product",
        "architecture",
        "wire-format",
        "run-machine",
        "server",
        "api",
        "web",
    ];
    let names_a_clause = |text: &str| {
        let page = pages
            .iter()
            .any(|page| text.contains(&format!("{page}.md")));
        let numbered = text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| {
                let mut rest = word.chars();
                let letter = rest.next().is_some_and(|c| c.is_ascii_uppercase());
                letter && rest.clone().next().is_some() && rest.all(|c| c.is_ascii_digit())
            });
        page || numbered || text.contains('§') || text.contains("seed ")
    };
    let mut breaches = Vec::new();
    for file in ending(".rs").iter().filter(|file| !file.is_test()) {
        let header: Vec<_> = file
            .text
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .collect();
        if header.is_empty() {
            breaches.push(format!("{}: no //! at the top", file.path));
        } else if file.path.starts_with("core/src/") && !names_a_clause(&header.join("\n")) {
            breaches.push(format!("{}: its //! names no clause", file.path));
        }
    }
    let mend = "Begin the file with `//!` and one sentence: what the module is for, and in core the \
                clause it keeps, such as (wire-format.md §5, L1–L6) or (J3).";
    none(&breaches, mend);
}

#[test]
fn no_file_is_longer_than_600_lines() {
    let ends = [".rs", ".mjs", ".js", ".css", ".sql", ".html"];
    let mut breaches = Vec::new();
    for file in files() {
        let lines = file.text.lines().count();
        if ends.iter().any(|end| file.path.ends_with(end)) && lines > 600 {
            breaches.push(format!("{}: {lines} lines", file.path));
        }
    }
    let mend = "A file beyond 500 lines is a sign to look for the missing idea: give a part of it a \
                name and a file of its own, tests first (tests.rs beside it).";
    none(&breaches, mend);
}

#[test]
fn no_name_says_nothing() {
    let words = [
        "Manager", "Service", "Helper", "Helpers", "Util", "Utils", "Handler", "Data", "Info",
        "Common",
    ];
    let camel = |name: &str| -> Vec<String> {
        let mut parts: Vec<String> = Vec::new();
        for c in name.chars().take_while(|c| c.is_ascii_alphanumeric()) {
            match parts.last_mut() {
                Some(part) if !c.is_ascii_uppercase() => part.push(c),
                _ => parts.push(c.to_string()),
            }
        }
        parts
    };
    let mut breaches = Vec::new();
    for file in ending(".rs") {
        for (index, line) in file.text.lines().enumerate() {
            // What an impl calls its types is the choice of the trait.
            let kinds: &[_] = match line.starts_with(' ') {
                true => &["struct", "enum", "trait", "union"],
                false => &["struct", "enum", "trait", "union", "type"],
            };
            let mut previous = "";
            for word in line.split_whitespace() {
                let declared = kinds.contains(&previous)
                    && camel(word).iter().any(|part| words.contains(&&**part));
                if declared && !line.trim_start().starts_with("//") {
                    breaches.push(format!("{}:{}: {word}", file.path, index + 1));
                }
                previous = word;
            }
        }
        let stems = file.path.split(['/', '.']);
        for stem in stems.filter(|stem| words.iter().any(|word| word.to_lowercase() == **stem)) {
            breaches.push(format!("{}: a module called {stem}", file.path));
        }
    }
    let mend = "These words say nothing. Name the thing by what it is in the vocabulary of \
                product.md, or put its functions where the type they serve lives.";
    none(&breaches, mend);
}

#[test]
fn nothing_is_left_for_later() {
    let words = [
        concat!("todo", "!("),
        concat!("unimpl", "emented!("),
        concat!("FIX", "ME"),
    ];
    let mut breaches = Vec::new();
    for file in ending(".rs") {
        for (index, line) in file.text.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(**word)) {
                breaches.push(format!("{}:{}: {word}", file.path, index + 1));
            }
        }
    }
    none(
        &breaches,
        "Write it, or leave it out and say so in an issue.",
    );
}

#[test]
fn no_file_names_a_place_of_one_machine() {
    let homes = [
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("/Us", "ers/"),
    ];
    let mut breaches = Vec::new();
    for file in files() {
        for (index, line) in file.text.lines().enumerate() {
            for home in homes.iter().filter(|home| line.contains(**home)) {
                breaches.push(format!("{}:{}: {home}", file.path, index + 1));
            }
        }
    }
    none(
        &breaches,
        "Name the path relative to the repository, or by $HOME.",
    );
}

#[test]
fn the_lock_of_npm_names_no_server() {
    let locks = ending("package-lock.json");
    let held = |file: &&File| file.text.contains("\"resolved\"");
    let breaches: Vec<_> = locks
        .iter()
        .filter(held)
        .map(|file| file.path.clone())
        .collect();
    let mend = "Put a .npmrc with `omit-lockfile-registry-resolved=true` beside it, remove the lock \
                and install again: whoever builds may use another registry.";
    none(&breaches, mend);
}
