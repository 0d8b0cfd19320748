//! The records of some domains among those of the whole machine, within bounds.

use std::collections::{HashMap, VecDeque};

use super::text::{Blocker, Record, Refusal, domain_of_access, is_of_audit, is_of_landlock, parse};

/// The most different refusals that are kept.
const MOST: usize = 20_000;
/// The most bytes of what they name.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// The most refusals that wait for a word about their domain. That comes right behind the first of them; those of sandboxes
/// that were there before nobody ever speaks of again.
const MOST_WAITING: usize = 1024;

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
    /// How many messages there were about the command.
    pub(super) heard: u64,
    /// The process that put on the command's layer, and the domain that it made by that, once the kernel spoke of it.
    command: Option<(i32, Option<u64>)>,
    /// Whether the command was executed: before that its layer is only tried.
    is_executed: bool,
    /// Whether some were lost on the way here, or for lack of room.
    lost: bool,
    /// Whether what was lost can be the word about the command's domain: then another can be taken for it.
    is_void: bool,
    waiting: VecDeque<(u64, Option<Refusal>)>,
    known: HashMap<Refusal, usize>,
    order: Vec<(Refusal, u64)>,
    bytes: usize,
}

impl Gathered {
    /// Takes note that a process has put on the command's layer. It says so before anything is refused by it.
    pub(super) const fn stands(&mut self, pid: i32) {
        self.command = Some((pid, None));
    }

    /// Takes in a message.
    pub(super) fn take(&mut self, kind: u16, text: &[u8]) {
        if is_of_audit(kind) {
            self.distrust();
        }
        if !is_of_landlock(kind) {
            return;
        }
        match parse(kind, text) {
            Some(Record::Access { domain, refusal }) => self.refused(domain, Some(refusal)),
            Some(Record::Made { domain, pid }) => self.made(domain, pid),
            Some(Record::Ended { .. }) => {}
            None => match domain_of_access(kind, text) {
                Some(domain) => self.refused(domain, None),
                None => self.lose(),
            },
        }
    }

    /// Takes note that some are missing.
    pub(super) const fn lose(&mut self) {
        self.lost = true;
        self.is_void |= !self.is_executed;
    }

    /// Takes note that some are missing, and nobody knows when: of what was heard nothing is believed.
    pub(super) const fn distrust(&mut self) {
        self.lost = true;
        self.is_void = true;
    }

    fn made(&mut self, domain: u64, pid: i32) {
        // The first that it is said to have made: a command can make more of its own, and the layer that was put on it has
        // spoken before it is executed.
        match &mut self.command {
            Some((maker, made @ None)) if *maker == pid => *made = Some(domain),
            // The number was another's before, and it is not known which of the two is meant.
            Some((maker, Some(_))) if *maker == pid && !self.is_executed => self.distrust(),
            Some(_) | None => {}
        }
        let is_ours = self.is_ours(domain);
        let mut about = Vec::new();
        self.waiting.retain_mut(|(waits, refusal)| {
            let is_about = *waits == domain;
            if is_about && is_ours {
                about.push(refusal.take());
            }
            !is_about
        });
        for refusal in about {
            self.ours(refusal);
        }
    }

    fn is_ours(&self, domain: u64) -> bool {
        matches!(self.command, Some((_, Some(made))) if made == domain)
    }

    /// Takes in that a domain refused something; nothing where it could not be read what.
    fn refused(&mut self, domain: u64, refusal: Option<Refusal>) {
        if self.is_ours(domain) {
            self.ours(refusal);
        } else {
            if self.waiting.len() >= MOST_WAITING {
                self.waiting.pop_front();
            }
            self.waiting.push_back((domain, refusal));
        }
    }

