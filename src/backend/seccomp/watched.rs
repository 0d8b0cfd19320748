//! Which calls a listener is notified of where a command's attempts are reported, to say why something was denied.
//!
//! Two sorts of calls are added to the attribute calls. An *attempt* has a path or an address in it; nothing here decides
//! about it: it goes on to the kernel, where Landlock and the mounts do. A *refusal* is answered an error by the table: then no
//! filter may give the error itself, because an error comes before a notification. So forker and command both notify
//! instead. The forker has no listener, and the kernel fails the call; a command's listener fails it with the table's error.

use libc as l;

use super::call::{Call, Verdict};
use super::plan::Stack;
use super::reader::{Filter, stacked};
use super::row::{Errno, Say, Standing};
use super::settings::Attempts;

/// What a notified call is, by the filters of a command that nobody looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// It changes an attribute: the broker judges it and performs it.
    Attribute,
    /// They refuse it, with this error.
    Refused(u16),
    /// They let it go on.
    Attempt,
}

/// What a call's sort hangs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whatever {
    /// It is the same whatever the arguments are.
    Arguments,
    /// It is that of these arguments.
    Nothing,
}

impl Sort {
    /// The sort of a call, and whether it hangs on its arguments; `None` where the filters cannot be read, or would kill.
    pub fn of(call: &Call, filters: Stack<'_>) -> (Option<Self>, Whatever) {
        let Ok(filters) = filters.programs().map(Filter::read).collect::<Result<Vec<_>, _>>() else {
            return (None, Whatever::Arguments);
        };
        let whatever = if filters.iter().all(|filter| filter.enter(call).constant().is_some()) {
            Whatever::Arguments
        } else {
            Whatever::Nothing
        };
        (Self::by(call, stacked(&filters, call)), whatever)
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

/// The calls with a path or an address in them that do more than look.
const DEEDS: &[i64] = &[
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
const OLDER_DEEDS: &[i64] = &[
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
const OLDER_DEEDS: &[i64] = &[l::SYS_renameat];

/// The calls with a path in them that only look.
const LOOKS: &[i64] = &[
    l::SYS_newfstatat,
    l::SYS_statx,
    l::SYS_faccessat,
    l::SYS_faccessat2,
    l::SYS_readlinkat,
    l::SYS_chdir,
];
/// Those that only this architecture has.
#[cfg(target_arch = "x86_64")]
const OLDER_LOOKS: &[i64] = &[l::SYS_stat, l::SYS_lstat, l::SYS_access, l::SYS_readlink];
#[cfg(target_arch = "aarch64")]
const OLDER_LOOKS: &[i64] = &[];

/// The calls that are answered `ENOSYS` and that no other call stands in for.
const WITHOUT_SUBSTITUTE: &[i64] = &[
    l::SYS_add_key,
    l::SYS_request_key,
    l::SYS_keyctl,
    l::SYS_shmget,
    l::SYS_msgget,
    l::SYS_semget,
    l::SYS_mq_open,
];

/// The calls that go on where their filters allow them.
fn attempts(heard: Attempts) -> impl Iterator<Item = i64> {
    let (deeds, looks): ([&[i64]; 2], [&[i64]; 2]) = match heard {
        Attempts::Unseen => ([&[], &[]], [&[], &[]]),
        Attempts::Watched => ([DEEDS, OLDER_DEEDS], [&[], &[]]),
        Attempts::WatchedWithLooks => ([DEEDS, OLDER_DEEDS], [LOOKS, OLDER_LOOKS]),
    };
    deeds.into_iter().chain(looks).flatten().copied()
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

/// What a row says of a call when attempts are reported.
///
/// `ENOSYS` leads programs to another call, and is no news, where there is one. Nor is what an attempt may not carry along: it would have to go
/// on to the kernel for its other arguments.
pub(super) fn told(number: i64, say: Say) -> Say {
    let is_news = |errno| match errno {
        Errno::Perm | Errno::AfNoSupport | Errno::OpNotSupp => true,
        Errno::NoSys => WITHOUT_SUBSTITUTE.contains(&number),
        Errno::ProtoNoSupport | Errno::Busy => false,
    };
    match say {
        Say::Always(errno) if is_news(errno) => Say::Told(&[]),
        Say::When(errno, clauses) if is_news(errno) && !is_attempt(number) => Say::Told(clauses),
        Say::Allow | Say::Notify(_) | Say::Always(_) | Say::When(..) | Say::Told(_) => say,
    }
}

/// Has a command's filters notify of every attempt that is heard of and that the table does not refuse whatever its arguments.
pub(super) fn look_at_attempts(by_number: &mut [Vec<Standing>], heard: Attempts) {
    for number in attempts(heard) {
        let list = usize::try_from(number).ok().and_then(|index| by_number.get_mut(index));
        if let Some(list) = list
            && !list
                .iter()
                .any(|standing| matches!(standing.say, Say::Told(_) | Say::Notify(_)))
        {
            list.push(Standing {
                reason: "has a path or an address in it, which somebody wants to hear of",
                say: Say::Notify(&[]),
            });
        }
    }
}
