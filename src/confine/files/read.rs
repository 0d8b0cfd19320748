//! Lines of a file, in bounded memory: the rest is only counted.

use std::fs::File;
use std::io::Read as _;

use nix::sys::stat::FileStat;

use super::clock::Clock;
use super::failure::{About, Answer, failure};
use super::magic;
use super::protocol::{End, MAX_TEXT, Read, Text, Why};
use super::state::{open_file, size};

/// How much is read at a time; no less than what [`magic`] looks at.
const CHUNK: usize = 64 * 1024;

/// Gives lines of a file.
pub(super) fn read(request: &Read, clock: Clock) -> Answer<Text> {
    lines_of(open_file(&request.path)?, request, clock)
}

/// Gives lines of a file that was opened at the path that is asked about.
pub(super) fn lines_of((file, stat): (File, FileStat), request: &Read, clock: Clock) -> Answer<Text> {
    let announced = size(&stat);
    // A file that grows is given as it was when it was opened. Files that the kernel makes up announce nothing.
    let mut source = (&file).take(if announced == 0 { u64::MAX } else { announced });
    let mut lines = Lines::new(request);
    let mut buffer =
        vec![0; usize::try_from(announced).map_or(CHUNK, |size| if size == 0 { CHUNK } else { size.min(CHUNK) })];
    let mut read_bytes = 0u64;
    let is_complete = loop {
        let filled = fill(&mut source, &mut buffer).about(&request.path)?;
        let chunk = buffer.get(..filled).unwrap_or_default();
        if chunk.is_empty() {
            break true;
        }
        if read_bytes == 0 && magic::is_binary(chunk) {
            let (what, size) = (magic::what(chunk), announced);
            return Err(failure(&request.path, Why::Binary { what, size }));
        }
        read_bytes += chunk.len() as u64;
        lines.take(chunk);
        if clock.is_over() {
            break read_bytes == announced;
        }
    };
    let total_bytes = if is_complete {
        read_bytes
    } else {
        announced.max(read_bytes)
    };
    lines.answer(&request.path, is_complete, total_bytes)
}

/// Reads until the buffer is full or the file ends.
fn fill(source: &mut impl std::io::Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match source.read(rest) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// What was asked for, as it is picked out of what passes.
struct Lines {
    first: u64,
    skip: u64,
    /// How many bytes of that line have still to be left out.
    left_out: u64,
    /// The line after the last that is wanted.
    stop: Option<u64>,
    max_bytes: usize,
    bytes: Vec<u8>,
    /// The line that the next byte belongs to, from 1.
    line: u64,
    /// Whether that line has begun.
    has_begun: bool,
    full: bool,
}

impl Lines {
    fn new(request: &Read) -> Self {
        let first = request.first.max(1);
        Self {
            first,
            skip: request.skip,
            left_out: request.skip,
            stop: request.lines.map(|lines| first.saturating_add(lines)),
            max_bytes: usize::try_from(request.max_bytes.min(MAX_TEXT)).unwrap_or(0),
            bytes: Vec::new(),
            line: 1,
            has_begun: false,
            full: false,
        }
    }

    fn is_selected(&self) -> bool {
        self.line >= self.first && !self.is_past()
    }

    fn is_past(&self) -> bool {
        self.stop.is_some_and(|stop| self.line >= stop)
    }

    fn take(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while !rest.is_empty() {
            if self.full || self.is_past() {
                let ends = memchr::memchr_iter(b'\n', rest).count() as u64;
                self.line += ends;
                self.has_begun = rest.last() != Some(&b'\n');
                return;
            }
            let end = memchr::memchr(b'\n', rest);
            let (piece, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
            let begins = self.line == self.first && self.left_out > 0;
            let skipped = if begins {
                usize::try_from(self.left_out).map_or(piece.len(), |left| left.min(piece.len()))
            } else {
                0
            };
            self.left_out -= skipped as u64;
            let piece = piece.get(skipped..).unwrap_or_default();
            if self.is_selected() {
                let free = self.max_bytes.saturating_sub(self.bytes.len());
                self.full = piece.len() > free;
                self.bytes.extend_from_slice(piece.get(..free).unwrap_or(piece));
            }
            self.has_begun = end.is_none();
            self.line += u64::from(end.is_some());
            rest = after;
        }
    }

    /// Cuts what was collected at the end of a line, unless that leaves nothing.
    fn cut(&mut self) {
        if let Some(end) = memchr::memrchr(b'\n', &self.bytes) {
            self.bytes.truncate(end + 1);
        } else if let Err(error) = std::str::from_utf8(&self.bytes)
            && error.error_len().is_none()
            && error.valid_up_to() > 0
        {
            // A character is not cut in two.
            self.bytes.truncate(error.valid_up_to());
        }
    }

    fn answer(mut self, path: &std::ffi::OsStr, is_complete: bool, total_bytes: u64) -> Answer<Text> {
        let end = if self.full {
            End::Limit
        } else if is_complete || self.is_past() {
            End::Complete
        } else {
            End::Time
        };
        match end {
            End::Limit => self.cut(),
            // The line that was being read is not known to its end.
            End::Time if self.is_selected() && self.has_begun => self.cut(),
            End::Time | End::Complete => {}
        }
        if memchr::memchr(0, &self.bytes).is_some() {
            let what = magic::what(&[]);
            return Err(failure(
                path,
                Why::Binary {
                    what,
                    size: total_bytes,
                },
            ));
        }
        let ends = memchr::memchr_iter(b'\n', &self.bytes).count() as u64;
        let open = self.bytes.last().is_some_and(|last| *last != b'\n');
        // What is cut at the end of a line goes on at the next.
        let is_cut = end != End::Complete && ends == 0 && open;
        Ok(Text {
            cut: is_cut.then(|| self.skip.saturating_add(self.bytes.len() as u64)),
            first: self.first,
            lines: ends + u64::from(open),
            total_lines: is_complete.then(|| self.line - 1 + u64::from(self.has_begun)),
            total_bytes,
            end,
            bytes: self.bytes,
        })
    }
}
