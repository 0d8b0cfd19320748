//! Where the plan permits, the broker and the kernel give the same answers and the same effects.

mod modes;
mod owners_and_times;
mod xattrs;

use std::ffi::CString;

use crate::broker::world::{Fixture, Who, c, call};

pub(super) type Scenario = (&'static str, Box<dyn Fn(&Fixture) -> i64 + Send + Sync>);

pub(super) const CWD: u64 = libc::AT_FDCWD as u64;
pub(super) const NOFOLLOW: u64 = libc::AT_SYMLINK_NOFOLLOW as u64;
pub(super) const EMPTY: u64 = libc::AT_EMPTY_PATH as u64;
/// An address that is never mapped.
pub(super) const WILD: u64 = 0x10;

/// What happens in each, and that it is what happens with no broker between.
pub(super) fn hold(scenarios: &[Scenario]) {
    for who in Who::all() {
        for (name, scenario) in scenarios {
            let (alone, held) = (Fixture::new(who), Fixture::new(who));
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

pub(super) fn s(name: &'static str, run: impl Fn(&Fixture) -> i64 + Send + Sync + 'static) -> Scenario {
    (name, Box::new(run))
}

pub(super) fn p(text: &CString) -> u64 {
    text.as_ptr() as u64
}

pub(super) fn a<const N: usize>(args: [u64; N]) -> [u64; 6] {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&args);
    all
}

pub(super) fn on(name: &'static str, number: i64, path: &'static str, rest: [u64; 3]) -> Scenario {
    s(name, move |w| {
        let path = if path.starts_with("./") || path.is_empty() {
            c(path)
        } else {
            w.c(path)
        };
        call(number, a([p(&path), rest[0], rest[1], rest[2]]))
    })
}

pub(super) fn at(name: &'static str, number: i64, path: &'static str, rest: [u64; 3]) -> Scenario {
    s(name, move |_| {
        let path = c(path);
        call(number, a([CWD, p(&path), rest[0], rest[1], rest[2]]))
    })
}

pub(super) fn with(
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

pub(super) const RD: i32 = libc::O_RDONLY | libc::O_CLOEXEC;
pub(super) const PATH: i32 = libc::O_PATH | libc::O_CLOEXEC;
pub(super) const LINK: i32 = libc::O_PATH | libc::O_CLOEXEC | libc::O_NOFOLLOW;
