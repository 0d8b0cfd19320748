//! Objects of git, as whoever could write them left them.
//!
//! Nothing that is read is believed: an object is given out only if it hashes to the name it was asked for by. Blobs are
//! never read, for the name of what lies in the work tree says enough. What is read is bounded by counts and not by time, so
//! that the answer is the same on a slow machine.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use flate2::bufread::ZlibDecoder;

use super::super::entry::nofollow;
use super::id::Id;
use super::kind::{Kind, LONGEST};
use super::pack::{Bases, Pack, packs};
use crate::policy::hex::hex;

/// Objects that are read for one answer.
const MAX_OBJECTS: u32 = 60_000;
/// Bytes of them.
const MOST_BYTES: u64 = 200 * 1024 * 1024;
/// Bytes of objects that are kept, for many commits share most of their trees.
const MAX_CACHED: usize = 32 * 1024 * 1024;

/// An object that hashes to its name.
pub(super) type Object = (Kind, Rc<[u8]>);

/// The `objects` of a repository.
pub(super) struct Objects {
    directory: OwnedFd,
    packs: Option<Vec<Pack>>,
    bases: Bases,
    cache: HashMap<Id, Object>,
    cached_bytes: usize,
    left: u32,
    left_bytes: u64,
}

impl Objects {
    pub(super) fn new(directory: OwnedFd) -> Self {
        Self {
            directory,
            packs: None,
            bases: Bases::default(),
            cache: HashMap::new(),
            cached_bytes: 0,
            left: MAX_OBJECTS,
            left_bytes: MOST_BYTES,
        }
    }

    /// The object of that name. `None` if it is not there, is not what it is called, or too much has been read.
    pub(super) fn read(&mut self, id: Id) -> Option<Object> {
        if let Some(cache) = self.cache.get(&id) {
            return Some(cache.clone());
        }
        self.left = self.left.checked_sub(1)?;
        let (kind, content) = self.loose(id).or_else(|| self.packed(id))?;
        self.left_bytes = self.left_bytes.checked_sub(content.len() as u64)?;
        if id.algorithm().name(kind.name(), &content) != Some(id) {
            return None;
        }
        let object: Object = (kind, content.into());
        self.cached_bytes += object.1.len();
        if self.cached_bytes > MAX_CACHED {
            self.cache.clear();
            self.cached_bytes = object.1.len();
        }
        self.cache.insert(id, object.clone());
        Some(object)
    }

    fn loose(&self, id: Id) -> Option<(Kind, Vec<u8>)> {
        let name = hex(id.bytes());
        let path = format!("{}/{}", name.get(..2)?, name.get(2..)?);
        let file = File::from(nofollow::open_file(&self.directory, path.as_bytes()).ok()?);
        let mut all = Vec::new();
        let decoder = ZlibDecoder::new(BufReader::new(file));
        decoder.take(LONGEST + 33).read_to_end(&mut all).ok()?;
        let end = all.iter().take(32).position(|byte| *byte == 0)?;
        let (kind, length) = std::str::from_utf8(all.get(..end)?).ok()?.split_once(' ')?;
        let kind = Kind::from_name(kind.as_bytes())?;
        let length: usize = length.parse().ok()?;
        let content = all.split_off(end + 1);
        (length == content.len() && length as u64 <= LONGEST).then_some((kind, content))
    }

    fn packed(&mut self, id: Id) -> Option<(Kind, Vec<u8>)> {
        let packs = self.packs.get_or_insert_with(|| packs(&self.directory, id.algorithm()));
        for (pack, number) in packs.iter_mut().zip(0_usize..) {
            // A bad copy in one pack does not hide a good one in another.
            if let Some(offset) = pack.find(id)
                && let Some(found) = pack.read(&self.directory, number, offset, &mut self.bases)
            {
                return Some(found);
            }
        }
        None
    }
}
