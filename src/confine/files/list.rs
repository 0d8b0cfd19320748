//! What lies below a directory.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::fcntl::OFlag;
use nix::sys::stat::fstat;

use super::clock::Clock;
use super::failure::{About, Answer};
use super::place::open;
use super::protocol::{Done, Entry, FileReply, Kind, List};
use super::select::Pattern;
use super::state::size;
use super::stream::Stream;
use super::walk::Walk;

/// Sends the entries below a directory; how it ended is the answer.
pub(super) fn list(ask: &List, clock: Clock, socket: &OwnedFd) -> io::Result<Answer<Done>> {
    let begun = Pattern::read(ask.select.glob.as_deref())
        .about(&ask.path)
        .and_then(|pattern| Ok((pattern, Walk::new(&ask.path, ask.depth, &ask.select, clock)?)));
    let (pattern, mut walk) = match begun {
        Ok(begun) => begun,
        Err(failed) => return Ok(Err(failed)),
    };
    let mut stream = Stream::new(socket, ask.limit, FileReply::Entries);
    for passed in walk.by_ref() {
        if pattern.matches(Path::new(&ask.path), &passed.path) && stream.count() {
            let size = match passed.kind {
                Kind::File => size_of(&passed.path),
                Kind::Directory | Kind::Symlink | Kind::Other => 0,
            };
            let entry = Entry {
                path: passed.path.into_os_string(),
                kind: passed.kind,
                size,
            };
            let bytes = entry.path.len();
            stream.give(entry, bytes)?;
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
