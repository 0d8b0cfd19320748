//! The key that ends a command from the keyboard, whatever the command makes of Ctrl-C.
//!
//! At a terminal every key goes to the command, which may ignore each of them. Ctrl-\\ pressed three times within a second,
//! with no other key between, is the one that it cannot keep: the first two reach it, the third ends its whole tree. No
//! program asks for that combination, and nobody types it by accident.
//!
//! Text that is pasted may hold the same bytes, and is no key. A press is a read that holds nothing else: a person needs many
//! milliseconds for the next one, and pasted text comes in pieces as large as a read takes. What a terminal marks as pasted
//! (bracketed paste) counts as text in any case.

use std::time::{Duration, Instant};

const PRESSES: usize = 3;
const WITHIN: Duration = Duration::from_secs(1);

/// How terminals send Ctrl-\\: as a byte, or, where a full-screen program asked for that, as one of these sequences.
const SENT_AS: [&[u8]; 4] = [b"\x1c", b"\x1b[92;5u", b"\x1b[92;5:1u", b"\x1b[27;5;92~"];
/// How some of them report its release.
const RELEASED: &[u8] = b"\x1b[92;5:3u";
/// The mark before pasted text, where a program enabled that.
const PASTE: &[u8] = b"\x1b[200~";
const PASTED: &[u8] = b"\x1b[201~";

/// The presses so far.
#[derive(Debug, Default)]
pub(super) struct EndKey {
    presses: Vec<Instant>,
    /// The last bytes before: a mark may come in two pieces.
    before: Vec<u8>,
    /// When the latest piece of a paste came that has not ended.
    pasting: Option<Instant>,
}

impl EndKey {
    /// Takes what was read now, in one read; whether the end key is complete.
    pub(super) fn press(&mut self, keys: &[u8], now: Instant) -> bool {
        if self.is_pasted(keys, now) {
            self.presses.clear();
            return false;
        }
        match presses(keys) {
            Some(0) => {}
            Some(1) => {
                self.presses.retain(|pressed| now.duration_since(*pressed) <= WITHIN);
                self.presses.push(now);
            }
            Some(_) | None => self.presses.clear(),
        }
        self.presses.len() >= PRESSES
    }

    /// Whether any of it is text that was pasted.
    fn is_pasted(&mut self, keys: &[u8], now: Instant) -> bool {
        // A paste without an end must not disable the key for ever.
        self.pasting = self.pasting.filter(|piece| now.duration_since(*piece) <= WITHIN);
        let was_pasting = self.pasting.is_some();
        let mut text = std::mem::take(&mut self.before);
        text.extend_from_slice(keys);
        let last = |mark: &[u8]| text.windows(mark.len()).rposition(|part| part == mark);
        let (begun, ended) = (last(PASTE), last(PASTED));
        if begun.is_some() || ended.is_some() {
            self.pasting = (begun > ended).then_some(now);
        } else if was_pasting {
            self.pasting = Some(now);
        }
        // A complete mark is not found again.
        self.before = text.split_off(text.len().saturating_sub(PASTE.len() - 1));
        was_pasting || begun.is_some() || ended.is_some()
    }
}

/// How often the key was pressed in what came at once; none where there is anything else.
fn presses(mut keys: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !keys.is_empty() {
        if let Some(rest) = keys.strip_prefix(RELEASED) {
            keys = rest;
            continue;
        }
        keys = SENT_AS.iter().find_map(|sent| keys.strip_prefix(*sent))?;
        count += 1;
    }
    Some(count)
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
        assert!(pressed(&[(0, b"\x1c"), (400, b"\x1c"), (900, b"\x1c")]));
        assert!(pressed(&[
            (0, b"\x1b[92;5u\x1b[92;5:3u"),
            (9, b"\x1b[92;5:1u"),
            (20, b"\x1b[92;5:3u"),
            (30, b"\x1b[27;5;92~")
        ]));
    }

    #[test]
    fn fewer_or_slower_presses_and_other_keys_between_end_nothing() {
        assert!(!pressed(&[(0, b"\x1c"), (9, b"\x1c")]));
        assert!(!pressed(&[(0, b"\x1c"), (600, b"\x1c"), (1200, b"\x1c")]));
        assert!(!pressed(&[(0, b"\x1c"), (9, b"\x1c"), (18, b"\x0e"), (27, b"\x1c")]));
        assert!(!pressed(&[(0, b"\x1c"), (9, b"\x1c"), (18, b"a\x1c")]));
        assert!(!pressed(&[(0, b"\x03"), (9, b"\x03"), (18, b"\x03")]));
    }

    #[test]
    fn text_that_is_pasted_is_no_press() {
        assert!(!pressed(&[(0, b"\x1c\x1c\x1c")]));
        assert!(!pressed(&[
            (0, b"\x1c"),
            (9, b"\x1c"),
            (18, b"\x1c\x1c"),
            (27, b"\x1c")
        ]));
        // As a terminal marks it, in any pieces.
        let pasted: [(u64, &[u8]); 6] = [
            (0, b"\x1b[20"),
            (1, b"0~"),
            (2, b"\x1c"),
            (3, b"\x1c"),
            (4, b"\x1c"),
            (5, b"\x1b[201~"),
        ];
        assert!(!pressed(&pasted));
        assert!(!pressed(&[
            (0, b"\x1b[200~\x1b[201~\x1b[200~"),
            (1, b"\x1c"),
            (2, b"\x1c"),
            (3, b"\x1c")
        ]));
    }

    #[test]
    fn the_key_works_after_a_paste_and_after_one_whose_end_never_came() {
        let presses = |at| [(at, b"\x1c".as_slice()), (at + 9, b"\x1c"), (at + 18, b"\x1c")];
        assert!(pressed(
            &[&[(0, b"\x1b[200~\x1c\x1b[201~".as_slice())], presses(9).as_slice()].concat()
        ));
        assert!(pressed(
            &[&[(0, b"\x1b[200~ab".as_slice())], presses(1100).as_slice()].concat()
        ));
    }
}
