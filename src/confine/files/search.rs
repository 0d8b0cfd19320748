//! Lines that match, in one file or in all below a directory.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use regex::bytes::{Regex, RegexBuilder};

use super::clock::Clock;
use super::failure::{About, Answer};
use super::magic;
use super::protocol::{Case, Done, End, FileReply, Hash, Kind, Match, Search, State, Why};
use super::scan::Scan;
use super::select::Pattern;
use super::state::{self, open_file};
use super::stream::Stream;
use super::walk::Walk;

/// How much of a file is read at a time.
const CHUNK: usize = 64 * 1024;
/// The longest pattern that is compiled.
const MAX_PATTERN: usize = 16 * 1024;
/// The most bytes that a compiled pattern takes.
const MAX_COMPILED: usize = 8 * 1024 * 1024;
/// How deep a pattern nests.
const MAX_NESTING: u32 = 100;

/// Sends the lines that match; how it ended is the answer.
pub(super) fn search(ask: &Search, clock: Clock, socket: &OwnedFd) -> io::Result<Answer<Done>> {
    match begin(ask, clock) {
        Ok((pattern, Start::File)) => {
            let mut hunt = Hunt::new(ask, &pattern, clock, socket);
            if let Err(why) = hunt.file(&ask.path)? {
                return Ok(Err(why).about(&ask.path));
            }
            hunt.finish(0, End::Whole).map(Ok)
        }
        Ok((pattern, Start::Tree(glob, mut walk))) => {
            let mut hunt = Hunt::new(ask, &pattern, clock, socket);
            for passed in walk.by_ref() {
                let is_meant = passed.kind == Kind::File && glob.matches(Path::new(&ask.path), &passed.path);
                if is_meant && let Err(why) = hunt.file(passed.path.as_os_str())? {
                    // What is gone by now was not there to be searched.
                    hunt.unreadable += u64::from(why != Why::Missing);
                }
            }
            hunt.finish(walk.unreadable, walk.end).map(Ok)
        }
        Err(failed) => Ok(Err(failed)),
    }
}

/// Where a search begins.
enum Start<'a> {
    /// At a file, which is all of it.
    File,
    /// At a directory.
    Tree(Pattern, Walk<'a>),
}

fn begin(ask: &Search, clock: Clock) -> Answer<(Regex, Start<'_>)> {
    let pattern = compile(ask).about(&ask.path)?;
    let glob = Pattern::read(ask.select.glob.as_deref()).about(&ask.path)?;
    let start = match state::at(&ask.path, Hash::Skip)? {
        State::File(_) => Start::File,
        State::Absent | State::Directory { .. } | State::Symlink(_) | State::Other(_) => {
            Start::Tree(glob, Walk::new(&ask.path, u32::MAX, &ask.select, clock)?)
        }
    };
    Ok((pattern, start))
}

fn compile(ask: &Search) -> Result<Regex, Why> {
    if ask.pattern.len() > MAX_PATTERN {
        return Err(Why::Malformed(format!("a pattern of more than {MAX_PATTERN} bytes")));
    }
    RegexBuilder::new(&ask.pattern)
        .case_insensitive(ask.case == Case::Either)
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .nest_limit(MAX_NESTING)
        .build()
        .map_err(|error| Why::Malformed(error.to_string()))
}

/// A search on its way from file to file.
struct Hunt<'a> {
    pattern: &'a Regex,
    context: usize,
    clock: Clock,
    stream: Stream<'a, Match>,
    buffer: Vec<u8>,
    files: u64,
    unreadable: u64,
    end: End,
}

impl<'a> Hunt<'a> {
    fn new(ask: &Search, pattern: &'a Regex, clock: Clock, socket: &'a OwnedFd) -> Self {
        Self {
            pattern,
            context: usize::try_from(ask.context).unwrap_or(usize::MAX),
            clock,
            stream: Stream::new(socket, ask.limit, FileReply::Matches),
            buffer: vec![0; CHUNK],
            files: 0,
            unreadable: 0,
            end: End::Whole,
        }
    }

    /// Searches a file, up to where it stops being text.
    fn file(&mut self, path: &OsStr) -> io::Result<Result<(), Why>> {
        let mut file = match open_file(path) {
            Ok((file, stat)) => file.take(state::size(&stat)),
            Err(failed) => return Ok(Err(failed.why)),
        };
        let mut scan = Scan::new(path, self.pattern, self.context, &mut self.stream);
        let mut is_first = true;
        loop {
            let filled = match file.read(&mut self.buffer) {
                Ok(filled) => filled,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Ok(Err(error.into())),
            };
            let chunk = self.buffer.get(..filled).unwrap_or_default();
            if is_first && magic::is_binary(chunk) {
                return Ok(Ok(()));
            }
            self.files += u64::from(is_first);
            is_first = false;
            if chunk.is_empty() || memchr::memchr(0, chunk).is_some() {
                break;
            }
            scan.take(chunk)?;
            if self.clock.is_over() {
                self.end = End::Time;
                break;
            }
        }
        scan.finish().map(Ok)
    }

    fn finish(mut self, unreadable: u64, end: End) -> io::Result<Done> {
        self.stream.flush()?;
        let looking = if self.end == End::Whole { end } else { self.end };
        Ok(Done {
            total: self.stream.total,
            files: self.files,
            unreadable: self.unreadable + unreadable,
            end: self.stream.end(looking),
        })
    }
}
