//! Packs: many objects in one file, some as differences to others.
//!
//! Only version 2 of index and pack, which git has written since 2007. Every number in them is checked before it is used: a
//! length bounds what is inflated, a chain of differences has an end, and what does not fit together is no object.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use flate2::bufread::ZlibDecoder;
use nix::dir::Dir;

use super::super::entry::nofollow::{self, join};
use super::id::{Algorithm, Id};
use super::kind::{Kind, LONGEST};

/// Packs that are looked into.
const MAX_PACKS: usize = 512;
/// Differences one upon another: as many as git makes, even when it is asked to take pains.
const MAX_DELTAS: usize = 50;
/// Bytes of whole objects that are kept because differences to them may follow.
const MAX_CACHED: usize = 32 * 1024 * 1024;
/// Where the names begin in an index: behind its head.
const NAMES: u64 = HEAD as u64;
/// The head of an index: its magic number, its version and that table.
const HEAD: usize = 8 + 256 * 4;

/// Whole objects by pack and place.
#[derive(Default)]
pub(super) struct Bases {
    all: HashMap<(usize, u64), (Kind, Vec<u8>)>,
    bytes: usize,
}

impl Bases {
    fn keep(&mut self, offset_of: (usize, u64), kind: Kind, content: &[u8]) {
        // A commit or a tag is hardly ever what another differs from.
        if kind != Kind::Tree {
            return;
        }
        self.bytes += content.len();
        if self.bytes > MAX_CACHED {
            self.all.clear();
            self.bytes = content.len();
        }
        self.all.insert(offset_of, (kind, content.to_vec()));
    }
}

/// A pack and its index.
pub(super) struct Pack {
    name: Vec<u8>,
    index: File,
    data: Option<File>,
    algorithm: Algorithm,
    /// How many names begin with a byte as high as this one, or less high.
    fanout: Vec<u32>,
}

/// Those of a directory of objects.
pub(super) fn packs(objects: &OwnedFd, algorithm: Algorithm) -> Vec<Pack> {
    let Ok(mut folder) = nofollow::open_directory(objects, b"pack").and_then(Dir::from_fd) else {
        return Vec::new();
    };
    let names = folder
        .iter()
        .flatten()
        .map(|entry| entry.file_name().to_bytes().to_vec());
    let mut names: Vec<Vec<u8>> = names
        .filter_map(|name| name.strip_suffix(b".idx").map(<[u8]>::to_vec))
        .collect();
    names.sort();
    names.truncate(MAX_PACKS);
    let opened = names.into_iter().map(|name| Pack::open(objects, &name, algorithm));
    opened.flatten().collect()
}

impl Pack {
    fn open(objects: &OwnedFd, name: &[u8], algorithm: Algorithm) -> Option<Self> {
        let name = join(b"pack", name);
        let index = File::from(nofollow::open_file(objects, &[&name, b".idx".as_slice()].concat()).ok()?);
        let head: [u8; HEAD] = bytes(&index, 0)?;
        let (magic, table) = head.split_at(8);
        let fanout: Vec<u32> = table
            .chunks_exact(4)
            .filter_map(|four| Some(u32::from_be_bytes(four.try_into().ok()?)))
            .collect();
        let is_sound = magic == b"\xfftOc\0\0\0\x02" && fanout.is_sorted();
        is_sound.then_some(Self {
            name,
            index,
            data: None,
            algorithm,
            fanout,
        })
    }

