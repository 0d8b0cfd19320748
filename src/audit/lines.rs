//! The lines of a file, one after the other, within bounds.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Seek as _, SeekFrom};

/// Longer than any record: every field has a bound, and so has their number.
pub(super) const LONGEST: u64 = 1 << 20;

/// Reads lines from a place of a file on, up to an end.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: BufReader<io::Take<R>>,
    line: Vec<u8>,
    /// Where the next line begins.
    pub(super) offset: u64,
    /// The number of the line that was read last.
    pub(super) number: u64,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<'a> {
    /// A line that has ended, without its newline.
    Line(&'a [u8]),
    /// What stands behind the last newline.
    Partial(&'a [u8]),
    /// A line without an end in sight, of which these are the first bytes; what comes next is more of it.
    TooLong(&'a [u8]),
    End,
}

impl Lines<File> {
    /// The lines of a file from `offset` to `end`.
    pub(super) fn of(file: &File, offset: u64, end: u64) -> io::Result<Self> {
        let mut file = file.try_clone()?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(Self::from(file, offset, end))
    }
}

impl<R: Read> Lines<R> {
    pub(super) fn from(reader: R, offset: u64, end: u64) -> Self {
        Self {
            reader: BufReader::with_capacity(256 << 10, reader.take(end.saturating_sub(offset))),
            line: Vec::new(),
            offset,
            number: 0,
        }
    }

    pub(super) fn next(&mut self) -> io::Result<Next<'_>> {
        self.line.clear();
        let read = (&mut self.reader).take(LONGEST + 1).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(Next::End);
        }
        self.number += 1;
        if self.line.last() == Some(&b'\n') {
            self.offset += read as u64;
            self.line.pop();
            return Ok(Next::Line(&self.line));
        }
        if read as u64 > LONGEST {
            return Ok(Next::TooLong(&self.line));
        }
        Ok(Next::Partial(&self.line))
    }
}
