//! Bytes that nobody can guess.

use std::fs::File;
use std::io::{self, Read as _};

/// As many bytes of the kernel's, for names, tokens and keys.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