    /// Where the object of that name is said to be.
    pub(super) fn find(&self, id: Id) -> Option<u64> {
        if id.algorithm() != self.algorithm {
            return None;
        }
        let width = self.algorithm.width() as u64;
        let first = usize::from(*id.bytes().first()?);
        let mut low = first
            .checked_sub(1)
            .map_or(Some(0), |before| self.fanout.get(before).copied())?;
        let mut high = *self.fanout.get(first)?;
        while low < high {
            let middle = low + (high - low) / 2;
            let mut name = [0; 32];
            let name = name.get_mut(..self.algorithm.width())?;
            self.index.read_exact_at(name, NAMES + u64::from(middle) * width).ok()?;
            match (*name).cmp(id.bytes()) {
                std::cmp::Ordering::Equal => return self.offset_of(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Where the object with that number is: behind the names and their checksums.
    fn offset_of(&self, number: u32) -> Option<u64> {
        let all = u64::from(*self.fanout.last()?);
        let table = NAMES + all * (self.algorithm.width() as u64 + 4);
        let offset = u32::from_be_bytes(bytes(&self.index, table + u64::from(number) * 4)?);
        if offset < 1 << 31 {
            return Some(offset.into());
        }
        let far = u64::from(offset & !(1 << 31));
        Some(u64::from_be_bytes(bytes(&self.index, table + all * 4 + far * 8)?))
    }

    /// The object at that place of the pack, which is the one with that number.
    pub(super) fn read(
        &mut self,
        objects: &OwnedFd,
        number: usize,
        offset: u64,
        bases: &mut Bases,
    ) -> Option<(Kind, Vec<u8>)> {
        if self.data.is_none() {
            let name = [&self.name, b".pack".as_slice()].concat();
            self.data = Some(File::from(nofollow::open_file(objects, &name).ok()?));
        }
        let mut deltas: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut room = LONGEST * 2;
        let mut at = offset;
        let (kind, mut content) = loop {
            if let Some(base) = bases.all.get(&(number, at)) {
                break base.clone();
            }
            if deltas.len() > MAX_DELTAS {
                return None;
            }
            let (object_type, length, rest_offset) = self.head(at)?;
            let kind = match object_type {
                1 => Kind::Commit,
                2 => Kind::Tree,
                3 => Kind::Blob,
                4 => Kind::Tag,
                6 | 7 => {
                    let (base, rest_offset) = if object_type == 6 {
                        let (base_distance, rest_offset) = self.base_distance(rest_offset)?;
                        (at.checked_sub(base_distance).filter(|base| *base < at)?, rest_offset)
                    } else {
                        let mut name = vec![0; self.algorithm.width()];
                        self.data.as_ref()?.read_exact_at(&mut name, rest_offset).ok()?;
                        (self.find(Id::of(&name)?)?, rest_offset + name.len() as u64)
                    };
                    room = room.checked_sub(length)?;
                    deltas.push((at, self.inflate(rest_offset, length)?));
                    at = base;
                    continue;
                }
                _ => return None,
            };
            let content = self.inflate(rest_offset, length)?;
            bases.keep((number, at), kind, &content);
            break (kind, content);
        };
        for (offset_of, delta) in deltas.into_iter().rev() {
            content = apply(&content, &delta)?;
            bases.keep((number, offset_of), kind, &content);
        }
        Some((kind, content))
    }

    /// Kind and length of what is there, and where its content begins.
    fn head(&self, offset: u64) -> Option<(u8, u64, u64)> {
        let mut at = offset;
        let mut byte = self.byte(&mut at)?;
        let object_type = byte >> 4 & 7;
        let mut length = u64::from(byte & 15);
        let mut shift = 4;
        while byte & 0x80 != 0 {
            byte = self.byte(&mut at)?;
            if shift > 32 {
                return None;
            }
            length |= u64::from(byte & 0x7f) << shift;
            shift += 7;
        }
        (length <= LONGEST).then_some((object_type, length, at))
    }

    /// How far before a difference lies what it differs from.
    fn base_distance(&self, offset: u64) -> Option<(u64, u64)> {
        let mut at = offset;
        let mut byte = self.byte(&mut at)?;
        let mut base_distance = u64::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.byte(&mut at)?;
            base_distance = (base_distance + 1).checked_mul(128)? | u64::from(byte & 0x7f);
        }
        Some((base_distance, at))
    }

    fn byte(&self, at: &mut u64) -> Option<u8> {
        let [byte] = bytes(self.data.as_ref()?, *at)?;
        *at = at.checked_add(1)?;
        Some(byte)
    }

    fn inflate(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
        let from = FileFrom {
            file: self.data.as_ref()?,
            offset,
        };
        let mut content = Vec::new();
        let decoder = ZlibDecoder::new(BufReader::with_capacity(4096, from));
        decoder.take(length.checked_add(1)?).read_to_end(&mut content).ok()?;
        (content.len() as u64 == length).then_some(content)
    }
}

/// A file from a place on.
struct FileFrom<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for FileFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset = self.offset.saturating_add(read as u64);
        Ok(read)
    }
}

fn bytes<const N: usize>(file: &File, offset: u64) -> Option<[u8; N]> {
    let mut read = [0; N];
    file.read_exact_at(&mut read, offset).ok()?;
    Some(read)
}

/// What a difference makes of what it differs from.
pub(super) fn apply(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut rest = delta;
    if length(&mut rest)? != base.len() as u64 {
        return None;
    }
    let wanted = length(&mut rest).filter(|wanted| *wanted <= LONGEST)?;
    let mut made = Vec::new();
    while let Some(step) = next(&mut rest) {
        if step & 0x80 == 0 {
            // 0 is kept for what is not thought of yet.
            let (new, rest_offset) = rest.split_at_checked(usize::from(step)).filter(|_| step != 0)?;
            made.extend_from_slice(new);
            rest = rest_offset;
        } else {
            let mut number = |bits: std::ops::Range<u8>| {
                let mut number = 0_usize;
                for (bit, shift) in bits.zip(0_u32..) {
                    if step & 1 << bit != 0 {
                        number |= usize::from(next(&mut rest)?) << (8 * shift);
                    }
                }
                Some(number)
            };
            let from = number(0..4)?;
            let count = match number(4..7)? {
                0 => 0x1_0000,
                count => count,
            };
            made.extend_from_slice(base.get(from..from.checked_add(count)?)?);
        }
        if made.len() as u64 > wanted {
            return None;
        }
    }
    (made.len() as u64 == wanted).then_some(made)
}

fn next(rest: &mut &[u8]) -> Option<u8> {
    let (first, rest_offset) = rest.split_first()?;
    *rest = rest_offset;
    Some(*first)
}

fn length(rest: &mut &[u8]) -> Option<u64> {
    let mut length = 0;
    for shift in (0..=35).step_by(7) {
        let byte = next(rest)?;
        length |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(length);
        }
    }
    None
}
