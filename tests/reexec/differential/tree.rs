//! A scratch tree: folders in folders, files that suffixes and patterns tell apart, hostile names, links of both kinds.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use stockade::policy::{AbsPath, Identity};
use tempfile::TempDir;

use super::random::Random;

const FOLDERS: [&[u8]; 8] = [b"a", b"b", b"-rf", b"q'\"x", b"n\nl", b"\xff\xfe", b"d.txt", b"k.pem"];
const FILES: [&[u8]; 9] = [
    b"plain",
    b"f.txt",
    b"g.md",
    b"k.pem",
    b".env",
    b"-x",
    b"h'\"\n.txt",
    b"\xff.txt",
    b"m.txt.bak",
];

/// What a name in the tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Folder,
    /// A folder with nothing in it.
    Empty,
    File,
    Link,
}

#[derive(Debug)]
pub(crate) struct Tree {
    /// Everything that exists, folders before what is in them.
    pub(crate) entries: Vec<(PathBuf, Kind)>,
    /// The folders that policies may name.
    pub(crate) area: Vec<PathBuf>,
    /// All names of objects that have several.
    pub(crate) aliases: BTreeMap<u64, Vec<AbsPath>>,
    _kept: TempDir,
}

impl Tree {
    pub(crate) fn grow(random: &mut Random, content: &[u8]) -> Self {
        // Not in /tmp: namespaces have one of their own, where everything may be done and nothing of the host shows.
        let kept = tempfile::Builder::new()
            .prefix("stockade-differential-")
            .tempdir_in("/var/tmp")
            .unwrap();
        let base = fs::canonicalize(kept.path()).unwrap();
        let mut tree = Self {
            entries: Vec::new(),
            area: Vec::new(),
            aliases: BTreeMap::new(),
            _kept: kept,
        };
        tree.folder(&base.join("outside"), random, content);
        tree.folder(&base.join("area"), random, content);
        tree.area.push(base.join("area"));
        while tree.area.len() < 8 {
            let parent = random.pick(&tree.area).clone();
            let path = parent.join(OsStr::from_bytes(random.pick::<&[u8]>(&FOLDERS)));
            let deep = path.components().count() > base.components().count() + 4;
            if deep || fs::symlink_metadata(&path).is_ok() {
                continue;
            }
            tree.folder(&path, random, content);
            tree.area.push(path);
        }
        tree.links(random);
        tree
    }

    fn folder(&mut self, path: &Path, random: &mut Random, content: &[u8]) {
        fs::create_dir(path).unwrap();
        self.entries.push((path.to_owned(), Kind::Folder));
        for name in ["empty", "empty.txt"] {
            let empty = path.join(name);
            fs::create_dir(&empty).unwrap();
            self.entries.push((empty, Kind::Empty));
        }
        for name in FILES {
            // A folder of the same name may come here later.
            if name == b"k.pem" && random.chance(30) {
                continue;
            }
            let file = path.join(OsStr::from_bytes(name));
            write(&file, content);
            self.entries.push((file, Kind::File));
        }
    }

    fn links(&mut self, random: &mut Random) {
        let of_kind = |kind| {
            let all = self.entries.iter().filter(move |(_, is)| *is == kind);
            all.map(|(path, _)| path.clone()).collect::<Vec<_>>()
        };
        let (folders, files) = (of_kind(Kind::Folder), of_kind(Kind::File));
        for folder in &folders {
            for (name, targets) in [("to-file", &files), ("to-file.md", &files), ("to-folder", &folders)] {
                let link = folder.join(name);
                symlink(random.pick(targets), &link).unwrap();
                self.entries.push((link, Kind::Link));
            }
        }
        // A second name can make a deny impossible to hold, so not every tree has one.
        if random.chance(40) {
            let (file, folder) = (random.pick(&files), random.pick(&folders));
            let second = folder.join(OsStr::from_bytes(b"second.txt"));
            fs::hard_link(file, &second).unwrap();
            let inode = fs::metadata(file).unwrap().ino();
            self.aliases.insert(inode, vec![abs(file), abs(&second)]);
            self.entries.push((second, Kind::File));
        }
    }

    /// What was at the path when the tree was grown.
    pub(crate) fn kind(&self, path: &Path) -> Option<Kind> {
        let (_, kind) = self.entries.iter().find(|(entry, _)| entry == path)?;
        Some(*kind)
    }

    /// The other names of the object at `path`.
    pub(crate) fn other_names(&self, path: &AbsPath) -> Vec<AbsPath> {
        let all = self.aliases.values().find(|names| names.contains(path));
        let others = all.into_iter().flatten().filter(|name| *name != path);
        others.cloned().collect()
    }
}

fn write(path: &Path, content: &[u8]) {
    use std::io::Write;
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o755).open(path).unwrap();
    file.write_all(content).unwrap();
    // Whatever the umask is, modes are never why something is refused.
    file.set_permissions(fs::Permissions::from_mode(0o755)).unwrap();
}

pub(crate) fn abs(path: &Path) -> AbsPath {
    AbsPath::new(path).unwrap()
}

pub(crate) fn identity(path: &Path) -> Identity {
    let meta = fs::symlink_metadata(path).unwrap();
    Identity {
        device: meta.dev(),
        inode: meta.ino(),
    }
}
