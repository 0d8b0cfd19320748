//! What a run needs of the host: its two programs, compiled once where everybody can reach them, and a listener.

use std::fs;
use std::net::TcpListener;
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
    /// Somebody listens here on the host's loopback.
    pub(crate) port: u16,
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
            port: listen(),
            _kept: kept,
        }
    }
}

/// Takes every connection, until this program ends.
fn listen() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    port
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
