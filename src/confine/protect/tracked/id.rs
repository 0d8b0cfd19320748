//! Names of objects: the hash of what they are.

use sha1_checked::Sha1;
use sha2::{Digest as _, Sha256};

/// The name of an object, by the hash its repository uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(in super::super) enum Id {
    Sha1([u8; 20]),
    Sha256([u8; 32]),
}

/// How a repository names its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Sha1,
    Sha256,
}

impl Algorithm {
    /// Bytes of a name.
    pub(super) fn width(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// The name of an object of this kind; `None` of one that was made to collide with another.
    pub(super) fn name(self, kind: &str, content: &[u8]) -> Option<Id> {
        let header = format!("{kind} {}\0", content.len());
        match self {
            Self::Sha1 => {
                let mut hash = Sha1::new();
                sha1_checked::Digest::update(&mut hash, header.as_bytes());
                sha1_checked::Digest::update(&mut hash, content);
                let result = hash.try_finalize();
                (!result.has_collision()).then(|| Id::Sha1((*result.hash()).into()))
            }
            Self::Sha256 => {
                let mut hash = Sha256::new();
                hash.update(header.as_bytes());
                hash.update(content);
                Some(Id::Sha256(hash.finalize().into()))
            }
        }
    }
}

impl Id {
    /// By how many bytes there are.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes.len() {
            20 => bytes.try_into().ok().map(Self::Sha1),
            32 => bytes.try_into().ok().map(Self::Sha256),
            _ => None,
        }
    }

    /// From 40 or 64 hexadecimal digits.
    pub(super) fn from_hex(text: &[u8]) -> Option<Self> {
        if text.len() != 40 && text.len() != 64 {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let pairs = text
            .chunks_exact(2)
            .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?));
        Self::of(&pairs.collect::<Option<Vec<u8>>>()?)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Sha1(bytes) => bytes,
            Self::Sha256(bytes) => bytes,
        }
    }

    pub(super) fn algorithm(self) -> Algorithm {
        match self {
            Self::Sha1(_) => Algorithm::Sha1,
            Self::Sha256(_) => Algorithm::Sha256,
        }
    }
}
