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
pub(super) fn search(request: &Search, clock: Clock, socket: &OwnedFd) -> io::Result<Answer<Done>> {
    match begin(request, clock) {
        Ok((pattern, Start::File)) => {
            let mut file_search = FileSearch::new(request, &pattern, clock, socket);
            if let Err(why) = file_search.file(&request.path)? {
                return Ok(Err(why).about(&request.path));
            }
            file_search.finish(0, End::Complete).map(Ok)
        }
        Ok((pattern, Start::Tree(glob, mut walk))) => {
            let mut file_search = FileSearch::new(request, &pattern, clock, socket);
            for found in walk.by_ref() {
                let is_selected = found.kind == Kind::File && glob.matches(Path::new(&request.path), &found.path);
                if is_selected && let Err(why) = file_search.file(found.path.as_os_str())? {
                    // A file that was removed meanwhile does not count.
                    file_search.unreadable += u64::from(why != Why::Missing);
                }
            }
            file_search.finish(walk.unreadable, walk.end).map(Ok)
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

fn begin(request: &Search, clock: Clock) -> Answer<(Regex, Start<'_>)> {
    let pattern = compile(request).about(&request.path)?;
    let glob = Pattern::read(request.select.glob.as_deref()).about(&request.path)?;
    let start = match state::at(&request.path, Hash::Skip)? {
        State::File(_) => Start::File,
        State::Absent | State::Directory { .. } | State::Symlink(_) | State::Other(_) => {
            Start::Tree(glob, Walk::new(&request.path, u32::MAX, &request.select, clock)?)
        }
    };
    Ok((pattern, start))
}

fn compile(request: &Search) -> Result<Regex, Why> {
    if request.pattern.len() > MAX_PATTERN {
        return Err(Why::Malformed(format!("a pattern of more than {MAX_PATTERN} bytes")));
    }
    RegexBuilder::new(&request.pattern)
        .case_insensitive(request.case == Case::Either)
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .nest_limit(MAX_NESTING)
        .build()
        .map_err(|error| Why::Malformed(error.to_string()))
}

/// A search on its way from file to file.
struct FileSearch<'a> {
    pattern: &'a Regex,
    context: usize,
    clock: Clock,
    stream: Stream<'a, Match>,
    buffer: Vec<u8>,
    files: u64,
    unreadable: u64,
    end: End,
}

impl<'a> FileSearch<'a> {
    fn new(request: &Search, pattern: &'a Regex, clock: Clock, socket: &'a OwnedFd) -> Self {
        Self {
            pattern,
            context: usize::try_from(request.context).unwrap_or(usize::MAX),
            clock,
            stream: Stream::new(socket, request.limit, FileReply::Matches),
            buffer: vec![0; CHUNK],
            files: 0,
            unreadable: 0,
            end: End::Complete,
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
        let end = if self.end == End::Complete { end } else { self.end };
        Ok(Done {
            total: self.stream.total,
            files: self.files,
            unreadable: self.unreadable + unreadable,
            end: self.stream.end(end),
        })
    }
}
