//! What lies below a directory.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::fcntl::OFlag;
use nix::sys::stat::fstat;

use super::clock::Clock;
use super::failure::{About, Answer};
use super::location::open;
use super::protocol::{Done, Entry, FileReply, Kind, List};
use super::select::Pattern;
use super::state::size;
use super::stream::Stream;
use super::walk::Walk;

/// Sends the entries below a directory; how it ended is the answer.
pub(super) fn list(request: &List, clock: Clock, socket: &OwnedFd) -> io::Result<Answer<Done>> {
    let started = Pattern::read(request.select.glob.as_deref())
        .about(&request.path)
        .and_then(|pattern| {
            Ok((
                pattern,
                Walk::new(&request.path, request.depth, &request.select, clock)?,
            ))
        });
    let (pattern, mut walk) = match started {
        Ok(started) => started,
        Err(failed) => return Ok(Err(failed)),
    };
    let mut stream = Stream::new(socket, request.limit, FileReply::Entries);
    for found in walk.by_ref() {
        if pattern.matches(Path::new(&request.path), &found.path) && stream.count() {
            let size = match found.kind {
                Kind::File => size_of(&found.path),
                Kind::Directory | Kind::Symlink | Kind::Other => 0,
            };
            let entry = Entry {
                path: found.path.into_os_string(),
                kind: found.kind,
                size,
            };
            let bytes = entry.path.len();
            stream.push(entry, bytes)?;
        }
    }
    stream.flush()?;
    Ok(Ok(Done {
        total: stream.total,
        files: 0,
        unreadable: walk.unreadable,
        end: stream.end(walk.end),
    }))
}

/// Bytes of a file; none of one that is gone.
fn size_of(path: &Path) -> u64 {
    let stat = open(path.as_os_str(), OFlag::O_PATH).and_then(fstat);
    stat.map_or(0, |stat| size(&stat))
}
