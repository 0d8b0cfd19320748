//! The xattr calls.

use super::{CWD, EMPTY, NOFOLLOW, PATH, RD, WILD, a, hold, p, s, with};
use crate::broker::world::{SYS_REMOVEXATTRAT, SYS_SETXATTRAT, c, call};

fn set(number: i64, target: u64, name: &str, value: &[u8], flags: u64) -> i64 {
    let name = c(name);
    call(
        number,
        a([target, p(&name), value.as_ptr() as u64, value.len() as u64, flags]),
    )
}

#[test]
fn setting_extended_attributes_is_the_kernels() {
    use libc::{SYS_fsetxattr as F, SYS_lsetxattr as L, SYS_setxattr as N};
    const CREATE: u64 = libc::XATTR_CREATE as u64;
    const REPLACE: u64 = libc::XATTR_REPLACE as u64;
    hold(&[
        s("a value", |_| set(N, p(&c("link")), "user.test", b"v\0\xff", 0)),
        s("an empty value", |_| set(N, p(&c("file")), "user.test", b"", 0)),
        s("no value", |_| call(N, a([p(&c("file")), p(&c("user.test")), 0, 0, 0]))),
        s("created twice", |_| {
            assert_eq!(set(N, p(&c("file")), "user.test", b"1", CREATE), 0);
            set(N, p(&c("file")), "user.test", b"2", CREATE)
        }),
        s("replaced when absent", |_| {
            set(N, p(&c("file")), "user.test", b"1", REPLACE)
        }),
        s("unknown flags", |_| set(N, p(&c("file")), "user.test", b"1", 4)),
        s("an empty name", |_| set(N, p(&c("file")), "", b"1", 0)),
        s("the longest name", |_| {
            set(N, p(&c("file")), &format!("user.{}", "n".repeat(250)), b"1", 0)
        }),
        s("too long a name", |_| {
            set(N, p(&c("file")), &format!("user.{}", "n".repeat(251)), b"1", 0)
        }),
        s("a name without a class", |_| set(N, p(&c("file")), "plain", b"1", 0)),
        s("too large a value", |_| {
            set(N, p(&c("file")), "user.test", &vec![0; 65537], 0)
        }),
        s("a value nowhere", |_| {
            call(N, a([p(&c("file")), p(&c("user.test")), WILD, 5, 0]))
        }),
        s("a name nowhere", |_| call(N, a([p(&c("file")), WILD, WILD, 5, 0]))),
        s("of a link", |_| set(L, p(&c("link")), "user.test", b"1", 0)),
        s("of a file that is no link", |_| {
            set(L, p(&c("file")), "user.test", b"1", 0)
        }),
        s("of a fifo", |_| set(N, p(&c("fifo")), "user.test", b"1", 0)),
        s("an access list that the mode shows", |_| {
            set(N, p(&c("file")), "system.posix_acl_access", &access_list(4), 0)
        }),
        s("a default access list that gives nobody anything", |_| {
            set(N, p(&c("dir")), "system.posix_acl_default", &access_list(0), 0)
        }),
        s("a list that is none", |_| {
            set(N, p(&c("file")), "system.posix_acl_access", b"none", 0)
        }),
        s("of nothing", |_| set(N, p(&c("missing")), "user.test", b"1", 0)),
        with("by descriptor", "file", RD, |fd| set(F, fd, "user.test", b"1", 0)),
        with("by place", "file", PATH, |fd| set(F, fd, "user.test", b"1", 0)),
        s("by nothing", |_| set(F, 9999, "user.test", b"1", 0)),
    ]);
}

/// An access list of version 2: the owner may read and write, the group this, others nothing.
fn access_list(group: u16) -> Vec<u8> {
    let none = u32::MAX;
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, right, id) in [(1_u16, 6_u16, none), (4, group, none), (32, 0, none)] {
        list.extend(tag.to_le_bytes());
        list.extend(right.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

#[test]
fn removing_extended_attributes_is_the_kernels() {
    use libc::{SYS_fremovexattr as F, SYS_lremovexattr as L, SYS_removexattr as N};
    fn first() {
        assert_eq!(set(libc::SYS_setxattr, p(&c("file")), "user.test", b"1", 0), 0);
    }
    hold(&[
        s("one that is there", |_| {
            first();
            call(N, a([p(&c("link")), p(&c("user.test"))]))
        }),
        s("of a file that is no link", |_| {
            first();
            call(L, a([p(&c("file")), p(&c("user.test"))]))
        }),
        s("one that is not there", |_| {
            call(N, a([p(&c("file")), p(&c("user.test"))]))
        }),
        s("an empty name", |_| call(N, a([p(&c("file")), p(&c(""))]))),
        s("a null name", |_| call(N, a([p(&c("file")), 0]))),
        with("by descriptor", "file", RD, |fd| {
            first();
            call(F, a([fd, p(&c("user.test"))]))
        }),
        with("by place", "file", PATH, |fd| call(F, a([fd, p(&c("user.test"))]))),
    ]);
}

#[test]
fn extended_attributes_at_a_descriptor_are_the_kernels() {
    fn set_at(base: u64, path: u64, flags: u64, more: &[u64], size: u64) -> i64 {
        let mut args = vec![b"v1".as_ptr() as u64, 2];
        args.extend(more);
        call(
            SYS_SETXATTRAT,
            [base, path, flags, p(&c("user.test")), args.as_ptr() as u64, size],
        )
    }
    hold(&[
        s("a file", |_| set_at(CWD, p(&c("dir/file")), 0, &[], 16)),
        s("of a link", |_| set_at(CWD, p(&c("link")), NOFOLLOW, &[], 16)),
        s("through a link", |_| set_at(CWD, p(&c("link")), 0, &[], 16)),
        s("the working directory itself", |_| {
            set_at(CWD, p(&c("")), EMPTY, &[], 16)
        }),
        s("the working directory by a null path", |_| {
            set_at(CWD, 0, EMPTY, &[], 16)
        }),
        s("an unknown flag", |_| set_at(CWD, p(&c("file")), 1, &[], 16)),
        s("too small", |_| set_at(CWD, p(&c("file")), 0, &[], 15)),
        s("larger, and zero", |_| set_at(CWD, p(&c("file")), 0, &[0, 0], 32)),
        s("larger, and not zero", |_| set_at(CWD, p(&c("file")), 0, &[0, 1], 32)),
        s("far too large", |_| set_at(CWD, p(&c("file")), 0, &[], 4097)),
        with("an open file", "file", RD, |fd| set_at(fd, p(&c("")), EMPTY, &[], 16)),
        with("an open file by a null path", "file", RD, |fd| {
            set_at(fd, 0, EMPTY, &[], 16)
        }),
        with("a place", "file", PATH, |fd| set_at(fd, p(&c("")), EMPTY, &[], 16)),
        with("below a directory", "dir", RD, |fd| {
            set_at(fd, p(&c("file")), 0, &[], 16)
        }),
        s("removed", |_| {
            assert_eq!(set(libc::SYS_setxattr, p(&c("file")), "user.test", b"1", 0), 0);
            call(SYS_REMOVEXATTRAT, a([CWD, p(&c("file")), 0, p(&c("user.test"))]))
        }),
        with("removed from a place", "file", PATH, |fd| {
            call(SYS_REMOVEXATTRAT, a([fd, p(&c("")), EMPTY, p(&c("user.test"))]))
        }),
    ]);
}
