//! The records of some domains among those of the whole machine, within bounds.

use std::collections::{HashMap, VecDeque};

use super::text::{Record, Refusal, is_of_landlock, parse};

/// The most different refusals that are kept.
const MOST: usize = 20_000;
/// The most bytes of what they name.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// The most refusals that wait for a word about their domain. That comes right behind the first of them; those of sandboxes
/// that were there before nobody ever speaks of again.
const MOST_WAITING: usize = 1024;
/// The most processes that are known to have put on a layer: the worker, and two for each of its latest commands.
const MOST_MAKERS: usize = 256;

/// What the kernel recorded of a command's denials.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    /// What was refused, and how often, in the order of the first time.
    pub all: Vec<(Refusal, u64)>,
    /// Whether some are missing.
    pub lost: bool,
}

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// How many messages there were, of whatever kind.
    pub(super) heard: u64,
    /// Whether some were lost on the way here, or for lack of room.
    pub(super) lost: bool,
    /// Who put on a layer, the worker before all others, and the domain that it made by that: the first that a process of that
    /// number is said to have made, for a command can make more of its own.
    makers: VecDeque<(i32, Option<u64>)>,
    waiting: VecDeque<(u64, Refusal)>,
    known: HashMap<Refusal, usize>,
    order: Vec<(Refusal, u64)>,
    bytes: usize,
}

impl Gathered {
    /// Takes note that a process has put on a layer. It says so before anything is refused by it.
    pub(super) fn stands(&mut self, pid: i32) {
        // Numbers are given out again.
        self.makers.retain(|(maker, _)| *maker != pid);
        if self.makers.len() >= MOST_MAKERS {
            self.makers.remove(1);
        }
        self.makers.push_back((pid, None));
    }

    /// Takes in a message.
    pub(super) fn take(&mut self, kind: u16, text: &[u8]) {
        self.heard = self.heard.wrapping_add(1);
        match parse(kind, text) {
            Some(Record::Access { domain, refusal }) if self.is_ours(domain) => self.keep(refusal),
            Some(Record::Access { domain, refusal }) => {
                if self.waiting.len() >= MOST_WAITING {
                    self.waiting.pop_front();
                }
                self.waiting.push_back((domain, refusal));
            }
            Some(Record::Made { domain, pid }) => self.made(domain, pid),
            Some(Record::Ended { domain }) => self.makers.retain(|(_, made)| *made != Some(domain)),
            None => self.lost |= is_of_landlock(kind),
        }
    }

    fn made(&mut self, domain: u64, pid: i32) {
        let maker = self.makers.iter_mut().find(|(maker, _)| *maker == pid);
        if let Some((_, made @ None)) = maker {
            *made = Some(domain);
        }
        let is_ours = self.is_ours(domain);
        let (about, others): (VecDeque<_>, VecDeque<_>) =
            self.waiting.drain(..).partition(|(waits, _)| *waits == domain);
        self.waiting = others;
        if is_ours {
            for (_, refusal) in about {
                self.keep(refusal);
            }
        }
    }

    fn is_ours(&self, domain: u64) -> bool {
        self.makers.iter().any(|(_, made)| *made == Some(domain))
    }

    fn keep(&mut self, refusal: Refusal) {
        if let Some((_, times)) = self.known.get(&refusal).and_then(|at| self.order.get_mut(*at)) {
            *times = times.saturating_add(1);
            return;
        }
        let bytes = self.bytes.saturating_add(refusal.length());
        if self.order.len() >= MOST || bytes > MOST_BYTES {
            self.lost = true;
            return;
        }
        self.bytes = bytes;
        self.known.insert(refusal.clone(), self.order.len());
        self.order.push((refusal, 1));
    }

