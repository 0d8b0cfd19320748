//! Which files belong to a log: the same for whoever writes, checks or reads it.
//!
//! The earlier ones are numbered below the one that is written. What bears the name of an earlier file, and is none, would be in
//! the way of one some day: it is named, and nothing goes on beside it.

use std::io;
use std::path::PathBuf;

use super::chain::Kind;
use super::error::AuditError;
use super::fault::{Fault, Wrong};
use super::head::Found;
use super::lines::{LONGEST, Lines};
use super::place::Place;
use super::step::{self, Certain, First};
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
    pub(super) fn of(place: &Place, head: Found) -> Result<Self, AuditError> {
        let named = place.named().map_err(AuditError::io(place.directory(), "listing"))?;
        let below = below(place, head)?;
        let (earlier, beyond): (Vec<u64>, Vec<u64>) = named.numbers.into_iter().partition(|number| *number < below);
        let beyond = beyond.into_iter().map(|number| place.rotated(number));
        let stray = named.others.into_iter().chain(beyond).next();
        Ok(Self { earlier, stray })
    }

    /// What bears the name of an earlier file, and is none.
    pub(super) fn stray(&self) -> Option<Fault> {
        self.stray.as_ref().map(|file| Fault {
            file: file.clone(),
            line: None,
            seq: None,
            wrong: Wrong::Stray,
        })
    }
}

/// The number that all earlier files are below: that of the file that is written, by its own word or the head's.
fn below(place: &Place, head: Found) -> Result<u64, AuditError> {
    let own = match state_files::open_to_read(place.log()) {
        Ok(file) => {
            let reading = AuditError::io(place.log(), "reading");
            let mut lines = Lines::of(&file, 0, LONGEST + 1).map_err(reading)?;
            match step::first(&mut lines, None, Certain::No) {
                Ok(First::Line(opened)) => match opened.kind {
                    Kind::Header(header) => Some(header.file),
                    Kind::Record => None,
                },
                // Whoever walks it says what is wrong with it.
                Ok(First::End | First::Torn(_)) | Err(_) => None,
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        // Whoever walks it says that as well.
        Err(_) if Fault::of_no_file(place.log()).is_some() => None,
        Err(error) => return Err(AuditError::io(place.log(), "opening")(error)),
    };
    let head = match head {
        Found::Head(head) => Some(head.file),
        Found::Nothing | Found::Unreadable => None,
    };
    Ok(match (own, head) {
        (Some(own), Some(head)) => own.max(head),
        (Some(own), None) => own,
        // That file was put aside, and the next is not begun.
        (None, Some(head)) => head.saturating_add(1),
        (None, None) => u64::MAX,
    })
}
