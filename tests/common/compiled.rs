//! The helpers that are written in C.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of `tests/helpers`, compiled.
pub(crate) fn compiled(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/helpers/{name}.c"));
    // Made beside its place and moved there: another test may be copying it.
    let fresh = folder.join(format!("{name}-{}", std::process::id()));
    #[expect(clippy::disallowed_methods, reason = "the tests compile their helpers")]
    let status = Command::new("cc")
        .arg("-O1")
        .arg("-o")
        .arg(&fresh)
        .arg(source)
        .status()
        .unwrap();
    assert!(status.success(), "cc could not compile {name}");
    let binary = folder.join(name);
    fs::rename(fresh, &binary).unwrap();
    binary
}
