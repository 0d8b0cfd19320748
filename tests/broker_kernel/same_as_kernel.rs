//! Where the plan permits, the broker and the kernel give the same answers and the same effects.

use std::ffi::CString;
use std::os::fd::AsRawFd;

use crate::world::{SYS_REMOVEXATTRAT, SYS_SETXATTRAT, Who, World, c, call};

type Scenario = (&'static str, Box<dyn Fn(&World) -> i64 + Send + Sync>);

const CWD: u64 = libc::AT_FDCWD as u64;
const NOFOLLOW: u64 = libc::AT_SYMLINK_NOFOLLOW as u64;
const EMPTY: u64 = libc::AT_EMPTY_PATH as u64;
/// An address that is never mapped.
const WILD: u64 = 0x10;

/// What happens in each, and that it is what happens with no broker between.
fn hold(scenarios: Vec<Scenario>) {
    for who in Who::all() {
        for (name, scenario) in &scenarios {
            let (alone, held) = (World::new(who), World::new(who));
            let expected = alone.bare(|| scenario(&alone));
            let got = held.brokered(&held.open_plan(), || scenario(&held));
            if expected == -i64::from(libc::ENOSYS) {
                continue;
            }
            assert_eq!(got, expected, "{name} as {who:?}");
            assert_eq!(held.attributes(), alone.attributes(), "{name} as {who:?}");
            alone.end();
            held.end();
        }
    }
}

fn s(name: &'static str, run: impl Fn(&World) -> i64 + Send + Sync + 'static) -> Scenario {
    (name, Box::new(run))
}

fn p(text: &CString) -> u64 {
    text.as_ptr() as u64
}

fn a<const N: usize>(args: [u64; N]) -> [u64; 6] {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&args);
    all
}

fn on(name: &'static str, number: i64, path: &'static str, rest: [u64; 3]) -> Scenario {
    s(name, move |w| {
        let path = if path.starts_with("./") || path.is_empty() {
            c(path)
        } else {
            w.c(path)
        };
        call(number, a([p(&path), rest[0], rest[1], rest[2]]))
    })
}

fn at(name: &'static str, number: i64, path: &'static str, rest: [u64; 3]) -> Scenario {
    s(name, move |_| {
        let path = c(path);
        call(number, a([CWD, p(&path), rest[0], rest[1], rest[2]]))
    })
}

fn with(
    name: &'static str,
    path: &'static str,
    flags: i32,
    run: impl Fn(u64) -> i64 + Send + Sync + 'static,
) -> Scenario {
    s(name, move |_| {
        let path = c(path);
        let fd = call(libc::SYS_openat, a([CWD, p(&path), flags.cast_unsigned().into()]));
        assert!(fd >= 0, "open: {fd}");
        let result = run(fd.cast_unsigned());
        assert_eq!(call(libc::SYS_close, a([fd.cast_unsigned()])), 0);
        result
    })
}

const RD: i32 = libc::O_RDONLY | libc::O_CLOEXEC;
const PATH: i32 = libc::O_PATH | libc::O_CLOEXEC;
const LINK: i32 = libc::O_PATH | libc::O_CLOEXEC | libc::O_NOFOLLOW;

#[cfg(target_arch = "x86_64")]
#[test]
fn chmod_by_path_is_the_kernels() {
    use libc::SYS_chmod as N;
    hold(vec![
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
    hold(vec![
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
            use std::os::unix::fs::MetadataExt as _;
            assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o640);
            result
        }),
    ]);
}

#[test]
fn chmod_at_a_descriptor_is_the_kernels() {
    use libc::SYS_fchmodat as N;
    hold(vec![
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
    hold(vec![
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
fn chown_is_the_kernels() {
    const KEEP: u64 = u32::MAX as u64;
    let me = |w: &World| [u64::from(w.who.uid()), u64::from(w.who.gid())];
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
    hold(scenarios);
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
    hold(vec![
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
    hold(vec![
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
    hold(vec![
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
            set(N, p(&c("file")), "user.test", &[0; 65537], 0)
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
        s("an access list", |_| {
            set(N, p(&c("file")), "system.posix_acl_access", &access_list(), 0)
        }),
        s("a default access list", |_| {
            set(N, p(&c("dir")), "system.posix_acl_default", &access_list(), 0)
        }),
        s("of nothing", |_| set(N, p(&c("missing")), "user.test", b"1", 0)),
        with("by descriptor", "file", RD, |fd| set(F, fd, "user.test", b"1", 0)),
        with("by place", "file", PATH, |fd| set(F, fd, "user.test", b"1", 0)),
        s("by nothing", |_| set(F, 9999, "user.test", b"1", 0)),
    ]);
}

/// An ACL of version 2: the owner and one more user may read and write, others nothing.
fn access_list() -> Vec<u8> {
    let none = u32::MAX;
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, right, id) in [
        (1_u16, 6_u16, none),
        (2, 6, 1234),
        (4, 4, none),
        (16, 6, none),
        (32, 0, none),
    ] {
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
    hold(vec![
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
    hold(vec![
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

#[test]
fn a_descriptor_named_by_a_path_is_the_callers() {
    use libc::SYS_fchmodat as N;
    fn go(path: String) -> i64 {
        call(N, a([CWD, p(&c(path)), 0o600]))
    }
    let me = std::process::id();
    hold(vec![
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
