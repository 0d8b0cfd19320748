//! `LANDLOCK_ACCESS_FS_*`: the kernel's bits, and what they mean for an operation.

use super::plan::Beneath;
use crate::policy::Operation;

/// `execve`.
pub const EXECUTE: u64 = 1;
/// Opening a file for writing.
pub const WRITE_FILE: u64 = 1 << 1;
/// Opening a file for reading.
pub const READ_FILE: u64 = 1 << 2;
/// Listing a directory.
pub const READ_DIR: u64 = 1 << 3;
/// Removing or renaming away a directory.
pub const REMOVE_DIR: u64 = 1 << 4;
/// Removing or renaming away anything else.
pub const REMOVE_FILE: u64 = 1 << 5;
/// Making a character device.
pub const MAKE_CHAR: u64 = 1 << 6;
/// Making a directory.
pub const MAKE_DIR: u64 = 1 << 7;
/// Making a regular file.
pub const MAKE_REG: u64 = 1 << 8;
/// Making a Unix socket.
pub const MAKE_SOCK: u64 = 1 << 9;
/// Making a FIFO.
pub const MAKE_FIFO: u64 = 1 << 10;
/// Making a block device.
pub const MAKE_BLOCK: u64 = 1 << 11;
/// Making a symbolic link.
pub const MAKE_SYM: u64 = 1 << 12;
/// Renaming or linking between directories (ABI 2).
pub const REFER: u64 = 1 << 13;
/// Truncating a file (ABI 3).
pub const TRUNCATE: u64 = 1 << 14;
/// `ioctl` on devices (ABI 5).
pub const IOCTL_DEV: u64 = 1 << 15;
/// Connecting to a pathname Unix socket (ABI 9).
pub const RESOLVE_UNIX: u64 = 1 << 16;

/// The ABI from which a layer has scopes: signals and abstract sockets.
pub const SCOPE_ABI: u32 = 6;
/// The oldest ABI of the regime, which has nothing but scopes to hold either.
pub const OLDEST_ABI: u32 = SCOPE_ABI;
/// The ABI from which TCP is governed.
pub const TCP_ABI: u32 = 4;
/// The ABI from which pathname sockets are governed.
pub const RESOLVE_UNIX_ABI: u32 = 9;

/// The rights that mean something on anything but a directory; the others are `EINVAL` there.
pub const FILE_RIGHTS: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV | RESOLVE_UNIX;

/// The rights that no plan ever gives: device nodes are doors to the machine.
pub const NEVER: u64 = MAKE_CHAR | MAKE_BLOCK;

const WRITE: u64 =
    WRITE_FILE | TRUNCATE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REMOVE_DIR | REMOVE_FILE | REFER;

/// Every right that an ABI handles. What is not handled is permitted everywhere.
pub const fn handled(abi: u32) -> u64 {
    let mut all = (1 << 13) - 1;
    if abi >= 2 {
        all |= REFER;
    }
    if abi >= 3 {
        all |= TRUNCATE;
    }
    if abi >= 5 {
        all |= IOCTL_DEV;
    }
    if abi >= RESOLVE_UNIX_ABI {
        all |= RESOLVE_UNIX;
    }
    all
}

/// The bits to give for an operation.
pub const fn to_give(operation: Operation, beneath: Beneath) -> u64 {
    let all = match operation {
        Operation::Read => READ_FILE,
        Operation::List => READ_DIR,
        Operation::Write => WRITE,
        Operation::Execute => EXECUTE,
    };
    match beneath {
        Beneath::Directory => all,
        Beneath::File => all & FILE_RIGHTS,
    }
}

/// The bits any one of which is enough to do something of the operation.
pub const fn enough_for(operation: Operation) -> u64 {
    match operation {
        Operation::Write => WRITE | MAKE_CHAR | MAKE_BLOCK,
        Operation::Read | Operation::List | Operation::Execute => to_give(operation, Beneath::Directory),
    }
}
