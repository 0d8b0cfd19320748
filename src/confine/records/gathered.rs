//! The records of some domains among those of the whole machine, within bounds.

use std::collections::{HashMap, VecDeque};

use super::roll::Signer;
use super::text::{Blocker, Record, Refusal, domain_of_access, is_of_landlock, parse};

/// The most different refusals that are kept.
const MOST: usize = 20_000;
/// The most bytes of what they name.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// The most refusals that wait for a word about their domain. That comes right behind the first of them; those of sandboxes
/// that were there before nobody ever speaks of again.
const MOST_WAITING: usize = 1024;
/// The most processes that are known to have put on a layer: there are three, the worker, the runner and the command.
const MOST_MAKERS: usize = 16;

/// What the kernel recorded of a command's denials.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    /// What was refused, and how often, in the order of the first time.
    pub all: Vec<(Refusal, u64)>,
    /// Whether some are missing.
    pub lost: bool,
}

/// A process that put on a layer of Stockade's.
#[derive(Debug)]
struct Maker {
    pid: i32,
    signer: Signer,
    /// The domain that it made by that, once the kernel spoke of it.
    domain: Option<u64>,
}

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// How many messages of Landlock's there were.
    pub(super) heard: u64,
    /// The worker before all others.
    makers: Vec<Maker>,
    /// Whether the command was executed: before that its layer is only tried.
    is_executed: bool,
    /// Whether some were lost on the way here, or for lack of room.
    lost: bool,
    /// Whether the one word about the worker's domain can be among what was lost.
    is_blind: bool,
    waiting: VecDeque<(u64, Option<Refusal>)>,
    known: HashMap<Refusal, usize>,
    order: Vec<(Refusal, u64)>,
    bytes: usize,
}

impl Gathered {
    /// Takes note that a process has put on a layer. It says so before anything is refused by it.
    pub(super) fn stands(&mut self, pid: i32, signer: Signer) {
        // Numbers are given out again.
        self.makers.retain(|maker| maker.pid != pid);
        if self.makers.len() >= MOST_MAKERS {
            self.makers.remove(1);
        }
        self.makers.push(Maker {
            pid,
            signer,
            domain: None,
        });
    }

    /// Forgets all but the worker: what comes from here on is about the next command.
    pub(super) fn begin(&mut self) {
        self.makers.truncate(1);
        self.is_executed = false;
        let _earlier = self.told();
    }

    /// Takes in a message.
    pub(super) fn take(&mut self, kind: u16, text: &[u8]) {
        if !is_of_landlock(kind) {
            return;
        }
        self.heard = self.heard.wrapping_add(1);
        match parse(kind, text) {
            Some(Record::Access { domain, refusal }) => self.refused(domain, Some(refusal)),
            Some(Record::Made { domain, pid }) => self.made(domain, pid),
            Some(Record::Ended { domain }) => self.makers.retain(|maker| maker.domain != Some(domain)),
            None => match domain_of_access(kind, text) {
                Some(domain) => self.refused(domain, None),
                None => self.lose(),
            },
        }
    }

    /// Takes note that some are missing.
    pub(super) fn lose(&mut self) {
        self.lost = true;
        self.is_blind |= self.makers.first().is_none_or(|worker| worker.domain.is_none());
    }

    fn made(&mut self, domain: u64, pid: i32) {
        // The first that it is said to have made: a command can make more of its own, and its own layer has spoken before it is
        // executed.
        let maker = self.makers.iter_mut().find(|maker| maker.pid == pid);
        if let Some(maker) = maker
            && maker.domain.is_none()
        {
            maker.domain = Some(domain);
        }
        self.is_blind &= self.makers.first().is_none_or(|worker| worker.domain.is_none());
        let signer = self.signer(domain);
        let mut about = Vec::new();
        self.waiting.retain_mut(|(waits, refusal)| {
            let is_about = *waits == domain;
            if is_about && signer.is_some() {
                about.push(refusal.take());
            }
            !is_about
        });
        if let Some(signer) = signer {
            for refusal in about {
                self.ours(signer, refusal);
            }
        }
    }

    /// Who made a domain, if it is one of the roll.
    fn signer(&self, domain: u64) -> Option<Signer> {
        let maker = self.makers.iter().find(|maker| maker.domain == Some(domain));
        maker.map(|maker| maker.signer)
    }

    /// Takes in that a domain refused something; nothing where it could not be read what.
    fn refused(&mut self, domain: u64, refusal: Option<Refusal>) {
        if let Some(signer) = self.signer(domain) {
            self.ours(signer, refusal);
        } else {
            if self.waiting.len() >= MOST_WAITING {
                self.waiting.pop_front();
            }
            self.waiting.push_back((domain, refusal));
        }
    }

