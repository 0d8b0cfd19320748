//! The files of a log, for writers, verification and readers alike.
//!
//! Rotated files have lower numbers than the current one. A stray file with the name of a rotated one is reported, and
//! nothing is written until it is moved.

use std::io;
use std::path::PathBuf;

use super::chain::Kind;
use super::error::AuditError;
use super::fault::{Fault, Wrong};
use super::head::HeadState;
use super::lines::{LONGEST, Lines};
use super::log_paths::LogPaths;
use super::step::{self, Durable, First};
use crate::config::state_files;

/// The files of a log beside the one that is written.
#[derive(Debug)]
pub(super) struct Files {
    /// The numbers of the earlier ones, in order.
    pub(super) earlier: Vec<u64>,
    /// The first that is none, and bears the name of one.
    stray: Option<PathBuf>,
}

impl Files {
    /// The files of a log with this head. `NotFound` where their directory is not there.
    pub(super) fn of(paths: &LogPaths, head: HeadState) -> Result<Self, AuditError> {
        let rotated_files = paths
            .rotated_files()
            .map_err(AuditError::io(paths.directory(), "listing"))?;
        let below = below(paths, head)?;
        let (earlier, beyond): (Vec<u64>, Vec<u64>) =
            rotated_files.numbers.into_iter().partition(|number| *number < below);
        let beyond = beyond.into_iter().map(|number| paths.rotated(number));
        let stray = rotated_files.others.into_iter().chain(beyond).next();
        Ok(Self { earlier, stray })
    }

    /// What bears the name of an earlier file, and is none.
    pub(super) fn stray(&self) -> Option<Fault> {
        self.stray.as_ref().map(|file| Fault::of_file(file, None, Wrong::Stray))
    }
}

/// The number of the current file, from its first line or the head.
fn below(paths: &LogPaths, head: HeadState) -> Result<u64, AuditError> {
    let own = match state_files::open_to_read(paths.log()) {
        Ok(file) => {
            let reading = AuditError::io(paths.log(), "reading");
            let mut lines = Lines::of(&file, 0, LONGEST + 1).map_err(reading)?;
            match step::first(&mut lines, None, Durable::No) {
                Ok(First::Line(opened)) => match opened.kind {
                    Kind::Header(header) => Some(header.file),
                    Kind::Record => None,
                },
                // Verification reports what is wrong.
                Ok(First::End | First::Torn(_)) | Err(_) => None,
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        // Verification reports that as well.
        Err(_) if Fault::of_no_file(paths.log()).is_some() => None,
        Err(error) => return Err(AuditError::io(paths.log(), "opening")(error)),
    };
    let head = match head {
        HeadState::Head(head) => Some(head.file),
        HeadState::Missing | HeadState::Unreadable => None,
    };
    Ok(match (own, head) {
        (Some(own), Some(head)) => own.max(head),
        (Some(own), None) => own,
        // That file was put aside, and the next is not begun.
        (None, Some(head)) => head.saturating_add(1),
        (None, None) => u64::MAX,
    })
}
