//! What a call names → the object, held by an `O_PATH` descriptor.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

use super::caller::{Caller, DescriptorKind};

/// What a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// An open descriptor of the caller.
    Descriptor(i32),
    /// A path, relative to a base.
    Path {
        /// A descriptor of the caller, or `AT_FDCWD`.
        base: i32,
        /// The path as the caller wrote it.
        path: CString,
        /// What a symlink at the end of the path means.
        last: LastLink,
        /// What an empty path means.
        empty: EmptyPath,
    },
}

/// What a symlink at the end of a path means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastLink {
    /// What it leads to.
    Follow,
    /// The link itself.
    Keep,
}

/// What an empty path means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EmptyPath {
    /// Nothing: `ENOENT`.
    Nothing,
    /// The base itself, `AT_EMPTY_PATH`.
    Base,
}

/// The object that `target` means for `caller`, found by our own walk: it is no longer the caller's to change.
pub(super) fn resolve(caller: &Caller<'_>, target: &Target) -> Result<OwnedFd, Errno> {
    let (base, path, last, empty) = match target {
        Target::Descriptor(number) => {
            return match caller.descriptor(*number)? {
                (object, DescriptorKind::Open) => Ok(object),
                (_, DescriptorKind::PathOnly) => Err(Errno::EBADF),
            };
        }
        Target::Path {
            base,
            path,
            last,
            empty,
        } => (*base, path.as_bytes(), *last, *empty),
    };
    match path {
        [] => match empty {
            EmptyPath::Nothing => Err(Errno::ENOENT),
            EmptyPath::Base => open_base(caller, base),
        },
        [b'/', ..] => match own_descriptor(caller, path) {
            Some((number, [])) if last == LastLink::Follow => descriptor_by_path(caller, number),
            Some((number, rest @ [_, ..])) => {
                let start = rest.iter().position(|byte| *byte != b'/').unwrap_or(rest.len());
                let below = if start == rest.len() {
                    b".".as_slice()
                } else {
                    &rest[start..]
                };
                walk(&descriptor_by_path(caller, number)?, below, last)
            }
            // An absolute path ignores its base: nothing of the caller is in the walk.
            Some((_, [])) | None => walk(AT_FDCWD, path, last),
        },
        _ => walk(open_base(caller, base)?, path, last),
    }
}

fn walk(base: impl AsFd, path: &[u8], last: LastLink) -> Result<OwnedFd, Errno> {
    let flags = match last {
        LastLink::Follow => OFlag::empty(),
        LastLink::Keep => OFlag::O_NOFOLLOW,
    };
    let how = OpenHow::new()
        .flags(flags | OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(base, path, how).map_err(|errno| match errno {
        // Our own descriptors ran out, or our memory: not an answer the caller could make sense of.
        Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM => Errno::EPERM,
        errno => errno,
    })
}

fn open_base(caller: &Caller<'_>, base: i32) -> Result<OwnedFd, Errno> {
    if base == libc::AT_FDCWD {
        caller.directory()
    } else {
        caller.descriptor(base).map(|(object, _)| object)
    }
}

/// A descriptor that is named by a path. One that is not open is `ENOENT`, and `O_PATH` is permitted.
fn descriptor_by_path(caller: &Caller<'_>, number: i32) -> Result<OwnedFd, Errno> {
    match caller.descriptor(number) {
        Ok((object, _)) => Ok(object),
        Err(Errno::EBADF) => Err(Errno::ENOENT),
        Err(errno) => Err(errno),
    }
}

/// The descriptor of the caller that `path` leads through, and what follows it in the path.
///
/// In our own walk `/proc/self` would be the broker, and the links below `fd` are not followed at all.
/// Programs use such paths to act on a descriptor (glibc's `fchmodat` with `AT_SYMLINK_NOFOLLOW`), so
/// they are read as text: what they mean is known without a walk.
pub(super) fn own_descriptor<'p>(caller: &Caller<'_>, path: &'p [u8]) -> Option<(i32, &'p [u8])> {
    let (first, rest) = component(path)?;
    match first {
        b"dev" => {
            let (second, rest) = component(rest)?;
            match second {
                b"fd" => numbered(rest),
                b"stdin" => Some((0, rest)),
                b"stdout" => Some((1, rest)),
                b"stderr" => Some((2, rest)),
                _ => None,
            }
        }
        b"proc" => {
            let (who, rest) = component(rest)?;
            let own = who == b"self" || who == b"thread-self" || number(who).is_some_and(|pid| caller.is_of(pid));
            let (next, rest) = component(rest)?;
            match next {
                b"fd" if own => numbered(rest),
                b"task" if own => {
                    let (thread, rest) = component(rest)?;
                    let (next, rest) = component(rest)?;
                    let own = number(thread).is_some_and(|tid| caller.is_thread(tid));
                    if own && next == b"fd" { numbered(rest) } else { None }
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn numbered(path: &[u8]) -> Option<(i32, &[u8])> {
    let (name, rest) = component(path)?;
    Some((number(name)?, rest))
}

/// The first component of a path and what follows it, from its slash on.
pub(super) fn component(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut path = path;
    loop {
        let start = path.iter().position(|byte| *byte != b'/')?;
        path = &path[start..];
        let (name, rest) = path.split_at(path.iter().position(|byte| *byte == b'/').unwrap_or(path.len()));
        match name {
            b"." => path = rest,
            _ => return Some((name, rest)),
        }
    }
}

/// A number as `/proc` writes it: digits only, no leading zero.
pub(super) fn number(name: &[u8]) -> Option<i32> {
    let plain = name.iter().all(u8::is_ascii_digit) && (name == b"0" || !name.starts_with(b"0"));
    plain.then(|| std::str::from_utf8(name).ok()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_skip_doubled_slashes_and_dots() {
        assert_eq!(component(b"//./a//b"), Some((b"a".as_slice(), b"//b".as_slice())));
        assert_eq!(component(b"/./"), None);
        assert_eq!(component(b"/a"), Some((b"a".as_slice(), b"".as_slice())));
    }

    #[test]
    fn only_plain_decimals_are_descriptor_numbers() {
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b"17"), Some(17));
        for text in [b"".as_slice(), b"07", b"+7", b"-7", b"7a", b"99999999999", b"\xff"] {
            assert_eq!(number(text), None, "{text:?}");
        }
    }
}
