//! The text of one record → what it says.
//!
//! A record is words of `key=value`. What somebody could have chosen (a path, a name) the kernel puts in quotes, or in
//! hexadecimal where it holds a space, a quote or a control character; so no word can be forged by a name. The kernel
//! is believed, and still nothing is taken that is not written as it writes.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStringExt;

/// `AUDIT_CONFIG_CHANGE`.
const CONFIG_CHANGE: u16 = 1305;
/// `AUDIT_LANDLOCK_ACCESS`.
const ACCESS: u16 = 1423;
/// `AUDIT_LANDLOCK_DOMAIN`.
const DOMAIN: u16 = 1424;
/// What the kernel adds to the path of something that was removed.
const DELETED: &[u8] = b" (deleted)";
/// The most reasons that one record has: there are fewer.
const MOST_BLOCKERS: usize = 64;

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A domain refused something.
    Access {
        /// Its number.
        domain: u64,
        /// What.
        refusal: Refusal,
    },
    /// A domain is spoken of for the first time.
    Made {
        /// Its number.
        domain: u64,
        /// The process that made it, in the numbers of the first PID namespace.
        pid: i32,
    },
    /// Nobody stands in a domain any more.
    Ended {
        /// Its number.
        domain: u64,
    },
}

/// What was refused, of what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// What was lacking, once each; what this version does not know is left out.
    pub blockers: Vec<Blocker>,
    /// Of what.
    pub object: Object,
}

/// A right or a scope that was in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blocker {
    /// To execute a file.
    Execute,
    /// To write a file, or to cut it.
    Write,
    /// To read a file.
    Read,
    /// To list a directory.
    List,
    /// To remove something from a directory.
    Remove,
    /// To make something in a directory.
    Make,
    /// To give something another directory.
    Refer,
    /// To control a device.
    Ioctl,
    /// To connect to a Unix socket with a path.
    UnixSocket,
    /// To connect to a Unix socket without one.
    AbstractSocket,
    /// To connect to a TCP port.
    ConnectTcp,
    /// To have a TCP port.
    BindTcp,
    /// To send a signal.
    Signal,
    /// To trace a process.
    Trace,
    /// To change mounts.
    Mount,
}

/// What something was refused of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Object {
    /// A path, seen from the root of who tried.
    Path(OsString),
    /// The path that something had which is gone.
    Deleted(OsString),
    /// An address.
    Address(SocketAddr),
    /// A process, in the numbers of the first PID namespace.
    Process(i32),
    /// The record does not say.
    Unnamed,
}

impl Refusal {
    /// The bytes of what it names.
    pub(super) fn length(&self) -> usize {
        match &self.object {
            Object::Path(path) | Object::Deleted(path) => path.len(),
            Object::Address(_) | Object::Process(_) | Object::Unnamed => 0,
        }
    }
}

impl Blocker {
    fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"fs.execute" => Self::Execute,
            b"fs.write_file" | b"fs.truncate" => Self::Write,
            b"fs.read_file" => Self::Read,
            b"fs.read_dir" => Self::List,
            b"fs.remove_dir" | b"fs.remove_file" => Self::Remove,
            b"fs.make_char" | b"fs.make_dir" | b"fs.make_reg" | b"fs.make_sock" | b"fs.make_fifo"
            | b"fs.make_block" | b"fs.make_sym" => Self::Make,
            b"fs.refer" => Self::Refer,
            b"fs.ioctl_dev" => Self::Ioctl,
            b"fs.resolve_unix" => Self::UnixSocket,
            b"fs.change_topology" => Self::Mount,
            b"net.connect_tcp" => Self::ConnectTcp,
            b"net.bind_tcp" => Self::BindTcp,
            b"scope.abstract_unix_socket" => Self::AbstractSocket,
            b"scope.signal" => Self::Signal,
            b"ptrace" => Self::Trace,
            _ => return None,
        })
    }
}

