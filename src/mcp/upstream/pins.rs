//! Pins: the digests of a server's tool definitions as first seen, stored per command in the user's state directory.
//!
//! A tool whose definition changed may do something else, so rules and approvals for its name no longer apply. A file that cannot be
//! read or written never counts as unchanged.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::definition::{Definition, Fingerprint};
use crate::config::state_files;
use crate::policy::hex::hex;
use crate::policy::path::{display, escape};

const VERSION: u32 = 1;
const MAX_BYTES: u64 = 4 << 20;

/// How long to wait for the lock.
const LOCK_TIMEOUT: Duration = Duration::from_millis(300);

/// The most names of one server: names are never removed.
const MAX_NAMES: usize = 4_096;

/// Whether a definition is as first seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PinStatus {
    Unchanged,
    /// It is not, or that is unknown; why.
    Changed(String),
}

/// The pins of one command.
#[derive(Debug)]
pub(super) struct Pins {
    path: PathBuf,
    command: Vec<String>,
    directory: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u32,
    /// For people; the name of the file identifies the command.
    command: Vec<String>,
    /// Its directory, for people.
    directory: String,
    tools: BTreeMap<String, String>,
}

impl Pins {
    /// The pins of this command, started in this directory.
    pub(super) fn of(state: &Path, argv: &[OsString], directory: &Path) -> Self {
        let mut hasher = Sha256::new();
        for part in [directory.as_os_str()]
            .into_iter()
            .chain(argv.iter().map(AsRef::as_ref))
        {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let name = hex(&hasher.finalize()[..16]);
        Self {
            path: state.join("upstream").join(format!("{name}.json")),
            command: argv.iter().map(|argument| escape(argument.as_bytes())).collect(),
            directory: display(directory),
        }
    }

    /// The path of the file, for people.
    pub(super) fn path(&self) -> String {
        display(&self.path)
    }

    /// Compares definitions with their pins, and pins new ones.
    pub(super) fn compare(&self, definitions: &[Definition]) -> BTreeMap<String, PinStatus> {
        let record = self.lock().and_then(|_turn| {
            let mut record = self.read()?;
            let unknown: Vec<&Definition> = definitions
                .iter()
                .filter(|definition| !record.tools.contains_key(&definition.name))
                .collect();
            if record.tools.len() + unknown.len() > MAX_NAMES {
                return Err(io::Error::other("it has had too many tools"));
            }
            if !unknown.is_empty() {
                for definition in unknown {
                    record
                        .tools
                        .insert(definition.name.clone(), definition.digest.0.clone());
                }
                state_files::replace(&self.path, &serde_json::to_vec_pretty(&record)?)?;
            }
            Ok(record)
        });
        let pin = |definition: &Definition| match &record {
            Ok(record) if record.tools.get(&definition.name) == Some(&definition.digest.0) => PinStatus::Unchanged,
            Ok(_) => PinStatus::Changed("its definition is not what it was when it was first seen".to_owned()),
            Err(error) => PinStatus::Changed(format!(
                "whether its definition is what it was when it was first seen cannot be told ({})",
                escape(error.to_string().as_bytes())
            )),
        };
        definitions
            .iter()
            .map(|definition| (definition.name.clone(), pin(definition)))
            .collect()
    }

    fn read(&self) -> io::Result<Record> {
        let bytes = match state_files::read(&self.path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Record {
                    version: VERSION,
                    command: self.command.clone(),
                    directory: self.directory.clone(),
                    tools: BTreeMap::new(),
                });
            }
            Err(error) => return Err(error),
        };
        let record: Record = serde_json::from_slice(&bytes)?;
        if record.version == VERSION {
            Ok(record)
        } else {
            Err(io::Error::other(format!("it is of version {}", record.version)))
        }
    }

    /// Locks the directory, so that two servers of one command do not both pin.
    fn lock(&self) -> io::Result<File> {
        let dir = self.path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        state_files::create_directory(dir)?;
        let file = state_files::open_lock(&dir.join("lock"))?;
        // Any process that can read the directory can hold the lock, so the wait is bounded.
        let until = Instant::now() + LOCK_TIMEOUT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::TimedOut.into()),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

