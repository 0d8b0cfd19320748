//! The lines of one file that match, with the lines around them, in bounded memory.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;

use regex::bytes::Regex;

use super::protocol::Match;
use super::stream::Stream;

/// The most bytes of a line that are buffered: a longer one is searched piece by piece.
const MAX_BUFFERED: usize = 256 * 1024;
/// How much of a piece is searched again with the next, so that what lies across is found.
const OVERLAP: usize = 32 * 1024;
/// The most bytes of a line in a reply.
const MAX_LINE_BYTES: usize = 4 * 1024;
/// The most lines given on each side of a match.
pub(super) const MAX_CONTEXT: usize = 50;

/// A search through the lines of a file.
pub(super) struct Scan<'a, 'b> {
    path: &'a OsStr,
    pattern: &'a Regex,
    context: usize,
    stream: &'a mut Stream<'b, Match>,
    /// The number of the last line that was looked at.
    line: u64,
    /// A line whose end has not come yet.
    partial: Vec<u8>,
    /// The part of that line that is no longer buffered.
    earlier: Option<Earlier>,
    before: VecDeque<Vec<u8>>,
    /// Matches whose lines after have not all come yet.
    open: VecDeque<(Match, usize)>,
}

struct Earlier {
    /// Its beginning, cut.
    head: Vec<u8>,
    /// The part around a match, cut.
    hit: Option<Vec<u8>>,
}

impl<'a, 'b> Scan<'a, 'b> {
    /// Begins a file.
    pub(super) fn new(path: &'a OsStr, pattern: &'a Regex, context: usize, stream: &'a mut Stream<'b, Match>) -> Self {
        Self {
            path,
            pattern,
            context: context.min(MAX_CONTEXT),
            stream,
            line: 0,
            partial: Vec::new(),
            earlier: None,
            before: VecDeque::new(),
            open: VecDeque::new(),
        }
    }

    /// Takes the next bytes of the file.
    pub(super) fn take(&mut self, chunk: &[u8]) -> io::Result<()> {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(line) if self.partial.is_empty() && line.len() <= MAX_BUFFERED => self.line(line)?,
                Some(rest) => {
                    self.collect(rest);
                    let line = std::mem::take(&mut self.partial);
                    self.line(&line)?;
                    self.partial = line;
                    self.partial.clear();
                }
                None => self.collect(piece),
            }
        }
        Ok(())
    }

    fn collect(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            if self.partial.len() >= MAX_BUFFERED {
                self.search_buffered();
            }
            let free = MAX_BUFFERED.saturating_sub(self.partial.len());
            let (fits, rest) = piece.split_at(free.min(piece.len()));
            self.partial.extend_from_slice(fits);
            piece = rest;
        }
    }

    /// Searches the buffered part of a long line, and drops most of it.
    fn search_buffered(&mut self) {
        let buffered = self.partial.as_slice();
        // A match that ends where this piece ends may only be one because the line seems to end there; a longer one goes on.
        let ends = self.pattern.shortest_match_at(buffered, self.from(buffered));
        let hit = ends
            .filter(|end| *end < buffered.len())
            .and_then(|_| self.find(buffered))
            .map(|(start, end)| cut(buffered, start, end));
        let earlier = self.earlier.get_or_insert_with(|| Earlier {
            head: cut(&self.partial, 0, 0),
            hit: None,
        });
        earlier.hit = earlier.hit.take().or(hit);
        let consumed = self.partial.len().saturating_sub(OVERLAP);
        self.partial.drain(..consumed);
    }

    /// Where a piece of the line matches. What is not its beginning does not match as one.
    fn find(&self, piece: &[u8]) -> Option<(usize, usize)> {
        let found = self.pattern.find_at(piece, self.from(piece))?;
        Some((found.start(), found.end()))
    }

    fn from(&self, piece: &[u8]) -> usize {
        usize::from(self.earlier.is_some()).min(piece.len())
    }

    /// Ends the file.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let last = std::mem::take(&mut self.partial);
        if !last.is_empty() {
            self.line(&last)?;
        }
        while let Some((found, _)) = self.open.pop_front() {
            send(self.stream, found)?;
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        self.line += 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let found = self.find(line);
        let (head, hit) = match self.earlier.take() {
            Some(Earlier { head, hit }) => (Some(head), hit),
            None => (None, None),
        };
        let hit = hit.or_else(|| found.map(|(start, end)| cut(line, start, end)));
        let plain = || head.clone().unwrap_or_else(|| cut(line, 0, 0));
        for (found, missing) in &mut self.open {
            found.lines.push(plain());
            *missing -= 1;
        }
        while self.open.front().is_some_and(|(_, missing)| *missing == 0) {
            if let Some((found, _)) = self.open.pop_front() {
                send(self.stream, found)?;
            }
        }
        if let Some(hit) = hit
            && self.stream.count()
        {
            let mut lines: Vec<Vec<u8>> = self.before.iter().cloned().collect();
            let first = self.line - lines.len() as u64;
            lines.push(hit);
            let found = Match {
                path: OsString::from(self.path),
                first,
                line: self.line,
                lines,
            };
            if self.context == 0 {
                send(self.stream, found)?;
            } else {
                self.open.push_back((found, self.context));
            }
        }
        if self.context > 0 {
            if self.before.len() == self.context {
                self.before.pop_front();
            }
            self.before.push_back(plain());
        }
        Ok(())
    }
}

fn send(stream: &mut Stream<'_, Match>, found: Match) -> io::Result<()> {
    let bytes = found.path.len() + found.lines.iter().map(Vec::len).sum::<usize>();
    stream.push(found, bytes)
}

/// Cuts a long line to the part around the match, and a long match to its two ends. Omissions are marked.
fn cut(line: &[u8], start: usize, end: usize) -> Vec<u8> {
    /// How much of a line is given on each side of a match.
    const AROUND: usize = 512;
    /// How much of a match is given at each of its ends.
    const OF_MATCH: usize = (MAX_LINE_BYTES - 2 * AROUND) / 2 - 2 * MARK.len();
    const MARK: &[u8] = "…".as_bytes();
    if line.len() <= MAX_LINE_BYTES {
        return line.to_vec();
    }
    let from = start.saturating_sub(AROUND);
    let to = end.saturating_add(AROUND).min(line.len());
    let ranges = if end.saturating_sub(start) > 2 * OF_MATCH {
        [from..start + OF_MATCH, end - OF_MATCH..to]
    } else {
        [from..to, to..to]
    };
    let mut shown = Vec::with_capacity(MAX_LINE_BYTES);
    let mut last = 0;
    for range in ranges {
        if range.start > last {
            shown.extend_from_slice(MARK);
        }
        last = range.end;
        shown.extend_from_slice(line.get(range).unwrap_or_default());
    }
    if last < line.len() {
        shown.extend_from_slice(MARK);
    }
    shown
}
