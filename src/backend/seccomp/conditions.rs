//! The rows whose answer depends on an argument.
//!
//! Arguments are `int`s to the kernel, so only their low 32 bits are looked at: a comparison of 64
//! would let `socket(2 | 1 << 32)` by.

use libc as l;

use super::attempts::RENAMES;
use super::number as n;
use super::row::{Action, Clause, Condition, Errno, Row, Test};
use super::settings::{Attributes, IpSockets, UnixDomain};
use Test::{Bits, Is, IsNot};

const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
/// `AF_INET` and `AF_INET6`, and no other family: they differ in this bit.
const INET_EITHER: Test = Bits(0, !(AF_INET ^ AF_INET6), AF_INET);

/// Address family, by whether `AF_UNIX` is among the permitted ones.
const NO_FAMILY_BUT_UNIX: &[Clause] = &[&[IsNot(0, AF_UNIX)]];
const NO_FAMILY_BUT_INET: &[Clause] = &[
    &[IsNot(0, AF_INET), IsNot(0, AF_INET6), IsNot(0, AF_NETLINK)],
    &[Is(0, AF_NETLINK), IsNot(2, 0)],
];
const NO_FAMILY_BUT_INET_AND_UNIX: &[Clause] = &[
    &[
        IsNot(0, AF_INET),
        IsNot(0, AF_INET6),
        IsNot(0, AF_NETLINK),
        IsNot(0, AF_UNIX),
    ],
    &[Is(0, AF_NETLINK), IsNot(2, 0)],
];

/// IP sockets other than TCP, UDP and ICMP. Type 4 and above (`SEQPACKET`, `DCCP`) means SCTP or DCCP
/// even with protocol 0; raw sockets stay with the kernel, which asks for a capability.
const ODD_PROTOCOL: &[Clause] = &[
    &[INET_EITHER, Bits(1, 4, 4)],
    &[INET_EITHER, Bits(1, 8, 8)],
    &[
        INET_EITHER,
        IsNot(2, 0),
        IsNot(2, 6),
        IsNot(2, 17),
        IsNot(2, 1),
        IsNot(2, 58),
    ],
];

/// Pairs other than `STREAM` (1) and `SEQPACKET` (5): a datagram pair can be sent anywhere.
const ODD_PAIR: &[Clause] = &[
    &[IsNot(0, AF_UNIX)],
    &[Bits(1, 1, 0)],
    &[Bits(1, 2, 2)],
    &[Bits(1, 8, 8)],
];

const MSG_FASTOPEN: u32 = 0x2000_0000;

/// `CLONE_NEW*` of `clone`, bit by bit.
const NEW_NAMESPACE: &[Clause] = &[
    &[Bits(0, 0x0000_0080, 0x0000_0080)],
    &[Bits(0, 0x0002_0000, 0x0002_0000)],
    &[Bits(0, 0x0200_0000, 0x0200_0000)],
    &[Bits(0, 0x0400_0000, 0x0400_0000)],
    &[Bits(0, 0x0800_0000, 0x0800_0000)],
    &[Bits(0, 0x1000_0000, 0x1000_0000)],
    &[Bits(0, 0x2000_0000, 0x2000_0000)],
    &[Bits(0, 0x4000_0000, 0x4000_0000)],
];

/// Everything but combinations of `CLONE_FS`, `CLONE_FILES` and `CLONE_SYSVSEM`, which share less, not more.
const UNSHARES_A_NAMESPACE: &[Clause] = &[&[
    IsNot(0, 0),
    IsNot(0, 0x200),
    IsNot(0, 0x400),
    IsNot(0, 0x600),
    IsNot(0, 0x4_0000),
    IsNot(0, 0x4_0200),
    IsNot(0, 0x4_0400),
    IsNot(0, 0x4_0600),
]];

const ANOTHER_PID: &[Clause] = &[&[IsNot(0, 0)]];

/// The execution domains that change nothing a filter relies on: none, `ADDR_NO_RANDOMIZE`, `UNAME26`, and the query.
const ODD_PERSONALITY: &[Clause] = &[&[
    IsNot(0, 0),
    IsNot(0, 0x4_0000),
    IsNot(0, 0x2_0000),
    IsNot(0, 0xFFFF_FFFF),
]];

/// `PR_SET_MM`, and `PR_SET_PTRACER`, which lets a tracer in.
const PRCTL: &[Clause] = &[&[Is(0, 35)], &[Is(0, 0x5961_6D61)]];

/// `SECCOMP_FILTER_FLAG_NEW_LISTENER`. Of the operations only the one that installs a filter takes any flags.
const NEW_LISTENER: &[Clause] = &[&[Bits(1, 8, 8)]];

const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
const O_CREAT: u32 = 0o100;
/// The bit of `O_TMPFILE` that is not `O_DIRECTORY`.
const O_TMPFILE: u32 = 0o20_000_000;

