//! The operations of Seatbelt that are known here, grouped by the rights that they belong to.

use std::fmt;

/// The name of an operation. A name that ends in `*` stands for every operation with that prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(&'static str);

impl Name {
    /// The name, if it is known.
    pub fn find(text: &str) -> Option<Self> {
        KNOWN.iter().find(|known| **known == text).map(|known| Self(known))
    }

    /// Whether a rule for this name applies to the operation `single`.
    pub fn covers(self, single: Self) -> bool {
        match self.0.strip_suffix('*') {
            _ if self == DEFAULT || self == single => true,
            Some(beginning) => single.0.starts_with(beginning),
            None => false,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Every operation, also those that are not known here.
pub const DEFAULT: Name = Name("default");
/// All reading.
pub const READ_ALL: Name = Name("file-read*");
/// All changing.
pub const WRITE_ALL: Name = Name("file-write*");
/// All starting of programs.
pub const EXEC_ALL: Name = Name("process-exec*");
/// Mapping a file as code.
pub const MAP: Name = Name("file-map-executable");
/// The content of a file, or the names in a directory.
pub const READ_DATA: Name = Name("file-read-data");
/// Extended attributes.
pub const READ_XATTR: Name = Name("file-read-xattr");
/// `stat` and `readlink`.
pub const METADATA: Name = Name("file-read-metadata");
/// Whether something is there.
pub const EXISTENCE: Name = Name("file-test-existence");
/// Creating an entry, also by renaming.
pub const CREATE: Name = Name("file-write-create");
/// Removing an entry, also by renaming.
pub const UNLINK: Name = Name("file-write-unlink");
/// Device control.
pub const IOCTL: Name = Name("file-ioctl");
/// A hard link to the file.
pub const LINK: Name = Name("file-link");
/// Connecting and sending.
pub const OUTBOUND: Name = Name("network-outbound");
/// Accepting and receiving.
pub const INBOUND: Name = Name("network-inbound");
/// Binding to an address.
pub const BIND: Name = Name("network-bind");
/// Creating a socket of another family than the internet's.
pub const SOCKET: Name = Name("system-socket");

/// The operations of a write grant, without creating and removing entries. No grant gives set-id bits, mounts or hard links.
pub const CHANGE: [Name; 7] = [
    Name("file-write-acl"),
    Name("file-write-data"),
    Name("file-write-flags"),
    Name("file-write-mode"),
    Name("file-write-owner"),
    Name("file-write-times"),
    Name("file-write-xattr"),
];

/// The operations of a read grant.
pub const READ: [Name; 4] = [READ_DATA, METADATA, READ_XATTR, EXISTENCE];

/// The operations that list a directory.
pub const LISTS: [Name; 2] = [READ_DATA, READ_XATTR];

/// The operations that read a file.
pub const READS: [Name; 3] = [READ_DATA, READ_XATTR, IOCTL];

/// The operations that change a file.
pub const WRITES: [Name; 14] = [
    CREATE,
    UNLINK,
    IOCTL,
    LINK,
    Name("file-write-acl"),
    Name("file-write-data"),
    Name("file-write-flags"),
    Name("file-write-mode"),
    Name("file-write-mount"),
    Name("file-write-owner"),
    Name("file-write-setugid"),
    Name("file-write-times"),
    Name("file-write-umount"),
    Name("file-write-xattr"),
];

/// The operations that execute a file.
pub const EXECUTES: [Name; 3] = [Name("process-exec"), Name("process-exec-interpreter"), MAP];

/// The operations on sockets.
pub const SOCKETS: [Name; 4] = [OUTBOUND, INBOUND, BIND, SOCKET];

/// Sending a signal.
pub const SIGNAL: Name = Name("signal");
/// Asking a service by name.
pub const LOOKUP: Name = Name("mach-lookup");

/// The operations that a rule outside the base may allow.
pub fn grantable(name: Name) -> bool {
    let files =
        READ.contains(&name) || CHANGE.contains(&name) || [CREATE, UNLINK, IOCTL, EXEC_ALL, MAP].contains(&name);
    files || SOCKETS.contains(&name)
}

/// The operations that the reader knows. A text with any other is refused.
const KNOWN: [&str; 48] = [
    "default",
    "file*",
    "file-ioctl",
    "file-link",
    "file-map-executable",
    "file-read*",
    "file-read-data",
    "file-read-metadata",
    "file-read-xattr",
    "file-test-existence",
    "file-write*",
    "file-write-acl",
    "file-write-create",
    "file-write-data",
    "file-write-flags",
    "file-write-mode",
    "file-write-mount",
    "file-write-owner",
    "file-write-setugid",
    "file-write-times",
    "file-write-umount",
    "file-write-unlink",
    "file-write-xattr",
    "ipc*",
    "ipc-posix-sem",
    "ipc-posix-shm",
    "ipc-sysv-shm",
    "mach*",
    "mach-lookup",
    "mach-register",
    "network*",
    "network-bind",
    "network-inbound",
    "network-outbound",
    "process*",
    "process-exec",
    "process-exec*",
    "process-exec-interpreter",
    "process-fork",
    "process-info*",
    "process-info-pidinfo",
    "process-info-setcontrol",
    "signal",
    "sysctl*",
    "sysctl-read",
    "sysctl-write",
    "system*",
    "system-socket",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_use_is_known() {
        let lists = [&READ[..], &CHANGE, &READS, &WRITES, &EXECUTES, &SOCKETS];
        let single = [DEFAULT, READ_ALL, WRITE_ALL, EXEC_ALL, SIGNAL, LOOKUP];
        for name in lists.into_iter().flatten().chain(&single) {
            assert_eq!(Name::find(name.0), Some(*name));
        }
    }

    #[test]
    fn a_star_stands_for_what_begins_so_and_the_default_for_everything() {
        assert!(WRITE_ALL.covers(UNLINK) && DEFAULT.covers(UNLINK) && UNLINK.covers(UNLINK));
        assert!(!WRITE_ALL.covers(READ_DATA) && !UNLINK.covers(WRITE_ALL));
        // It is no `file-write*`, so a deny of writing does not cover it; and no grant gives it.
        assert!(!WRITE_ALL.covers(LINK) && !grantable(LINK) && !grantable(WRITE_ALL) && !grantable(DEFAULT));
    }

    #[test]
    fn whatever_a_wildcard_stands_for_counts_as_an_operation() {
        let counted = [&READS[..], &WRITES, &EXECUTES, &[METADATA, EXISTENCE]].concat();
        for single in KNOWN
            .iter()
            .filter(|name| name.starts_with("file-") && !name.ends_with('*'))
        {
            assert!(counted.contains(&Name(single)), "{single}");
        }
    }
}
