//! The calls of which a listener is notified if a command's attempts are reported, to explain denials.
//!
//! Two kinds of calls are added to the attribute calls. An *attempt* has a path or an address; it continues to the kernel,
//! where Landlock and mounts decide. A *refusal* fails by the table. No filter may return its error, because an error takes
//! precedence over a notification, so the filters of forker and command both notify. The forker has no listener, so the
//! kernel fails the call; a command's listener fails it with the error of the table.

use libc as l;

use super::call::{Call, Verdict};
use super::plan::Stack;
use super::reader::{Filter, stacked};
use super::row::{Action, ActiveRow, Errno};
use super::settings::Attempts;

/// The kind of a notified call, by the filters of a command whose attempts are not reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// It changes an attribute: the broker judges it and performs it.
    Attribute,
    /// The filters refuse it, with this error.
    Refused(u16),
    /// The filters allow it.
    Attempt,
}

/// What the kind of a call depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DependsOn {
    /// The number of the call alone.
    Number,
    /// Its arguments too.
    Arguments,
}

impl CallKind {
    /// The kind of a call, and what it depends on; `None` if the filters cannot be read, or would kill.
    pub fn of(call: &Call, filters: Stack<'_>) -> (Option<Self>, DependsOn) {
        let Ok(filters) = filters.programs().map(Filter::read).collect::<Result<Vec<_>, _>>() else {
            return (None, DependsOn::Number);
        };
        let depends_on = if filters.iter().all(|filter| filter.enter(call).constant().is_some()) {
            DependsOn::Number
        } else {
            DependsOn::Arguments
        };
        (Self::by(call, stacked(&filters, call)), depends_on)
    }

    fn by(call: &Call, verdict: Verdict) -> Option<Self> {
        match verdict {
            Verdict::Allow if is_attempt(call.nr.into()) => Some(Self::Attempt),
            Verdict::Notify if is_rename(call.nr.into()) => Some(Self::Attempt),
            Verdict::Notify => Some(Self::Attribute),
            Verdict::Errno(errno) => Some(Self::Refused(errno)),
            Verdict::Allow
            | Verdict::Log
            | Verdict::Trace
            | Verdict::Trap
            | Verdict::KillThread
            | Verdict::KillProcess => None,
        }
    }
}

/// The calls with a path or an address that do more than look it up.
const ATTEMPTS: &[i64] = &[
    l::SYS_openat,
    l::SYS_execve,
    l::SYS_execveat,
    l::SYS_truncate,
    l::SYS_renameat2,
    l::SYS_linkat,
    l::SYS_symlinkat,
    l::SYS_unlinkat,
    l::SYS_mkdirat,
    l::SYS_mknodat,
    l::SYS_connect,
    l::SYS_bind,
    l::SYS_sendto,
];
/// Those that only this architecture has.
#[cfg(target_arch = "x86_64")]
const OLDER_ATTEMPTS: &[i64] = &[
    l::SYS_open,
    l::SYS_creat,
    l::SYS_rename,
    l::SYS_renameat,
    l::SYS_link,
    l::SYS_symlink,
    l::SYS_unlink,
    l::SYS_rmdir,
    l::SYS_mkdir,
    l::SYS_mknod,
];
#[cfg(target_arch = "aarch64")]
const OLDER_ATTEMPTS: &[i64] = &[l::SYS_renameat];

/// The calls that only look up a path.
const LOOKUPS: &[i64] = &[
    l::SYS_newfstatat,
    l::SYS_statx,
    l::SYS_faccessat,
    l::SYS_faccessat2,
    l::SYS_readlinkat,
    l::SYS_chdir,
];
/// Those that only this architecture has.
#[cfg(target_arch = "x86_64")]
const OLDER_LOOKUPS: &[i64] = &[l::SYS_stat, l::SYS_lstat, l::SYS_access, l::SYS_readlink];
#[cfg(target_arch = "aarch64")]
const OLDER_LOOKUPS: &[i64] = &[];

/// The calls that fail with `ENOSYS` and have no substitute.
const WITHOUT_SUBSTITUTE: &[i64] = &[
    l::SYS_add_key,
    l::SYS_request_key,
    l::SYS_keyctl,
    l::SYS_shmget,
    l::SYS_msgget,
    l::SYS_semget,
    l::SYS_mq_open,
];

/// The calls that continue to the kernel if the filters allow them.
fn attempts(level: Attempts) -> impl Iterator<Item = i64> {
    let (attempts, lookups): ([&[i64]; 2], [&[i64]; 2]) = match level {
        Attempts::Unseen => ([&[], &[]], [&[], &[]]),
        Attempts::Watched => ([ATTEMPTS, OLDER_ATTEMPTS], [&[], &[]]),
        Attempts::WatchedWithLooks => ([ATTEMPTS, OLDER_ATTEMPTS], [LOOKUPS, OLDER_LOOKUPS]),
    };
    attempts.into_iter().chain(lookups).flatten().copied()
}

/// The calls that rename.
#[cfg(target_arch = "x86_64")]
pub(super) const RENAMES: &[i64] = &[l::SYS_rename, l::SYS_renameat, l::SYS_renameat2];
#[cfg(target_arch = "aarch64")]
pub(super) const RENAMES: &[i64] = &[l::SYS_renameat, l::SYS_renameat2];

/// Whether a call renames.
pub(crate) fn is_rename(number: i64) -> bool {
    RENAMES.contains(&number)
}

fn is_attempt(number: i64) -> bool {
    attempts(Attempts::WatchedWithLooks).any(|attempt| attempt == number)
}

/// The action of a row when attempts are reported.
///
/// `ENOSYS` is not reported if programs have a substitute. Refused arguments of an attempt are not either: with other
/// arguments the call must continue to the kernel.
pub(super) fn reported_action(number: i64, action: Action) -> Action {
    let is_news = |errno| match errno {
        Errno::Perm | Errno::AfNoSupport | Errno::OpNotSupp => true,
        Errno::NoSys => WITHOUT_SUBSTITUTE.contains(&number),
        Errno::ProtoNoSupport | Errno::Busy => false,
    };
    match action {
        Action::Error(errno) if is_news(errno) => Action::Report(&[]),
        Action::ErrorIf(errno, clauses) if is_news(errno) && !is_attempt(number) => Action::Report(clauses),
        Action::Allow | Action::Notify(_) | Action::Error(_) | Action::ErrorIf(..) | Action::Report(_) => action,
    }
}

/// Adds a notification for every attempt that is reported and that the table does not always refuse.
pub(super) fn notify_attempts(by_number: &mut [Vec<ActiveRow>], level: Attempts) {
    for number in attempts(level) {
        let list = usize::try_from(number).ok().and_then(|index| by_number.get_mut(index));
        if let Some(list) = list
            && !list
                .iter()
                .any(|active_row| matches!(active_row.action, Action::Report(_) | Action::Notify(_)))
        {
            list.push(ActiveRow {
                reason: "has a path or an address in it, which somebody wants to hear of",
                action: Action::Notify(&[]),
            });
        }
    }
}
