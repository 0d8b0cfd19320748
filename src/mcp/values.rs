//! Counts the values of a JSON text before it is parsed: a value takes far more memory than its text.

/// The most values in one message.
pub(super) const MAX_VALUES: usize = 200_000;

/// Counts separators outside of strings, and one.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueCounter {
    count: usize,
    position: Position,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Outside,
    InString,
    AfterBackslash,
}

impl ValueCounter {
    /// A counter at the start of a text.
    pub(super) const fn new() -> Self {
        Self {
            count: 1,
            position: Position::Outside,
        }
    }

    /// Whether the next byte is in a string.
    pub(super) const fn is_in_string(&self) -> bool {
        !matches!(self.position, Position::Outside)
    }

    /// Counts a byte; returns whether there are too many values.
    pub(super) const fn take(&mut self, byte: u8) -> bool {
        self.position = match (self.position, byte) {
            (Position::InString, b'\\') => Position::AfterBackslash,
            (Position::InString, b'"') => Position::Outside,
            (Position::AfterBackslash, _) | (Position::Outside, b'"') => Position::InString,
            (Position::Outside, b',' | b'[' | b'{' | b':') => {
                self.count += 1;
                Position::Outside
            }
            (position @ (Position::Outside | Position::InString), _) => position,
        };
        self.count > MAX_VALUES
    }
}

/// Whether a text has too many values.
pub(super) fn too_many(text: &[u8]) -> bool {
    let mut values = ValueCounter::new();
    text.iter().any(|byte| values.take(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &[u8]) -> usize {
        let mut values = ValueCounter::new();
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
        assert!(too_many("0,".repeat(MAX_VALUES + 1).as_bytes()));
        assert!(!too_many(format!("\"{}\"", ",".repeat(MAX_VALUES + 1)).as_bytes()));
    }
}
