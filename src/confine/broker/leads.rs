//! Where a path that a command attempts leads, seen from inside.

use std::borrow::Cow;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use nix::sys::stat::{SFlag, fstat};
use nix::unistd::getpid;

use super::caller::Caller;
use super::target::{self, EmptyPath, LastLink, Target, component, number};
use crate::confine::attempted::Found;

/// Where a target leads.
#[derive(Debug)]
pub(super) struct Led {
    pub(super) path: OsString,
    pub(super) found: Found,
    pub(super) kind: Kind,
    /// What is there, if anything is.
    pub(super) object: Option<OwnedFd>,
}

/// What something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// Anything else, or not known.
    Other,
}

/// Where a target leads; none for what has no path (a pipe, a file that was removed, an empty path) and for what the
/// kernel says of the caller itself.
pub(super) fn led(caller: &Caller<'_>, target: &Target) -> Option<Led> {
    let target = &*written_plainly(caller, target)?;
    if let Ok(object) = target::resolve(caller, target) {
        return there(caller, object);
    }
    let Target::Path { base, path, last, .. } = target else {
        return None;
    };
    let written = path.as_bytes();
    if written.is_empty() {
        return None;
    }
    if let Some((above, name)) = parted(written) {
        let above = below(*base, CString::new(above).ok()?);
        // A link that leads nowhere is followed to where it would lead.
        if (*last == LastLink::Keep || !is_link(caller, target))
            && let Ok(directory) = target::resolve(caller, &above)
        {
            let path = absolute(caller, &directory)?.join(OsStr::from_bytes(name));
            return Some(missing(path, Found::Absent));
        }
    }
    let start = if written.starts_with(b"/") {
        PathBuf::from("/")
    } else {
        absolute(caller, &target::resolve(caller, &below(*base, c".".to_owned())).ok()?)?
    };
    Some(missing(plain(&start, written), Found::Nothing))
}

fn there(caller: &Caller<'_>, object: OwnedFd) -> Option<Led> {
    let stat = fstat(&object).ok().filter(|stat| stat.st_nlink > 0)?;
    let path = absolute(caller, &object)?;
    let kind = match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFDIR => Kind::Directory,
        SFlag::S_IFREG => Kind::File,
        SFlag::S_IFLNK => Kind::Link,
        _ => Kind::Other,
    };
    Some(Led {
        path: path.into(),
        found: Found::There,
        kind,
        object: Some(object),
    })
}

fn missing(path: PathBuf, found: Found) -> Led {
    Led {
        path: path.into(),
        found,
        kind: Kind::Other,
        object: None,
    }
}

fn below(base: i32, path: CString) -> Target {
    Target::Path {
        base,
        path,
        last: LastLink::Follow,
        empty: EmptyPath::Nothing,
    }
}

/// Whether there is a link at the end, which then leads nowhere.
fn is_link(caller: &Caller<'_>, target: &Target) -> bool {
    let mut kept = target.clone();
    if let Target::Path { last, .. } = &mut kept {
        *last = LastLink::Keep;
    }
    target::resolve(caller, &kept).is_ok()
}

/// The target without a way through `/proc/self`, which would be the broker's in our own walk; none where it stays there.
fn written_plainly<'t>(caller: &Caller<'_>, target: &'t Target) -> Option<Cow<'t, Target>> {
    let same = Some(Cow::Borrowed(target));
    let Target::Path {
        base: _,
        path,
        last,
        empty,
    } = target
    else {
        return same;
    };
    let Some((b"proc", rest)) = component(path.as_bytes()).filter(|_| path.as_bytes().starts_with(b"/")) else {
        return same;
    };
    let Some((who, rest)) = component(rest) else {
        return same;
    };
    let own = who == b"self" || who == b"thread-self" || number(who).is_some_and(|pid| caller.is_of(pid));
    if !own {
        return same;
    }
    let (next, rest) = component(rest)?;
    let written = match next {
        b"fd" => return target::resolve(caller, target).is_ok().then_some(Cow::Borrowed(target)),
        b"root" => [b"/", rest].concat(),
        b"cwd" => [b".", rest].concat(),
        _ => return None,
    };
    Some(Cow::Owned(Target::Path {
        base: nix::libc::AT_FDCWD,
        path: CString::new(written).ok()?,
        last: *last,
        empty: *empty,
    }))
}

/// The path of an object, unless it is none of ours or what the kernel says of the caller, or of the broker in its place.
fn absolute(caller: &Caller<'_>, object: &OwnedFd) -> Option<PathBuf> {
    let path = caller.path_of(object).ok().filter(|path| path.is_absolute())?;
    let process = path.strip_prefix("/proc").ok().and_then(|below| {
        let first = below.components().next()?;
        number(first.as_os_str().as_bytes())
    });
    let own = process.is_some_and(|pid| pid == getpid().as_raw() || caller.is_of(pid));
    (!own).then_some(path)
}

/// A path's directory and its last name.
fn parted(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = path.iter().rposition(|byte| *byte != b'/')?;
    let path = path.get(..=end)?;
    let (above, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => (b"/".as_slice(), path.get(1..)?),
        Some(at) => (path.get(..at)?, path.get(at + 1..)?),
        None => (b".".as_slice(), path),
    };
    (!matches!(name, b"." | b"..")).then_some((above, name))
}

/// A path below another, without dots; links are not known here.
fn plain(start: &Path, written: &[u8]) -> PathBuf {
    let mut path = start.to_path_buf();
    for component in Path::new(OsStr::from_bytes(written)).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => {
                path.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_parted_before_its_last_name() {
        let rows: [(&[u8], &[u8], &[u8]); 4] = [
            (b"/a", b"/", b"a"),
            (b"/a/b//", b"/a", b"b"),
            (b"a", b".", b"a"),
            (b"\xff/\n", b"\xff", b"\n"),
        ];
        for (path, above, name) in rows {
            assert_eq!(parted(path), Some((above, name)), "{}", path.escape_ascii());
        }
        for path in [b"a/..".as_slice(), b"/", b"."] {
            assert_eq!(parted(path), None, "{}", path.escape_ascii());
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_is_told_without_dots() {
        assert_eq!(plain(Path::new("/w"), b"./a/../b"), Path::new("/w/b"));
        assert_eq!(plain(Path::new("/"), b"/../../x"), Path::new("/x"));
    }
}
