//! Runs one target: its regressions first, then bent seeds, each on a small stack, each within
//! a bounded time.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, mpsc};
use std::time::{Duration, Instant};

use serde_json::Value;
use sluicegate_core::value;

use crate::mutate::{Random, Words, bend, bytes_of};

/// What a target takes: the text of a document, which need not be JSON. It tells whether the
/// document came through its first door.
pub(crate) type Target = fn(&[u8]) -> bool;

/// Of this many bent documents one at least must come in, or nobody tests what is behind the door.
const ONE_IN: u64 = 10;

/// Half of what the module has in a browser.
const STACK: usize = 512 * 1024;

/// Generous for a debug build on a busy machine; a document of 64 KiB needs far less.
const MOST: Duration = Duration::from_secs(10);

/// Where a run begins when nobody says otherwise, so that CI repeats itself.
const SEED: u64 = 0x51_0C_E6_A7;

const THREAD: &str = "fuzz";

thread_local! {
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What the thread is busy with, for whoever watches it.
type Busy = Arc<Mutex<(Instant, Vec<u8>)>>;

/// Runs a target over its regressions and `iterations` bent seeds; `doors` are the members that
/// most of them keep whole.
pub(crate) fn run(
    name: &'static str,
    target: Target,
    seeds: Vec<Value>,
    doors: &'static [&str],
    iterations: u64,
) {
    assert!(!seeds.is_empty(), "{name}: no seed was found");
    let iterations = setting("FUZZ_ITERATIONS").unwrap_or(iterations);
    let seed = setting("FUZZ_SEED").unwrap_or(SEED);
    hear_panics();
    let busy: Busy = Arc::new(Mutex::new((Instant::now(), Vec::new())));
    let (done, finished) = mpsc::channel();
    let work = {
        let busy = Arc::clone(&busy);
        move || done.send(fuzz(name, target, &seeds, doors, (seed, iterations), &busy))
    };
    let thread = std::thread::Builder::new()
        .name(THREAD.to_owned())
        .stack_size(STACK);
    thread.spawn(work).unwrap();
    loop {
        match finished.recv_timeout(Duration::from_secs(1)) {
            Ok(Ok((slowest, came_in))) => {
                println!(
                    "{name}: {iterations} inputs from seed {seed}, {came_in} came in, the slowest took {slowest:?}"
                );
                assert!(came_in * ONE_IN >= iterations, "{name}: too few came in");
                return;
            }
            Ok(Err(found)) => panic!("{name}: {found}\nseed {seed}, {iterations} iterations"),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let (since, input) = &*busy.lock().unwrap();
                if since.elapsed() > MOST {
                    let path = keep(name, input);
                    panic!(
                        "{name}: longer than {MOST:?}: {}, seed {seed}",
                        path.display()
                    );
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => panic!("{name}: the harness itself broke"),
        }
    }
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is not a number: {text}")),
    )
}

/// The slowest input's time and how many bent ones came in, or what was found.
fn fuzz(
    name: &str,
    target: Target,
    seeds: &[Value],
    doors: &[&str],
    (seed, iterations): (u64, u64),
    busy: &Busy,
) -> Result<(Duration, u64), String> {
    // A stack that overflows ends the whole process: the first line of this file then is the
    // input. Never cut shorter, for that would wait for the disk.
    let last = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}-last.json"));
    let mut written = File::create(&last).unwrap();
    let mut slowest = Duration::ZERO;
    let mut attempt = |input: &[u8]| {
        written.rewind().unwrap();
        written.write_all(&[input, b"\n"].concat()).unwrap();
        *busy.lock().unwrap() = (Instant::now(), input.to_vec());
        let began = Instant::now();
        let outcome = tried(target, input);
        slowest = slowest.max(began.elapsed());
        outcome
    };
    for path in regressions(name) {
        if let Err(said) = attempt(&std::fs::read(&path).unwrap()) {
            return Err(format!("{}: {said}", path.display()));
        }
    }
    let words = Words::of(seeds);
    let mut random = Random::new(seed);
    // Untouched, the vectors and samples have tests of their own: some of them do here.
    for (at, whole) in seeds.iter().enumerate().step_by(seeds.len().div_ceil(60)) {
        if let Err(said) = attempt(&bytes_of(whole)) {
            let path = keep(name, &bytes_of(whole));
            return Err(format!(
                "{said}\nseed document {at}, untouched: {}",
                path.display()
            ));
        }
    }
    let mut came_in = 0;
    for iteration in 0..iterations {
        let mut bent = random.pick(seeds).clone();
        let input = bend(&mut bent, seeds, &words, doors, &mut random);
        match attempt(&input) {
            Ok(in_it) => came_in += u64::from(in_it),
            Err(said) => {
                let path = keep(name, &shrink(target, &input));
                return Err(format!("{said}\niteration {iteration}: {}", path.display()));
            }
        }
    }
    drop(std::fs::remove_file(&last));
    Ok((slowest, came_in))
}

/// Whether the input came in, or what the target said when it panicked.
fn tried(target: Target, input: &[u8]) -> Result<bool, String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| target(input)));
    outcome.map_err(|_| SAID.take())
}

/// A panic on a thread of ours is found, not printed.
fn hear_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if std::thread::current().name() == Some(THREAD) {
                SAID.set(panic.to_string());
            } else {
                before(panic);
            }
        }));
    });
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fuzz/regressions")
        .join(name)
}

fn regressions(name: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder(name)) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Writes an input among the regressions, under its own hash.
fn keep(name: &str, input: &[u8]) -> PathBuf {
    let text = String::from_utf8_lossy(input);
    let hash = value::hash(&Value::from(text)).to_string();
    let path = folder(name).join(format!("{}.json", &hash["sha256:".len()..][..12]));
    std::fs::create_dir_all(folder(name)).unwrap();
    std::fs::write(&path, input).unwrap();
    path
}

/// Takes away what is not needed for the panic, for a short while.
fn shrink(target: Target, input: &[u8]) -> Vec<u8> {
    let Ok(mut small) = serde_json::from_slice::<Value>(input) else {
        return input.to_vec();
    };
    if tried(target, &bytes_of(&small)).is_ok() {
        return input.to_vec();
    }
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let before = bytes_of(&small).len();
        let mut at = 1;
        while at < crate::mutate::count(&small) && Instant::now() < end {
            let mut less = small.clone();
            crate::mutate::remove(&mut less, at);
            if tried(target, &bytes_of(&less)).is_err() {
                small = less;
            } else {
                at += 1;
            }
        }
        if bytes_of(&small).len() == before || Instant::now() >= end {
            return bytes_of(&small);
        }
    }
}
