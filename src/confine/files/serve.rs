//! Requests in, replies out, until the other end is closed.

use std::io;
use std::os::fd::OwnedFd;

use super::clock::Clock;
use super::failure::{Answer, failure};
use super::protocol::{Change, FileAsk, FileReply, FileRequest, Prepared, Why};
use super::{apply, effect, list, look, read, search, show};
use crate::confine::wire;

/// Answers requests over a socket until its other end is closed.
///
/// What cannot be read as a request is answered too, but ends it: nobody knows where the next would begin.
pub fn serve(socket: &OwnedFd) -> io::Result<()> {
    loop {
        match wire::receive::<FileRequest>(socket) {
            Ok(Some((request, _))) => answer(socket, request)?,
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
    let reply = match request.ask {
        FileAsk::Look(ask) => look::look(&ask).map(FileReply::Found),
        FileAsk::Read(ask) => read::read(&ask, clock).map(FileReply::Text),
        FileAsk::List(ask) => list::list(&ask, clock, socket)?.map(FileReply::Done),
        FileAsk::Search(ask) => search::search(&ask, clock, socket)?.map(FileReply::Done),
        FileAsk::Prepare(changes) => prepare(&changes, clock).map(FileReply::Prepared),
        FileAsk::Show(changes) => show::show(&changes, clock).map(FileReply::Shown),
        FileAsk::Apply(changes) => apply::apply(&changes).map(|()| FileReply::Applied),
    };
    wire::send(socket, &reply.unwrap_or_else(FileReply::Failed), &[])
}

fn prepare(changes: &[Change], clock: Clock) -> Answer<Vec<Prepared>> {
    effect::are_apart(changes.iter())?;
    let each = changes.iter().map(|change| effect::of(change, clock));
    each.map(|effect| effect.map(|effect| effect.prepared())).collect()
}
