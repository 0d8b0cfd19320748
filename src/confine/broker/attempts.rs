//! What a command attempted, within bounds.

use std::collections::HashMap;

use crate::backend::seccomp::{Call, CallKind, DependsOn, Filters, Role};
use crate::confine::wire::attempted::{Attempt, Attempted, FileAccess};

/// The most different attempts that are recorded.
const MAX_ATTEMPTS: usize = 20_000;
/// The most bytes of their paths. With that a report stays well within one message.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Whether an attempt is the command's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It is.
    Yes,
    /// It is Stockade's own, before the command begins.
    No,
}

/// The attempts so far, and how calls are classified.
#[derive(Debug, Default)]
pub struct Attempts {
    /// The filters of a command without recording; `None` where nothing is recorded.
    filters: Option<Filters>,
    /// The sorts of calls that depend on nothing but their number.
    sorts: HashMap<u32, Option<CallKind>>,
    known: HashMap<Attempt, usize>,
    order: Vec<(Attempt, u64)>,
    bytes: usize,
    unexamined: u64,
    /// By thread: its last calls made a socket, as the C library does, twice, to look up a name. They count unless the thread opens
    /// a database of names next.
    in_passing: HashMap<u32, Vec<Attempt>>,
}

/// What the C library opens when nscd does not answer.
const DATABASES: [&str; 9] = [
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/group",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/hosts",
    "/etc/services",
    "/etc/protocols",
    "/etc/netgroup",
];
/// The most such calls of one thread that are kept back, and the most threads of which some are.
const MOST_IN_PASSING: (usize, usize) = (2, 1024);

impl Attempts {
    /// None yet; `filters` are those of a command without recording, if attempts are recorded.
    pub fn of(filters: Option<Filters>) -> Self {
        Self {
            filters,
            ..Self::default()
        }
    }

    pub(super) fn sort(&mut self, data: &libc::seccomp_data) -> Option<CallKind> {
        let Some(filters) = &self.filters else {
            return Some(if super::rename::is_rename(data) {
                CallKind::Attempt
            } else {
                CallKind::Attribute
            });
        };
        let call = Call {
            arch: data.arch,
            nr: u32::try_from(data.nr).ok()?,
            args: data.args,
        };
        if let Some(known) = self.sorts.get(&call.nr) {
            return *known;
        }
        let (sort, depends_on) = CallKind::of(&call, filters.of(Role::Command));
        if depends_on == DependsOn::Number {
            self.sorts.insert(call.nr, sort);
        }
        sort
    }

    pub(super) fn records(&self, origin: Origin) -> bool {
        self.filters.is_some() && origin == Origin::Yes
    }

    pub(super) fn record(&mut self, origin: Origin, attempts: impl IntoIterator<Item = Attempt>) {
        if !self.records(origin) {
            return;
        }
        for attempt in attempts {
            if let Some((_, times)) = self.known.get(&attempt).and_then(|at| self.order.get_mut(*at)) {
                *times = times.saturating_add(1);
                continue;
            }
            let bytes = self.bytes.saturating_add(length(&attempt));
            if self.order.len() >= MAX_ATTEMPTS || bytes > MOST_BYTES {
                self.unexamined = self.unexamined.saturating_add(1);
                continue;
            }
            self.bytes = bytes;
            self.known.insert(attempt.clone(), self.order.len());
            self.order.push((attempt, 1));
        }
    }

    /// Records a call that the filters refuse, once it is known not to be a mere name lookup.
    pub(super) fn record_refused(&mut self, origin: Origin, thread: u32, attempt: Attempt) {
        if !self.records(origin) {
            return;
        }
        let (calls, threads) = MOST_IN_PASSING;
        let kept = self.in_passing.get(&thread).map_or(0, Vec::len);
        if may_be_in_passing(&attempt) && kept < calls && (kept > 0 || self.in_passing.len() < threads) {
            self.in_passing.entry(thread).or_default().push(attempt);
            return;
        }
        self.settle(thread, &[]);
        self.record(origin, [attempt]);
    }

    /// Decides about calls that were kept back, by what their thread does next; a `stat` decides nothing.
    pub(super) fn settle_unless_look(&mut self, thread: u32, next: &[Attempt]) {
        let is_look = |attempt: &Attempt| {
            matches!(
                attempt,
                Attempt::File {
                    access: FileAccess::Look,
                    ..
                }
            )
        };
        if !next.iter().all(is_look) {
            self.settle(thread, next);
        }
    }

    /// The same, whatever it does next.
    pub(super) fn settle(&mut self, thread: u32, next: &[Attempt]) {
        let Some(kept) = self.in_passing.remove(&thread) else {
            return;
        };
        let is_look_up = next.iter().any(|attempt| match attempt {
            Attempt::File { path, .. } => DATABASES.iter().any(|database| path == database),
            Attempt::Reach(_) | Attempt::Call { .. } | Attempt::Node { .. } | Attempt::Exchange(_) => false,
        });
        if !is_look_up {
            self.record(Origin::Yes, kept);
        }
    }

    /// Records that a call could not be read.
    pub(super) fn record_unread(&mut self, origin: Origin) {
        match origin {
            Origin::Yes => self.unexamined = self.unexamined.saturating_add(1),
            Origin::No => {}
        }
    }

    pub fn report(&mut self) -> Attempted {
        let kept: Vec<_> = self.in_passing.drain().flat_map(|(_, attempts)| attempts).collect();
        self.record(Origin::Yes, kept);
        Attempted {
            all: std::mem::take(&mut self.order),
            unexamined: self.unexamined,
        }
    }
}

/// Whether the call may be the C library's request to nscd. libuv and Go make their sockets in the same way.
fn may_be_in_passing(attempt: &Attempt) -> bool {
    let nscd_kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let is = |value: u64, expected: i32| u64::try_from(expected) == Ok(value);
    match attempt {
        Attempt::Call { number, arguments } => {
            let [family, kind, protocol, _] = *arguments;
            let is_socket = i64::from(*number) == libc::SYS_socket;
            is_socket && is(family, libc::AF_UNIX) && is(kind, nscd_kind) && protocol == 0
        }
        Attempt::File { .. } | Attempt::Reach(_) | Attempt::Node { .. } | Attempt::Exchange(_) => false,
    }
}

fn length(attempt: &Attempt) -> usize {
    match attempt {
        Attempt::File { path, .. } | Attempt::Node { path, .. } => path.len(),
        Attempt::Exchange(pair) => pair.iter().map(|(path, _)| path.len()).sum(),
        Attempt::Reach(_) | Attempt::Call { .. } => 0,
    }
}
