//! What a confined command sends to its proxy: requests of HTTP and SOCKS5, bodies, and what it begins a tunnel with. There is
//! one reading or none, whatever pieces it comes in, and what is read, written anew, is read as the same.
//!
//! The first byte picks the reader.

use std::time::Duration;

use stockade::proxy::parser_laws::Reader;

use crate::bounds::{Bounds, bounded};

const BOUNDS: Bounds = Bounds {
    bytes: 1 << 20,
    per_byte: 256,
    time: Duration::from_secs(2),
};

pub(crate) fn run(input: &[u8]) {
    // Longer than the longest of what is read whole.
    let Some((pick, bytes)) = input[..input.len().min(72 << 10)].split_first() else {
        return;
    };
    let reader = Reader::ALL[usize::from(*pick) % Reader::ALL.len()];
    bounded(input, BOUNDS, || {
        if let Err(why) = reader.check(bytes) {
            panic!("{reader:?}: {why}");
        }
    });
}
