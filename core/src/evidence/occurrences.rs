//! Finding many texts in one text in linear time (S5: by value, inside longer strings too).
//!
//! An Aho–Corasick automaton that keeps of all texts ending at a place only the longest,
//! since only what is covered matters. So overlapping occurrences are covered whole, and
//! no choice of texts makes the search slower than linear.

use std::{collections::VecDeque, ops::Range};

/// The searched texts, as an automaton over bytes. State 0 is the start.
#[derive(Clone, Default)]
pub(super) struct Occurrences {
    states: Vec<State>,
}

#[derive(Clone, Default)]
struct State {
    /// Where a byte leads, sorted by byte; small, since there are as many states as bytes.
    next: Vec<(u8, u32)>,
    /// The state of the longest proper suffix that is also a beginning of some text.
    suffix: usize,
    /// Length of the longest searched text that ends here; 0 for none.
    longest: usize,
}

impl State {
    fn child(&self, byte: u8) -> Result<usize, usize> {
        let found = self.next.binary_search_by_key(&byte, |(byte, _)| *byte)?;
        Ok(self.next.get(found).map_or(0, |(_, child)| *child as usize))
    }
}

impl Occurrences {
    /// Texts must not be empty; their order does not matter.
    pub(super) fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut this = Self {
            states: vec![State::default()],
        };
        for text in texts {
            this.add(text);
        }
        this.link();
        this
    }

    fn add(&mut self, text: &str) {
        let mut at = 0;
        for byte in text.bytes() {
            let fresh = self.states.len();
            let Some(state) = self.states.get_mut(at) else {
                return;
            };
            at = match state.child(byte) {
                Ok(child) => child,
                Err(place) => {
                    // Secrets end the search for all long before a `u32` does.
                    let Ok(child) = u32::try_from(fresh) else {
                        return;
                    };
                    state.next.insert(place, (byte, child));
                    self.states.push(State::default());
                    fresh
                }
            };
        }
        if let Some(state) = self.states.get_mut(at) {
            state.longest = text.len();
        }
    }

    /// Sets suffix links breadth first, so a state's suffix is complete before it is used.
    fn link(&mut self) {
        let mut queue = VecDeque::from([0]);
        while let Some(at) = queue.pop_front() {
            let Some(state) = self.states.get(at) else {
                continue;
            };
            let (suffix, children) = (state.suffix, state.next.clone());
            for (byte, child) in children {
                let child = child as usize;
                let to = if at == 0 { 0 } else { self.step(suffix, byte) };
                let inherited = self.states.get(to).map_or(0, |state| state.longest);
                if let Some(state) = self.states.get_mut(child) {
                    state.suffix = to;
                    state.longest = state.longest.max(inherited);
                }
                queue.push_back(child);
            }
        }
    }

    /// The state after one more byte. Every step down a suffix undoes an earlier step up,
    /// which is why a whole search is linear.
    fn step(&self, from: usize, byte: u8) -> usize {
        let mut at = from;
        loop {
            match self.states.get(at) {
                None => return 0,
                Some(state) => match state.child(byte) {
                    Ok(next) => return next,
                    Err(_) if at == 0 => return 0,
                    Err(_) => at = state.suffix,
                },
            }
        }
    }

    /// The byte ranges of `text` that searched texts cover, in order of their ends.
    pub(super) fn find(&self, text: &str, mut found: impl FnMut(Range<usize>)) {
        if self.states.len() <= 1 {
            return;
        }
        let mut at = 0;
        for (i, byte) in text.bytes().enumerate() {
            at = self.step(at, byte);
            let longest = self.states.get(at).map_or(0, |state| state.longest);
            if longest > 0 {
                found((i + 1).saturating_sub(longest)..i + 1);
            }
        }
    }
}

/// The byte ranges of `text` where one long text stands, overlapping ones too. Linear, and keeps
/// nothing between searches: an automaton of a long text is many times its size.
pub(super) fn find_long(text: &str, long: &str, mut found: impl FnMut(Range<usize>)) {
    if long.is_empty() || long.len() > text.len() {
        return;
    }
    let Some(first) = text.find(long) else {
        return;
    };
    let long = long.as_bytes();
    let borders = borders(long);
    let mut matched = 0;
    for (i, byte) in text.bytes().enumerate().skip(first) {
        matched = longer(long, &borders, matched, byte);
        if matched == long.len() {
            found((i + 1).saturating_sub(matched)..i + 1);
            matched = borders.last().copied().unwrap_or(0);
        }
    }
}

/// Of each beginning of a text, how long its longest proper suffix is that is a beginning too.
fn borders(text: &[u8]) -> Vec<usize> {
    let mut borders = Vec::with_capacity(text.len());
    let mut matched = 0;
    for (i, byte) in text.iter().enumerate() {
        if i > 0 {
            matched = longer(text, &borders, matched, *byte);
        }
        borders.push(matched);
    }
    borders
}

/// How much of a text is matched after one more byte.
fn longer(text: &[u8], borders: &[usize], mut matched: usize, byte: u8) -> usize {
    loop {
        if text.get(matched) == Some(&byte) {
            return matched + 1;
        }
        let Some(before) = matched.checked_sub(1) else {
            return 0;
        };
        matched = borders.get(before).copied().unwrap_or(0);
    }
}
