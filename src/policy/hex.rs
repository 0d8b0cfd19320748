//! Bytes as hexadecimal text.

/// Two digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
            digits.extend([byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')));
            digits
        })
}

/// The bytes of [`hex`], also where its letters are upper case.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |digit: &u8| {
        char::from(*digit)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            [_] | [] | [_, _, _, ..] => None,
        })
        .collect()
}
