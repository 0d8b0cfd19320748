//! The two programs of a run, compiled once, where everybody can reach them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Where a run that acts for another user finds the programs.
pub(crate) const COMPILED: &str = "STOCKADE_DIFFERENTIAL_TOOLS";

#[derive(Debug)]
pub(crate) struct Tools {
    /// Performs operations; the command of every case.
    pub(crate) operate: PathBuf,
    /// The content of every file: a program that does nothing.
    pub(crate) nothing: Vec<u8>,
    /// The folder of both, unless somebody else keeps it.
    pub(crate) folder: PathBuf,
    _kept: Option<TempDir>,
}

impl Tools {
    pub(crate) fn ready() -> Self {
        let (folder, kept) = if let Some(folder) = std::env::var_os(COMPILED) {
            (PathBuf::from(folder), None)
        } else {
            let kept = tempfile::Builder::new().prefix("stockade-tools-").tempdir().unwrap();
            fs::set_permissions(kept.path(), fs::Permissions::from_mode(0o755)).unwrap();
            compile("operate", kept.path(), &["-O1"]);
            compile(
                "nothing",
                kept.path(),
                &["-Os", "-nostdlib", "-Wl,-z,noseparate-code,--build-id=none,-s"],
            );
            (kept.path().to_owned(), Some(kept))
        };
        let folder = fs::canonicalize(folder).unwrap();
        Self {
            operate: folder.join("operate"),
            nothing: fs::read(folder.join("nothing")).unwrap(),
            folder,
            _kept: kept,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "compiles what runs confined")]
fn compile(name: &str, folder: &Path, flags: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/helpers")
        .join(name)
        .with_extension("c");
    let status = std::process::Command::new("cc")
        .args(["-static", "-Wall", "-o"])
        .arg(folder.join(name))
        .args(flags)
        .arg(&source)
        .status()
        .unwrap();
    assert!(status.success(), "cc failed for {}", source.display());
}
