//! Lists with a maximum length: one byte of a frame may become a hundred in memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// Reads a list of at most `MAX`; a longer one is no message.
pub(super) fn at_most<'de, D, T, const MAX: usize>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    from.deserialize_seq(BoundedList::<T, MAX>(PhantomData))
}

struct BoundedList<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for BoundedList<T, MAX> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {MAX}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut list_so_far = Vec::new();
        while let Some(one) = list.next_element()? {
            if list_so_far.len() == MAX {
                return Err(A::Error::invalid_length(MAX + 1, &self));
            }
            list_so_far.push(one);
        }
        Ok(list_so_far)
    }
}
