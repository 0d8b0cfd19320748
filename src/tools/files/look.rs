//! Looking at the paths of a call, before anything else is done with them.

use std::path::Path;

use super::failures;
use super::file_client::Files;
use super::judge::Judge;
use super::written_path::{WrittenPath, parse_path, plain};
use crate::confine::ConfineError;
use crate::confine::files::protocol::{
    FileOperation, FileReply, FileState, Found, Hash, Last, Look, Read, State, Text, Why,
};
use crate::policy::path::escape;
use crate::policy::{AbsPath, Operation};
use crate::profile::ApprovedRoots;
use crate::tools::call::ToolError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Looked {
    /// The path without symlinks.
    pub(super) path: AbsPath,
    pub(super) state: State,
}

/// The file that a path leads to.
#[derive(Debug)]
pub(in crate::tools) enum FoundFile {
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

impl Files<'_> {
    /// Where a path leads that an agent wrote.
    pub(super) async fn target(&mut self, directory: &Path, written: &str, last: Last) -> Result<Looked, ToolError> {
        let written_path = parse_path(&self.session().policy, directory, written)
            .map_err(|why| ToolError::File(format!("{why}: no file")))?;
        let approved_roots = self.judge().view_access_of([&written_path.plain]);
        let look = Look {
            path: written_path.path.clone(),
            last,
            hash: Hash::Skip,
        };
        let reply = self.ask(&approved_roots, FileOperation::Look(look)).await?.last;
        lead(self.judge(), &written_path, reply)
    }

    /// The same for a file that is to be read: where nobody need be asked to see it, with what was asked for of it, so
    /// that the server is asked once. Nobody is told of that before where it lies is judged.
    pub(super) async fn peek(
        &mut self,
        directory: &Path,
        written: &str,
        lines: Read,
    ) -> Result<(Looked, Option<Text>), ToolError> {
        let written_path = parse_path(&self.session().policy, directory, written)
            .map_err(|why| ToolError::File(format!("{why}: no file")))?;
        let approved_roots = self.judge().view_access_of([&written_path.plain]);
        let look = Look {
            path: written_path.path.clone(),
            last: Last::Target,
            hash: Hash::Skip,
        };
        let ask = match approved_roots {
            ApprovedRoots::None => FileOperation::Peek(look, lines),
            ApprovedRoots::InAdvance(_) | ApprovedRoots::Named(_) | ApprovedRoots::All => FileOperation::Look(look),
        };
        match self.ask(&approved_roots, ask).await?.last {
            FileReply::Peeked(found, text) => Ok((lead(self.judge(), &written_path, FileReply::Found(found))?, text)),
            reply => Ok((lead(self.judge(), &written_path, reply)?, None)),
        }
    }

    /// A directory that an agent wrote, to start a command in.
    pub(in crate::tools) async fn directory_at(
        &mut self,
        directory: &Path,
        written: &str,
    ) -> Result<AbsPath, ToolError> {
        let looked = self.target(directory, written, Last::Target).await?;
        let judged = self.judge().judge(Operation::List, &looked.path);
        Ok(judged.map_err(ToolError::Blocked)?.path)
    }

    /// A path that an agent wrote as an argument of a command, and the root it lies in.
    pub(in crate::tools) async fn path_at(
        &mut self,
        directory: &Path,
        written: &str,
    ) -> Result<(AbsPath, String), ToolError> {
        let looked = self.target(directory, written, Last::Target).await?;
        let operation = match looked.state {
            State::Directory { .. } => Operation::List,
            State::Absent | State::File(_) | State::Symlink(_) | State::Other(_) => Operation::Read,
        };
        let judged = self
            .judge()
            .judge(operation, &looked.path)
            .map_err(ToolError::Blocked)?;
        Ok((judged.path, judged.root))
    }

    /// What a path leads to, where it may be looked at.
    pub(in crate::tools) async fn look_at(&mut self, path: &Path) -> Result<FoundFile, ToolError> {
        Ok(match self.found_at(path, Hash::Skip).await? {
            Ok(Found {
                path,
                state: State::File(FileState { mode, .. }),
                ..
            }) => FoundFile::File {
                path: AbsPath::new(&path).map_err(|_| ConfineError::Malformed)?,
                mode,
            },
            Ok(_) | Err(_) => FoundFile::Nothing,
        })
    }

    pub(super) async fn found_at(&mut self, path: &Path, hash: Hash) -> Result<Result<Found, Why>, ToolError> {
        let look = Look {
            path: path.as_os_str().to_owned(),
            last: Last::Target,
            hash,
        };
        let approved_roots = self.judge().view_access_of([&plain(path)]);
        match self.ask(&approved_roots, FileOperation::Look(look)).await?.last {
            FileReply::Found(found) => Ok(Ok(found)),
            FileReply::Failed(failure) => Ok(Err(failure.why)),
            _ => Err(ConfineError::Malformed.into()),
        }
    }
}

/// Judges where a written path leads, by the server's reply.
pub(super) fn lead(judge: Judge<'_>, written_path: &WrittenPath, reply: FileReply) -> Result<Looked, ToolError> {
    let approved_roots = judge.view_access_of([&written_path.plain]);
    let found = match reply {
        FileReply::Found(found) => found,
        FileReply::Failed(failure) => {
            // Whether anything is where nothing may be looked at, nobody is told.
            judge.judge_view(&written_path.plain).map_err(ToolError::Blocked)?;
            if approved_roots == ApprovedRoots::None {
                return Err(failures::error(&failure));
            }
            // Nor, before a yes, what is where that needs one. Without a symlink on the way it leads there; with
            // one, nothing is opened.
            return Ok(Looked {
                path: written_path.plain.clone(),
                state: State::Absent,
            });
        }
        _ => return Err(ConfineError::Malformed.into()),
    };
    let path = AbsPath::new(&found.path).map_err(|_| ConfineError::Malformed)?;
    if approved_roots != ApprovedRoots::None && judge.view_access_of([&path]) != approved_roots {
        return Err(ToolError::Blocked(format!(
            "{} leads out of its root, which may not be looked at unasked",
            escape(written_path.written.as_bytes())
        )));
    }
    if let Some(name) = &written_path.root
        && let Some(root) = judge.0.policy.roots.iter().find(|root| root.name == *name)
        && !path.is_within(&root.path)
    {
        return Err(ToolError::Blocked(format!(
            "{} leads to {path}, out of the root `{name}` ({})",
            written_path.written, root.path
        )));
    }
    Ok(Looked {
        path,
        state: found.state,
    })
}
