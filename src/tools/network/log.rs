//! Attempts as they end, gathered within bounds.
//!
//! What reached its host says what may have been carried out, so nothing that reached none can push it out.

use std::collections::BTreeMap;

use super::tried::{NetworkUse, Result, Tried};
use crate::proxy::Attempt;

/// The most entries of what reached its host; of more, those that moved most.
const MOST_REACHED: usize = 1_000;
/// The most entries of the rest; of more, those that say most.
const MOST_UNREACHED: usize = 200;

/// The message when the log is full.
const MORE: &str = "there are too many different attempts: from here on new ones are only counted";

#[derive(Debug)]
pub(super) struct Log {
    reached: Entries,
    /// How what reached its host is told apart.
    grouping: Grouping,
    unreached: Entries,
    seen: u64,
    up: u64,
    down: u64,
}

/// By what attempts are grouped into entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grouping {
    /// Another place, another protocol, another end.
    ByEnd,
    /// Another place alone: there were too many others.
    ByTarget,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    place: String,
    /// The protocol and the end; nothing where the entry has all attempts to reach its place.
    end: Option<(Option<String>, Result, String)>,
}

impl Key {
    fn of(tried: &Tried, grouping: Grouping) -> Self {
        let place = tried.place.clone();
        let end = match grouping {
            Grouping::ByEnd => Some((tried.protocol.clone(), tried.result, tried.why.clone())),
            Grouping::ByTarget => None,
        };
        Self { place, end }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self {
            reached: Entries::at_most(MOST_REACHED),
            grouping: Grouping::ByEnd,
            unreached: Entries::at_most(MOST_UNREACHED),
            seen: 0,
            up: 0,
            down: 0,
        }
    }
}

impl Log {
    /// Takes note of an attempt; the line to be said of it, if it is the first of its kind.
    pub(super) fn add(&mut self, attempt: &Attempt) -> Option<String> {
        self.up = self.up.saturating_add(attempt.up);
        self.down = self.down.saturating_add(attempt.down);
        self.seen = self.seen.saturating_add(1);
        let tried = Tried::of(attempt);
        // Whatever became of it afterwards: bytes may have moved before it was refused.
        if attempt.address.is_none() {
            return self.unreached.add(Key::of(&tried, Grouping::ByEnd), self.seen, tried);
        }
        let key = Key::of(&tried, self.grouping);
        if self.grouping == Grouping::ByEnd && self.reached.has_no_room_for(&key) {
            self.grouping = Grouping::ByTarget;
            self.reached.group_by_target();
        }
        self.reached.add(Key::of(&tried, self.grouping), self.seen, tried)
    }

    /// All of it, in the order in which each kind was first tried.
    pub(super) fn summary(&self) -> NetworkUse {
        let mut entries: Vec<&(u64, Tried)> = self.reached.of.values().chain(self.unreached.of.values()).collect();
        entries.sort_by_key(|(first, _)| *first);
        NetworkUse {
            attempts: entries.into_iter().map(|(_, tried)| tried.clone()).collect(),
            more_reached: self.reached.more,
            more_unreached: self.unreached.more,
            up: self.up,
            down: self.down,
        }
    }
}

/// Entries with the number of the first attempt of each, and how many attempts are in none.
#[derive(Debug)]
struct Entries {
    of: BTreeMap<Key, (u64, Tried)>,
    most: usize,
    more: u64,
}

impl Entries {
    const fn at_most(most: usize) -> Self {
        Self {
            of: BTreeMap::new(),
            most,
            more: 0,
        }
    }

    fn has_no_room_for(&self, key: &Key) -> bool {
        self.of.len() >= self.most && !self.of.contains_key(key)
    }

    /// The line of a new entry, if it has one. Where there is no room, what says least is given up.
    fn add(&mut self, key: Key, number: u64, tried: Tried) -> Option<String> {
        if let Some((_, known)) = self.of.get_mut(&key) {
            known.join(tried);
            return None;
        }
        if self.of.len() >= self.most {
            let least = self.of.iter().min_by_key(|(_, (_, known))| weight(known));
            match least.map(|(least, (_, known))| (least.clone(), weight(known), known.times)) {
                Some((least, lighter, times)) if lighter < weight(&tried) => {
                    self.of.remove(&least);
                    self.more = self.more.saturating_add(times);
                }
                Some(_) | None => {
                    let is_first = self.more == 0;
                    self.more = self.more.saturating_add(tried.times);
                    return is_first.then(|| MORE.to_owned());
                }
            }
        }
        let line = tried.message();
        self.of.insert(key, (number, tried));
        line
    }

    fn group_by_target(&mut self) {
        let mut entries: Vec<(u64, Tried)> = std::mem::take(&mut self.of).into_values().collect();
        entries.sort_by_key(|(first, _)| *first);
        for (first, tried) in entries {
            self.add(Key::of(&tried, Grouping::ByTarget), first, tried);
        }
    }
}

/// The rank of an entry: first by bytes moved.
fn weight(tried: &Tried) -> (u64, Result, u64) {
    (tried.up.saturating_add(tried.down), tried.result, tried.times)
}
