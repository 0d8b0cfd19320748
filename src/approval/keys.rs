//! Bytes from the terminal → keys of the pager.

/// A key of the pager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    LineDown,
    LineUp,
    PageDown,
    PageUp,
    First,
    Last,
    Leave,
    /// Ctrl-C or Ctrl-\.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    Other,
}

const ESCAPE: u8 = 0x1b;

/// The keys in one read. An incomplete sequence is `Key::Other`.
pub(super) fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((first, behind)) = rest.split_first() {
        let (key, length) = match (*first, behind.first()) {
            (ESCAPE, Some(b'[' | b'O')) => sequence(behind.get(1..).unwrap_or_default()),
            (byte, _) => (plain(byte), 0),
        };
        keys.push(key);
        rest = behind.get(length..).unwrap_or_default();
    }
    keys
}

const fn plain(byte: u8) -> Key {
    match byte {
        b' ' | b'f' => Key::PageDown,
        b'b' => Key::PageUp,
        b'\r' | b'\n' | b'j' => Key::LineDown,
        b'k' => Key::LineUp,
        b'g' => Key::First,
        b'G' => Key::Last,
        b'q' | b'Q' => Key::Leave,
        0x03 | 0x1c => Key::Interrupt,
        0x04 => Key::EndOfInput,
        _ => Key::Other,
    }
}

/// The key of a sequence without its first two bytes, and the length of the sequence without its first.
fn sequence(bytes: &[u8]) -> (Key, usize) {
    let Some(end) = bytes.iter().position(|byte| matches!(byte, 0x40..=0x7e)) else {
        return (Key::Other, 1 + bytes.len());
    };
    let key = match bytes.get(..=end).unwrap_or_default() {
        b"A" => Key::LineUp,
        b"B" => Key::LineDown,
        b"5~" => Key::PageUp,
        b"6~" => Key::PageDown,
        b"H" | b"1~" => Key::First,
        b"F" | b"4~" => Key::Last,
        _ => Key::Other,
    };
    (key, end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_read_alone_and_behind_another() {
        let all: [(&[u8], Key); 16] = [
            (b" ", Key::PageDown),
            (b"b", Key::PageUp),
            (b"\r", Key::LineDown),
            (b"\n", Key::LineDown),
            (b"g", Key::First),
            (b"G", Key::Last),
            (b"q", Key::Leave),
            (b"\x1b[A", Key::LineUp),
            (b"\x1bOB", Key::LineDown),
            (b"\x1b[5~", Key::PageUp),
            (b"\x1b[6~", Key::PageDown),
            (b"\x1b[H", Key::First),
            (b"\x1b[F", Key::Last),
            (b"\x03", Key::Interrupt),
            (b"\x1c", Key::Interrupt),
            (b"\x04", Key::EndOfInput),
        ];
        for (bytes, key) in all {
            assert_eq!(keys(bytes), [key], "{bytes:?}");
            assert_eq!(keys(&[b" ", bytes, b"q"].concat()), [Key::PageDown, key, Key::Leave]);
        }
    }

    #[test]
    fn what_is_no_key_of_the_pager_means_nothing() {
        for bytes in [
            &b"y"[..],
            b"\x1b",
            b"\x1b[",
            b"\x1b[200",
            b"\x1b[1;5q",
            b"\x1bOq",
            b"\xff",
        ] {
            assert_eq!(keys(bytes), [Key::Other], "{bytes:?}");
        }
        assert_eq!(keys(b""), []);
    }
}
