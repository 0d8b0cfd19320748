//! The writable files that a command names: a yes to it is a yes to them as they are.

use std::path::Path;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::place::plain;
use crate::confine::ConfineError;
use crate::confine::files::protocol::{FileAsk, FileReply, Hash, Last, Look, State};
use crate::policy::{AbsPath, Access, Operation};
use crate::tools::call::ToolError;
use crate::tools::executor::Executor;

/// A writable file that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct Operand {
    /// What was written.
    named: AbsPath,
    /// Where it leads.
    path: AbsPath,
    /// Its content, or that it cannot be told from another.
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Hash([u8; 32]),
    /// Too large to be hashed: size and time of the last change.
    Stamp(u64, i128),
    /// More files than are looked at. Equal to nothing, so a yes to it is remembered for nothing.
    Unknown(u64),
}

impl Operand {
    /// What of it a yes is about, in bytes.
    pub(in crate::tools) fn payload(&self) -> Vec<u8> {
        let mut bytes = self.path.as_bytes().to_vec();
        bytes.push(0);
        match &self.content {
            Content::Hash(digest) => bytes.extend_from_slice(digest),
            Content::Stamp(size, modified) => {
                bytes.extend_from_slice(&size.to_le_bytes());
                bytes.extend_from_slice(&modified.to_le_bytes());
            }
            Content::Unknown(number) => bytes.extend_from_slice(&number.to_le_bytes()),
        }
        bytes
    }
}

impl Executor {
    /// The writable files among the words of a command that starts in `directory`.
    pub(in crate::tools) async fn operands(
        &mut self,
        words: impl Iterator<Item = &String>,
        directory: &AbsPath,
        most: usize,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Vec<Operand>, ToolError> {
        let mut named: Vec<AbsPath> = words
            .filter_map(|word| file_in(word))
            .map(|word| plain(&directory.as_path().join(word)))
            .filter(|path| self.policy.speaker(path).is_some())
            .collect();
        named.sort();
        named.dedup();
        let too_many = named.len() > most;
        named.truncate(most);
        let mut operands = Vec::new();
        for path in named {
            operands.extend(self.operand(path, stops).await?);
        }
        if too_many {
            self.unknown += 1;
            operands.push(Operand {
                named: AbsPath::root(),
                path: AbsPath::root(),
                content: Content::Unknown(self.unknown),
            });
        }
        Ok(operands)
    }

    /// Whether they still are what they were.
    pub(in crate::tools) async fn hold_operands(
        &mut self,
        operands: &[Operand],
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<(), ToolError> {
        for operand in operands {
            if matches!(operand.content, Content::Unknown(_)) {
                continue;
            }
            if self.operand(operand.named.clone(), stops).await?.as_ref() != Some(operand) {
                return Err(ToolError::Changed(operand.named.to_string()));
            }
        }
        Ok(())
    }

    async fn operand(
        &mut self,
        named: AbsPath,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Option<Operand>, ToolError> {
        let look = Look {
            path: named.as_path().as_os_str().to_owned(),
            last: Last::Target,
            hash: Hash::Content,
        };
        let asked = self.sight_of([&named]);
        let found = match self.ask_files(&asked, FileAsk::Look(look), stops).await?.last {
            FileReply::Found(found) => found,
            // What cannot be looked at cannot be run or read either; should it appear, it is another operand.
            FileReply::Failed(_) => return Ok(None),
            _ => return Err(ConfineError::Malformed.into()),
        };
        let path = AbsPath::new(&found.path).map_err(|_| ConfineError::Malformed)?;
        let State::File(file) = found.state else {
            return Ok(None);
        };
        if self.may(Operation::Write, &path) == Access::Denied {
            return Ok(None);
        }
        let content = match file.digest {
            Some(digest) => Content::Hash(digest),
            None => Content::Stamp(file.size, file.modified),
        };
        Ok(Some(Operand { named, path, content }))
    }
}

/// What of a word may name a file: `--config=FILE` names one, `-x` does not.
fn file_in(word: &str) -> Option<&Path> {
    let file = match word.split_once('=') {
        Some((_, file)) => file,
        None if word.starts_with('-') => return None,
        None => word,
    };
    (!file.is_empty() && !file.contains('\0')).then(|| Path::new(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_names_a_file_unless_it_is_an_option() {
        assert_eq!(file_in("./x"), Some(Path::new("./x")));
        assert_eq!(file_in("--config=a/b"), Some(Path::new("a/b")));
        assert_eq!(file_in("-x"), None);
        assert_eq!(file_in("--config="), None);
    }
}
