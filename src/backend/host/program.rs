//! What this program needs to be started again where only little of the host is shown: its loader and libraries.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The most of a program header table that is read, in entries.
const MOST_HEADERS: u16 = 128;
/// The most links that are followed on the way to the loader.
const MOST_LINKS: usize = 16;

/// The files that hold this program's code beside its own, and the loader by every name on the way to it, links
/// included. Names come from the kernel and from the program itself.
pub fn needs() -> io::Result<Vec<PathBuf>> {
    let own = std::fs::read_link("/proc/self/exe")?;
    let mut files: BTreeSet<PathBuf> = mapped(&std::fs::read("/proc/self/maps")?)
        .filter(|path| *path != own)
        .collect();
    if let Some(loader) = loader(&File::open("/proc/self/exe")?)? {
        follow(&loader, &mut files)?;
    }
    Ok(files.into_iter().collect())
}

/// The files behind executable memory.
fn mapped(maps: &[u8]) -> impl Iterator<Item = PathBuf> + '_ {
    maps.split(|byte| *byte == b'\n').filter_map(|line| {
        let rights = line.split(|byte| *byte == b' ').nth(1)?;
        let path = line.get(line.iter().position(|byte| *byte == b'/')?..)?;
        let named = rights.contains(&b'x') && !path.ends_with(b" (deleted)");
        named.then(|| PathBuf::from(OsStr::from_bytes(path)))
    })
}

/// The loader that a 64-bit ELF file names; `None` for one that needs none.
fn loader(program: &File) -> io::Result<Option<PathBuf>> {
    const LOADER: u32 = 3;
    let read = |at: u64, length: usize| {
        let mut bytes = vec![0; length];
        program.read_exact_at(&mut bytes, at).map(|()| bytes)
    };
    let number = |bytes: &[u8], at: usize| -> io::Result<u64> {
        let field = bytes.get(at..at + 8).and_then(|field| field.try_into().ok());
        Ok(u64::from_le_bytes(field.ok_or(io::ErrorKind::InvalidData)?))
    };
    let head = read(0, 64)?;
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a 64-bit ELF file"));
    }
    let table = number(&head, 32)?;
    let [_, _, _, _, _, _, size_low, size_high, count_low, count_high, ..] = head[48..] else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let size = u16::from_le_bytes([size_low, size_high]);
    let count = u16::from_le_bytes([count_low, count_high]).min(MOST_HEADERS);
    for index in 0..u64::from(count) {
        let header = read(table.saturating_add(index * u64::from(size)), 56)?;
        if header.starts_with(&LOADER.to_le_bytes()) {
            let length = usize::try_from(number(&header, 32)?.min(4096)).unwrap_or(0);
            let mut name = read(number(&header, 8)?, length)?;
            name.retain(|byte| *byte != 0);
            return Ok(Some(PathBuf::from(OsStr::from_bytes(&name))));
        }
    }
    Ok(None)
}

/// Adds every link on the way to a file, and the file.
fn follow(path: &Path, found: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    let mut todo: Vec<PathBuf> = vec![path.to_owned()];
    let mut links = 0;
    while let Some(path) = todo.pop() {
        let mut at = PathBuf::from("/");
        let mut rest = path.components();
        rest.next();
        while let Some(component) = rest.next() {
            at.push(component);
            let Ok(target) = std::fs::read_link(&at) else { continue };
            links += 1;
            if links > MOST_LINKS {
                return Err(io::Error::other("too many links on the way to the loader"));
            }
            let parent = at.parent().unwrap_or(Path::new("/"));
            let leads = parent.join(target).join(rest.as_path());
            found.insert(at.clone());
            todo.push(normal(&leads));
            at.clear();
            break;
        }
        if !at.as_os_str().is_empty() {
            found.insert(at);
        }
    }
    Ok(())
}

/// Without `.` and `..`: system directories on the way to a loader are no links themselves here, because those
/// before were followed.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for component in path.components() {
        match component {
            std::path::Component::Normal(name) => normal.push(name),
            std::path::Component::ParentDir => {
                normal.pop();
            }
            std::path::Component::RootDir | std::path::Component::CurDir | std::path::Component::Prefix(_) => {}
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_and_the_c_library_of_this_program_are_found() {
        let needs = needs().unwrap();
        let has = |word: &str| {
            needs
                .iter()
                .any(|path| crate::policy::path::display(path).contains(word))
        };
        assert!(has("ld-linux") && has("libc.so"), "{needs:?}");
        assert!(needs.iter().all(|path| path.symlink_metadata().is_ok()), "{needs:?}");
        assert!(!needs.contains(&std::env::current_exe().unwrap()));
    }

    #[test]
    fn only_executable_memory_with_a_name_counts() {
        let maps = b"1-2 r--p 0 fe:00 5 /usr/lib/a b\n1-2 r-xp 0 fe:00 5    /usr/lib/a b\n\
            1-2 r-xp 0 00:00 0 [vdso]\n1-2 r-xp 0 fe:00 9 /gone (deleted)\n";
        assert_eq!(mapped(maps).collect::<Vec<_>>(), [PathBuf::from("/usr/lib/a b")]);
    }

    #[test]
    fn each_link_on_the_way_is_followed() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("usr/lib")).unwrap();
        std::fs::write(base.join("usr/lib/ld-1.so"), "").unwrap();
        std::os::unix::fs::symlink("usr/lib", base.join("lib")).unwrap();
        std::os::unix::fs::symlink("../lib/ld-1.so", base.join("usr/lib/ld.so")).unwrap();
        let mut found = BTreeSet::new();
        follow(&base.join("lib/ld.so"), &mut found).unwrap();
        let expected = ["lib", "usr/lib/ld-1.so", "usr/lib/ld.so"].map(|name| base.join(name));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    }
}
