//! What programs ask in passing and do without: it is denied, and mostly no command fails for it.

use super::command_result::CommandResult;
use crate::confine::wire::attempted::Arguments;
use crate::policy::AbsPath;

/// Where runtimes look how much memory and processor time they are given.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// What cargo locks and notes in its home, and does without.
const OF_CARGO: [&str; 3] = [".package-cache", ".package-cache-mutate", ".global-cache"];
/// The caller's own directory in `/proc`.
const ITSELF: &str = "/proc/self";

/// Whether the path is asked for by runtimes that size themselves, and take the whole machine where there is no answer; or, of a
/// command that succeeded, is what the kernel says of the command itself, or a lock of cargo's.
pub(super) fn is_probe(path: &AbsPath, command_result: CommandResult) -> bool {
    let is_of_cargo = || OF_CARGO.iter().any(|name| path.name().is_some_and(|own| own == *name));
    path.as_path().starts_with(CONTROL_GROUPS)
        || command_result == CommandResult::Succeeded && (is_own_proc(path) || is_of_cargo())
}

/// Whether the path is what the kernel says of the one who asks.
pub(super) fn is_own_proc(path: &AbsPath) -> bool {
    path.as_path().starts_with(ITSELF)
}

/// Whether the call is how the C library lists network interfaces.
pub(super) fn is_probe_call(number: u32, [family, kind, protocol, _]: Arguments) -> bool {
    let is = |value: u64, expected: i32| u64::try_from(expected) == Ok(value);
    let raw = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    let interfaces = is(family, libc::AF_NETLINK) && is(kind, raw) && is(protocol, libc::NETLINK_ROUTE);
    i64::from(number) == libc::SYS_socket && interfaces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_in_passing_is_idle() {
        let at = |path: &str| is_probe(&AbsPath::new(path).unwrap(), CommandResult::Failed);
        assert!(at("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
        assert!(!at("/sys/fs/cgroups") && !at("/sys/fs") && !at("/sys/kernel"));
        let speaks = |number: i64, family: i32, kind: i32, protocol: i32| {
            let of = |value: i32| u64::try_from(value).unwrap();
            is_probe_call(u32::try_from(number).unwrap(), [of(family), of(kind), of(protocol), 0])
        };
        let call = |number, family, kind| speaks(number, family, kind, 0);
        let raw = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        assert!(!speaks(libc::SYS_socket, libc::AF_NETLINK, raw, libc::NETLINK_AUDIT));
        assert!(call(libc::SYS_socket, libc::AF_NETLINK, raw));
        assert!(!call(libc::SYS_socket, libc::AF_NETLINK, libc::SOCK_RAW));
        assert!(!call(libc::SYS_socket, libc::AF_PACKET, raw));
        assert!(!call(libc::SYS_socketpair, libc::AF_NETLINK, raw));
        assert!(!call(
            libc::SYS_socket,
            libc::AF_UNIX,
            libc::SOCK_STREAM | libc::SOCK_CLOEXEC
        ));
    }
}
