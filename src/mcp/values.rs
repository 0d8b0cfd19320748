//! About how many values a JSON text has, before anybody parses it: each takes far more memory than its text does.

/// The most values in one message.
pub(super) const MOST_VALUES: usize = 200_000;

/// Counts as the text comes: one more than what separates them. What stands in strings does not count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values {
    count: usize,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    InString,
    AfterBackslash,
}

impl Values {
    /// None yet.
    pub(super) const fn none() -> Self {
        Self {
            count: 1,
            place: Place::Outside,
        }
    }

    /// Whether the next byte stands in a string.
    pub(super) const fn is_in_string(&self) -> bool {
        !matches!(self.place, Place::Outside)
    }

    /// Counts on; whether there are too many by now.
    pub(super) const fn take(&mut self, byte: u8) -> bool {
        self.place = match (self.place, byte) {
            (Place::InString, b'\\') => Place::AfterBackslash,
            (Place::InString, b'"') => Place::Outside,
            (Place::AfterBackslash, _) | (Place::Outside, b'"') => Place::InString,
            (Place::Outside, b',' | b'[' | b'{' | b':') => {
                self.count += 1;
                Place::Outside
            }
            (place @ (Place::Outside | Place::InString), _) => place,
        };
        self.count > MOST_VALUES
    }
}

/// Whether a text has more values than anything that is parsed.
pub(super) fn too_many(text: &[u8]) -> bool {
    let mut values = Values::none();
    text.iter().any(|byte| values.take(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &[u8]) -> usize {
        let mut values = Values::none();
        for byte in text {
            values.take(*byte);
        }
        values.count
    }

    #[test]
    fn values_are_counted_outside_of_strings() {
        assert_eq!(count(b"1"), 1);
        assert_eq!(count(br#"{"a": [1, 2, 3]}"#), 6);
        assert_eq!(count(br#"",,,[[[\",,,\\""#), 1);
        assert_eq!(count("[[[[".as_bytes()), 5);
    }

    #[test]
    fn many_values_are_too_many_and_a_long_string_is_not() {
        assert!(too_many("0,".repeat(MOST_VALUES + 1).as_bytes()));
        assert!(!too_many(format!("\"{}\"", ",".repeat(MOST_VALUES + 1)).as_bytes()));
    }
}
