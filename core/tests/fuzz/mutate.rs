//! Bends JSON documents: subtrees and names are replaced, removed, doubled, moved, swapped for
//! what is hostile; now and then the text itself is hurt.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// SplitMix64: small, even, the same everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 where there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % (end.max(1) as u64)) as usize
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

/// The texts and member names that the seeds know: ids, ports, keywords, operators.
pub(crate) struct Words(Vec<String>);

impl Words {
    pub(crate) fn of(seeds: &[Value]) -> Self {
        let mut words = BTreeSet::new();
        seeds.iter().for_each(|seed| gather(seed, &mut words));
        Self(words.into_iter().collect())
    }
}

fn gather(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.len() <= 64 => drop(words.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| gather(item, words)),
        Value::Object(members) => members.iter().for_each(|(name, member)| {
            words.insert(name.clone());
            gather(member, words);
        }),
        _ => {}
    }
}

/// The text of a document. Unlike the canonical form it may say what J1 and J4 refuse.
pub(crate) fn bytes_of(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

/// How many values a document holds, itself included.
pub(crate) fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// The value at a position of the walk that visits a container before what it holds.
fn at(value: &mut Value, position: usize) -> Option<&mut Value> {
    fn walk<'v>(value: &'v mut Value, left: &mut usize) -> Option<&'v mut Value> {
        if *left == 0 {
            return Some(value);
        }
        *left -= 1;
        match value {
            Value::Array(items) => items.iter_mut().find_map(|item| walk(item, left)),
            Value::Object(members) => members.values_mut().find_map(|member| walk(member, left)),
            _ => None,
        }
    }
    walk(value, &mut { position })
}

/// Takes the value at a position out of its container.
pub(crate) fn remove(value: &mut Value, position: usize) {
    fn walk(value: &mut Value, left: &mut usize) -> bool {
        *left -= 1;
        match value {
            Value::Array(items) => {
                for index in 0..items.len() {
                    if *left == 0 {
                        items.remove(index);
                        return true;
                    }
                    if walk(&mut items[index], left) {
                        return true;
                    }
                }
            }
            Value::Object(members) => {
                let names: Vec<String> = members.keys().cloned().collect();
                for name in names {
                    if *left == 0 {
                        members.remove(&name);
                        return true;
                    }
                    if walk(&mut members[&name], left) {
                        return true;
                    }
                }
            }
            _ => {}
        }
        false
    }
    if position > 0 {
        walk(value, &mut { position });
    }
}

/// Bends a document in one to five places and gives its text.
pub(crate) fn bend(
    whole: &mut Value,
    seeds: &[Value],
    words: &Words,
    doors: &[&str],
    random: &mut Random,
) -> Vec<u8> {
    // What opens the door stays whole in three of four, so that what lies behind it is met.
    let doors = if random.chance(4) { &[] } else { doors };
    let kept: Vec<Value> = doors.iter().map(|name| whole[*name].take()).collect();
    let mut more = true;
    for _ in 0..5 {
        if more {
            bend_once(whole, seeds, words, random);
        }
        more = more && random.chance(2);
    }
    if let Value::Object(members) = whole {
        let doors = doors.iter().map(|name| (*name).to_owned());
        members.extend(doors.zip(kept));
    }
    let mut text = bytes_of(whole);
    if random.chance(16) {
        hurt(&mut text, random);
    }
    text
}

fn bend_once(whole: &mut Value, seeds: &[Value], words: &Words, random: &mut Random) {
    let places = count(whole);
    let place = random.below(places);
    match random.below(12) {
        0 | 1 => {
            let other = random.pick(seeds);
            let from = random.below(count(other));
            let graft = at(&mut other.clone(), from).unwrap().take();
            *at(whole, place).unwrap() = graft;
        }
        2 => {
            let from = random.below(places);
            let copy = at(whole, from).unwrap().clone();
            *at(whole, place).unwrap() = copy;
        }
        3 | 4 => remove(whole, place),
        5 => double(at(whole, place).unwrap(), words, random),
        6 => rename(at(whole, place).unwrap(), words, random),
        7 => nest(at(whole, place).unwrap(), random),
        8 => {
            let moved = at(whole, place).unwrap().take();
            let to = random.below(count(whole));
            *at(whole, to).unwrap() = moved;
        }
        9 => *at(whole, place).unwrap() = hostile(words, random),
        _ => edit(at(whole, place).unwrap(), words, random),
    }
}

fn double(value: &mut Value, words: &Words, random: &mut Random) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let item = random.pick(items).clone();
            // Mostly one more; now and then as many as run into a limit.
            let times = if random.chance(12) { 300 } else { 1 };
            items.extend(std::iter::repeat_n(item, times));
        }
        Value::Object(members) if !members.is_empty() => {
            let names: Vec<&String> = members.keys().collect();
            let member = members[*random.pick(&names)].clone();
            members.insert(name(words, random), member);
        }
        Value::String(text) => *text = text.repeat(2 + random.below(40)),
        other => *other = json!([other, other]),
    }
}

fn rename(value: &mut Value, words: &Words, random: &mut Random) {
    if let Value::Object(members) = value {
        let names: Vec<String> = members.keys().cloned().collect();
        if let Some(member) = (!names.is_empty()).then(|| random.pick(&names)) {
            let held = members.remove(member).unwrap();
            members.insert(name(words, random), held);
        }
    } else {
        edit(value, words, random);
    }
}

