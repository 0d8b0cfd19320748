//! Bytes that are mostly text, in JSON: a string where they are text, else `{"hex": "…"}`.
//!
//! Each byte string has one form, and comes back as it was.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::policy::hex::{hex, unhex};

#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum JsonBytes {
    Text(String),
    Bytes { hex: String },
}

impl JsonBytes {
    fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes { hex: hex(bytes) },
        }
    }

    fn bytes<'de, D: Deserializer<'de>>(self) -> Result<Vec<u8>, D::Error> {
        match self {
            Self::Text(text) => Ok(text.into_bytes()),
            Self::Bytes { hex } => unhex(&hex).ok_or_else(|| D::Error::custom("not pairs of hexadecimal digits")),
        }
    }

    fn name<'de, D: Deserializer<'de>>(self) -> Result<OsString, D::Error> {
        self.bytes::<D>().map(OsString::from_vec)
    }

    fn of_name(name: &OsStr) -> Self {
        Self::of(name.as_bytes())
    }
}

/// Bytes.
pub(super) mod bytes {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::JsonBytes;

    pub(in crate::approval) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        JsonBytes::of(bytes).serialize(to)
    }

    pub(in crate::approval) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        JsonBytes::deserialize(from)?.bytes::<D>()
    }
}

/// A path.
pub(super) mod path {
    use std::path::{Path, PathBuf};

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::JsonBytes;

    pub(in crate::approval) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        JsonBytes::of_name(path.as_os_str()).serialize(to)
    }

    pub(in crate::approval) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        JsonBytes::deserialize(from)?.name::<D>().map(PathBuf::from)
    }
}

/// Paths.
pub(super) mod paths {
    use std::path::PathBuf;

    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::JsonBytes;

    pub(in crate::approval) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| JsonBytes::of_name(path.as_os_str())))
    }

    pub(in crate::approval) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        let paths: Vec<JsonBytes> = Vec::deserialize(from)?;
        paths
            .into_iter()
            .map(|path| path.name::<D>().map(PathBuf::from))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_kind_come_back_as_they_were() {
        for bytes in [
            &b""[..],
            b"make",
            "é\u{202e}".as_bytes(),
            b"a\xff\0",
            b"{\"hex\": \"00\"}",
        ] {
            let json = serde_json::to_string(&JsonBytes::of(bytes)).unwrap();
            let back: JsonBytes = serde_json::from_str(&json).unwrap();
            assert_eq!(back.bytes::<serde_json::Value>().unwrap(), bytes, "{json}");
        }
    }

    #[test]
    fn what_is_no_hexadecimal_is_refused() {
        for wrong in ["0", "0g", "+1", "é"] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
        assert_eq!(unhex("00fF"), Some(vec![0, 255]));
    }
}
