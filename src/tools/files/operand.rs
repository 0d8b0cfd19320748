//! The writable files that a command names: a yes to it is a yes to them as they are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::place::plain;
use crate::confine::ConfineError;
use crate::confine::files::protocol::{FileAsk, FileReply, FileState, Hash, Last, Look, State};
use crate::policy::{AbsPath, Access, Operation};
use crate::tools::call::ToolError;
use crate::tools::executor::Executor;

/// The most places where files of a command are looked for.
const MOST: usize = 512;

/// A writable file that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct Operand {
    /// Where it leads.
    path: AbsPath,
    /// Its content, or that it cannot be told from another.
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Hash([u8; 32]),
    /// Too large to be hashed: size and time of the last change. No yes to it is remembered.
    Stamp(u64, i128),
    /// What cannot be written, behind a link that can: where it leads.
    Leads(AbsPath),
}

impl Operand {
    /// What of it a yes is about, in bytes.
    pub(in crate::tools) fn payload(&self) -> Vec<u8> {
        let mut bytes = self.path.as_bytes().to_vec();
        bytes.push(0);
        match &self.content {
            Content::Hash(digest) => bytes.extend_from_slice(digest),
            Content::Leads(path) => bytes.extend_from_slice(path.as_bytes()),
            Content::Stamp(size, modified) => {
                bytes.extend_from_slice(&size.to_le_bytes());
                bytes.extend_from_slice(&modified.to_le_bytes());
            }
        }
        bytes
    }
}

/// The files that a command names, and everything that was looked at to find them.
#[derive(Debug, Default)]
pub(in crate::tools) struct Operands {
    looked_at: Vec<PathBuf>,
    found: Vec<Operand>,
    /// Whether there are more than are looked at.
    more: bool,
}

impl Operands {
    /// Those that were found.
    pub(in crate::tools) fn found(&self) -> &[Operand] {
        &self.found
    }

    /// Whether every file that the words may name was looked at, and would be told from another.
    pub(in crate::tools) fn are_all(&self) -> bool {
        let is_known = |operand: &Operand| !matches!(operand.content, Content::Stamp(..));
        !self.more && self.found.iter().all(is_known)
    }
}

/// What a word may name.
enum Sight {
    Operand(Operand),
    /// A directory; other words may be meant from there.
    Directory(AbsPath),
    /// Nothing that a command could change and obey.
    Nothing,
}

