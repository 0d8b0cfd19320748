//! Looking at the paths of a call, before anything else is done with them.

use std::collections::BTreeSet;
use std::path::Path;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::failures;
use super::judge::Judged;
use super::place::{Place, place};
use crate::confine::ConfineError;
use crate::confine::files::protocol::{FileAsk, FileReply, Hash, Last, Look, Read, State, Text};
use crate::policy::path::escape;
use crate::policy::{AbsPath, Demand, Operation};
use crate::profile::Asked;
use crate::tools::call::ToolError;
use crate::tools::executor::Executor;

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Looked {
    /// The path without symlinks.
    pub(super) path: AbsPath,
    /// What is there.
    pub(super) state: State,
}

impl Executor {
    /// Where a path leads that an agent wrote.
    pub(super) async fn target(
        &mut self,
        directory: &Path,
        written: &str,
        last: Last,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Looked, ToolError> {
        let place =
            place(&self.policy, directory, written).map_err(|why| ToolError::File(format!("{why}: no file")))?;
        let asked = self.sight_of([&place.plain]);
        let look = Look {
            path: place.path.clone(),
            last,
            hash: Hash::Skip,
        };
        let said = self.ask_files(&asked, FileAsk::Look(look), stops).await?.last;
        self.lead(&place, said)
    }

    /// The same for a file that is to be read: where nobody need be asked to see it, with what was asked for of it, so
    /// that the server is asked once. Nobody is told of that before where it lies is judged.
    pub(super) async fn peek(
        &mut self,
        directory: &Path,
        written: &str,
        lines: Read,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<(Looked, Option<Text>), ToolError> {
        let place =
            place(&self.policy, directory, written).map_err(|why| ToolError::File(format!("{why}: no file")))?;
        let asked = self.sight_of([&place.plain]);
        let look = Look {
            path: place.path.clone(),
            last: Last::Target,
            hash: Hash::Skip,
        };
        let ask = match asked {
            Asked::Nobody => FileAsk::Peek(look, lines),
            Asked::Roots(_) | Asked::Everything => FileAsk::Look(look),
        };
        match self.ask_files(&asked, ask, stops).await?.last {
            FileReply::Peeked(found, text) => Ok((self.lead(&place, FileReply::Found(found))?, text)),
            said => Ok((self.lead(&place, said)?, None)),
        }
    }

    /// Where a place leads, as the server says.
    pub(super) fn lead(&self, place: &Place, said: FileReply) -> Result<Looked, ToolError> {
        let asked = self.sight_of([&place.plain]);
        let found = match said {
            FileReply::Found(found) => found,
            FileReply::Failed(failure) => {
                // Whether anything is where nothing may be looked at, nobody is told.
                self.judge_sight(&place.plain).map_err(ToolError::Blocked)?;
                if asked == Asked::Nobody {
                    return Err(failures::error(&failure));
                }
                // Nor, before a yes, what is where that needs one. Without a symlink on the way it leads there; with
                // one, nothing is opened.
                return Ok(Looked {
                    path: place.plain.clone(),
                    state: State::Absent,
                });
            }
            _ => return Err(ConfineError::Malformed.into()),
        };
        let path = AbsPath::new(&found.path).map_err(|_| ConfineError::Malformed)?;
        if asked != Asked::Nobody && self.sight_of([&path]) != asked {
            return Err(ToolError::Blocked(format!(
                "{} leads out of its root, which may not be looked at unasked",
                escape(place.written.as_bytes())
            )));
        }
        if let Some(name) = &place.root
            && let Some(root) = self.policy.roots.iter().find(|root| root.name == *name)
            && !path.is_within(&root.path)
        {
            return Err(ToolError::Blocked(format!(
                "{} leads to {path}, out of the root `{name}` ({})",
                place.written, root.path
            )));
        }
        Ok(Looked {
            path,
            state: found.state,
        })
    }

    /// A directory that an agent wrote, to start a command in.
    pub(in crate::tools) async fn directory_at(
        &mut self,
        directory: &Path,
        written: &str,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<AbsPath, ToolError> {
        let looked = self.target(directory, written, Last::Target, stops).await?;
        let judged = self.judge(Operation::List, &looked.path);
        Ok(judged.map_err(ToolError::Blocked)?.path)
    }

    /// A path that an agent wrote as an argument of a command, and the root it lies in.
    pub(in crate::tools) async fn place_at(
        &mut self,
        directory: &Path,
        written: &str,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<(AbsPath, String), ToolError> {
        let looked = self.target(directory, written, Last::Target, stops).await?;
        let operation = match looked.state {
            State::Directory { .. } => Operation::List,
            State::Absent | State::File(_) | State::Symlink(_) | State::Other(_) => Operation::Read,
        };
        let judged = self.judge(operation, &looked.path).map_err(ToolError::Blocked)?;
        Ok((judged.path, judged.root))
    }

    /// What must be open to see what is at these paths.
    pub(super) fn sight(&self, judged: &[Judged]) -> Asked {
        self.sight_of(judged.iter().map(|one| &one.path))
    }

    pub(super) fn sight_of<'a>(&self, paths: impl IntoIterator<Item = &'a AbsPath>) -> Asked {
        let closed: BTreeSet<String> = paths
            .into_iter()
            .filter_map(|path| self.policy.speaker(path))
            .filter(|root| root.read_approval > Demand::None)
            .map(|root| root.name.clone())
            .collect();
        if closed.is_empty() {
            Asked::Nobody
        } else {
            Asked::Roots(closed)
        }
    }

    /// Why a path may not even be looked at, if it may not.
    fn judge_sight(&self, path: &AbsPath) -> Result<(), String> {
        let seen = [Operation::Read, Operation::List]
            .into_iter()
            .find_map(|operation| self.judge(operation, path).ok());
        match seen {
            Some(_) => Ok(()),
            None => self.judge(Operation::Read, path).map(drop),
        }
    }
}
