//! Keys with no value.
//!
//! `suffixes:` with nothing after it parses as if the key were absent, and for most keys that means
//! "no restriction". So it is an error.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::scalar::{At, Position};

/// Whether every key and entry of a YAML text has a value: faster to parse than [`Node`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filled {
    /// At least one is empty.
    No,
    /// All have values.
    Yes,
}

/// The structure of a YAML text, without its scalars.
#[derive(Debug)]
pub(crate) enum Node {
    /// `null`, `~` or nothing at all.
    Empty,
    /// Some scalar.
    Scalar,
    /// A list or mapping: its entries, with their keys.
    Entries(Vec<(Option<String>, At<Node>)>),
}

impl Node {
    /// The first key, or list entry, that has no value, with its position.
    pub(crate) fn first_empty(&self) -> Option<(Option<&str>, Position)> {
        let Self::Entries(entries) = self else {
            return None;
        };
        entries.iter().find_map(|(key, entry)| match &entry.value {
            Self::Empty => Some((key.as_deref(), entry.at)),
            inner => inner.first_empty(),
        })
    }
}

/// A reduced form of a YAML text.
trait Summary<'de>: Deserialize<'de> {
    const EMPTY: Self;
    const SCALAR: Self;
    fn of_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error>;
    fn of_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;
}

impl<'de> Summary<'de> for Filled {
    const EMPTY: Self = Self::No;
    const SCALAR: Self = Self::Yes;

    fn of_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut all = Self::Yes;
        while let Some(entry) = list.next_element()? {
            all = all.and(entry);
        }
        Ok(all)
    }

    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut all = Self::Yes;
        while let Some((IgnoredAny, entry)) = map.next_entry()? {
            all = all.and(entry);
        }
        Ok(all)
    }
}

impl Filled {
    const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, Self::Yes) => Self::Yes,
            (Self::No, _) | (_, Self::No) => Self::No,
        }
    }
}

impl<'de> Summary<'de> for Node {
    const EMPTY: Self = Self::Empty;
    const SCALAR: Self = Self::Scalar;

    fn of_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            entries.push((None, entry));
        }
        Ok(Self::Entries(entries))
    }

    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, entry)) = map.next_entry::<String, _>()? {
            entries.push((Some(key), entry));
        }
        Ok(Self::Entries(entries))
    }
}

impl<'de> Deserialize<'de> for Filled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

/// Accepts any value.
struct Any<S>(PhantomData<S>);

impl<'de, S: Summary<'de>> Visitor<'de> for Any<S> {
    type Value = S;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E: Error>(self) -> Result<S, E> {
        Ok(S::EMPTY)
    }
    fn visit_none<E: Error>(self) -> Result<S, E> {
        Ok(S::EMPTY)
    }
    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<S, D::Error> {
        S::deserialize(inner)
    }
    fn visit_bool<E: Error>(self, _: bool) -> Result<S, E> {
        Ok(S::SCALAR)
    }
    fn visit_i64<E: Error>(self, _: i64) -> Result<S, E> {
        Ok(S::SCALAR)
    }
    fn visit_u64<E: Error>(self, _: u64) -> Result<S, E> {
        Ok(S::SCALAR)
    }
    fn visit_i128<E: Error>(self, _: i128) -> Result<S, E> {
        Ok(S::SCALAR)
    }
    fn visit_u128<E: Error>(self, _: u128) -> Result<S, E> {
        Ok(S::SCALAR)
    }
    fn visit_f64<E: Error>(self, _: f64) -> Result<S, E> {
        Ok(S::SCALAR)
    }
    fn visit_str<E: Error>(self, _: &str) -> Result<S, E> {
        Ok(S::SCALAR)
    }
    fn visit_bytes<E: Error>(self, _: &[u8]) -> Result<S, E> {
        Ok(S::SCALAR)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<S, A::Error> {
        S::of_list(list)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<S, A::Error> {
        S::of_map(map)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::options::options;

    /// Pieces of YAML, many of which have no value somewhere.
    fn pieces() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "a:",
            "b: ",
            "c: 1",
            " ",
            "\n",
            "\n  ",
            "- ",
            "[",
            "]",
            "{",
            "}",
            ", ",
            "~",
            "null",
            "''",
            "x",
            "!!null ",
            "&n ",
            "*n",
            "? ",
            ": ",
            "|\n",
            "d: [1]\n",
            "e: {f: g}\n",
            "\"\"",
            "# no\n",
        ]);
        prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn the_quick_look_misses_nothing_that_has_no_value(text in pieces()) {
            let quick = serde_yaml::from_str_with_options::<Filled>(&text, options());
            let full = serde_yaml::from_str_with_options::<Node>(&text, options());
            if let Ok(full) = full {
                let first_empty = matches!(full, Node::Empty) || full.first_empty().is_some();
                prop_assert_eq!(quick.ok(), Some(if first_empty { Filled::No } else { Filled::Yes }), "{:?}", text);
            }
        }
    }

    #[test]
    fn a_key_without_a_value_is_found_at_any_depth() {
        for text in ["a:", "a: [1, ~]", "a: {b: {c: }}", "- a\n- ", "a: null\nb: 1", "a: {b}"] {
            let quick = serde_yaml::from_str_with_options::<Filled>(text, options()).unwrap();
            assert_eq!(quick, Filled::No, "{text:?}");
        }
        for text in ["a: ''", "a: []", "a: {}", "a: 'null'", "[1, x]"] {
            let quick = serde_yaml::from_str_with_options::<Filled>(text, options()).unwrap();
            assert_eq!(quick, Filled::Yes, "{text:?}");
        }
    }
}
