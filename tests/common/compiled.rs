//! The helpers that are written in C.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The program of `tests/helpers`, compiled.
pub(crate) fn compiled(name: &str) -> PathBuf {
    compiled_with(name, &["-O1"])
}

/// The same, without shared libraries: it runs in a world that has none.
pub(crate) fn compiled_static(name: &str) -> PathBuf {
    compiled_with(name, &["-O1", "-static"])
}

/// Tests are processes of their own and run at once. One that finds the program up to date uses it as it is.
fn compiled_with(name: &str, flags: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/helpers/{name}.c"));
    let binary = folder.join(format!("{name}{}", flags.concat()));
    if changed(&binary).is_some_and(|compiled| Some(compiled) > changed(&source)) {
        return binary;
    }
    // Made beside its place and moved there: another test may be copying it.
    let fresh = folder.join(format!("{name}-{}", std::process::id()));
    #[expect(clippy::disallowed_methods, reason = "the tests compile their helpers")]
    let status = Command::new("cc")
        .args(["-Wall", "-o"])
        .arg(&fresh)
        .args(flags)
        .arg(source)
        .status()
        .unwrap();
    assert!(status.success(), "cc could not compile {name}");
    fs::rename(fresh, &binary).unwrap();
    binary
}

fn changed(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|file| file.modified()).ok()
}