    /// Takes in what the command's domain refused.
    fn ours(&mut self, refusal: Option<Refusal>) {
        self.heard = self.heard.wrapping_add(1);
        match refusal {
            // The last that is tried in a command's layer is a signal.
            Some(refusal) if !self.is_executed => self.is_executed = refusal.blockers.contains(&Blocker::Signal),
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

    /// All of it so far; what comes from here on is about the next command.
    pub(super) fn told(&mut self) -> Recorded {
        let all = std::mem::take(self);
        if all.is_void || !all.is_executed {
            return Recorded {
                all: Vec::new(),
                lost: true,
            };
        }
        Recorded {
            all: all.order,
            lost: all.lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::text::Object;
    use super::*;

    /// The process and the domain of the command.
    const PID: i32 = 12;
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

    /// A command that was just executed.
    fn executed() -> Gathered {
        let mut gathered = Gathered::default();
        gathered.stands(PID);
        tried(&mut gathered, COMMAND, PID);
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
    fn only_what_the_commands_domain_refused_is_kept() {
        let mut gathered = executed();
        refused(&mut gathered, COMMAND, "/ours");
        refused(&mut gathered, 0xb, "/theirs");
        made(&mut gathered, 0xb, 99);
        refused(&mut gathered, 0xb, "/theirs");
        refused(&mut gathered, COMMAND, "/ours");
        refused(&mut gathered, 0xd, "/nobody's");
        let recorded = gathered.told();
        assert_eq!((paths(&recorded), recorded.lost), (vec![("/ours", 2)], false));
    }

    #[test]
    fn what_is_tried_before_the_command_is_executed_is_not_told() {
        let mut gathered = Gathered::default();
        gathered.stands(PID);
        refused(&mut gathered, COMMAND, "/closed");
        made(&mut gathered, COMMAND, PID);
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
        made(&mut gathered, 0xb, PID);
        refused(&mut gathered, 0xb, "/own");
        assert_eq!(gathered.told(), Recorded::default());
    }

    #[test]
    fn what_comes_late_of_a_command_is_not_told_of_the_next() {
        let mut gathered = executed();
        refused(&mut gathered, COMMAND, "/first");
        assert_eq!(paths(&gathered.told()), [("/first", 1)]);
        refused(&mut gathered, COMMAND, "/late");
        gathered.stands(PID);
        refused(&mut gathered, COMMAND, "/late");
        tried(&mut gathered, 0xd, PID);
        refused(&mut gathered, COMMAND, "/late");
        refused(&mut gathered, 0xd, "/second");
        let recorded = gathered.told();
        assert_eq!((paths(&recorded), recorded.lost), (vec![("/second", 1)], false));
    }

    #[test]
    fn where_nothing_is_heard_of_the_commands_layer_records_are_missing() {
        let mut gathered = Gathered::default();
        gathered.stands(PID);
        refused(&mut gathered, 0xb, "/x");
        let recorded = gathered.told();
        assert_eq!((recorded.all.len(), recorded.lost), (0, true));
    }

    #[test]
    fn where_the_word_about_the_commands_domain_can_be_lost_no_other_is_taken_for_it() {
        let mut gathered = Gathered::default();
        gathered.stands(PID);
        gathered.lose();
        tried(&mut gathered, 0xb, PID);
        refused(&mut gathered, 0xb, "/own");
        let recorded = gathered.told();
        assert_eq!((recorded.all.len(), recorded.lost), (0, true));
        let mut gathered = executed();
        refused(&mut gathered, COMMAND, "/x");
        gathered.distrust();
        let recorded = gathered.told();
        assert_eq!((recorded.all.len(), recorded.lost), (0, true));
    }

    #[test]
    fn where_two_domains_could_be_the_commands_or_audit_is_changed_nothing_is_believed() {
        let mut gathered = Gathered::default();
        gathered.stands(PID);
        made(&mut gathered, 0xb, PID);
        tried(&mut gathered, COMMAND, PID);
        signalled(&mut gathered, 0xb);
        refused(&mut gathered, 0xb, "/foreign");
        assert_eq!(gathered.told().all, []);
        let mut gathered = executed();
        refused(&mut gathered, COMMAND, "/x");
        record(&mut gathered, 1305, "op=set audit_enabled=0 old=1");
        let recorded = gathered.told();
        assert_eq!((recorded.all.len(), recorded.lost), (0, true));
    }

    #[test]
    fn a_reason_that_nobody_knows_yet_is_one_that_is_missing() {
        let mut gathered = executed();
        record(
            &mut gathered,
            1423,
            "domain=c blockers=fs.of_tomorrow path=\"/x\" dev=\"vda\" ino=1",
        );
        let recorded = gathered.told();
        assert_eq!((recorded.all.len(), recorded.lost), (0, true));
    }

    #[test]
    fn what_is_lost_later_takes_nothing_from_what_was_heard() {
        let mut gathered = executed();
        refused(&mut gathered, COMMAND, "/x");
        gathered.lose();
        let recorded = gathered.told();
        assert_eq!((paths(&recorded), recorded.lost), (vec![("/x", 1)], true));
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
    fn a_record_of_the_commands_domain_that_cannot_be_read_is_one_that_is_missing() {
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
        let mut gathered = executed();
        cut(&mut gathered, COMMAND);
        assert!(gathered.told().lost);
        let mut gathered = executed();
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
