//! Finding many texts in one text in linear time (S5: by value, inside longer strings too).
//!
//! An Aho–Corasick automaton that keeps of all texts ending at a place only the longest,
//! since only what is covered matters. So overlapping occurrences are covered whole, and
//! no choice of texts makes the search slower than linear.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
};

/// The searched texts, as an automaton over bytes. State 0 is the start.
#[derive(Clone, Default)]
pub(super) struct Occurrences {
    states: Vec<State>,
}

#[derive(Clone, Default)]
struct State {
    next: BTreeMap<u8, usize>,
    /// The state of the longest proper suffix that is also a beginning of some text.
    suffix: usize,
    /// Length of the longest searched text that ends here; 0 for none.
    longest: usize,
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
            at = *state.next.entry(byte).or_insert(fresh);
            if at == fresh {
                self.states.push(State::default());
            }
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
                Some(state) => match state.next.get(&byte) {
                    Some(next) => return *next,
                    None if at == 0 => return 0,
                    None => at = state.suffix,
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