/// What a record of this type says; `None` where it is about something else, or not written as the kernel writes.
pub fn parse(kind: u16, text: &[u8]) -> Option<Record> {
    if !is_of_landlock(kind) {
        return None;
    }
    let mut words = Words(behind_the_stamp(text)?);
    let mut domain = None;
    let (mut status, mut pid) = (None, None);
    let mut blockers: Option<Vec<Blocker>> = None;
    let mut said = Said::default();
    while let Some((key, value)) = words.next_word().ok()? {
        match key {
            b"domain" if domain.is_none() => domain = Some(hexadecimal(value.plain()?)?),
            b"status" if status.is_none() => status = Some(value.plain()?),
            b"pid" if pid.is_none() => pid = Some(decimal(value.plain()?)?),
            b"blockers" if blockers.is_none() => blockers = Some(names(value.plain()?)),
            _ => said.take(key, value)?,
        }
    }
    let domain = domain?;
    match kind {
        ACCESS => Some(Record::Access {
            domain,
            refusal: Refusal {
                // One that is not known is one that cannot be told.
                blockers: blockers.filter(|blockers| !blockers.is_empty())?,
                object: said.object(),
            },
        }),
        _ => match status? {
            b"allocated" => Some(Record::Made { domain, pid: pid? }),
            b"deallocated" => Some(Record::Ended { domain }),
            _ => None,
        },
    }
}

/// The domain of a refusal of which nothing more may be readable: it stands before all else.
pub(super) fn domain_of_access(kind: u16, text: &[u8]) -> Option<u64> {
    if kind != ACCESS {
        return None;
    }
    match Words(behind_the_stamp(text)?).next_word() {
        Ok(Some((b"domain", value))) => hexadecimal(value.plain()?),
        Ok(_) | Err(NoWord) => None,
    }
}

/// What stands behind `audit(SECONDS.MILLISECONDS:SERIAL): `, with which all of them begin.
fn behind_the_stamp(text: &[u8]) -> Option<&[u8]> {
    let rest = text.strip_prefix(b"audit(")?;
    let end = rest.windows(3).position(|three| three == b"): ")?;
    rest.get(end + 3..)
}

/// Whether records of this type are of a change to audit itself.
pub(super) const fn is_of_audit(kind: u16) -> bool {
    kind == CONFIG_CHANGE
}

/// Whether records of this type are Landlock's.
pub(super) fn is_of_landlock(kind: u16) -> bool {
    matches!(kind, ACCESS | DOMAIN)
}

/// What was lacking for the operation that the record is about.
///
/// Of a move or a link to another directory the kernel names all rights that something would gain by it, and one record tells of a
/// directory. No other operation lacks several of these at once, or one of them beside what is lacking for a file.
fn names(list: &[u8]) -> Vec<Blocker> {
    let all = list.split(|byte| *byte == b',').take(MOST_BLOCKERS);
    let all: Vec<Blocker> = all.filter_map(Blocker::named).collect();
    let count = |wanted: Blocker| all.iter().filter(|blocker| **blocker == wanted).count();
    let by_name = [Blocker::Make, Blocker::Remove, Blocker::Refer].map(count);
    let others = all.len() - by_name.iter().sum::<usize>();
    let is_move = by_name.iter().any(|count| *count > 1)
        || (others > 0 && others < all.len())
        || (others > 1 && count(Blocker::Ioctl) > 0);
    if is_move {
        return vec![Blocker::Refer];
    }
    let mut blockers = Vec::new();
    for blocker in all.iter().copied() {
        // A program is opened for reading by whoever executes it.
        let is_implied = blocker == Blocker::Read && count(Blocker::Execute) > 0;
        if !is_implied && !blockers.contains(&blocker) {
            blockers.push(blocker);
        }
    }
    blockers
}

/// What a record says of its object, as far as it was read.
#[derive(Debug, Default)]
struct Said {
    path: Option<Vec<u8>>,
    ip: Option<IpAddr>,
    port: Option<u16>,
    process: Option<i32>,
}

