//! Random bytes from the kernel.

use std::fs::File;
use std::io::{self, Read as _};

/// `N` random bytes, for names, tokens and keys.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
