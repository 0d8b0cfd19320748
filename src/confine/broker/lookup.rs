//! Where a path of an attempt leads, as seen inside the sandbox.

use std::borrow::Cow;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::readlinkat;
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::getpid;

use super::caller::Caller;
use super::target::{self, EmptyPath, LastLink, Target, component, number, own_descriptor};
use crate::confine::wire::attempted::Found;

/// How many links the kernel follows.
const LINKS: usize = 40;
/// `PATH_MAX`.
const LONGEST: usize = 4096;

/// Where a target leads.
#[derive(Debug)]
pub(super) struct Lookup {
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

/// Looks up a target; none for what has no path (a pipe, a removed file, an empty path), for links in /proc to the caller's
/// descriptors, and for a file named as a directory, which fails everywhere.
pub(super) fn lookup(caller: &Caller<'_>, target: &Target) -> Option<Lookup> {
    if let Some(path) = own_proc_file(caller, target) {
        return Some(Lookup {
            path,
            found: Found::There,
            kind: Kind::File,
            object: None,
        });
    }
    let mut target = without_proc_self(caller, target)?;
    for _ in 0..LINKS {
        if let Ok(object) = target::resolve(caller, &target) {
            return existing(caller, object);
        }
        let Target::Path {
            base,
            path,
            last,
            empty,
        } = &*target
        else {
            return None;
        };
        let path = match first_missing(caller, *base, path.as_bytes(), *last)? {
            Unresolved::Missing(lookup) => return Some(lookup),
            Unresolved::Link(path) => path,
        };
        let (base, last, empty) = (*base, *last, *empty);
        let next = Target::Path {
            base,
            path,
            last,
            empty,
        };
        target = Cow::Owned(without_proc_self(caller, &next)?.into_owned());
    }
    None
}

/// The first component of a path that does not exist.
enum Unresolved {
    /// A name that is not there.
    Missing(Lookup),
    /// A dangling link: the path with the link replaced by its text.
    Link(CString),
}

fn first_missing(caller: &Caller<'_>, base: i32, written: &[u8], last: LastLink) -> Option<Unresolved> {
    let is_blank = |name: &&[u8]| matches!(*name, b"" | b".");
    let names: Vec<&[u8]> = written
        .split(|byte| *byte == b'/')
        .filter(|name| !is_blank(name))
        .collect();
    // A path that ends in a slash or a dot is a directory's, and a link there is always followed.
    let is_directory = written
        .rsplit(|byte| *byte == b'/')
        .next()
        .is_some_and(|name| is_blank(&name));
    let start: &[u8] = if written.starts_with(b"/") { b"/" } else { b"./" };
    let beginning = |count: usize| Some([start, &names.get(..count)?.join(&b'/')].concat());
    let lookup = |count: usize, last| {
        let target = path_target(base, CString::new(beginning(count)?).ok()?, last);
        target::resolve(caller, &target).ok()
    };
    let exists = |count: usize| lookup(count, LastLink::Follow);
    let parents = names.len().checked_sub(1)?;
    if is_directory && exists(names.len()).is_some() {
        return None;
    }
    // Mostly only the last name is missing. Of an existing path each beginning exists.
    let parents = match exists(parents) {
        Some(_) => parents,
        None => (1..parents)
            .collect::<Vec<_>>()
            .partition_point(|count| exists(*count).is_some()),
    };
    let directory = exists(parents)?;
    let permission = existing(caller, directory)
        .filter(|permission| permission.kind == Kind::Directory)?
        .path;
    let (name, rest) = names.get(parents..)?.split_first()?;
    let slash: &[u8] = if is_directory { b"/" } else { b"" };
    let is_followed = !rest.is_empty() || is_directory || last == LastLink::Follow;
    if let Some(link) = is_followed.then(|| lookup(parents + 1, LastLink::Keep)).flatten() {
        let text = readlinkat(&link, "").ok()?;
        let text = text.as_bytes();
        // What `/proc` says of a descriptor is no path where that has none.
        let is_path = text.starts_with(b"/") && !text.ends_with(b" (deleted)");
        if Path::new(&permission).starts_with("/proc") && !is_path {
            return None;
        }
        let from = if text.starts_with(b"/") {
            Vec::new()
        } else {
            [&beginning(parents)?, b"/".as_slice()].concat()
        };
        let rest = rest.iter().flat_map(|name| [b"/", *name]).collect::<Vec<_>>().concat();
        let path = [&from, text, &rest, slash].concat();
        return (path.len() < LONGEST).then_some(Unresolved::Link(CString::new(path).ok()?));
    }
    let (found, path) = match rest {
        [] => (Found::Absent, Path::new(&permission).join(OsStr::from_bytes(name))),
        _ => (
            Found::Nothing,
            without_dots(Path::new(&permission), &[&[*name], rest].concat().join(&b'/')),
        ),
    };
    let mut path = path.into_os_string();
    path.push(OsStr::from_bytes(slash));
    Some(Unresolved::Missing(Lookup {
        path,
        found,
        kind: Kind::Other,
        object: None,
    }))
}

fn existing(caller: &Caller<'_>, object: OwnedFd) -> Option<Lookup> {
    let stat = fstat(&object).ok().filter(|stat| stat.st_nlink > 0)?;
    let path = absolute(caller, &object)?;
    let kind = match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFDIR => Kind::Directory,
        SFlag::S_IFREG => Kind::File,
        SFlag::S_IFLNK => Kind::Link,
        _ => Kind::Other,
    };
    Some(Lookup {
        path: path.into(),
        found: Found::There,
        kind,
        object: Some(object),
    })
}

