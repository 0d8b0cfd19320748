//! Keys with no value.
//!
//! `suffixes:` with nothing after it reads as if it were not there, and for most keys that means
//! "no restriction". Whoever wrote the key meant something, so it is an error.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::scalar::{At, Spot};

/// A YAML text, of which only the empty places matter.
#[derive(Debug)]
pub(crate) enum Node {
    /// `null`, `~` or nothing at all.
    Nothing,
    /// Some scalar.
    Scalar,
    /// A list or mapping: its entries, with their keys.
    Entries(Vec<(Option<String>, At<Node>)>),
}

impl Node {
    /// The first key, or list entry, that has no value, and where.
    pub(crate) fn nothing(&self) -> Option<(Option<&str>, Spot)> {
        let Self::Entries(entries) = self else {
            return None;
        };
        entries.iter().find_map(|(key, entry)| match &entry.value {
            Self::Nothing => Some((key.as_deref(), entry.at)),
            inner => inner.nothing(),
        })
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Node;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_unit<E: Error>(self) -> Result<Node, E> {
                Ok(Node::Nothing)
            }
            fn visit_none<E: Error>(self) -> Result<Node, E> {
                Ok(Node::Nothing)
            }
            fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Node, D::Error> {
                Node::deserialize(inner)
            }
            fn visit_bool<E: Error>(self, _: bool) -> Result<Node, E> {
                Ok(Node::Scalar)
            }
            fn visit_i64<E: Error>(self, _: i64) -> Result<Node, E> {
                Ok(Node::Scalar)
            }
            fn visit_u64<E: Error>(self, _: u64) -> Result<Node, E> {
                Ok(Node::Scalar)
            }
            fn visit_i128<E: Error>(self, _: i128) -> Result<Node, E> {
                Ok(Node::Scalar)
            }
            fn visit_u128<E: Error>(self, _: u128) -> Result<Node, E> {
                Ok(Node::Scalar)
            }
            fn visit_f64<E: Error>(self, _: f64) -> Result<Node, E> {
                Ok(Node::Scalar)
            }
            fn visit_str<E: Error>(self, _: &str) -> Result<Node, E> {
                Ok(Node::Scalar)
            }
            fn visit_bytes<E: Error>(self, _: &[u8]) -> Result<Node, E> {
                Ok(Node::Scalar)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = list.next_element()? {
                    entries.push((None, entry));
                }
                Ok(Node::Entries(entries))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut entries = Vec::new();
                while let Some((key, entry)) = map.next_entry::<String, _>()? {
                    entries.push((Some(key), entry));
                }
                Ok(Node::Entries(entries))
            }
        }
        deserializer.deserialize_any(Any)
    }
}
