//! Toolchain directories that environment variables name.
//!
//! Presets follow variables such as `$JAVA_HOME` to installations that were moved. A variable must not widen
//! the sandbox: its directory is granted only if it contains the toolchain, and does not overlap with
//! private or system directories.

use super::context::Context;
use super::path_cache::PathCache;
use super::state_files::state_dir;
use super::system_paths::pseudo_file_system;
use crate::policy::AbsPath;

/// The variables that presets may follow, with the files that identify the toolchain: one of them is enough.
const MARKERS: &[(&str, &[&str])] = &[
    ("ASDF_DATA_DIR", &["installs"]),
    (
        "CARGO_HOME",
        &["bin/cargo", "registry/index", "registry/cache", ".package-cache"],
    ),
    ("GOENV_ROOT", &["versions", "bin/goenv"]),
    ("GOMODCACHE", &["cache/download"]),
    ("GOPATH", &["pkg/mod", "pkg/sumdb"]),
    ("GOROOT", &["bin/go"]),
    ("JAVA_HOME", &["bin/java", "jre/bin/java"]),
    ("JENV_ROOT", &["versions", "bin/jenv"]),
    ("MISE_DATA_DIR", &["installs"]),
    ("NODENV_ROOT", &["versions", "bin/nodenv"]),
    ("NVM_DIR", &["nvm.sh", "versions/node"]),
    ("N_PREFIX", &["bin/node", "n/versions"]),
    ("PYENV_ROOT", &["versions", "bin/pyenv", "libexec/pyenv"]),
    ("RBENV_ROOT", &["versions", "bin/rbenv"]),
    ("RUSTUP_HOME", &["toolchains"]),
    ("UV_CACHE_DIR", &["archive-v0", "CACHEDIR.TAG"]),
    ("VOLTA_HOME", &["tools/image", "bin/volta"]),
];

/// System directories without toolchains.
const MACHINE: &[&str] = &["/etc", "/boot", "/proc", "/sys", "/dev", "/run", "/var"];

/// The hidden directories of a home that hold toolchains; every other one counts as private.
const TOOLCHAIN_DIRS: &[&str] = &[
    ".asdf",
    ".cache/uv",
    ".cargo",
    ".gradle/jdks",
    ".go",
    ".goenv",
    ".gvm",
    ".jabba",
    ".jdks",
    ".jenv",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/rtx/installs",
    ".local/share/uv/python",
    ".local/share/pyenv",
    ".local/share/rustup",
    ".local/share/cargo",
    ".local/share/go",
    ".local/share/nvm",
    ".local/share/volta",
    ".n",
    ".nodenv",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman/candidates",
    ".volta",
];

/// Why the directory of a variable is not granted; `None` if it is a toolchain.
pub(crate) fn objection(name: &str, start: &AbsPath, context: &Context, cache: &PathCache) -> Option<String> {
    let start = cache.real(start);
    let markers = MARKERS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, markers)| *markers);
    let Some(markers) = markers else {
        return Some(format!("{start} is not known to be a toolchain"));
    };
    if !markers.iter().any(|marker| start.as_path().join(marker).exists()) {
        return Some(format!("{start} holds no {}", markers.join(", no ")));
    }
    conflict(&start, context, cache)
}

/// The private or system directory that `path` overlaps with, as an objection.
pub(crate) fn conflict(path: &AbsPath, context: &Context, cache: &PathCache) -> Option<String> {
    let overlaps = |reserved: &AbsPath| cache.holds(path, reserved) || cache.holds(reserved, path);
    if let Some(kind) = pseudo_file_system(path) {
        return Some(format!("{path} is on a file system of the kernel's ({kind})"));
    }
    let machine = MACHINE
        .iter()
        .filter_map(|path| AbsPath::new(path).ok())
        .map(|path| cache.real(&path));
    if let Some(reserved) = machine.into_iter().find(overlaps) {
        return Some(format!("{path} holds or lies in {reserved}"));
    }
    let root = AbsPath::new("/root").ok();
    let homes = [context.home.clone(), context.path_variable("HOME"), root];
    for home in homes.iter().flatten().map(|home| cache.real(home)) {
        if cache.holds(path, &home) {
            return Some(format!("{path} holds the home directory {home}"));
        }
        if let Some(folder) = hidden(path, &home, cache) {
            return Some(format!("{path} lies in {folder}, which holds more than toolchains"));
        }
    }
    let state = state_dir(context).map(|state| cache.real(&state))?;
    overlaps(&state).then(|| format!("{path} holds or lies in stockade's own state {state}"))
}

/// The hidden directory of `home` that `path` lies in, unless it holds toolchains.
fn hidden(path: &AbsPath, home: &AbsPath, cache: &PathCache) -> Option<AbsPath> {
    let mut known = TOOLCHAIN_DIRS
        .iter()
        .filter_map(|known| AbsPath::new(home.as_path().join(known)).ok());
    if known.any(|known| cache.holds(&cache.real(&known), path)) {
        return None;
    }
    if let Ok(below) = path.as_path().strip_prefix(home.as_path()) {
        let first = below.components().next()?;
        let folder = home.child(first.as_os_str())?;
        return folder
            .name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
            .then_some(folder);
    }
    // The same directory under another path.
    let entries = std::fs::read_dir(home).ok()?;
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"."))
        .filter_map(|entry| home.child(entry.file_name()))
        .find(|folder| cache.holds(folder, path))
}
