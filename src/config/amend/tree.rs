//! Where each value of a text stands, in bytes.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Location, Spanned};

use crate::config::options::options;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    /// From its first character; for a scalar, to its last.
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Scalar,
    List(Vec<Node>),
    /// With where each key begins.
    Map(Vec<(String, usize, Node)>),
}

impl Node {
    /// The tree of a text; none where the parser does not say where something stands.
    pub(super) fn of(text: &str) -> Option<Self> {
        let tree = serde_yaml::from_str_with_options::<Spanned<Tree>>(text, options()).ok()?;
        place(tree)
    }

    /// The value behind these keys.
    pub(super) fn at(&self, keys: &[String]) -> Option<&Self> {
        keys.iter().try_fold(self, |node, key| match &node.kind {
            Kind::Map(entries) => entries.iter().find(|(name, ..)| name == key).map(|(.., value)| value),
            Kind::Scalar | Kind::List(_) => None,
        })
    }
}

enum Tree {
    Scalar,
    List(Vec<Spanned<Tree>>),
    Map(Vec<(Spanned<String>, Spanned<Tree>)>),
}

fn place(tree: Spanned<Tree>) -> Option<Node> {
    let span = range(&tree.referenced)?;
    let kind = match tree.value {
        Tree::Scalar => Kind::Scalar,
        Tree::List(list) => Kind::List(list.into_iter().map(place).collect::<Option<_>>()?),
        Tree::Map(map) => {
            let entry =
                |(key, value): (Spanned<String>, _)| Some((key.value, range(&key.referenced)?.start, place(value)?));
            Kind::Map(map.into_iter().map(entry).collect::<Option<_>>()?)
        }
    };
    Some(Node { span, kind })
}

fn range(at: &Location) -> Option<Range<usize>> {
    let start = usize::try_from(at.span().byte_offset()?).ok()?;
    let length = usize::try_from(at.span().byte_len()?).ok()?;
    Some(start..start.checked_add(length)?)
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Tree;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_unit<E: Error>(self) -> Result<Tree, E> {
                Ok(Tree::Scalar)
            }
            fn visit_none<E: Error>(self) -> Result<Tree, E> {
                Ok(Tree::Scalar)
            }
            fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Tree, D::Error> {
                Tree::deserialize(inner)
            }
            fn visit_bool<E: Error>(self, _: bool) -> Result<Tree, E> {
                Ok(Tree::Scalar)
            }
            fn visit_i64<E: Error>(self, _: i64) -> Result<Tree, E> {
                Ok(Tree::Scalar)
            }
            fn visit_u64<E: Error>(self, _: u64) -> Result<Tree, E> {
                Ok(Tree::Scalar)
            }
            fn visit_i128<E: Error>(self, _: i128) -> Result<Tree, E> {
                Ok(Tree::Scalar)
            }
            fn visit_u128<E: Error>(self, _: u128) -> Result<Tree, E> {
                Ok(Tree::Scalar)
            }
            fn visit_f64<E: Error>(self, _: f64) -> Result<Tree, E> {
                Ok(Tree::Scalar)
            }
            fn visit_str<E: Error>(self, _: &str) -> Result<Tree, E> {
                Ok(Tree::Scalar)
            }
            fn visit_bytes<E: Error>(self, _: &[u8]) -> Result<Tree, E> {
                Ok(Tree::Scalar)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = list.next_element()? {
                    entries.push(entry);
                }
                Ok(Tree::List(entries))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Tree::Map(entries))
            }
        }
        deserializer.deserialize_any(Any)
    }
}
