//! chmod, and all the ways to name what it is done to.

use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use super::{CWD, EMPTY, LINK, NOFOLLOW, PATH, RD, WILD, a, at, hold, on, p, s, with};
use crate::broker::world::{c, call};

#[cfg(target_arch = "x86_64")]
#[test]
fn chmod_by_path_is_the_kernels() {
    use libc::SYS_chmod as N;
    hold(&[
        on("a file", N, "in/file", [0o600, 0, 0]),
        on("relative to the working directory", N, "./file", [0o600, 0, 0]),
        on("a directory with its slash", N, "in/dir/", [0o711, 0, 0]),
        on("a directory with setgid", N, "in/dir", [0o2755, 0, 0]),
        on("with the sticky bit", N, "in/dir", [0o1777, 0, 0]),
        on(
            "a mode with more bits than a mode has",
            N,
            "in/file",
            [0xffff_0000_0000 | 0o170_640, 0, 0],
        ),
        on("through a link", N, "in/link", [0o600, 0, 0]),
        on("through dots", N, "in/dir/../dirlink/./sub", [0o700, 0, 0]),
        on("a fifo", N, "in/fifo", [0o600, 0, 0]),
        on("a missing file", N, "in/missing", [0o600, 0, 0]),
        on("below a file", N, "in/file/x", [0o600, 0, 0]),
        on("a file with a slash", N, "in/file/", [0o600, 0, 0]),
        on("a loop", N, "in/loop", [0o600, 0, 0]),
        on("a dangling link", N, "in/dangling", [0o600, 0, 0]),
        on("the empty path", N, "", [0o600, 0, 0]),
        s("a long name", |w| {
            let path = w.c(&format!("in/{}", "n".repeat(300)));
            call(N, a([p(&path), 0o600]))
        }),
        s("the longest path", |_| {
            let path = c(format!("{}./file", "./".repeat(2044)));
            assert_eq!(path.as_bytes().len(), 4094);
            call(N, a([p(&path), 0o600]))
        }),
        s("a path that is too long", |_| {
            let path = c(format!("{}file", "./".repeat(2046)));
            call(N, a([p(&path), 0o600]))
        }),
        s("a null path", |_| call(N, a([0, 0o600]))),
        s("a path nowhere", |_| call(N, a([WILD, 0o600]))),
        s("a path in the kernel", |_| call(N, a([u64::MAX - 8, 0o600]))),
        s("a path at the end of memory", |_| {
            edge(b"file\0", |path| call(N, a([path, 0o600])))
        }),
        s("a path that runs out of memory", |_| {
            edge(b"file", |path| call(N, a([path, 0o600])))
        }),
        s("in a directory that is gone", |w| {
            std::fs::create_dir(w.root.join("in/gone")).unwrap();
            std::env::set_current_dir(w.root.join("in/gone")).unwrap();
            std::fs::remove_dir(w.root.join("in/gone")).unwrap();
            let path = c("x");
            call(N, a([p(&path), 0o600]))
        }),
    ]);
}

/// `bytes`, right before a page that is not there.
fn edge(bytes: &[u8], run: impl Fn(u64) -> i64) -> i64 {
    let (read_write, private) = (3, 0x22);
    let at = call(libc::SYS_mmap, [0, 8192, read_write, private, u64::MAX, 0]).cast_unsigned();
    assert_eq!(call(libc::SYS_munmap, a([at + 4096, 4096])), 0);
    let start = at + 4096 - bytes.len() as u64;
    // SAFETY: the page was just mapped for writing, and the bytes end with it.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start as *mut u8, bytes.len()) };
    let result = run(start);
    assert_eq!(call(libc::SYS_munmap, a([at, 4096])), 0);
    result
}

#[test]
fn chmod_by_descriptor_is_the_kernels() {
    use libc::SYS_fchmod as N;
    hold(&[
        with("a file", "file", RD, |fd| call(N, a([fd, 0o600]))),
        with("a file opened through a link", "link", RD, |fd| call(N, a([fd, 0o600]))),
        with("a directory", "dir", RD, |fd| call(N, a([fd, 0o700]))),
        with("a place", "file", PATH, |fd| call(N, a([fd, 0o600]))),
        with("the upper half is ignored", "file", RD, |fd| {
            call(N, a([fd | 7 << 32, 0o600]))
        }),
        s("minus one", |_| call(N, a([u64::MAX, 0o600]))),
        s("the working directory", |_| call(N, a([CWD, 0o600]))),
        s("one that is not open", |_| call(N, a([9999, 0o600]))),
        s("an unlinked file", |_| {
            let file = std::fs::File::open("other").unwrap();
            std::fs::remove_file("other").unwrap();
            let fd = file.as_raw_fd().cast_unsigned().into();
            let result = call(N, a([fd, 0o640]));
            assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o640);
            result
        }),
    ]);
}

