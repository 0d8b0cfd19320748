//! Grants and denies as they are written.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::DocumentError;
use crate::config::StoredPath;
use crate::policy::{AbsPath, Deny, Ending, Grant, Origin, Pattern, Right, Rights, Scope, Suffix, SuffixSet, Target};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenGrant {
    path: StoredPath,
    scope: WrittenScope,
    rights: BTreeSet<WrittenRight>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    suffixes: Option<BTreeSet<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_file_bytes: Option<u64>,
    origin: WrittenOrigin,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenDeny {
    target: WrittenTarget,
    rights: BTreeSet<WrittenRight>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    except: Option<BTreeSet<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    beyond: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    ends: BTreeSet<WrittenEnding>,
    origin: WrittenOrigin,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum WrittenEnding {
    Tree(StoredPath),
    File(StoredPath),
}

impl WrittenEnding {
    fn of(end: &Ending) -> Self {
        match end {
            Ending::Tree(path) => Self::Tree(stored(path)),
            Ending::File(path) => Self::File(stored(path)),
        }
    }

    fn ending(&self) -> Result<Ending, DocumentError> {
        match self {
            Self::Tree(path) => absolute(path).map(Ending::Tree),
            Self::File(path) => absolute(path).map(Ending::File),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum WrittenTarget {
    Path(StoredPath),
    Name { below: StoredPath, name: StoredPath },
    Suffix { below: StoredPath, suffix: StoredPath },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum WrittenOrigin {
    File {
        file: StoredPath,
        line: u64,
    },
    Preset {
        name: String,
        line: u64,
    },
    /// A flag, or Stockade itself.
    Other(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WrittenScope {
    Tree,
    File,
    Names,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WrittenRight {
    Read,
    Write,
    Execute,
}

pub(super) fn stored(name: impl AsRef<Path>) -> StoredPath {
    StoredPath::new(name.as_ref())
}

fn absolute(path: &StoredPath) -> Result<AbsPath, DocumentError> {
    let path = path.to_path();
    let normal = AbsPath::new(&path).map_err(|error| DocumentError::Value(error.to_string()))?;
    if normal.as_path().as_os_str() == path.as_os_str() {
        Ok(normal)
    } else {
        Err(DocumentError::Value(format!(
            "{normal} is not written in its normal way"
        )))
    }
}

pub(super) fn name(text: &StoredPath) -> OsString {
    text.to_path().into_os_string()
}

impl WrittenGrant {
    pub(super) fn of(grant: &Grant) -> Self {
        Self {
            path: stored(&grant.path),
            scope: match grant.scope {
                Scope::Tree => WrittenScope::Tree,
                Scope::File => WrittenScope::File,
                Scope::Names => WrittenScope::Names,
            },
            rights: write_rights(grant.rights),
            suffixes: grant.suffixes.as_ref().map(write_suffixes),
            max_file_bytes: grant.max_file_bytes,
            origin: WrittenOrigin::of(&grant.origin),
        }
    }

    pub(super) fn grant(self) -> Result<Grant, DocumentError> {
        Ok(Grant {
            path: absolute(&self.path)?,
            rights: read_rights(&self.rights),
            scope: match self.scope {
                WrittenScope::Tree => Scope::Tree,
                WrittenScope::File => Scope::File,
                WrittenScope::Names => Scope::Names,
            },
            suffixes: self.suffixes.as_ref().map(read_suffixes).transpose()?,
            max_file_bytes: self.max_file_bytes,
            origin: self.origin.origin(),
        })
    }
}

impl WrittenDeny {
    pub(super) fn of(deny: &Deny) -> Self {
        let target = match &deny.target {
            Target::Path(path) => WrittenTarget::Path(stored(path)),
            Target::Pattern { root, pattern } => match pattern {
                Pattern::Name(name) => WrittenTarget::Name {
                    below: stored(root),
                    name: stored(name),
                },
                Pattern::Suffix(suffix) => WrittenTarget::Suffix {
                    below: stored(root),
                    suffix: stored(suffix),
                },
            },
        };
        Self {
            target,
            rights: write_rights(deny.rights),
            except: deny.except.as_ref().map(write_suffixes),
            beyond: deny.beyond,
            ends: deny.ends.iter().map(WrittenEnding::of).collect(),
            origin: WrittenOrigin::of(&deny.origin),
        }
    }

    pub(super) fn deny(self) -> Result<Deny, DocumentError> {
        let target = match self.target {
            WrittenTarget::Path(path) => Target::Path(absolute(&path)?),
            WrittenTarget::Name { below, name: text } => Target::Pattern {
                root: absolute(&below)?,
                pattern: Pattern::Name(name(&text)),
            },
            WrittenTarget::Suffix { below, suffix } => Target::Pattern {
                root: absolute(&below)?,
                pattern: Pattern::Suffix(name(&suffix)),
            },
        };
        Ok(Deny {
            target,
            rights: read_rights(&self.rights),
            except: self.except.as_ref().map(read_suffixes).transpose()?,
            beyond: self.beyond,
            ends: self.ends.iter().map(WrittenEnding::ending).collect::<Result<_, _>>()?,
            origin: self.origin.origin(),
        })
    }
}

impl WrittenOrigin {
    pub(super) fn of(origin: &Origin) -> Self {
        match origin {
            Origin::File { file, line } => Self::File {
                file: StoredPath::new(file),
                line: *line,
            },
            Origin::Preset { name, line } => Self::Preset {
                name: name.to_string(),
                line: *line,
            },
            Origin::Flag(_) | Origin::Builtin(_) => Self::Other(origin.to_string()),
        }
    }

    pub(super) fn origin(self) -> Origin {
        match self {
            Self::File { file, line } => Origin::File {
                file: Arc::new(PathBuf::from(name(&file))),
                line,
            },
            Self::Preset { name, line } => Origin::Preset {
                name: name.into(),
                line,
            },
            Self::Other(text) => Origin::Flag(text.into()),
        }
    }
}

fn write_rights(rights: Rights) -> BTreeSet<WrittenRight> {
    let one = |right| match right {
        Right::Read => WrittenRight::Read,
        Right::Write => WrittenRight::Write,
        Right::Execute => WrittenRight::Execute,
    };
    rights.iter().map(one).collect()
}

fn read_rights(rights: &BTreeSet<WrittenRight>) -> Rights {
    let one = |right: &WrittenRight| match right {
        WrittenRight::Read => Rights::READ,
        WrittenRight::Write => Rights::WRITE,
        WrittenRight::Execute => Rights::EXECUTE,
    };
    rights.iter().map(one).fold(Rights::NONE, |all, right| all | right)
}

fn write_suffixes(suffixes: &SuffixSet) -> BTreeSet<String> {
    suffixes.iter().map(|suffix| suffix.as_str().to_owned()).collect()
}

fn read_suffixes(suffixes: &BTreeSet<String>) -> Result<SuffixSet, DocumentError> {
    let one = |text: &String| Suffix::new(text).map_err(|error| DocumentError::Value(error.to_string()));
    suffixes.iter().map(one).collect()
}
