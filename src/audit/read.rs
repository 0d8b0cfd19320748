//! Reading a log for people: what is there, also where the chain is broken.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::error::AuditError;
use super::files::Files;
use super::head::Head;
use super::lines::{Lines, Next};
use super::lock;
use super::log_paths::LogPaths;
use crate::config::state_files;

/// A line of a log.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A JSON object.
    Record(Map<String, Value>),
    /// Anything else.
    Unreadable(Vec<u8>),
}

/// The lines of a log, oldest first.
pub fn records(paths: &LogPaths) -> Result<impl Iterator<Item = Result<Entry, AuditError>>, AuditError> {
    let files = lock::with_shared_lock(&paths.lock(), || files(paths))??;
    let mut files = files.into_iter();
    let mut now: Option<(PathBuf, Lines<File>)> = None;
    Ok(std::iter::from_fn(move || {
        loop {
            let (path, lines) = if let Some(now) = &mut now {
                now
            } else {
                let (path, file, size) = files.next()?;
                match Lines::of(&file, 0, size) {
                    Ok(lines) => now.insert((path, lines)),
                    Err(error) => return Some(Err(AuditError::io(&path, "reading")(error))),
                }
            };
            match lines.next() {
                Ok(Next::Line(line)) => return Some(Ok(entry(line))),
                Ok(Next::Partial(line)) => {
                    let entry = Entry::Unreadable(line.to_vec());
                    now = None;
                    return Some(Ok(entry));
                }
                // What follows such a line is not looked for.
                Ok(Next::TooLong(_) | Next::End) => now = None,
                Err(error) => {
                    let error = AuditError::io(path, "reading")(error);
                    now = None;
                    return Some(Err(error));
                }
            }
        }
    }))
}

fn entry(line: &[u8]) -> Entry {
    serde_json::from_slice(line).map_or_else(|_| Entry::Unreadable(line.to_vec()), Entry::Record)
}

fn files(paths: &LogPaths) -> Result<Vec<(PathBuf, File, u64)>, AuditError> {
    let head = Head::read_any(paths).map_err(AuditError::io(&paths.head(), "reading"))?;
    let earlier = match Files::of(paths, head) {
        Ok(files) => files.earlier,
        Err(AuditError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut all: Vec<PathBuf> = earlier.into_iter().map(|number| paths.rotated(number)).collect();
    all.push(paths.log().to_owned());
    let mut files = Vec::new();
    for path in all {
        match state_files::open_to_read(&path).and_then(|file| file.metadata().map(|found| (file, found.len()))) {
            Ok((file, size)) => files.push((path, file, size)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(AuditError::io(&path, "opening")(error)),
        }
    }
    Ok(files)
}
