//! The file server, asked over a socket as the parent asks it.

mod applying;
mod confined;
mod deleting;
mod editing;
mod listing;
mod look;
mod protocol;
mod reading;
mod robust;
mod searching;
mod several_changes;
mod showing;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use tempfile::TempDir;

use super::protocol::{
    Bound, Change, Edit, FileOperation, FileReply, FileRequest, Found, Hash, Last, Look, Occurrences, Prepared, State,
    Tree, Why,
};
use crate::confine::wire;

/// A server, and a directory of its own to work in.
struct Fixture {
    folder: TempDir,
    socket: Option<OwnedFd>,
    server: Option<JoinHandle<std::io::Result<()>>>,
}

impl Fixture {
    fn new() -> Self {
        Self::confined(|_| ())
    }

    /// One whose server is confined before it serves.
    fn confined(confine: impl FnOnce(&Path) + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC).unwrap();
        Self {
            folder,
            socket: Some(ours),
            server: Some(std::thread::spawn(move || {
                confine(&top);
                super::serve(&theirs)
            })),
        }
    }

    /// The path of a name in the directory, without symlinks.
    fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        fs::canonicalize(self.folder.path())
            .unwrap()
            .join(Path::new(name.as_ref()))
    }

    fn os(&self, name: impl AsRef<OsStr>) -> OsString {
        self.path(name).into_os_string()
    }

    fn file(&self, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) -> OsString {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.into_os_string()
    }

    fn send(&self, operation: FileOperation, deadline_ms: u64) {
        wire::send(
            self.socket.as_ref().unwrap(),
            &FileRequest { deadline_ms, operation },
            &[],
        )
        .unwrap();
    }

    fn reply(&self) -> FileReply {
        wire::receive(self.socket.as_ref().unwrap()).unwrap().unwrap().0
    }

    fn request(&self, operation: FileOperation) -> FileReply {
        self.send(operation, 20_000);
        self.reply()
    }

    fn look(&self, path: impl AsRef<OsStr>, last: Last, hash: Hash) -> Result<Found, Why> {
        let path = path.as_ref().to_owned();
        match self.request(FileOperation::Look(Look { path, last, hash })) {
            FileReply::Found(found) => Ok(found),
            FileReply::Failed(failed) => Err(failed.why),
            other => panic!("{other:?}"),
        }
    }

    fn prepare(&self, change: &Change) -> Result<Prepared, Why> {
        match self.request(FileOperation::Prepare(vec![change.clone()])) {
            FileReply::Prepared(prepared) => Ok(prepared.into_iter().next().unwrap()),
            FileReply::Failed(failed) => Err(failed.why),
            other => panic!("{other:?}"),
        }
    }

    fn bound(&self, change: Change) -> Bound {
        let prepared = self.prepare(&change).unwrap();
        Bound {
            change,
            before: prepared.before,
            after: prepared.after,
            contents: prepared.contents.and_then(|contents| contents.digest),
        }
    }

    fn apply(&self, changes: Vec<Bound>) -> Result<(), Why> {
        match self.request(FileOperation::Apply(changes)) {
            FileReply::Applied => Ok(()),
            FileReply::Failed(failed) => Err(failed.why),
            other => panic!("{other:?}"),
        }
    }

    /// Prepares a change and makes it.
    fn change(&self, change: Change) -> Result<(), Why> {
        self.prepare(&change)?;
        self.apply(vec![self.bound(change)])
    }

    /// Everything below the directory, and the content of files.
    fn snapshot(&self) -> Vec<(OsString, Option<Vec<u8>>)> {
        let mut found = Vec::new();
        let mut left = vec![self.path("")];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let meta = fs::symlink_metadata(&path).unwrap();
                if meta.is_dir() {
                    left.push(path.clone());
                }
                let content = meta.is_file().then(|| fs::read(&path).unwrap());
                found.push((path.into_os_string(), content));
            }
        }
        found.sort();
        found
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        drop(self.socket.take());
        let ended = self.server.take().unwrap().join();
        if !std::thread::panicking() {
            assert!(ended.is_ok(), "the server panicked");
        }
    }
}

/// Names that want to be something else.
fn hostile_names() -> Vec<OsString> {
    let names: [&[u8]; 6] = [b"a\nb", b"\"it's\"", b"\xff\xfe", b"-rf", b" ", b"\x1b[2J"];
    names
        .into_iter()
        .map(|name| OsStr::from_bytes(name).to_owned())
        .collect()
}

fn write(path: &OsStr, content: impl AsRef<[u8]>) -> Change {
    Change::Write {
        path: path.to_owned(),
        content: content.as_ref().to_vec(),
        max_bytes: None,
    }
}

fn edit(path: &OsStr, edits: &[(&str, &str)]) -> Change {
    let edits = edits.iter().map(|(old, new)| Edit {
        old: (*old).to_owned(),
        new: (*new).to_owned(),
        occurrences: Occurrences::One,
    });
    Change::Edit {
        path: path.to_owned(),
        edits: edits.collect(),
        max_bytes: None,
    }
}

fn patch(path: &OsStr, hunks: &str) -> Change {
    Change::Patch {
        path: path.to_owned(),
        hunks: hunks.to_owned(),
        max_bytes: None,
    }
}

fn delete(path: &OsStr, tree: Tree) -> Change {
    let path = path.to_owned();
    Change::Delete { path, tree }
}

fn rename(from: &OsStr, to: &OsStr) -> Change {
    Change::Move {
        from: from.to_owned(),
        to: to.to_owned(),
    }
}

fn is_file(state: &State) -> bool {
    matches!(state, State::File(_))
}

/// Five changes of every kind below a directory.
fn every_kind(world: &Fixture, below: &str) -> Vec<Bound> {
    let name = |name: &str| Path::new(below).join(name);
    let replaced = world.file(name("replaced"), "old");
    let moved = world.file(name("moved"), "m");
    let removed = world.file(name("removed"), "r");
    world.file(name("tree/f"), "t");
    let changes = [
        write(&replaced, "new"),
        write(&world.os(name("way/new")), "new"),
        rename(&moved, &world.os(name("other/way/moved"))),
        delete(&removed, Tree::Empty),
        delete(&world.os(name("tree")), Tree::Recursive),
    ];
    changes.into_iter().map(|change| world.bound(change)).collect()
}