impl Said {
    fn take(&mut self, key: &[u8], value: Value<'_>) -> Option<()> {
        match key {
            b"path" if self.path.is_none() => self.path = Some(value.chosen()?),
            b"daddr" | b"saddr" if self.ip.is_none() => {
                self.ip = Some(std::str::from_utf8(value.plain()?).ok()?.parse().ok()?);
            }
            b"dest" | b"src" if self.port.is_none() => {
                self.port = Some(u16::try_from(decimal(value.plain()?)?).ok()?);
            }
            b"opid" if self.process.is_none() => self.process = Some(decimal(value.plain()?)?),
            // Names of programs, devices and numbers of files are not looked at.
            _ => {}
        }
        Some(())
    }

    fn object(self) -> Object {
        match (self.path, self.process, self.ip, self.port) {
            (Some(mut path), ..) => match path.strip_suffix(DELETED).map(<[u8]>::len) {
                Some(length) => {
                    path.truncate(length);
                    Object::Deleted(OsString::from_vec(path))
                }
                None => Object::Path(OsString::from_vec(path)),
            },
            (None, Some(pid), ..) => Object::Process(pid),
            // An address of nothing but zeros is not written.
            (None, None, ip, Some(port)) => {
                Object::Address(SocketAddr::new(ip.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), port))
            }
            (None, None, Some(ip), None) => Object::Address(SocketAddr::new(ip, 0)),
            (None, None, None, None) => Object::Unnamed,
        }
    }
}

/// The words of a record.
struct Words<'t>(&'t [u8]);

/// What is not written as the kernel writes.
struct NoWord;

/// What stands behind a key.
#[derive(Debug, Clone, Copy)]
enum Value<'t> {
    Quoted(&'t [u8]),
    Plain(&'t [u8]),
}

impl<'t> Words<'t> {
    /// The next key and its value, `None` at the end.
    fn next_word(&mut self) -> Result<Option<Word<'t>>, NoWord> {
        let rest = self.0.trim_ascii_start();
        if rest.is_empty() || rest == b"\0" {
            return Ok(None);
        }
        let (word, rest) = word(rest).ok_or(NoWord)?;
        self.0 = rest;
        Ok(Some(word))
    }
}

/// A key, and what stands behind it.
type Word<'t> = (&'t [u8], Value<'t>);

/// The key and its value at the beginning of a text, and what is behind them.
fn word(rest: &[u8]) -> Option<(Word<'_>, &[u8])> {
    let end = rest.iter().position(|byte| *byte == b'=')?;
    let (key, rest) = (rest.get(..end)?, rest.get(end + 1..)?);
    if key.is_empty() || !key.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_') {
        return None;
    }
    let (value, rest) = if let Some(rest) = rest.strip_prefix(b"\"") {
        let end = rest.iter().position(|byte| *byte == b'"')?;
        (Value::Quoted(rest.get(..end)?), rest.get(end + 1..)?)
    } else {
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        let (value, rest) = rest.split_at_checked(end)?;
        (Value::Plain(value.strip_suffix(b"\0").unwrap_or(value)), rest)
    };
    Some(((key, value), rest))
}

impl<'t> Value<'t> {
    /// What the kernel writes as it is.
    fn plain(self) -> Option<&'t [u8]> {
        match self {
            Self::Plain(value) if !value.is_empty() => Some(value),
            Self::Plain(_) | Self::Quoted(_) => None,
        }
    }

    /// What somebody could have chosen.
    fn chosen(self) -> Option<Vec<u8>> {
        match self {
            // Where there was no room for it.
            Self::Quoted(b"<no_memory>" | b"<too_long>") => None,
            Self::Quoted(value) => Some(value.to_vec()),
            Self::Plain(digits) if !digits.is_empty() && digits.len().is_multiple_of(2) => digits
                .chunks_exact(2)
                .map(|pair| u8::try_from(hexadecimal(pair)?).ok())
                .collect(),
            Self::Plain(_) => None,
        }
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    are_digits.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

fn decimal(digits: &[u8]) -> Option<i32> {
    let digits = std::str::from_utf8(digits).ok()?;
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_digit());
    are_digits.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
