//! Requests in, replies out, until the other end is closed.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use super::clock::Clock;
use super::failure::{Answer, failure};
use super::protocol::{Change, FileAsk, FileReply, FileRequest, Look, Prepared, Read, State, Why};
use super::state::open_file;
use super::{apply, effect, list, look, read, search, show, spelling};
use crate::confine::wire;
use crate::confine::wire::linger::{REQUEST, linger_for};

/// Answers requests over a socket until its other end is closed.
///
/// What cannot be read as a request is answered too, but ends it: nobody knows where the next would begin.
pub fn serve(socket: &OwnedFd) -> io::Result<()> {
    loop {
        match wire::receive::<FileRequest>(socket) {
            Ok(Some((request, _))) => {
                answer(socket, request)?;
                // Most callers ask once more.
                linger_for(socket.as_fd(), REQUEST);
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
    let is_of_what_exists = !matches!(request.ask, FileAsk::Look(_) | FileAsk::Peek(..) | FileAsk::Apply(_));
    let reply = match request.ask {
        FileAsk::Look(ask) => look::look(&ask).map(FileReply::Found),
        FileAsk::Peek(ask, lines) => peek(&ask, &lines, clock),
        FileAsk::Read(ask) => read::read(&ask, clock).map(FileReply::Text),
        FileAsk::List(ask) => list::list(&ask, clock, socket)?.map(FileReply::Done),
        FileAsk::Search(ask) => search::search(&ask, clock, socket)?.map(FileReply::Done),
        FileAsk::Prepare(changes) => prepare(&changes, clock).map(FileReply::Prepared),
        FileAsk::Show(changes) => show::show(&changes, clock).map(FileReply::Shown),
        FileAsk::Apply(changes) => apply::apply(&changes).map(|()| FileReply::Applied),
    };
    // A look may be at what is to be made.
    let failed = |failure| {
        FileReply::Failed(if is_of_what_exists {
            spelling::suggest(failure)
        } else {
            failure
        })
    };
    wire::send(socket, &reply.unwrap_or_else(failed), &[])
}

/// Where a path leads, and lines of what is there. Why there are none is found out by whoever asks for them alone.
fn peek(ask: &Look, lines: &Read, clock: Clock) -> Answer<FileReply> {
    let (found, seen) = look::look_and_hold(ask)?;
    let text = match &found.state {
        State::File(_) => {
            let lines = Read {
                path: found.path.clone(),
                ..lines.clone()
            };
            let opened = match seen {
                Some(seen) => seen.open(&found.path),
                None => open_file(&found.path),
            };
            opened.and_then(|opened| read::lines_of(opened, &lines, clock)).ok()
        }
        State::Absent | State::Directory { .. } | State::Symlink(_) | State::Other(_) => None,
    };
    Ok(FileReply::Peeked(found, text))
}

fn prepare(changes: &[Change], clock: Clock) -> Answer<Vec<Prepared>> {
    effect::are_apart(changes.iter())?;
    let each = changes.iter().map(|change| effect::of(change, clock));
    each.map(|effect| effect.map(|effect| effect.prepared())).collect()
}
