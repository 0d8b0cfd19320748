//! Asking the file server of a confined worker.
//!
//! A worker serves one profile, and has at most one server for what only looks. A change gets a server of its own, with
//! protected names recorded before and settled after, as for a command.

use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use crate::confine::files::protocol::{Bound, FileAsk, FileReply, FileRequest};
use crate::confine::files::{FileServer, Soon};
use crate::confine::wire::protocol::{PutBack, Watch};
use crate::confine::{ConfineError, Confinement, ForkerFor};
use crate::policy::path::escape;
use crate::policy::{Network, Policy, UnixSockets};
use crate::profile::{Asked, Call};
use crate::tools::call::ToolError;
use crate::tools::executor::{Executor, MOST_PROFILES, held};
use crate::tools::footing::Footing;
use crate::tools::on_record::record_restored;
use crate::tools::plan::ProfileDigest;
use crate::tools::restored::Restored;
use crate::tools::workers::Derived;

/// How long an operation on files may take where the config sets no limit.
const PATIENCE: Duration = Duration::from_mins(1);
/// The most bytes of parts that are kept of one answer.
const MOST: usize = 64 * 1024 * 1024;

/// What a server said, and the server.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) parts: Vec<FileReply>,
    pub(super) last: FileReply,
    pub(super) server: FileServer,
}

/// Whether more is come by than the paths that a call names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walks {
    Yes,
    No,
}

impl Executor {
    /// The profile of file tools when this was asked.
    ///
    /// Which suffixes and sizes a root takes is held by the judgement of each path and by the server, which runs no
    /// code of an agent's; the kernel could only forbid to create anything there. All else is held by the kernel.
    pub(super) fn file_profile(&mut self, asked: &Asked) -> Result<Derived, ToolError> {
        if let Some((_, known)) = self.file_profiles.iter().find(|(key, _)| key == asked) {
            return Ok(known.clone());
        }
        let profile = held(&without_sizes(&self.policy), &self.narrowing, &Call::of(asked.clone()))?;
        let profile = Derived::of(profile);
        if self.file_profiles.len() >= MOST_PROFILES {
            self.file_profiles.remove(0);
        }
        self.file_profiles.push((asked.clone(), profile.clone()));
        Ok(profile)
    }

