//! What a server said of its tools when it was first asked, kept per command in the user's state directory.
//!
//! A tool whose definition is another now may mean something else now, so what was said of its name before does not
//! hold for it. What cannot be read, or not be kept, is never taken for unchanged.

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
const MOST_BYTES: u64 = 4 << 20;

/// How long the turn to change a record is waited for.
const TURN: Duration = Duration::from_millis(300);

/// How many names are kept of one server; each takes room for good.
const MOST_NAMES: usize = 4_096;

/// Whether a definition is what it was when it was first seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is.
    AsFirstSeen,
    /// It is not, or that cannot be told; why.
    Changed(String),
}

/// The record of one command.
#[derive(Debug)]
pub(super) struct Seen {
    place: PathBuf,
    command: Vec<String>,
    directory: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u32,
    /// For whoever reads the file; the file's name says which command it is about.
    command: Vec<String>,
    /// Where it starts, for the same reader.
    directory: String,
    tools: BTreeMap<String, String>,
}

impl Seen {
    /// The record of this command, started in this directory.
    pub(super) fn of(state: &Path, words: &[OsString], directory: &Path) -> Self {
        let mut hasher = Sha256::new();
        for part in [directory.as_os_str()]
            .into_iter()
            .chain(words.iter().map(AsRef::as_ref))
        {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let name = hex(&hasher.finalize()[..16]);
        Self {
            place: state.join("upstream").join(format!("{name}.json")),
            command: words.iter().map(|word| escape(word.as_bytes())).collect(),
            directory: display(directory),
        }
    }

    /// Where it is kept, for people.
    pub(super) fn place(&self) -> String {
        display(&self.place)
    }

    /// How each definition stands to what was first seen of its name. What is seen for the first time is kept.
    pub(super) fn compare(&self, definitions: &[Definition]) -> BTreeMap<String, Standing> {
        let compared = self.turn().and_then(|_turn| {
            let mut record = self.read()?;
            let fresh: Vec<&Definition> = definitions
                .iter()
                .filter(|definition| !record.tools.contains_key(&definition.name))
                .collect();
            if record.tools.len() + fresh.len() > MOST_NAMES {
                return Err(io::Error::other("it has had too many tools"));
            }
            if !fresh.is_empty() {
                for definition in fresh {
                    record
                        .tools
                        .insert(definition.name.clone(), definition.digest.0.clone());
                }
                state_files::replace(&self.place, &serde_json::to_vec_pretty(&record)?)?;
            }
            Ok(record)
        });
        let standing = |definition: &Definition| match &compared {
            Ok(record) if record.tools.get(&definition.name) == Some(&definition.digest.0) => Standing::AsFirstSeen,
            Ok(_) => Standing::Changed("its definition is not what it was when it was first seen".to_owned()),
            Err(error) => Standing::Changed(format!(
                "whether its definition is what it was when it was first seen cannot be told ({})",
                escape(error.to_string().as_bytes())
            )),
        };
        definitions
            .iter()
            .map(|definition| (definition.name.clone(), standing(definition)))
            .collect()
    }

    fn read(&self) -> io::Result<Record> {
        let bytes = match state_files::read(&self.place, MOST_BYTES) {
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

    /// The turn to change the record, so that two servers of one command do not both come first.
    fn turn(&self) -> io::Result<File> {
        let dir = self.place.parent().ok_or(io::ErrorKind::InvalidInput)?;
        state_files::create_directory(dir)?;
        let file = state_files::open_lock(&dir.join("lock"))?;
        // Whoever can read the directory can hold it: that must not hold up whoever is served.
        let until = Instant::now() + TURN;
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

/// The fingerprint that a question about a tool is bound to.
pub(super) fn bound_to(definition: &Definition, standing: &Standing) -> Vec<u8> {
    let Fingerprint(digest) = &definition.digest;
    let mark: &[u8] = match standing {
        Standing::AsFirstSeen => b"as first seen",
        Standing::Changed(_) => b"changed",
    };
    [digest.as_bytes(), mark].concat()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::super::definition::take;
    use super::*;

    fn definitions(description: &str, names: &[&str]) -> Vec<Definition> {
        let tools = names.iter().map(|name| {
            serde_json::from_value(json!({"name": name, "description": description, "inputSchema": {}})).unwrap()
        });
        take(tools.collect(), &[]).0
    }

    fn seen(state: &Path, command: &str) -> Seen {
        Seen::of(state, &[command.into()], Path::new("/w"))
    }

    fn changed(standing: &BTreeMap<String, Standing>) -> Vec<&str> {
        let changed = standing
            .iter()
            .filter(|(_, standing)| **standing != Standing::AsFirstSeen);
        changed.map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn a_change_is_noticed_in_the_same_run_and_in_the_next() {
        let state = tempfile::tempdir().unwrap();
        let first = seen(state.path(), "server");
        assert_eq!(changed(&first.compare(&definitions("d", &["a", "b"]))), [] as [&str; 0]);
        for again in [first, seen(state.path(), "server")] {
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
            changed(&seen(state.path(), "a").compare(&definitions("d", &["t"]))),
            [] as [&str; 0]
        );
        assert_eq!(
            changed(&seen(state.path(), "b").compare(&definitions("e", &["t"]))),
            [] as [&str; 0]
        );
        let elsewhere = Seen::of(state.path(), &["a".into()], Path::new("/v"));
        assert_eq!(changed(&elsewhere.compare(&definitions("f", &["t"]))), [] as [&str; 0]);
        let split = Seen::of(state.path(), &["a b".into()], Path::new("/w"));
        let joined = Seen::of(state.path(), &["a".into(), "b".into()], Path::new("/w"));
        assert_ne!(split.place(), joined.place());
    }

    #[test]
    fn what_cannot_be_read_or_kept_is_never_unchanged() {
        let state = tempfile::tempdir().unwrap();
        let record = seen(state.path(), "server");
        let (tools, nothing) = (definitions("d", &["a"]), [] as [&str; 0]);
        assert_eq!(changed(&record.compare(&tools)), nothing);
        let good = fs::read(&record.place).unwrap();
        for bad in [
            &b""[..],
            b"{}",
            b"null",
            &good[..good.len() - 2],
            b"{\"version\": 2, \"command\": [], \"directory\": \"\", \"tools\": {}}",
        ] {
            fs::write(&record.place, bad).unwrap();
            assert_eq!(changed(&record.compare(&tools)), ["a"], "{}", bad.escape_ascii());
            assert_eq!(fs::read(&record.place).unwrap(), bad, "it was replaced");
        }
        fs::write(&record.place, &good).unwrap();
        assert_eq!(changed(&record.compare(&tools)), nothing);
        fs::set_permissions(&record.place, fs::Permissions::from_mode(0o620)).unwrap();
        assert_eq!(changed(&record.compare(&tools)), ["a"]);
        fs::remove_file(&record.place).unwrap();
        std::os::unix::fs::symlink("/nowhere", &record.place).unwrap();
        assert_eq!(changed(&record.compare(&tools)), ["a"]);
        fs::remove_file(&record.place).unwrap();
        fs::set_permissions(record.place.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(changed(&record.compare(&tools)), ["a"]);
    }
}