    /// All of it so far; from here on it is about the next command.
    pub(super) fn told(&mut self) -> Recorded {
        self.known.clear();
        self.bytes = 0;
        self.waiting.clear();
        Recorded {
            all: std::mem::take(&mut self.order),
            lost: std::mem::take(&mut self.lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::text::{Blocker, Object};
    use super::*;

    fn refused(gathered: &mut Gathered, domain: u64, path: &str) {
        let text = format!(
            "audit(1795461852.146:284): domain={domain:x} blockers=fs.read_file path=\"{path}\" dev=\"vda\" ino=1"
        );
        gathered.take(1423, text.as_bytes());
    }

    fn made(gathered: &mut Gathered, domain: u64, pid: i32) {
        let text = format!(
            "audit(1795461852.146:284): domain={domain:x} status=allocated mode=enforcing pid={pid} uid=0 exe=\"/usr/bin/stockade\" comm=\"stockade-work\""
        );
        gathered.take(1424, text.as_bytes());
    }

    fn paths(recorded: &Recorded) -> Vec<(&str, u64)> {
        let name = |refusal: &Refusal| match &refusal.object {
            Object::Path(path) => path.to_str().unwrap().to_owned().leak() as &str,
            other => panic!("{other:?}"),
        };
        recorded
            .all
            .iter()
            .map(|(refusal, times)| (name(refusal), *times))
            .collect()
    }

    #[test]
    fn only_what_the_domains_of_the_roll_refused_is_kept() {
        let mut gathered = Gathered::default();
        gathered.stands(10);
        refused(&mut gathered, 0xa, "/ours");
        made(&mut gathered, 0xa, 10);
        refused(&mut gathered, 0xb, "/theirs");
        made(&mut gathered, 0xb, 11);
        refused(&mut gathered, 0xb, "/theirs");
        refused(&mut gathered, 0xa, "/ours");
        refused(&mut gathered, 0xc, "/nobody's");
        let recorded = gathered.told();
        assert_eq!(paths(&recorded), [("/ours", 2)]);
        assert!(!recorded.lost);
        assert_eq!(gathered.told(), Recorded::default());
    }

    #[test]
    fn a_domain_that_the_process_of_a_layer_makes_later_is_the_commands_own() {
        let mut gathered = Gathered::default();
        gathered.stands(10);
        made(&mut gathered, 0xa, 10);
        refused(&mut gathered, 0xb, "/own");
        made(&mut gathered, 0xb, 10);
        assert!(gathered.told().all.is_empty());
    }

    #[test]
    fn a_number_that_is_given_out_again_is_another_process() {
        let mut gathered = Gathered::default();
        gathered.stands(10);
        made(&mut gathered, 0xa, 10);
        gathered.stands(10);
        refused(&mut gathered, 0xa, "/before");
        refused(&mut gathered, 0xb, "/now");
        made(&mut gathered, 0xb, 10);
        assert_eq!(paths(&gathered.told()), [("/now", 1)]);
    }

    #[test]
    fn the_domain_of_a_worker_stays_known_over_any_number_of_commands() {
        let mut gathered = Gathered::default();
        gathered.stands(1);
        made(&mut gathered, 0xa, 1);
        for pid in 2..2000 {
            gathered.stands(pid);
        }
        refused(&mut gathered, 0xa, "/x");
        assert_eq!(paths(&gathered.told()), [("/x", 1)]);
        assert!(gathered.makers.len() <= MOST_MAKERS);
    }

    #[test]
    fn a_flood_of_foreign_records_is_bounded_and_displaces_nothing() {
        let mut gathered = Gathered::default();
        gathered.stands(10);
        made(&mut gathered, 0xa, 10);
        refused(&mut gathered, 0xa, "/ours");
        for domain in 0x100..0x10000 {
            refused(&mut gathered, domain, "/theirs");
        }
        assert!(gathered.waiting.len() <= MOST_WAITING);
        let recorded = gathered.told();
        assert_eq!((paths(&recorded), recorded.lost), (vec![("/ours", 1)], false));
    }

    #[test]
    fn a_flood_of_its_own_is_bounded_and_said() {
        let mut gathered = Gathered::default();
        gathered.stands(10);
        made(&mut gathered, 0xa, 10);
        for number in 0..=MOST {
            refused(&mut gathered, 0xa, &format!("/x{number}"));
        }
        let recorded = gathered.told();
        assert_eq!((recorded.all.len(), recorded.lost), (MOST, true));
    }

    #[test]
    fn a_record_of_landlock_that_cannot_be_read_is_one_that_is_missing() {
        let mut gathered = Gathered::default();
        gathered.take(1300, b"audit(1.1:1): arch=c000003e");
        gathered.take(1424, b"audit(1.1:1): domain=a status=deallocated denials=1");
        assert!(!gathered.told().lost);
        gathered.take(1423, b"audit(1.1:1): domain=a blockers=fs.read_file path=\"/x");
        assert!(gathered.told().lost);
    }

    #[test]
    fn a_refusal_is_told_with_what_was_lacking() {
        let mut gathered = Gathered::default();
        gathered.stands(10);
        refused(&mut gathered, 0xa, "/x");
        made(&mut gathered, 0xa, 10);
        let expected = Refusal {
            blockers: vec![Blocker::Read],
            object: Object::Path(OsString::from("/x")),
        };
        assert_eq!(gathered.told().all, [(expected, 1)]);
    }
}
