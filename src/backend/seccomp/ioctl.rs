//! The rows of `ioctl` and `fcntl`, by request.
//!
//! The request is an `int` to the kernel, so only its low 32 bits are looked at. Its second byte is
//! the type: the driver it is meant for. A type is refused whole where most of it is harmful.

use libc as l;

use super::row::{Action, Clause, Condition, Errno, Row, Test};
use super::settings::IpSockets;
use Test::{Bits, Is, IsNot};

/// `ioctl` requests that are refused under every setting.
const IOCTLS: &[Clause] = &[
    // Input to, or a hold over, a terminal that others use.
    &[Is(1, 0x5412)], // TIOCSTI
    &[Is(1, 0x541C)], // TIOCLINUX
    &[Is(1, 0x5423)], // TIOCSETD
    &[Is(1, 0x541D)], // TIOCCONS
    // Attributes of a file through a descriptor open for reading.
    &[Is(1, 0x4008_7602)], // FS_IOC_SETVERSION
    &[Is(1, 0x4004_7602)], // FS_IOC32_SETVERSION
    &[Is(1, 0x4004_7211)], // FAT_IOCTL_SET_ATTRIBUTES
    // Type 'X': all but FS_IOC_FSGETXATTR.
    &[Bits(1, 0xFF00, 0x5800), IsNot(1, 0x801C_581F)],
    // Type 'f': all but the ones that read (GETFLAGS, GETFLAGS of 32 bits, FIEMAP, EXT4 GETVERSION,
    // GET_ENCRYPTION_POLICY_EX, MEASURE_VERITY). SETFLAGS and ENABLE_VERITY are of this type.
    &[
        Bits(1, 0xFF00, 0x6600),
        IsNot(1, 0x8008_6601),
        IsNot(1, 0x8004_6601),
        IsNot(1, 0xC020_660B),
        IsNot(1, 0x8008_6603),
        IsNot(1, 0xC009_6616),
        IsNot(1, 0xC004_6686),
    ],
    // Type 0x94, btrfs and the generic ones: all but FICLONE, FICLONERANGE, FIDEDUPERANGE.
    &[
        Bits(1, 0xFF00, 0x9400),
        IsNot(1, 0x4004_9409),
        IsNot(1, 0x4020_940D),
        IsNot(1, 0xC018_9436),
    ],
];

/// What any socket, also a pair, tells and does of the machine's interfaces: names, addresses, hardware.
/// `FIONREAD` and its kin are requests of a terminal's type, so a pair keeps them.
const INTERFACES: &[Clause] = &[
    &[Bits(1, 0xFF00, 0x8900)],
    // Wireless.
    &[Bits(1, 0xFF00, 0x8B00)],
];

const F_SETLEASE: u32 = 1024;
const F_NOTIFY: u32 = 1026;
/// A lease on a directory as well; since Linux 6.19.
const F_SETDELEG: u32 = 1040;

/// The rows of every architecture.
pub(super) const ROWS: &[Row] = &[
    Row::both(
        "speaks to a terminal, or changes attributes",
        &[l::SYS_ioctl],
        Action::ErrorIf(Errno::Perm, IOCTLS),
    ),
    Row::both(
        "shows the machine's network, which is off",
        &[l::SYS_ioctl],
        Action::ErrorIf(Errno::Perm, INTERFACES),
    )
    .condition(Condition::Ip(IpSockets::Refused)),
    Row::command(
        "a lease on a file that may only be read keeps its writers waiting",
        &[l::SYS_fcntl],
        Action::ErrorIf(Errno::Perm, &[&[Is(1, F_SETLEASE)], &[Is(1, F_SETDELEG)]]),
    ),
    Row::command(
        "sends signals on what others do in a directory; inotify tells the same without",
        &[l::SYS_fcntl],
        Action::ErrorIf(Errno::Perm, &[&[Is(1, F_NOTIFY)]]),
    ),
];
