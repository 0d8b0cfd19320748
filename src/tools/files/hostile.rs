//! Everything that is made of what a file server says, for whoever tries it with hostile bytes.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};

use super::arguments::FileKind;
use super::look::lead;
use super::question::Facts;
use super::read::{StreamKind, render_reply};
use super::{change, file_client, present, question, written_path};
use crate::approval::{ApprovalRequest, Lazy};
use crate::confine::ConfineError;
use crate::confine::files::FileServer;
#[cfg(test)]
use crate::confine::files::protocol;
use crate::confine::files::protocol::{Bound, Change, FileOperation, FileReply, FileRequest, Include, List, Select};
use crate::policy::{AbsPath, Demand, Operation};
use crate::profile::ApprovedRoots;
use crate::tools::call::ToolError;
use crate::tools::executor::Executor;
use crate::tools::output::Output;
use crate::tools::tool::ApprovalContext;

/// A parent that hears what it is given.
pub struct Parent {
    executor: Executor,
    start: AbsPath,
}

/// What the parent makes of an answer.
#[derive(Debug)]
pub struct Made {
    /// What the agent is told that looked.
    pub told: Result<Output, ToolError>,
    /// What the agent is told whose path was looked at.
    pub led: Result<String, ToolError>,
    /// What somebody would be asked who is to change something.
    pub question: Result<ApprovalRequest, ToolError>,
}

impl Parent {
    /// One that looks below this directory.
    pub const fn new(executor: Executor, start: AbsPath) -> Self {
        Self { executor, start }
    }

    /// What it makes of a stream of frames.
    pub fn hears(&self, bytes: &[u8]) -> Result<Made, ConfineError> {
        let (server, _theirs) = saying(bytes).map_err(ConfineError::Channel)?;
        self.asks(&server)
    }

    /// What it makes of what this server says.
    pub fn asks(&self, server: &FileServer) -> Result<Made, ConfineError> {
        let (parts, last) = file_client::receive_all(server, &self.request())?;
        let question = change::measured(last.clone(), 1).map(|measured| {
            let change = self.change();
            let _size = measured.first().map(|measured| change::size_of(&change, measured));
            let bound: Vec<Bound> = measured
                .iter()
                .map(|measured| Bound {
                    change: change.clone(),
                    before: measured.before.clone(),
                    after: measured.after,
                    contents: measured.contents.and_then(|contents| contents.digest),
                })
                .collect();
            let facts = Facts {
                places: Vec::new(),
                kind: FileKind::Write,
                description: change::described(&["write", "write"], &measured),
                subject: question::of_changes(&bound),
                digest: [0; 32],
                regime: String::new(),
                presentation: present::changes(server.clone(), vec![change], measured),
            };
            question::request(
                &ApprovalContext::new("write_file", json!({})),
                facts,
                Demand::Required,
                Vec::new(),
            )
        });
        let stream_kind = if parts.iter().any(|part| matches!(part, FileReply::Matches(_))) {
            StreamKind::Matches
        } else {
            StreamKind::Entries
        };
        Ok(Made {
            led: self.leads(last.clone()),
            told: render_reply(
                &self.executor,
                &self.start,
                &ApprovedRoots::None,
                stream_kind,
                parts,
                last,
            ),
            question,
        })
    }

    /// The presentation that a server makes that says this, of a change that was prepared as `first` says.
    ///
    /// Whoever shows it holds the other end meanwhile.
    pub fn shows(&self, first: &[u8], bytes: &[u8]) -> Result<(Lazy, UnixStream), ToolError> {
        let (server, _theirs) = saying(first).map_err(ConfineError::Channel)?;
        let (_, last) = file_client::receive_all(&server, &self.request())?;
        let prepared = change::measured(last, 1)?;
        let (server, theirs) = saying(bytes).map_err(ConfineError::Channel)?;
        Ok((present::changes(server, vec![self.change()], prepared), theirs))
    }

    fn leads(&self, reply: FileReply) -> Result<String, ToolError> {
        let written_path = written_path::parse_path(&self.executor.session().policy, self.start.as_path(), ".")
            .map_err(ToolError::File)?;
        let looked = lead(self.executor.judge(), &written_path, reply)?;
        for operation in Operation::ALL {
            let judged = self
                .executor
                .judge()
                .judge(operation, &looked.path)
                .map_err(ToolError::Blocked)?;
            self.executor
                .judge()
                .judge_tree(&judged.path)
                .map_err(ToolError::Blocked)?;
            let _sum = self.executor.judge().sum(&[judged]);
        }
        Ok(looked.path.to_string())
    }

    fn change(&self) -> Change {
        Change::Write {
            path: self.start.as_path().join("f").into(),
            content: b"new".to_vec(),
            max_bytes: None,
        }
    }

    fn request(&self) -> FileRequest {
        FileRequest {
            deadline_ms: 1000,
            operation: FileOperation::List(List {
                path: OsString::from(self.start.as_path()),
                depth: 1,
                select: Select {
                    glob: None,
                    hidden: Include::Yes,
                    ignored: Include::Yes,
                },
                limit: 500,
            }),
        }
    }
}

/// A server that says these bytes to the first request, and hangs up.
///
/// At most what a socket holds: nobody reads what is too much. The other end is held while it is asked.
fn saying(bytes: &[u8]) -> io::Result<(FileServer, UnixStream)> {
    let (server, theirs) = FileServer::pair().map_err(io::Error::other)?;
    let mut theirs = UnixStream::from(theirs);
    theirs.write_all(bytes)?;
    theirs.shutdown(Shutdown::Write)?;
    Ok((server, theirs))
}

/// The paths that an answer names.
pub fn paths(output: &Output) -> Vec<&Path> {
    ["entries", "matches"]
        .iter()
        .filter_map(|what| output.data.get(what)?.as_array())
        .flatten()
        .filter_map(|one| one.get("path").and_then(Value::as_str))
        .map(Path::new)
        .collect()
}

impl fmt::Debug for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parent")
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}

/// Whether what a server shows counts as what it prepared.
#[cfg(test)]
pub fn is_as_prepared(shown: &protocol::Prepared, prepared: &protocol::Prepared) -> bool {
    present::comparable(shown) == present::comparable(prepared)
}