fn nest(value: &mut Value, random: &mut Random) {
    let names = ["allOf", "not", "and", "items", "a", "$defs"];
    let named = *random.pick(&names);
    let deep = *random.pick(&[1, 1, 2, 15, 16, 17, 63, 64, 65, 90]);
    for _ in 0..deep {
        let inner = value.take();
        *value = match random.below(3) {
            0 => json!([inner]),
            _ => Value::Object(Map::from_iter([(named.to_owned(), inner)])),
        };
    }
}

fn edit(value: &mut Value, words: &Words, random: &mut Random) {
    *value = match value.take() {
        Value::Bool(truth) => Value::Bool(!truth),
        Value::Number(number) => {
            let double = number.as_f64().unwrap();
            match random.below(6) {
                0 => json!(double + 1.0),
                1 => json!(double - 1.0),
                2 => json!(-double),
                3 => json!(double * 1000.0),
                4 => json!(double / 3.0),
                _ => self::number(random),
            }
        }
        Value::String(mut text) => {
            let ends: Vec<usize> = text.char_indices().map(|(index, _)| index).collect();
            let place = if ends.is_empty() {
                0
            } else {
                *random.pick(&ends)
            };
            match random.below(4) {
                0 => text.truncate(place),
                1 => text.insert_str(place, random.pick::<&str>(&PIECES)),
                2 => text.insert_str(place, random.pick::<String>(&words.0)),
                _ => text = random.pick(&words.0).clone(),
            }
            Value::String(text)
        }
        Value::Array(mut items) => {
            items.reverse();
            Value::Array(items)
        }
        other => {
            if random.chance(2) {
                hostile(words, random)
            } else {
                other
            }
        }
    };
}

/// What texts trip over: pointers, tokens, references, patterns, other scripts, controls.
const PIECES: [&str; 34] = [
    "/",
    "//",
    "~",
    "~0",
    "~1",
    "/0",
    "/-",
    "/01",
    "/18446744073709551616",
    "{{",
    "}}",
    "{{{{",
    "{{ a }}",
    "#/$defs/",
    "#",
    "std.",
    "std.any",
    "std.text",
    "__proto__",
    "constructor",
    "\u{0}",
    "\u{7f}",
    "\u{2028}",
    "é",
    "e\u{301}",
    "😀",
    "\u{202e}",
    "\u{feff}",
    "(a*)*$",
    "[",
    "(?=a)",
    "\\p{L}+",
    "a{1000}{1000}",
    "***",
];

fn name(words: &Words, random: &mut Random) -> String {
    match random.below(6) {
        0 => (*random.pick(&PIECES)).to_owned(),
        1 => String::new(),
        _ => random.pick(&words.0).clone(),
    }
}

fn number(random: &mut Random) -> Value {
    let numbers = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        15.0,
        16.0,
        17.0,
        64.0,
        65.0,
        127.0,
        128.0,
        255.0,
        256.0,
        4_096.0,
        65_536.0,
        2_147_483_647.0,
        2_147_483_648.0,
        4_294_967_295.0,
        4_294_967_296.0,
        9_007_199_254_740_991.0,
        -9_007_199_254_740_991.0,
        9_007_199_254_740_992.0,
        1e300,
        f64::MAX,
        5e-324,
        1e-7,
        0.1,
        -0.5,
        1e21,
    ];
    match random.below(12) {
        0 => json!(u64::MAX),
        1 => json!(i64::MIN),
        _ => json!(random.pick(&numbers)),
    }
}

fn hostile(words: &Words, random: &mut Random) -> Value {
    match random.below(14) {
        0 => Value::Null,
        1 => json!({}),
        2 => json!([]),
        3 => json!(random.chance(2)),
        4 | 5 => number(random),
        6 => json!((*random.pick(&PIECES)).to_owned()),
        7 => json!(
            random
                .pick(&PIECES)
                .repeat(*random.pick(&[20, 129, 2_001, 17_000]))
        ),
        8 => json!(""),
        9 => Value::Array(
            (0..*random.pick(&[33, 101, 201, 5_000]))
                .map(Value::from)
                .collect(),
        ),
        10 => {
            let many = *random.pick(&[33, 101, 1_000]);
            (0..many)
                .map(|n| (format!("{}{n}", random.pick(&words.0)), Value::from(n)))
                .collect()
        }
        11 => {
            let mut deep = json!(1);
            nest(&mut deep, random);
            deep
        }
        _ => json!(random.pick(&words.0)),
    }
}

/// Hurts the text itself.
fn hurt(text: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let place = random.below(text.len());
        match random.below(5) {
            _ if text.is_empty() => {}
            0 => text[place] ^= 1 << random.below(8),
            1 => drop(text.remove(place)),
            2 => {
                let tokens = [
                    "[",
                    "]",
                    "{",
                    "}",
                    ",",
                    ":",
                    "\"",
                    "\\ud800",
                    "\\u0000",
                    "1e400",
                    "-",
                    "9007199254740993",
                    "\u{feff}",
                ];
                let token = random.pick(&tokens).bytes();
                drop(text.splice(place..place, token));
            }
            3 => text.truncate(place),
            _ => {
                let end = (place + random.below(200)).min(text.len());
                let slice = text[place..end].to_vec();
                drop(text.splice(place..place, slice));
            }
        }
    }
}
