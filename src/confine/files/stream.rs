//! Replies that come in parts.

use std::io;
use std::os::fd::OwnedFd;

use super::protocol::{End, FileReply, MAX_PART};
use crate::confine::wire;

/// The most bytes collected before a part is sent, well below what a frame holds.
const MAX_BYTES: usize = 1024 * 1024;

/// Collects items and sends them in parts; counts those that are beyond the limit.
pub(super) struct Stream<'a, T> {
    socket: &'a OwnedFd,
    wrap: fn(Vec<T>) -> FileReply,
    part: Vec<T>,
    bytes: usize,
    /// How many more are given.
    left: u64,
    /// How many there are.
    pub(super) total: u64,
    is_short: bool,
}

impl<'a, T> Stream<'a, T> {
    /// A stream of at most `limit` items, each part wrapped in a reply.
    pub(super) fn new(socket: &'a OwnedFd, limit: u64, wrap: fn(Vec<T>) -> FileReply) -> Self {
        Self {
            socket,
            wrap,
            part: Vec::new(),
            bytes: 0,
            left: limit,
            total: 0,
            is_short: false,
        }
    }

    /// Counts one; whether it is given.
    pub(super) fn count(&mut self) -> bool {
        self.total += 1;
        let fits = self.left > 0;
        self.left = self.left.saturating_sub(1);
        self.is_short |= !fits;
        fits
    }

    /// Gives one of about so many bytes that was counted.
    pub(super) fn push(&mut self, item: T, bytes: usize) -> io::Result<()> {
        self.part.push(item);
        self.bytes += bytes;
        if self.part.len() >= MAX_PART || self.bytes >= MAX_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Sends what is left.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.bytes = 0;
        match std::mem::take(&mut self.part) {
            part if part.is_empty() => Ok(()),
            part => wire::send(self.socket, &(self.wrap)(part), &[]),
        }
    }

    /// How it ended, where looking itself ended so.
    pub(super) fn end(&self, look: End) -> End {
        if self.is_short { End::Limit } else { look }
    }
}