    /// Asks what changes nothing.
    pub(super) async fn ask_files(
        &mut self,
        asked: &Asked,
        ask: FileAsk,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Answer, ToolError> {
        // One path is judged by its name; what a walk comes by is not.
        let walks = match &ask {
            FileAsk::List(_) | FileAsk::Search(_) => Walks::Yes,
            FileAsk::Look(_)
            | FileAsk::Peek(..)
            | FileAsk::Read(_)
            | FileAsk::Prepare(_)
            | FileAsk::Show(_)
            | FileAsk::Apply(_) => Walks::No,
        };
        let request = self.request(ask);
        let mut tries = 0..1;
        loop {
            let (digest, mut worker) = self.file_worker(asked, walks).await?;
            let server = worker.file_server().await;
            let is_serving = worker.is_serving();
            // Kept whatever came of it: it is confined as before, and starts another server when this one is lost.
            self.workers.keep(digest, worker).await;
            match server {
                // Nothing was looked at: another worker does.
                Err(ConfineError::GoneBefore(_)) if !is_serving && tries.next().is_some() => {}
                server => return converse(&server?, request, stops).await,
            }
        }
    }

    /// Makes changes; what became of protected names.
    pub(super) async fn apply_files(
        &mut self,
        asked: &Asked,
        changes: Vec<Bound>,
        call: Option<&str>,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<(FileReply, Vec<Restored>, Option<String>), ToolError> {
        let request = self.request(FileAsk::Apply(changes));
        let mut tries = 0..1;
        let (digest, mut worker, server, mut running) = loop {
            let (digest, mut worker) = self.file_worker(asked, Walks::Yes).await?;
            match worker.start_file_server(Watch::ProtectedNames).await {
                Ok((server, running)) => break (digest, worker, server, running),
                // Nothing was changed: another worker does it.
                Err(ConfineError::GoneBefore(_)) if tries.next().is_some() => worker.finish().await,
                Err(error) => return Err(error.into()),
            }
        };
        let answer = converse(&server, request, stops).await;
        server.hang_up();
        // Its end is waited for in every case: only then is settled what it changed.
        let ended = running.ended().await;
        let PutBack {
            violations, unsettled, ..
        } = match ended {
            Ok(ended) => ended.put_back,
            Err(error) => {
                worker.finish().await;
                return Err(error.into());
            }
        };
        let mut restored: Vec<Restored> = violations.into_iter().map(Into::into).collect();
        self.offer(&mut worker, &mut restored, call, stops).await;
        self.workers.keep(digest, worker).await;
        let mut unsettled = unsettled.map(|why| escape(why.as_bytes()));
        self.recovered.tell_after(&mut restored, &mut unsettled);
        record_restored(self.deciding.recorder.as_ref(), call, &restored).await?;
        match answer {
            Ok(answer) => Ok((answer.last, restored, unsettled)),
            Err(error) => Err(error.with_put_back(&restored, unsettled)),
        }
    }

    async fn file_worker(&mut self, asked: &Asked, walks: Walks) -> Result<(ProfileDigest, Confinement), ToolError> {
        if let Footing::Refused(why) = &self.chosen.footing {
            return Err(ToolError::Refused(why.clone()));
        }
        let derived = self.file_profile(asked)?;
        match walks {
            Walks::Yes => self.end_outdated(&derived).await?,
            Walks::No => {}
        }
        let worker = match self.workers.take(&derived) {
            Some(worker) => worker,
            None => self.start_worker(&derived.profile, ForkerFor::Others, asked).await?,
        };
        Ok((derived.digest(), worker))
    }

    fn request(&self, ask: FileAsk) -> FileRequest {
        let patience = self.policy.limits.timeout.unwrap_or(PATIENCE).min(PATIENCE);
        FileRequest {
            deadline_ms: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
            ask,
        }
    }
}

/// How long the thread that serves everything may wait for an answer; what takes longer is waited for elsewhere.
const MOMENT: Duration = Duration::from_millis(1);

/// One request; a signal hangs up.
async fn converse(
    server: &FileServer,
    request: FileRequest,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<Answer, ToolError> {
    let mut heard = Heard::default();
    let soon = match &request.ask {
        // Nobody prepares or makes a change in a moment.
        FileAsk::Prepare(_) | FileAsk::Show(_) | FileAsk::Apply(_) => None,
        FileAsk::Look(_) | FileAsk::Peek(..) | FileAsk::Read(_) | FileAsk::List(_) | FileAsk::Search(_) => {
            server.ask_for(MOMENT, &request, &mut |part| heard.take(part))?
        }
    };
    let theirs = server.clone();
    let mut asking = match soon {
        Some(Soon::Answered(last)) => return Ok(heard.answer(last, server)),
        Some(Soon::Later(pending)) => tokio::task::spawn_blocking(move || {
            let last = pending.finish(&mut |part| heard.take(part))?;
            Ok::<_, ConfineError>((heard, last))
        }),
        None => tokio::task::spawn_blocking(move || {
            let last = theirs.ask(&request, &mut |part| heard.take(part))?;
            Ok((heard, last))
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
            answered = &mut asking => break answered,
        }
    };
    if let Some(signal) = stopped {
        return Err(ToolError::Stopped(signal));
    }
    let (heard, last) = answered.map_err(|_| ConfineError::ForkerDied)??;
    Ok(heard.answer(last, server))
}

/// The parts of an answer, as many as are kept.
#[derive(Debug, Default)]
struct Heard {
    parts: Vec<FileReply>,
    kept: usize,
}

impl Heard {
    fn take(&mut self, part: FileReply) -> Result<(), ConfineError> {
        self.kept = self.kept.saturating_add(size(&part));
        if self.kept > MOST {
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
pub(super) fn hear(server: &FileServer, request: &FileRequest) -> Result<(Vec<FileReply>, FileReply), ConfineError> {
    let mut heard = Heard::default();
    let last = server.ask(request, &mut |part| heard.take(part))?;
    Ok((heard.parts, last))
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

/// The policy with every suffix set and size limit of a root left out, and nothing that file tools have no use for.
fn without_sizes(policy: &Policy) -> Policy {
    let mut policy = Policy {
        network: Network::Off,
        unix_sockets: UnixSockets::None,
        ..policy.clone()
    };
    let ceilings = policy
        .ceilings
        .all
        .iter_mut()
        .flat_map(|ceiling| &mut ceiling.policy.roots);
    for root in policy.roots.iter_mut().chain(ceilings) {
        root.suffixes = None;
        root.max_file_bytes = None;
    }
    policy
}