#[test]
fn chmod_at_a_descriptor_is_the_kernels() {
    use libc::SYS_fchmodat as N;
    hold(&[
        at("relative to the working directory", N, "dir/file", [0o600, 0, 0]),
        at("garbage where flags would be", N, "file", [0o600, u64::MAX, 0]),
        with("relative to a directory", "dir", RD, |fd| {
            call(N, a([fd, p(&c("file")), 0o600]))
        }),
        with("relative to a place", "dir", PATH, |fd| {
            call(N, a([fd, p(&c("file")), 0o600]))
        }),
        with("upwards from a directory", "dir", RD, |fd| {
            call(N, a([fd, p(&c("../file")), 0o600]))
        }),
        with("relative to a file", "file", RD, |fd| {
            call(N, a([fd, p(&c("x")), 0o600]))
        }),
        with("empty", "dir", RD, |fd| call(N, a([fd, p(&c("")), 0o600]))),
        s("relative to nothing", |_| call(N, a([9999, p(&c("file")), 0o600]))),
        s("empty, relative to nothing", |_| call(N, a([9999, p(&c("")), 0o600]))),
        s("absolute, with a bad descriptor", |w| {
            call(N, a([9999, p(&w.c("in/file")), 0o600]))
        }),
    ]);
}

#[test]
fn chmod_with_flags_is_the_kernels() {
    use libc::SYS_fchmodat2 as N;
    hold(&[
        at("no flags", N, "link", [0o600, 0, 0]),
        at("of a link", N, "link", [0o600, NOFOLLOW, 0]),
        at("of a link with a slash", N, "dirlink/", [0o700, NOFOLLOW, 0]),
        at("of a file that is no link", N, "file", [0o600, NOFOLLOW, 0]),
        at("of a dangling link", N, "dangling", [0o600, NOFOLLOW, 0]),
        at("an unknown flag", N, "file", [0o600, 1, 0]),
        at(
            "a flag of another call",
            N,
            "file",
            [0o600, libc::AT_SYMLINK_FOLLOW as u64, 0],
        ),
        at("the working directory itself", N, "", [0o700, EMPTY, 0]),
        at("a name beside the flag", N, "file", [0o600, EMPTY, 0]),
        with("an open file", "file", RD, |fd| {
            call(N, a([fd, p(&c("")), 0o600, EMPTY]))
        }),
        with("a place", "file", PATH, |fd| call(N, a([fd, p(&c("")), 0o600, EMPTY]))),
        with("a place that is a link", "link", LINK, |fd| {
            call(N, a([fd, p(&c("")), 0o600, EMPTY]))
        }),
        with("a null path", "file", RD, |fd| call(N, a([fd, 0, 0o600, EMPTY]))),
        s("of nothing", |_| call(N, a([9999, p(&c("")), 0o600, EMPTY]))),
    ]);
}

#[test]
fn a_descriptor_named_by_a_path_is_the_callers() {
    use libc::SYS_fchmodat as N;
    fn go(path: String) -> i64 {
        call(N, a([CWD, p(&c(path)), 0o700]))
    }
    let me = std::process::id();
    hold(&[
        with("/proc/self", "file", RD, |fd| go(format!("/proc/self/fd/{fd}"))),
        with("spelled oddly", "file", RD, |fd| {
            go(format!("//proc/.//self/./fd//{fd}"))
        }),
        with("a place", "file", PATH, |fd| go(format!("/proc/self/fd/{fd}"))),
        with("a place that is a link", "link", LINK, |fd| {
            go(format!("/proc/self/fd/{fd}"))
        }),
        with("/proc/thread-self", "file", RD, |fd| {
            go(format!("/proc/thread-self/fd/{fd}"))
        }),
        with("/dev/fd", "file", RD, |fd| go(format!("/dev/fd/{fd}"))),
        with("its own number", "file", RD, move |fd| {
            go(format!("/proc/{me}/fd/{fd}"))
        }),
        with("its thread's number", "file", RD, |fd| {
            go(format!("/proc/self/task/{}/fd/{fd}", nix::unistd::gettid()))
        }),
        with("a file below it", "dir", RD, |fd| {
            go(format!("/proc/self/fd/{fd}/file"))
        }),
        with("itself with a slash", "dir", RD, |fd| {
            go(format!("/proc/self/fd/{fd}/"))
        }),
        with("a file with a slash", "file", RD, |fd| {
            go(format!("/proc/self/fd/{fd}/"))
        }),
        s("one that is not open", |_| go("/proc/self/fd/9999".to_owned())),
    ]);
}