fn path_target(base: i32, path: CString, last: LastLink) -> Target {
    Target::Path {
        base,
        path,
        last,
        empty: EmptyPath::Nothing,
    }
}

/// A file of the caller's own in /proc, as `/proc/self/NAME`; no links or directories.
fn own_proc_file(caller: &Caller<'_>, target: &Target) -> Option<OsString> {
    let Target::Path { path, .. } = target else {
        return None;
    };
    let rest = below_own_proc(caller, path.as_bytes())?;
    let (name, []) = component(rest)? else { return None };
    let leads_on = [
        b"exe".as_slice(),
        b"cwd",
        b"root",
        b"fd",
        b"fdinfo",
        b"map_files",
        b"ns",
        b"task",
        b"net",
    ];
    let is_name = !leads_on.contains(&name) && name.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_');
    is_name.then(|| OsString::from_vec([b"/proc/self/", name].concat()))
}

/// The rest of a path after `/proc/self` or the like.
fn below_own_proc<'p>(caller: &Caller<'_>, path: &'p [u8]) -> Option<&'p [u8]> {
    let Some((b"proc", rest)) = component(path).filter(|_| path.starts_with(b"/")) else {
        return None;
    };
    let (who, rest) = component(rest)?;
    let is_own = who == b"self" || who == b"thread-self" || number(who).is_some_and(|pid| caller.is_of(pid));
    is_own.then_some(rest)
}

/// The target without `/proc/self`, which would be the broker's in our own walk; none where it cannot be replaced.
fn without_proc_self<'t>(caller: &Caller<'_>, target: &'t Target) -> Option<Cow<'t, Target>> {
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
    match own_descriptor(caller, path.as_bytes()) {
        Some((_, [])) => return target::resolve(caller, target).is_ok().then_some(Cow::Borrowed(target)),
        Some((base, rest)) => {
            let rest = rest
                .iter()
                .position(|byte| *byte != b'/')
                .map_or(b".".as_slice(), |at| &rest[at..]);
            return Some(Cow::Owned(Target::Path {
                base,
                path: CString::new(rest).ok()?,
                last: *last,
                empty: *empty,
            }));
        }
        None => {}
    }
    let Some(rest) = below_own_proc(caller, path.as_bytes()) else {
        return same;
    };
    let (next, rest) = component(rest)?;
    let written = match next {
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

/// The absolute path of an object; none for the caller's or the broker's own files in /proc.
fn absolute(caller: &Caller<'_>, object: &OwnedFd) -> Option<PathBuf> {
    let path = caller.path_of(object).ok().filter(|path| path.is_absolute())?;
    let process = path.strip_prefix("/proc").ok().and_then(|path_target| {
        let first = path_target.components().next()?;
        number(first.as_os_str().as_bytes())
    });
    let below_own_proc = process.is_some_and(|pid| pid == getpid().as_raw() || caller.is_of(pid));
    (!below_own_proc).then_some(path)
}

/// A path below another, without `.` and `..`; links are not resolved.
fn without_dots(start: &Path, written: &[u8]) -> PathBuf {
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
    fn a_path_that_does_not_exist_has_no_dots() {
        assert_eq!(without_dots(Path::new("/w"), b"./a/../b"), Path::new("/w/b"));
        assert_eq!(without_dots(Path::new("/"), b"/../../x"), Path::new("/x"));
    }
}
