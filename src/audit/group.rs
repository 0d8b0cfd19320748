//! Records that are written together, and the first line of a file.

use jiff::Timestamp;
use serde::Serialize;

use super::chain::{Envelope, FORMAT, HEADER, Link, Removed, seal_record};
use super::error::AuditError;
use super::event::Event;
use super::lines::LONGEST;
use crate::policy::hex::hex;

/// The first line of a file.
#[derive(Serialize)]
struct HeaderEvent<'a> {
    event: &'a str,
    format: u32,
    file: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<RemovedEvent>,
}

#[derive(Serialize)]
struct RemovedEvent {
    file: u64,
    seq: u64,
    hash: String,
}

/// The first line of the file of this number, with its newline.
pub(super) fn first_line(
    number: u64,
    after: Option<Link>,
    removed: Option<Removed>,
    session: &str,
) -> Result<(Vec<u8>, Link), AuditError> {
    let envelope = Envelope {
        seq: after.map_or(0, |after| after.seq + 1),
        time: now(),
        session,
        event: HeaderEvent {
            event: HEADER,
            format: FORMAT,
            file: number,
            removed: removed.map(|removed| RemovedEvent {
                file: removed.file,
                seq: removed.last.seq,
                hash: hex(&removed.last.hash),
            }),
        },
        prev: after.map(|after| hex(&after.hash)),
    };
    let (mut bytes, link) = seal_record(&envelope)?;
    bytes.push(b'\n');
    Ok((bytes, link))
}

/// Lines that are written together.
pub(super) struct Group {
    pub(super) bytes: Vec<u8>,
    /// Where the last of them begins among them.
    pub(super) last_start: u64,
    pub(super) link: Link,
}

impl Group {
    pub(super) const fn after(link: Link) -> Self {
        Self {
            bytes: Vec::new(),
            last_start: 0,
            link,
        }
    }

    pub(super) fn add(&mut self, session: &str, event: &Event) -> Result<(), AuditError> {
        let envelope = Envelope {
            seq: self.link.seq + 1,
            time: now(),
            session,
            event,
            prev: Some(hex(&self.link.hash)),
        };
        let (bytes, link) = seal_record(&envelope)?;
        if bytes.len() as u64 >= LONGEST {
            return Err(AuditError::Failed("a record is longer than any may be".to_owned()));
        }
        self.last_start = self.bytes.len() as u64;
        self.bytes.extend_from_slice(&bytes);
        self.bytes.push(b'\n');
        self.link = link;
        Ok(())
    }
}

fn now() -> String {
    format!("{:.3}", Timestamp::now())
}