impl Executor {
    /// The writable files at these places, among the words of a command that starts in `directory`, and in directories among the
    /// words.
    pub(in crate::tools) async fn operands(
        &mut self,
        places: &[PathBuf],
        words: impl Iterator<Item = &String>,
        directory: &AbsPath,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Operands, ToolError> {
        let words: BTreeSet<&Path> = words.flat_map(|word| files_in(word)).collect();
        let mut starts = vec![directory.as_path().to_owned()];
        let mut known = BTreeSet::from([directory.clone()]);
        let mut operands = Operands::default();
        for place in places {
            if let Sight::Operand(operand) = self.see(place, stops).await? {
                operands.found.push(operand);
            }
            operands.looked_at.push(place.clone());
        }
        let mut next = 0;
        while let Some(start) = starts.get(next).cloned() {
            next += 1;
            for word in &words {
                let path = start.join(word);
                if operands.looked_at.contains(&path) {
                    continue;
                }
                if operands.looked_at.len() >= MOST {
                    operands.more = true;
                    return Ok(operands);
                }
                match self.see(&path, stops).await? {
                    Sight::Operand(operand) => operands.found.push(operand),
                    Sight::Directory(at) => {
                        if known.insert(at) {
                            starts.push(path.clone());
                        }
                    }
                    Sight::Nothing => {}
                }
                operands.looked_at.push(path);
            }
        }
        operands.found.sort_by(|one, other| one.path.cmp(&other.path));
        operands.found.dedup();
        Ok(operands)
    }

    /// Whether they still are what they were, and no others.
    pub(in crate::tools) async fn hold_operands(
        &mut self,
        operands: &Operands,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<(), ToolError> {
        let mut now = Vec::new();
        for path in &operands.looked_at {
            if let Sight::Operand(operand) = self.see(path, stops).await? {
                now.push(operand);
            }
        }
        let gone = operands.found.iter().find(|then| !now.contains(then));
        match gone.or_else(|| now.iter().find(|operand| !operands.found.contains(operand))) {
            Some(changed) => Err(ToolError::Changed(changed.path.to_string())),
            None => Ok(()),
        }
    }

    async fn see(&mut self, path: &Path, stops: &mut mpsc::Receiver<Signal>) -> Result<Sight, ToolError> {
        let link = plain(path);
        let Some((path, state)) = self.found_at(path, Hash::Content, stops).await? else {
            // What cannot be looked at cannot be run or read either; should it appear, it is another operand.
            return Ok(Sight::Nothing);
        };
        let file = match state {
            State::File(file) => file,
            State::Directory { .. } => return Ok(Sight::Directory(path)),
            State::Absent | State::Symlink(_) | State::Other(_) => return Ok(Sight::Nothing),
        };
        if self.may(Operation::Write, &path) == Access::Denied {
            let is_led = link != path && self.may(Operation::Write, &link) != Access::Denied;
            return Ok(if is_led {
                Sight::Operand(Operand {
                    path: link,
                    content: Content::Leads(path),
                })
            } else {
                Sight::Nothing
            });
        }
        let content = match file.digest {
            Some(digest) => Content::Hash(digest),
            None => Content::Stamp(file.size, file.modified),
        };
        Ok(Sight::Operand(Operand { path, content }))
    }

    /// What a path leads to, where it may be looked at.
    pub(in crate::tools) async fn look_at(
        &mut self,
        path: &Path,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Seen, ToolError> {
        Ok(match self.found_at(path, Hash::Skip, stops).await? {
            Some((path, State::File(FileState { mode, .. }))) => Seen::File { path, mode },
            Some((_, State::Directory { .. } | State::Absent | State::Symlink(_) | State::Other(_))) | None => {
                Seen::Nothing
            }
        })
    }

    async fn found_at(
        &mut self,
        path: &Path,
        hash: Hash,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Option<(AbsPath, State)>, ToolError> {
        let look = Look {
            path: path.as_os_str().to_owned(),
            last: Last::Target,
            hash,
        };
        let asked = self.sight_of([&plain(path)]);
        match self.ask_files(&asked, FileAsk::Look(look), stops).await?.last {
            FileReply::Found(found) => {
                let path = AbsPath::new(&found.path).map_err(|_| ConfineError::Malformed)?;
                Ok(Some((path, found.state)))
            }
            FileReply::Failed(_) => Ok(None),
            _ => Err(ConfineError::Malformed.into()),
        }
    }
}

/// What a path leads to.
#[derive(Debug)]
pub(in crate::tools) enum Seen {
    /// A file.
    File {
        /// Where it lies, without symlinks.
        path: AbsPath,
        /// Its permission bits.
        mode: u32,
    },
    /// No file.
    Nothing,
}

/// The most places of a word at which a file's name may begin behind letters of options, and the most parts of a list.
const PARTS: usize = 8;

/// What of a word may name a file: all of it, what follows letters of options, the first `=` or an `@`, and each part of a list.
fn files_in(word: &str) -> impl Iterator<Item = &Path> {
    let glued = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    let glued = glued.into_iter().flat_map(|letters| {
        let ends = letters.char_indices().skip(1).take(PARTS);
        ends.filter_map(|(at, _)| letters.get(at..))
    });
    let valued = word.split_once('=').map(|(_, value)| value);
    let whole: Vec<&str> = [word].into_iter().chain(glued).chain(valued).collect();
    let behind: Vec<&str> = whole.iter().filter_map(|text| text.strip_prefix('@')).collect();
    let listed = whole
        .iter()
        .filter(|text| text.contains(':'))
        .flat_map(|text| text.split(':').take(PARTS));
    let parts: BTreeSet<&str> = whole.iter().copied().chain(behind).chain(listed).collect();
    parts
        .into_iter()
        .filter(|file| !file.is_empty() && !file.contains('\0'))
        .map(Path::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(word: &str) -> Vec<&str> {
        files_in(word).filter_map(Path::to_str).collect()
    }

    #[test]
    fn a_word_names_a_file_as_a_whole_or_by_its_end() {
        assert_eq!(named("./x"), ["./x"]);
        assert_eq!(named("a=b"), ["a=b", "b"]);
        assert_eq!(named("--config=a/b"), ["--config=a/b", "a/b"]);
        assert_eq!(named("--config="), ["--config="]);
        assert_eq!(named("-fx"), ["-fx", "x"]);
        assert_eq!(named("-sfx.mk"), ["-sfx.mk", ".mk", "fx.mk", "k", "mk", "x.mk"]);
        assert_eq!(named("-d@list"), ["-d@list", "@list", "ist", "list", "st", "t"]);
        assert_eq!(named("-x"), ["-x"]);
        assert_eq!(named("@list"), ["@list", "list"]);
        assert_eq!(named("a.jar:b.jar"), ["a.jar", "a.jar:b.jar", "b.jar"]);
        assert_eq!(named(""), [""; 0]);
    }
}
