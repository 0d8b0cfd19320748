//! The key that ends a command from the keyboard, whatever the command makes of Ctrl-C.
//!
//! At a terminal every key goes to the command, which may ignore each of them. Ctrl-\\ pressed three times within a second,
//! with no other key between, is the one that it cannot keep: the first two reach it, the third ends its whole tree. No
//! program asks for that combination, and nobody types it by accident.

use std::time::{Duration, Instant};

/// How often it is to be pressed.
const PRESSES: usize = 3;
/// Within what time.
const WITHIN: Duration = Duration::from_secs(1);

/// How terminals send Ctrl-\\: as a byte, or, where a full-screen program asked for that, as one of these sequences.
const SENT_AS: [&[u8]; 4] = [b"\x1c", b"\x1b[92;5u", b"\x1b[92;5:1u", b"\x1b[27;5;92~"];
/// How some of them say that it was let go.
const LET_GO: &[u8] = b"\x1b[92;5:3u";

/// What was pressed of it so far.
#[derive(Debug, Default)]
pub(super) struct EndKey {
    presses: Vec<Instant>,
}

impl EndKey {
    /// Takes the keys that were read now; whether the end key is complete.
    pub(super) fn press(&mut self, mut keys: &[u8], now: Instant) -> bool {
        while !keys.is_empty() {
            if let Some(rest) = keys.strip_prefix(LET_GO) {
                keys = rest;
                continue;
            }
            let Some(rest) = SENT_AS.iter().find_map(|sent| keys.strip_prefix(*sent)) else {
                self.presses.clear();
                keys = &keys[1..];
                continue;
            };
            keys = rest;
            self.presses.retain(|pressed| now.duration_since(*pressed) <= WITHIN);
            self.presses.push(now);
            if self.presses.len() >= PRESSES {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(reads: &[(u64, &[u8])]) -> bool {
        let begin = Instant::now();
        let mut key = EndKey::default();
        let at = |after| begin + Duration::from_millis(after);
        reads.iter().any(|(after, keys)| key.press(keys, at(*after)))
    }

    #[test]
    fn three_presses_within_a_second_end_it_in_every_encoding() {
        assert!(pressed(&[(0, b"\x1c\x1c\x1c")]));
        assert!(pressed(&[(0, b"\x1c"), (400, b"\x1c"), (900, b"\x1c")]));
        assert!(pressed(&[
            (0, b"\x1b[92;5u\x1b[92;5:3u\x1b[92;5:1u\x1b[92;5:3u"),
            (9, b"\x1b[27;5;92~")
        ]));
    }

    #[test]
    fn fewer_or_slower_presses_and_other_keys_between_end_nothing() {
        assert!(!pressed(&[(0, b"\x1c\x1c")]));
        assert!(!pressed(&[(0, b"\x1c"), (600, b"\x1c"), (1200, b"\x1c")]));
        assert!(!pressed(&[(0, b"\x1c\x1c\x0e\x1c"), (9, b"a\x1c")]));
        assert!(!pressed(&[(0, b"\x03\x03\x03\x03")]));
    }
}