const OPENAT_SETUID: &[Clause] = &[
    &[Bits(3, SET_UID, SET_UID), Bits(2, O_CREAT, O_CREAT)],
    &[Bits(3, SET_GID, SET_GID), Bits(2, O_CREAT, O_CREAT)],
    &[Bits(3, SET_UID, SET_UID), Bits(2, O_TMPFILE, O_TMPFILE)],
    &[Bits(3, SET_GID, SET_GID), Bits(2, O_TMPFILE, O_TMPFILE)],
];
/// A mode with such a bit as the second argument, and as the third.
const MODE_SECOND: &[Clause] = &[&[Bits(1, SET_UID, SET_UID)], &[Bits(1, SET_GID, SET_GID)]];
const MODE_THIRD: &[Clause] = &[&[Bits(2, SET_UID, SET_UID)], &[Bits(2, SET_GID, SET_GID)]];

const CHANGES_ANOTHER: &str = "changes another process";
const CHANGES_ATTRIBUTES: &str = "changes attributes, which Landlock does not see";
const SETS_A_SPECIAL_BIT: &str = "may leave a set-uid or set-gid file on the host";
const BROKERED: Condition = Condition::Attributes(Attributes::Brokered);
const MOUNTED: Condition = Condition::Attributes(Attributes::Mounted);

/// A `socket` row for one setting.
const fn socket(ip: IpSockets, unix: UnixDomain, action: Action) -> Row {
    Row::both("no family that could leave the sandbox", &[l::SYS_socket], action)
        .condition(Condition::Sockets(ip, unix))
}

/// The rows of every architecture.
pub(super) const ROWS: &[Row] = &[
    Row::command(
        "may rename onto a private copy, which a mount refuses",
        RENAMES,
        Action::Notify(&[]),
    )
    .condition(Condition::Copies),
    socket(
        IpSockets::Refused,
        UnixDomain::Refused,
        Action::Error(Errno::AfNoSupport),
    ),
    socket(
        IpSockets::Refused,
        UnixDomain::Allowed,
        Action::ErrorIf(Errno::AfNoSupport, NO_FAMILY_BUT_UNIX),
    ),
    socket(
        IpSockets::Allowed,
        UnixDomain::Refused,
        Action::ErrorIf(Errno::AfNoSupport, NO_FAMILY_BUT_INET),
    ),
    socket(
        IpSockets::Allowed,
        UnixDomain::Allowed,
        Action::ErrorIf(Errno::AfNoSupport, NO_FAMILY_BUT_INET_AND_UNIX),
    ),
    // A pair takes a name as well: a file, or an abstract one that a program of the host then finds in use.
    // No program does this with a pair, and where no socket can be made there is nothing but pairs.
    Row::both(
        "gives a pair a name, or looks for one, where pairs are the only sockets",
        &[
            l::SYS_bind,
            l::SYS_listen,
            l::SYS_accept,
            l::SYS_accept4,
            l::SYS_connect,
        ],
        Action::Error(Errno::OpNotSupp),
    )
    .condition(Condition::Sockets(IpSockets::Refused, UnixDomain::Refused)),
    Row::both(
        "rare transports (MPTCP, SCTP, DCCP) are kernel surface; runtimes fall back to TCP",
        &[l::SYS_socket],
        Action::ErrorIf(Errno::ProtoNoSupport, ODD_PROTOCOL),
    )
    .condition(Condition::Ip(IpSockets::Allowed)),
    Row::both(
        "a datagram pair can be sent to any socket that has a path",
        &[l::SYS_socketpair],
        Action::ErrorIf(Errno::AfNoSupport, ODD_PAIR),
    ),
    Row::both(
        "fast open connects without connect",
        &[l::SYS_sendto, l::SYS_sendmmsg],
        Action::ErrorIf(Errno::OpNotSupp, &[&[Bits(3, MSG_FASTOPEN, MSG_FASTOPEN)]]),
    )
    .condition(Condition::Ip(IpSockets::Refused)),
    Row::both(
        "fast open connects without connect",
        &[l::SYS_sendmsg],
        Action::ErrorIf(Errno::OpNotSupp, &[&[Bits(2, MSG_FASTOPEN, MSG_FASTOPEN)]]),
    )
    .condition(Condition::Ip(IpSockets::Refused)),
    Row::both(
        "a new user namespace gives every capability",
        &[l::SYS_clone],
        Action::ErrorIf(Errno::Perm, NEW_NAMESPACE),
    ),
    Row::both(
        "a new user namespace gives every capability",
        &[l::SYS_unshare],
        Action::ErrorIf(Errno::Perm, UNSHARES_A_NAMESPACE),
    ),
    Row::both(
        CHANGES_ANOTHER,
        &[l::SYS_migrate_pages, l::SYS_move_pages],
        Action::ErrorIf(Errno::Perm, ANOTHER_PID),
    ),
    // A thread may name itself by its number, which no filter knows.
    Row::command(
        CHANGES_ANOTHER,
        &[
            l::SYS_sched_setaffinity,
            l::SYS_sched_setscheduler,
            l::SYS_sched_setparam,
            l::SYS_sched_setattr,
            l::SYS_prlimit64,
        ],
        Action::Notify(ANOTHER_PID),
    ),
    // Of one process, of a group, and of every process of the uid.
    Row::command(
        CHANGES_ANOTHER,
        &[l::SYS_setpriority],
        Action::Notify(&[&[Is(0, 0), IsNot(1, 0)]]),
    ),
    Row::both(
        CHANGES_ANOTHER,
        &[l::SYS_setpriority],
        Action::ErrorIf(Errno::Perm, &[&[IsNot(0, 0), IsNot(1, 0)], &[Is(0, 2)]]),
    ),
    Row::command(
        CHANGES_ANOTHER,
        &[l::SYS_ioprio_set],
        Action::Notify(&[&[Is(0, 1), IsNot(1, 0)]]),
    ),
    Row::both(
        CHANGES_ANOTHER,
        &[l::SYS_ioprio_set],
        Action::ErrorIf(Errno::Perm, &[&[IsNot(0, 1), IsNot(1, 0)], &[Is(0, 3)]]),
    ),
    Row::both(
        "makes readable memory executable",
        &[l::SYS_personality],
        Action::ErrorIf(Errno::Perm, ODD_PERSONALITY),
    ),
    // The kernel says the same, but only while the runner's listener is open. A filter without a listener is taken.
    Row::command(
        "takes a listener, which could let attribute calls pass in the runner's place",
        &[l::SYS_seccomp],
        Action::ErrorIf(Errno::Busy, NEW_LISTENER),
    ),
    Row::both("lets a tracer in", &[l::SYS_prctl], Action::ErrorIf(Errno::Perm, PRCTL)),
    Row::both(
        "would leave a set-uid file on the host",
        &[l::SYS_openat],
        Action::ErrorIf(Errno::Perm, OPENAT_SETUID),
    ),
    Row::both(
        "would leave a set-uid file on the host",
        &[l::SYS_mknodat],
        Action::ErrorIf(Errno::Perm, MODE_THIRD),
    ),
    Row::command(
        CHANGES_ATTRIBUTES,
        &[
            l::SYS_fchmod,
            l::SYS_fchmodat,
            n::FCHMODAT2,
            l::SYS_fchown,
            l::SYS_fchownat,
            l::SYS_utimensat,
            l::SYS_setxattr,
            l::SYS_lsetxattr,
            l::SYS_fsetxattr,
            n::SETXATTRAT,
            l::SYS_removexattr,
            l::SYS_lremovexattr,
            l::SYS_fremovexattr,
            n::REMOVEXATTRAT,
        ],
        Action::Notify(&[]),
    )
    .condition(BROKERED),
    // No filter can read which attribute it is.
    Row::command(
        "may give other users access by a list, which nothing would put back",
        &[
            l::SYS_setxattr,
            l::SYS_lsetxattr,
            l::SYS_fsetxattr,
            n::SETXATTRAT,
            l::SYS_removexattr,
            l::SYS_lremovexattr,
            l::SYS_fremovexattr,
            n::REMOVEXATTRAT,
        ],
        Action::Notify(&[]),
    )
    .condition(MOUNTED),
    Row::command(
        SETS_A_SPECIAL_BIT,
        &[l::SYS_fchmodat, n::FCHMODAT2],
        Action::Notify(MODE_THIRD),
    )
    .condition(MOUNTED),
    Row::command(SETS_A_SPECIAL_BIT, &[l::SYS_fchmod], Action::Notify(MODE_SECOND)).condition(MOUNTED),
];

