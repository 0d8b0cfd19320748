//! The loop of the file server.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use super::clock::Clock;
use super::failure::{Answer, failure};
use super::protocol::{Change, FileOperation, FileReply, FileRequest, Look, Prepared, Read, State, Why};
use super::state::open_file;
use super::{apply, effect, list, look, read, search, show, spelling};
use crate::confine::wire;
use crate::confine::wire::busy_poll::{REQUEST_TIME, busy_poll_fd};

/// Answers requests over a socket until its other end is closed.
///
/// A malformed request is answered too, and ends it: the start of the next is unknown.
pub fn serve(socket: &OwnedFd) -> io::Result<()> {
    loop {
        match wire::receive::<FileRequest>(socket) {
            Ok(Some((request, _))) => {
                answer(socket, request)?;
                // Most callers send another request.
                busy_poll_fd(socket.as_fd(), REQUEST_TIME);
            }
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let why = Why::Malformed("not a request".to_owned());
                wire::send(socket, &FileReply::Failed(failure("", why)), &[])?;
                return Err(error);
            }
            Err(error) => return Err(error),
        }
    }
}

fn answer(socket: &OwnedFd, request: FileRequest) -> io::Result<()> {
    let clock = Clock::start(request.deadline_ms);
    let is_of_what_exists = !matches!(
        request.operation,
        FileOperation::Look(_) | FileOperation::Peek(..) | FileOperation::Apply(_)
    );
    let reply = match request.operation {
        FileOperation::Look(request) => look::look(&request).map(FileReply::Found),
        FileOperation::Peek(request, lines) => peek(&request, &lines, clock),
        FileOperation::Read(request) => read::read(&request, clock).map(FileReply::Text),
        FileOperation::List(request) => list::list(&request, clock, socket)?.map(FileReply::Done),
        FileOperation::Search(request) => search::search(&request, clock, socket)?.map(FileReply::Done),
        FileOperation::Prepare(changes) => prepare(&changes, clock).map(FileReply::Prepared),
        FileOperation::Show(changes) => show::show(&changes, clock).map(FileReply::Shown),
        FileOperation::Apply(changes) => apply::apply(&changes).map(|()| FileReply::Applied),
    };
    // A look, and a change, may name a path that is still to be made.
    let failed = |failure| {
        FileReply::Failed(if is_of_what_exists {
            spelling::suggest(failure)
        } else {
            failure
        })
    };
    wire::send(socket, &reply.unwrap_or_else(failed), &[])
}

/// Resolves a path and reads lines there. Errors of reading are left out; a read request would report them.
fn peek(request: &Look, lines: &Read, clock: Clock) -> Answer<FileReply> {
    let (found, handle) = look::look_with_handle(request)?;
    let text = match &found.state {
        State::File(_) => {
            let lines = Read {
                path: found.path.clone(),
                ..lines.clone()
            };
            let opened = match handle {
                Some(handle) => handle.open(&found.path),
                None => open_file(&found.path),
            };
            opened.and_then(|opened| read::lines_of(opened, &lines, clock)).ok()
        }
        State::Absent | State::Directory { .. } | State::Symlink(_) | State::Other(_) => None,
    };
    Ok(FileReply::Peeked(found, text))
}

fn prepare(changes: &[Change], clock: Clock) -> Answer<Vec<Prepared>> {
    effect::check_independent(changes.iter())?;
    let each = changes.iter().map(|change| effect::of(change, clock));
    each.map(|effect| effect.map(|effect| effect.prepared())).collect()
}