/// The bytes of a definition that an approval is bound to.
pub(super) fn fingerprint(definition: &Definition, pin: &PinStatus) -> Vec<u8> {
    let Fingerprint(digest) = &definition.digest;
    let mark: &[u8] = match pin {
        PinStatus::Unchanged => b"as first seen",
        PinStatus::Changed(_) => b"changed",
    };
    [digest.as_bytes(), mark].concat()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::super::definition::select;
    use super::*;

    fn definitions(description: &str, names: &[&str]) -> Vec<Definition> {
        let tools = names.iter().map(|name| {
            serde_json::from_value(json!({"name": name, "description": description, "inputSchema": {}})).unwrap()
        });
        select(tools.collect(), &[]).0
    }

    fn pins(state: &Path, command: &str) -> Pins {
        Pins::of(state, &[command.into()], Path::new("/w"))
    }

    fn changed(pin: &BTreeMap<String, PinStatus>) -> Vec<&str> {
        let changed = pin.iter().filter(|(_, pin)| **pin != PinStatus::Unchanged);
        changed.map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn a_change_is_noticed_in_the_same_run_and_in_the_next() {
        let state = tempfile::tempdir().unwrap();
        let first = pins(state.path(), "server");
        assert_eq!(changed(&first.compare(&definitions("d", &["a", "b"]))), [] as [&str; 0]);
        for again in [first, pins(state.path(), "server")] {
            assert_eq!(changed(&again.compare(&definitions("d", &["a", "b"]))), [] as [&str; 0]);
            assert_eq!(changed(&again.compare(&definitions("other", &["a", "b"]))), ["a", "b"]);
            // What was first seen stays what it was.
            assert_eq!(changed(&again.compare(&definitions("other", &["a"]))), ["a"]);
            // Gone, and back as another.
            assert_eq!(changed(&again.compare(&[])), [] as [&str; 0]);
            assert_eq!(changed(&again.compare(&definitions("other", &["b"]))), ["b"]);
        }
    }

    #[test]
    fn another_command_and_another_directory_have_records_of_their_own() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(
            changed(&pins(state.path(), "a").compare(&definitions("d", &["t"]))),
            [] as [&str; 0]
        );
        assert_eq!(
            changed(&pins(state.path(), "b").compare(&definitions("e", &["t"]))),
            [] as [&str; 0]
        );
        let elsewhere = Pins::of(state.path(), &["a".into()], Path::new("/v"));
        assert_eq!(changed(&elsewhere.compare(&definitions("f", &["t"]))), [] as [&str; 0]);
        let split = Pins::of(state.path(), &["a b".into()], Path::new("/w"));
        let joined = Pins::of(state.path(), &["a".into(), "b".into()], Path::new("/w"));
        assert_ne!(split.path(), joined.path());
    }

    #[test]
    fn a_record_that_cannot_be_read_or_written_is_never_unchanged() {
        let state = tempfile::tempdir().unwrap();
        let record = pins(state.path(), "server");
        let (tools, nothing) = (definitions("d", &["a"]), [] as [&str; 0]);
        assert_eq!(changed(&record.compare(&tools)), nothing);
        let good = fs::read(&record.path).unwrap();
        for bad in [
            &b""[..],
            b"{}",
            b"null",
            &good[..good.len() - 2],
            b"{\"version\": 2, \"command\": [], \"directory\": \"\", \"tools\": {}}",
        ] {
            fs::write(&record.path, bad).unwrap();
            assert_eq!(changed(&record.compare(&tools)), ["a"], "{}", bad.escape_ascii());
            assert_eq!(fs::read(&record.path).unwrap(), bad, "it was replaced");
        }
        fs::write(&record.path, &good).unwrap();
        assert_eq!(changed(&record.compare(&tools)), nothing);
        fs::set_permissions(&record.path, fs::Permissions::from_mode(0o620)).unwrap();
        assert_eq!(changed(&record.compare(&tools)), ["a"]);
        fs::remove_file(&record.path).unwrap();
        std::os::unix::fs::symlink("/nowhere", &record.path).unwrap();
        assert_eq!(changed(&record.compare(&tools)), ["a"]);
        fs::remove_file(&record.path).unwrap();
        fs::set_permissions(record.path.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(changed(&record.compare(&tools)), ["a"]);
    }
}