/// The rows of calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
pub(super) const LEGACY: &[Row] = &[
    Row::both(
        "would leave a set-uid file on the host",
        &[l::SYS_open],
        Action::ErrorIf(
            Errno::Perm,
            &[
                &[Bits(2, SET_UID, SET_UID), Bits(1, O_CREAT, O_CREAT)],
                &[Bits(2, SET_GID, SET_GID), Bits(1, O_CREAT, O_CREAT)],
                &[Bits(2, SET_UID, SET_UID), Bits(1, O_TMPFILE, O_TMPFILE)],
                &[Bits(2, SET_GID, SET_GID), Bits(1, O_TMPFILE, O_TMPFILE)],
            ],
        ),
    ),
    Row::both(
        "would leave a set-uid file on the host",
        &[l::SYS_creat, l::SYS_mknod],
        Action::ErrorIf(Errno::Perm, MODE_SECOND),
    ),
    Row::command(
        CHANGES_ATTRIBUTES,
        &[
            l::SYS_chmod,
            l::SYS_chown,
            l::SYS_lchown,
            l::SYS_utime,
            l::SYS_utimes,
            l::SYS_futimesat,
        ],
        Action::Notify(&[]),
    )
    .condition(BROKERED),
    Row::command(SETS_A_SPECIAL_BIT, &[l::SYS_chmod], Action::Notify(MODE_SECOND)).condition(MOUNTED),
];
/// The rows of calls that only this architecture has: none.
#[cfg(target_arch = "aarch64")]
pub(super) const LEGACY: &[Row] = &[];
