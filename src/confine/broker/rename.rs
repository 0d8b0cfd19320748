//! Renames onto a private copy, emulated.
//!
//! Git writes a new config beside the old one and renames it over that. A copy of a protected file is a mount, and the kernel renames
//! nothing onto a mount. So the content of the new file is written into the copy, and the new file is removed, both of which the
//! command could do itself. Every other rename continues in the kernel, whatever was read of it.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::stat::{FileStat, SFlag, fstat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::arguments::Arguments;
use super::caller::Caller;
use super::target::{EmptyPath, LastLink, Target, resolve};

/// The longest file that is copied, in bytes.
const LONGEST: u64 = 16 << 20;

/// Whether a call renames.
pub(super) fn is_rename(data: &libc::seccomp_data) -> bool {
    crate::backend::seccomp::is_rename(i64::from(data.nr))
}

/// Emulates a rename onto one of the `copies`, given by device and inode; `None` for another rename.
pub(super) fn rename_onto_copy(
    caller: &Caller<'_>,
    data: &libc::seccomp_data,
    copies: &[(u64, u64)],
) -> Option<Result<(), Errno>> {
    let call = Call::decode(caller, data)?;
    let copy = resolve(caller, &call.to.target()).ok()?;
    let copy_stat = fstat(&copy).ok()?;
    if !copies.contains(&(copy_stat.st_dev, copy_stat.st_ino)) {
        return None;
    }
    // Only within one directory: elsewhere other users may be able to read the file.
    let (source_directory, target_directory) = (call.from.directory(), call.to.directory());
    let (source_directory, target_directory) = (
        resolve(caller, &source_directory).ok()?,
        resolve(caller, &target_directory).ok()?,
    );
    if identity(&fstat(&source_directory).ok()?) != identity(&fstat(&target_directory).ok()?) {
        return None;
    }
    let file = resolve(caller, &call.from.target()).ok()?;
    let stat_of_file = fstat(&file).ok()?;
    let is_file = SFlag::from_bits_truncate(stat_of_file.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG;
    if !is_file
        || identity(&stat_of_file) == identity(&copy_stat)
        || u64::try_from(stat_of_file.st_size).ok()? > LONGEST
    {
        return None;
    }
    let result = copy_content(caller, &file, &copy);
    Some(result.and_then(|()| unlinkat(&source_directory, call.from.name.as_c_str(), UnlinkatFlags::NoRemoveDir)))
}

fn copy_content(caller: &Caller<'_>, file: &OwnedFd, copy: &OwnedFd) -> Result<(), Errno> {
    let errno = |error: std::io::Error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
    let mut content = Vec::new();
    let read = File::from(caller.open_again(file, nix::fcntl::OFlag::O_RDONLY)?);
    read.take(LONGEST + 1).read_to_end(&mut content).map_err(errno)?;
    if content.len() as u64 > LONGEST {
        return Err(Errno::EFBIG);
    }
    let mut written = File::from(caller.open_again(copy, nix::fcntl::OFlag::O_WRONLY)?);
    written.write_all(&content).map_err(errno)?;
    written.set_len(content.len() as u64).map_err(errno)
}

fn identity(stat: &FileStat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// A plain rename.
struct Call {
    from: Entry,
    to: Entry,
}

impl Call {
    fn decode(caller: &Caller<'_>, data: &libc::seccomp_data) -> Option<Self> {
        let args = Arguments {
            caller,
            args: data.args,
        };
        let (from, to) = match i64::from(data.nr) {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => ((libc::AT_FDCWD, 0), (libc::AT_FDCWD, 1)),
            libc::SYS_renameat => ((args.int(0), 1), (args.int(2), 3)),
            libc::SYS_renameat2 if args.uint(4) == 0 => ((args.int(0), 1), (args.int(2), 3)),
            _ => return None,
        };
        let entry = |(base, index)| Entry::of(base, args.text(index).ok()?.as_bytes());
        Some(Self {
            to: entry(to)?,
            from: entry(from)?,
        })
    }
}

/// A name in a directory, as the caller wrote it.
struct Entry {
    base: i32,
    directory: CString,
    name: CString,
}

impl Entry {
    fn of(base: i32, path: &[u8]) -> Option<Self> {
        let slash = path.iter().rposition(|byte| *byte == b'/');
        let (directory, name) = match slash {
            None => (&b"."[..], path),
            Some(0) => (&b"/"[..], &path[1..]),
            Some(at) => (&path[..at], &path[at + 1..]),
        };
        if matches!(name, b"" | b"." | b"..") {
            return None;
        }
        Some(Self {
            base,
            directory: CString::new(directory).ok()?,
            name: CString::new(name).ok()?,
        })
    }

    fn directory(&self) -> Target {
        self.path(self.directory.clone(), LastLink::Follow)
    }

    fn target(&self) -> Target {
        let path = [self.directory.as_bytes(), b"/", self.name.as_bytes()].concat();
        self.path(CString::new(path).unwrap_or_default(), LastLink::Keep)
    }

    fn path(&self, path: CString, last: LastLink) -> Target {
        Target::Path {
            base: self.base,
            path,
            last,
            empty: EmptyPath::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str) -> Option<(String, String)> {
        let entry = Entry::of(libc::AT_FDCWD, path.as_bytes())?;
        Some((
            entry.directory.into_string().unwrap(),
            entry.name.into_string().unwrap(),
        ))
    }

    #[test]
    fn a_path_is_a_directory_and_a_name() {
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(entry("config"), pair(".", "config"));
        assert_eq!(entry("/config"), pair("/", "config"));
        assert_eq!(entry(".git//config"), pair(".git/", "config"));
        assert_eq!(entry("/w/.git/config"), pair("/w/.git", "config"));
        for path in ["", "/", "a/", "a/.", ".."] {
            assert_eq!(entry(path), None, "{path}");
        }
    }
}
