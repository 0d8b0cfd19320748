//! What content that is no text looks like.

/// How much of a file is looked at.
pub(super) const HEAD: usize = 8 * 1024;

/// What has none of the signs.
pub(super) const UNKNOWN: &str = "binary";

/// Beginnings that tell what a file is.
const SIGNS: [(&[u8], &str); 26] = [
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF87a", "GIF image"),
    (b"GIF89a", "GIF image"),
    (b"BM", "BMP image"),
    (b"\x00\x00\x01\x00", "icon"),
    (b"II*\x00", "TIFF image"),
    (b"MM\x00*", "TIFF image"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"PK\x05\x06", "ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"!<arch>\n", "static library"),
    (b"\x7fELF", "ELF program"),
    (b"MZ", "Windows program"),
    (b"\xcf\xfa\xed\xfe", "macOS program"),
    (b"\xca\xfe\xba\xbe", "Java class or macOS program"),
    (b"\0asm", "WebAssembly module"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"wOF2", "web font"),
    (b"OggS", "Ogg media"),
    (b"fLaC", "FLAC audio"),
];

/// Whether content is no text: text has no NUL byte. Only its beginning is looked at.
pub(super) fn is_binary(content: &[u8]) -> bool {
    memchr::memchr(0, content.get(..HEAD).unwrap_or(content)).is_some()
}

/// What it looks like, in a word or two.
pub(super) fn what(content: &[u8]) -> String {
    let container = match (content.get(..4), content.get(4..8), content.get(8..12)) {
        (Some(b"RIFF"), _, Some(b"WEBP")) => Some("WebP image"),
        (Some(b"RIFF"), _, Some(b"WAVE")) => Some("WAV audio"),
        (_, Some(b"ftyp"), _) => Some("MP4 media"),
        (_, _, _) => None,
    };
    let sign = || {
        SIGNS
            .iter()
            .find(|(sign, _)| content.starts_with(sign))
            .map(|(_, what)| *what)
    };
    container.or_else(sign).unwrap_or(UNKNOWN).to_owned()
}