    /// Takes in what a domain of the roll refused.
    fn ours(&mut self, signer: Signer, refusal: Option<Refusal>) {
        match refusal {
            // The last that is tried in a command's layer is a signal. What came before is that trial, or late and about
            // the command before.
            Some(refusal) if !self.is_executed => {
                self.is_executed = signer == Signer::Executes && refusal.blockers.contains(&Blocker::Signal);
            }
            None if !self.is_executed => {}
            Some(refusal) => self.keep(refusal),
            None => self.lose(),
        }
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

    /// Whether anything was heard of the command's own layer, which is tried each time.
    pub(super) const fn is_executed(&self) -> bool {
        self.is_executed
    }

    /// All of it so far.
    pub(super) fn told(&mut self) -> Recorded {
        self.known.clear();
        self.bytes = 0;
        self.waiting.clear();
        let lost = std::mem::take(&mut self.lost) || self.is_blind || !self.is_executed;
        Recorded {
            all: std::mem::take(&mut self.order),
            lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::text::Object;
    use super::*;

    /// The worker, the runner and the command.
    const PIDS: [i32; 3] = [10, 11, 12];
    /// The domains of the worker and of the command.
    const WORKER: u64 = 0xa;
    const COMMAND: u64 = 0xc;

    fn record(gathered: &mut Gathered, kind: u16, words: &str) {
        gathered.take(kind, format!("audit(1795461852.146:284): {words}").as_bytes());
    }

    fn refused(gathered: &mut Gathered, domain: u64, path: &str) {
        let words = format!("domain={domain:x} blockers=fs.read_file path=\"{path}\" dev=\"vda\" ino=1");
        record(gathered, 1423, &words);
    }

    fn signalled(gathered: &mut Gathered, domain: u64) {
        let words = format!("domain={domain:x} blockers=scope.signal opid=11 ocomm=\"stockade-run\"");
        record(gathered, 1423, &words);
    }

    fn made(gathered: &mut Gathered, domain: u64, pid: i32) {
        let words = format!(
            "domain={domain:x} status=allocated mode=enforcing pid={pid} uid=0 exe=\"/usr/bin/stockade\" comm=\"stockade-work\""
        );
        record(gathered, 1424, &words);
    }

    /// The command's layer is tried: that is what is heard before it is executed.
    fn tried(gathered: &mut Gathered, domain: u64, pid: i32) {
        signalled(gathered, domain);
        made(gathered, domain, pid);
    }

    /// A worker, and a command that was just executed.
    fn executed() -> Gathered {
        let mut gathered = Gathered::default();
        gathered.stands(PIDS[0], Signer::Stays);
        gathered.begin();
        gathered.stands(PIDS[1], Signer::Stays);
        gathered.stands(PIDS[2], Signer::Executes);
        tried(&mut gathered, COMMAND, PIDS[2]);
        gathered
    }

    fn paths(recorded: &Recorded) -> Vec<(&str, u64)> {
        let name = |refusal: &Refusal| match &refusal.object {
            Object::Path(path) => path.to_str().unwrap().to_owned().leak() as &str,
            other => panic!("{other:?}"),
        };
        let all = recorded.all.iter();
        all.map(|(refusal, times)| (name(refusal), *times)).collect()
    }

    #[test]
    fn only_what_the_domains_of_the_roll_refused_is_kept() {
        let mut gathered = executed();
        refused(&mut gathered, WORKER, "/ours");
        made(&mut gathered, WORKER, PIDS[0]);
        refused(&mut gathered, 0xb, "/theirs");
        made(&mut gathered, 0xb, 99);
        refused(&mut gathered, 0xb, "/theirs");
        refused(&mut gathered, COMMAND, "/ours");
        refused(&mut gathered, 0xd, "/nobody's");
        let recorded = gathered.told();
        assert_eq!(paths(&recorded), [("/ours", 2)]);
        assert!(!recorded.lost);
        assert_eq!(gathered.told(), Recorded::default());
    }

    #[test]
    fn what_is_tried_before_the_command_is_executed_is_not_told() {
        let mut gathered = Gathered::default();
        gathered.stands(PIDS[0], Signer::Stays);
        gathered.begin();
        gathered.stands(PIDS[2], Signer::Executes);
        refused(&mut gathered, COMMAND, "/closed");
        made(&mut gathered, COMMAND, PIDS[2]);
        signalled(&mut gathered, COMMAND);
        signalled(&mut gathered, COMMAND);
        let recorded = gathered.told();
        assert_eq!((recorded.all.len(), recorded.lost), (1, false), "{recorded:?}");
        assert_eq!(recorded.all[0].0.blockers, [Blocker::Signal]);
    }

    #[test]
    fn a_layer_that_a_command_puts_on_itself_is_not_taken_for_the_one_that_was_put_on_it() {
        let mut gathered = executed();
        refused(&mut gathered, 0xb, "/own");
        made(&mut gathered, 0xb, PIDS[2]);
        refused(&mut gathered, 0xb, "/own");
        assert_eq!(gathered.told(), Recorded::default());
    }

    #[test]
    fn what_comes_late_of_a_command_is_not_told_of_the_next() {
        let mut gathered = executed();
        refused(&mut gathered, WORKER, "/first");
        made(&mut gathered, WORKER, PIDS[0]);
        assert_eq!(paths(&gathered.told()), [("/first", 1)]);
        gathered.begin();
        refused(&mut gathered, WORKER, "/late");
        gathered.stands(22, Signer::Executes);
        refused(&mut gathered, COMMAND, "/late");
        tried(&mut gathered, 0xd, 22);
        refused(&mut gathered, COMMAND, "/late");
        refused(&mut gathered, WORKER, "/second");
        let recorded = gathered.told();
        assert_eq!((paths(&recorded), recorded.lost), (vec![("/second", 1)], false));
    }

    #[test]
    fn where_nothing_is_heard_of_the_commands_layer_records_are_missing() {
        let mut gathered = Gathered::default();
        gathered.stands(PIDS[0], Signer::Stays);
        gathered.begin();
        gathered.stands(PIDS[2], Signer::Executes);
        refused(&mut gathered, WORKER, "/x");
        made(&mut gathered, WORKER, PIDS[0]);
        let recorded = gathered.told();
        assert_eq!((recorded.all.len(), recorded.lost), (0, true));
    }

    #[test]
    fn what_is_lost_before_the_workers_domain_is_known_stays_lost_until_it_is() {
        let mut gathered = executed();
        gathered.lose();
        assert!(gathered.told().lost);
        for pid in [22, 23] {
            gathered.begin();
            gathered.stands(pid, Signer::Executes);
            tried(&mut gathered, 0x100 + u64::try_from(pid).unwrap(), pid);
            assert!(gathered.told().lost);
        }
        made(&mut gathered, WORKER, PIDS[0]);
        assert!(!gathered.told().lost);
        gathered.lose();
        assert!(gathered.told().lost);
        assert!(!gathered.told().lost);
    }

    #[test]
    fn a_number_that_is_given_out_again_is_another_process() {
        let mut gathered = executed();
        gathered.begin();
        gathered.stands(PIDS[2], Signer::Executes);
        tried(&mut gathered, 0xd, PIDS[2]);
        refused(&mut gathered, COMMAND, "/before");
        refused(&mut gathered, 0xd, "/now");
        assert_eq!(paths(&gathered.told()), [("/now", 1)]);
    }

    #[test]
    fn the_domain_of_a_worker_stays_known_over_any_number_of_commands() {
        let mut gathered = executed();
        refused(&mut gathered, WORKER, "/x");
        made(&mut gathered, WORKER, PIDS[0]);
        for pid in 100..2000 {
            gathered.stands(pid, Signer::Stays);
        }
        refused(&mut gathered, WORKER, "/x");
        assert_eq!(paths(&gathered.told()), [("/x", 2)]);
        assert!(gathered.makers.len() <= MOST_MAKERS);
    }

    #[test]
    fn a_flood_of_foreign_records_is_bounded_and_displaces_nothing() {
        let mut gathered = executed();
        refused(&mut gathered, COMMAND, "/ours");
        for domain in 0x100..0x10000 {
            refused(&mut gathered, domain, "/theirs");
        }
        assert!(gathered.waiting.len() <= MOST_WAITING);
        let recorded = gathered.told();
        assert_eq!((paths(&recorded), recorded.lost), (vec![("/ours", 1)], false));
    }

    #[test]
    fn a_flood_of_its_own_is_bounded_and_said() {
        let mut gathered = executed();
        for number in 0..=MOST {
            refused(&mut gathered, COMMAND, &format!("/x{number}"));
        }
        let recorded = gathered.told();
        assert_eq!((recorded.all.len(), recorded.lost), (MOST, true));
    }

    #[test]
    fn a_record_of_a_domain_of_the_roll_that_cannot_be_read_is_one_that_is_missing() {
        let cut = |gathered: &mut Gathered, domain: u64| {
            record(
                gathered,
                1423,
                &format!("domain={domain:x} blockers=fs.read_file path=\"/x"),
            );
        };
        let mut gathered = executed();
        record(&mut gathered, 1300, "arch=c000003e");
        record(&mut gathered, 1424, "domain=d status=deallocated denials=1");
        cut(&mut gathered, 0xd);
        assert!(!gathered.told().lost);
        cut(&mut gathered, COMMAND);
        assert!(gathered.told().lost);
        cut(&mut gathered, WORKER);
        made(&mut gathered, WORKER, PIDS[0]);
        assert!(gathered.told().lost);
        record(&mut gathered, 1424, "nobody knows");
        assert!(gathered.told().lost);
    }

    #[test]
    fn a_refusal_is_told_with_what_was_lacking() {
        let mut gathered = executed();
        refused(&mut gathered, COMMAND, "/x");
        let expected = Refusal {
            blockers: vec![Blocker::Read],
            object: Object::Path(OsString::from("/x")),
        };
        assert_eq!(gathered.told().all, [(expected, 1)]);
    }
}
