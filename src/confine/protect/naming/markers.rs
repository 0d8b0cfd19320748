//! What makes a directory a git directory.

use std::fs::Metadata;
use std::io;
use std::path::Path;

use super::class::{Class, Context, Kind};

/// Which of the names by which git knows a git directory have been seen in a listing.
#[derive(Debug, Default, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "six names, each seen or not")]
pub(crate) struct Markers {
    head: bool,
    objects: bool,
    refs: bool,
    common: bool,
    config: bool,
    hooks: bool,
}

impl Markers {
    /// What a directory holds that is not listed. What cannot be looked at may be there: at worst hooks and
    /// settings stay as they are where git would run none.
    pub(crate) fn of_directory(directory: &Path) -> Self {
        let mut markers = Self::default();
        for name in ["HEAD", "objects", "commondir", "refs", "config", "hooks"] {
            let kind = match metadata_if_present(&directory.join(name)) {
                Ok(None) => None,
                Ok(Some(found)) if found.is_dir() => Some(Kind::Directory),
                Ok(Some(_)) | Err(_) => Some(Kind::Other),
            };
            if let Some(kind) = kind {
                markers.note(name.as_bytes(), kind);
            } else if !markers.head && !markers.objects && name != "HEAD" {
                // The others decide nothing, and most directories are not asked for more.
                break;
            }
        }
        markers
    }

    /// Notes an entry.
    pub(crate) fn note(&mut self, name: &[u8], kind: Kind) {
        match name {
            b"HEAD" => self.head = true,
            b"objects" => self.objects = true,
            b"refs" => self.refs = true,
            b"commondir" => self.common = true,
            b"config" => self.config |= kind != Kind::Directory,
            b"hooks" => self.hooks = true,
            _ => {}
        }
    }

    /// Whether git would accept the directory: it asks for a HEAD, and for objects and refs either here
    /// or where `commondir` points. There it asks for no HEAD, and obeys the config and hooks. Of kinds only that of the
    /// config is looked at: git accepts more than one.
    pub(crate) fn is_git_directory(self) -> bool {
        (self.head && self.common) || (self.objects && self.refs && (self.head || self.config || self.hooks))
    }

    /// The context the directory has, given what it holds. One that was a git directory before is one as long as it holds some of
    /// what makes one: the rest may come back.
    pub(crate) fn refine(self, context: Context, before: Option<Class>) -> Context {
        let is_remnant = before == Some(Class::Git) && (self.head || self.objects || self.refs);
        match context.class {
            // It takes three empty files to make any directory a git directory, and nothing keeps a person from working below it.
            Class::Plain | Class::Modules | Class::Data | Class::Refs if self.is_git_directory() || is_remnant => {
                Context {
                    class: Class::Git,
                    ..context
                }
            }
            Class::Plain
            | Class::Modules
            | Class::Git
            | Class::Worktrees
            | Class::Protected(_)
            | Class::Listed(_)
            | Class::Data
            | Class::Refs => context,
        }
    }
}

/// What there is under a name; that there is nothing must be certain.
pub fn metadata_if_present(entry: &Path) -> io::Result<Option<Metadata>> {
    if_present(std::fs::symlink_metadata(entry))
}

/// What was looked at, or that it is certainly not there.
pub(crate) fn if_present<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether git would take a directory for its own; one that cannot be looked into it may.
pub fn is_git_directory(directory: &Path) -> bool {
    Markers::of_directory(directory).is_git_directory()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_directory_is_known_by_what_git_asks_for() {
        let holds = |names: &[&str]| {
            let mut markers = Markers::default();
            for name in names {
                markers.note(name.as_bytes(), Kind::Other);
            }
            markers.is_git_directory()
        };
        assert!(holds(&["HEAD", "objects", "refs"]));
        assert!(holds(&["HEAD", "commondir"]));
        assert!(!holds(&["objects", "refs"]));
        // What a `commondir` elsewhere may name.
        assert!(holds(&["objects", "refs", "config"]));
        assert!(holds(&["objects", "refs", "hooks"]));
        assert!(!holds(&["HEAD", "refs"]));
    }
}
