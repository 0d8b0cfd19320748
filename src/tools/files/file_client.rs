//! Asking the file server of a confined forker.
//!
//! A forker serves one profile, and has at most one server for what only looks. A change gets a server of its own, with
//! protected names recorded before and settled after, as for a command.

use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::judge::Judge;
use crate::confine::files::protocol::{FileOperation, FileReply, FileRequest};
use crate::confine::files::{FileServer, Progress};
use crate::confine::{ConfineError, Confinement, ForkerFor};
use crate::profile::ApprovedRoots;
use crate::tools::call::ToolError;
use crate::tools::plan::ProfileDigest;
use crate::tools::pool::Pool;
use crate::tools::profiles::Profiles;
use crate::tools::session_policy::SessionPolicy;

/// How long an operation on files may take where the config sets no limit.
const TIMEOUT: Duration = Duration::from_mins(1);
/// The most bytes of parts that are kept of one answer.
const MAX_KEPT: usize = 64 * 1024 * 1024;

/// A complete reply, and the server that sent it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) parts: Vec<FileReply>,
    pub(super) last: FileReply,
    pub(super) server: FileServer,
}

/// Whether a request reads more than the paths that a call names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walks {
    Yes,
    No,
}

/// The files of a session, as the file servers of its confined forkers see them.
#[derive(Debug)]
pub(in crate::tools) struct Files<'a> {
    pub(in crate::tools) profiles: &'a mut Profiles,
    pub(in crate::tools) pool: &'a mut Pool,
    /// A signal cancels the request.
    pub(in crate::tools) stops: &'a mut mpsc::Receiver<Signal>,
}

impl Files<'_> {
    pub(in crate::tools) fn session(&self) -> &SessionPolicy {
        self.pool.session()
    }

    pub(super) fn judge(&self) -> Judge<'_> {
        Judge(self.session())
    }

    /// Sends a request that changes nothing.
    pub(super) async fn ask(&mut self, approved: &ApprovedRoots, ask: FileOperation) -> Result<Answer, ToolError> {
        // One path is judged by its name; what a walk comes by is not.
        let walks = match &ask {
            FileOperation::List(_) | FileOperation::Search(_) => Walks::Yes,
            FileOperation::Look(_)
            | FileOperation::Peek(..)
            | FileOperation::Read(_)
            | FileOperation::Prepare(_)
            | FileOperation::Show(_)
            | FileOperation::Apply(_) => Walks::No,
        };
        let request = self.request(ask);
        let mut tries = 0..1;
        loop {
            let (digest, mut forker) = self.forker(approved, walks).await?;
            let server = forker.file_server().await;
            let is_serving = forker.is_serving();
            // Kept whatever came of it: it is confined as before, and starts another server when this one is lost.
            self.pool.keep(digest, forker).await;
            match server {
                // Nothing was looked at: another forker does.
                Err(ConfineError::ForkerExited(_)) if !is_serving && tries.next().is_some() => {}
                server => return exchange(&server?, request, self.stops).await,
            }
        }
    }

    pub(super) async fn forker(
        &mut self,
        approved: &ApprovedRoots,
        walks: Walks,
    ) -> Result<(ProfileDigest, Confinement), ToolError> {
        self.pool.chosen().ensure_usable()?;
        let derived = self.profiles.of_files(approved)?;
        match walks {
            Walks::Yes => self.pool.end_outdated(&derived).await?,
            Walks::No => {}
        }
        let forker = self.pool.take_or_start(&derived, ForkerFor::Others, approved).await?;
        Ok((derived.digest(), forker))
    }

    pub(super) fn request(&self, ask: FileOperation) -> FileRequest {
        let timeout = self
            .pool
            .session()
            .policy
            .limits
            .timeout
            .unwrap_or(TIMEOUT)
            .min(TIMEOUT);
        FileRequest {
            deadline_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            operation: ask,
        }
    }
}

/// How long the thread that serves everything may wait for an answer; what takes longer is waited for elsewhere.
const SHORT_WAIT: Duration = Duration::from_millis(1);

/// Sends one request; a signal closes the connection.
pub(super) async fn exchange(
    server: &FileServer,
    request: FileRequest,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<Answer, ToolError> {
    let mut received = ReplyParts::default();
    let soon = match &request.operation {
        // Nobody prepares or makes a change in a moment.
        FileOperation::Prepare(_) | FileOperation::Show(_) | FileOperation::Apply(_) => None,
        FileOperation::Look(_)
        | FileOperation::Peek(..)
        | FileOperation::Read(_)
        | FileOperation::List(_)
        | FileOperation::Search(_) => server.request_within(SHORT_WAIT, &request, &mut |part| received.take(part))?,
    };
    let theirs = server.clone();
    let mut exchange_task = match soon {
        Some(Progress::Answered(last)) => return Ok(received.answer(last, server)),
        Some(Progress::Pending(pending)) => tokio::task::spawn_blocking(move || {
            let last = pending.finish(&mut |part| received.take(part))?;
            Ok::<_, ConfineError>((received, last))
        }),
        None => tokio::task::spawn_blocking(move || {
            let last = theirs.request(&request, &mut |part| received.take(part))?;
            Ok((received, last))
        }),
    };
    let mut stopped = None;
    let answered = loop {
        tokio::select! {
            biased;
            Some(signal) = stops.recv(), if stopped.is_none() => {
                stopped = Some(signal);
                server.hang_up();
            }
            answered = &mut exchange_task => break answered,
        }
    };
    if let Some(signal) = stopped {
        return Err(ToolError::Stopped(signal));
    }
    let (received, last) = answered.map_err(|_| ConfineError::ForkerDied)??;
    Ok(received.answer(last, server))
}

/// The parts of a reply, within the limit.
#[derive(Debug, Default)]
struct ReplyParts {
    parts: Vec<FileReply>,
    kept: usize,
}

impl ReplyParts {
    fn take(&mut self, part: FileReply) -> Result<(), ConfineError> {
        self.kept = self.kept.saturating_add(size(&part));
        if self.kept > MAX_KEPT {
            return Err(ConfineError::Malformed);
        }
        self.parts.push(part);
        Ok(())
    }

    fn answer(self, last: FileReply, server: &FileServer) -> Answer {
        Answer {
            parts: self.parts,
            last,
            server: server.clone(),
        }
    }
}

/// All that a server says to a request: the parts, and the last word.
#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn receive_all(
    server: &FileServer,
    request: &FileRequest,
) -> Result<(Vec<FileReply>, FileReply), ConfineError> {
    let mut received = ReplyParts::default();
    let last = server.request(request, &mut |part| received.take(part))?;
    Ok((received.parts, last))
}

/// About how many bytes a part takes where it is told: the path of a match stands before each of its lines.
fn size(part: &FileReply) -> usize {
    match part {
        FileReply::Entries(entries) => entries.iter().map(|entry| entry.path.len() + 64).sum(),
        FileReply::Matches(matches) => matches
            .iter()
            .map(|found| {
                let lines = found.lines.iter().map(|line| found.path.len() + line.len() + 32);
                found.path.len() + lines.sum::<usize>() + 64
            })
            .sum(),
        FileReply::Found(_)
        | FileReply::Peeked(..)
        | FileReply::Text(_)
        | FileReply::Done(_)
        | FileReply::Prepared(_)
        | FileReply::Shown(_)
        | FileReply::Applied
        | FileReply::Failed(_) => 0,
    }
}
