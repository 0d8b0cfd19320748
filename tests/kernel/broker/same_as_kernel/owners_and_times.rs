//! chown and the utime calls.

use super::{CWD, EMPTY, NOFOLLOW, PATH, RD, WILD, a, at, hold, on, p, s, with};
use crate::broker::world::{Fixture, c, call};

#[test]
fn chown_is_the_kernels() {
    const KEEP: u64 = u32::MAX as u64;
    let me = |w: &Fixture| [u64::from(w.who.uid()), u64::from(w.who.gid())];
    let mut scenarios = vec![
        s("to oneself", move |w| {
            let [uid, gid] = me(w);
            call(libc::SYS_fchownat, a([CWD, p(&c("file")), uid, gid, 0]))
        }),
        at("to nobody new", libc::SYS_fchownat, "file", [KEEP, KEEP, 0]),
        at("all 64 bits set", libc::SYS_fchownat, "file", [u64::MAX, u64::MAX, 0]),
        at("to a stranger", libc::SYS_fchownat, "file", [12345, KEEP, 0]),
        at("to a strange group", libc::SYS_fchownat, "file", [KEEP, 12345, 0]),
        at("of a link", libc::SYS_fchownat, "link", [KEEP, KEEP, NOFOLLOW]),
        at(
            "of a dangling link",
            libc::SYS_fchownat,
            "dangling",
            [KEEP, KEEP, NOFOLLOW],
        ),
        at(
            "through a dangling link",
            libc::SYS_fchownat,
            "dangling",
            [KEEP, KEEP, 0],
        ),
        at("an unknown flag", libc::SYS_fchownat, "file", [KEEP, KEEP, 2]),
        at(
            "the working directory itself",
            libc::SYS_fchownat,
            "",
            [KEEP, KEEP, EMPTY],
        ),
        with("a place", "file", PATH, |fd| {
            call(libc::SYS_fchownat, a([fd, p(&c("")), KEEP, KEEP, EMPTY]))
        }),
        with("by descriptor", "file", RD, |fd| {
            call(libc::SYS_fchown, a([fd, KEEP, KEEP]))
        }),
        with("by place", "file", PATH, |fd| {
            call(libc::SYS_fchown, a([fd, KEEP, KEEP]))
        }),
        with("to a stranger by descriptor", "file", RD, |fd| {
            call(libc::SYS_fchown, a([fd, 12345, KEEP]))
        }),
    ];
    #[cfg(target_arch = "x86_64")]
    scenarios.extend([
        on("chown", libc::SYS_chown, "in/link", [KEEP, KEEP, 0]),
        on(
            "chown of a dangling link",
            libc::SYS_chown,
            "in/dangling",
            [KEEP, KEEP, 0],
        ),
        on(
            "lchown of a dangling link",
            libc::SYS_lchown,
            "in/dangling",
            [KEEP, KEEP, 0],
        ),
    ]);
    hold(&scenarios);
}

#[test]
fn utimensat_is_the_kernels() {
    use libc::SYS_utimensat as N;
    fn times(access: (i64, i64), modification: (i64, i64)) -> [[i64; 2]; 2] {
        [access.into(), modification.into()]
    }
    fn go(base: u64, path: u64, times: [[i64; 2]; 2], flags: u64) -> i64 {
        call(N, a([base, path, times.as_ptr() as u64, flags]))
    }
    const T: ((i64, i64), (i64, i64)) = ((1000, 123_456_789), (2000, 987_654_321));
    const NOW: i64 = libc::UTIME_NOW;
    const OMIT: i64 = libc::UTIME_OMIT;
    let t = move || times(T.0, T.1);
    hold(&[
        s("both times", move |_| go(CWD, p(&c("file")), t(), 0)),
        s("before the epoch", move |_| {
            go(CWD, p(&c("file")), times((-5, 1), (-6, 2)), 0)
        }),
        s("through a link", move |_| go(CWD, p(&c("link")), t(), 0)),
        s("of a link", move |_| go(CWD, p(&c("link")), t(), NOFOLLOW)),
        s("of the working directory", move |_| go(CWD, p(&c("")), t(), EMPTY)),
        s("empty without the flag", move |_| go(CWD, p(&c("")), t(), 0)),
        s("only access", move |_| go(CWD, p(&c("file")), times(T.0, (0, OMIT)), 0)),
        s("only modification", move |_| {
            go(CWD, p(&c("file")), times((0, OMIT), T.1), 0)
        }),
        s("one now", move |_| go(CWD, p(&c("file")), times((0, NOW), T.1), 0)),
        s("both now", move |_| {
            go(CWD, p(&c("file")), times((0, NOW), (0, NOW)), 0)
        }),
        s("neither, of nothing at all", move |_| {
            go(77, WILD, times((0, OMIT), (0, OMIT)), 0xfff)
        }),
        s("no times", |_| call(N, a([CWD, p(&c("file")), 0, 0]))),
        s("nanoseconds out of range", move |_| {
            go(CWD, p(&c("file")), times((0, 1_000_000_000), T.1), 0)
        }),
        s("an unknown flag", move |_| go(CWD, p(&c("file")), t(), 2)),
        s("times nowhere", |_| call(N, a([CWD, p(&c("file")), WILD, 0]))),
        s("a null path", move |_| go(CWD, 0, t(), 0)),
        s("nothing by descriptor", move |_| go(9999, 0, t(), 0)),
        with("by descriptor", "file", RD, move |fd| go(fd, 0, t(), 0)),
        with("by descriptor with flags", "file", RD, move |fd| go(fd, 0, t(), EMPTY)),
        with("by place", "file", PATH, move |fd| go(fd, 0, t(), 0)),
        with("a place with the flag", "file", PATH, move |fd| {
            go(fd, p(&c("")), t(), EMPTY)
        }),
        with("below a directory", "dir", RD, move |fd| go(fd, p(&c("file")), t(), 0)),
    ]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_older_time_calls_are_the_kernels() {
    const GOOD: [i64; 4] = [1000, 123_456, 2000, 654_321];
    const BAD: [i64; 4] = [1000, 1_000_000, 2000, 0];
    fn utimes(path: &str, times: [i64; 4]) -> i64 {
        call(libc::SYS_utimes, a([p(&c(path)), times.as_ptr() as u64]))
    }
    hold(&[
        s("utime", |_| {
            call(libc::SYS_utime, a([p(&c("file")), [1000_i64, 2000].as_ptr() as u64]))
        }),
        s("utime now", |_| call(libc::SYS_utime, a([p(&c("file")), 0]))),
        s("utime of nothing", |_| call(libc::SYS_utime, a([p(&c("missing")), 0]))),
        s("utime nowhere", |_| call(libc::SYS_utime, a([p(&c("file")), WILD]))),
        s("utimes", |_| utimes("link", GOOD)),
        s("utimes with too many microseconds", |_| utimes("missing", BAD)),
        s("utimes now", |_| call(libc::SYS_utimes, a([p(&c("file")), 0]))),
        s("futimesat", |_| {
            call(libc::SYS_futimesat, a([CWD, p(&c("dir/file")), GOOD.as_ptr() as u64]))
        }),
        with("futimesat by descriptor", "file", RD, |fd| {
            call(libc::SYS_futimesat, a([fd, 0, GOOD.as_ptr() as u64]))
        }),
    ]);
}
