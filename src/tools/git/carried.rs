//! The settings that are carried, gathered as git reads them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::bounds::{Bounds, Found, Trust};
use super::files::GitFiles;
use super::list::{Kind, kind};
use crate::confine::protect::{GitSetting, git_settings, written};
use crate::policy::AbsPath;

/// How deep files include others; git goes as deep.
const DEEPEST: usize = 10;
/// Files that are read, and bytes of one and of all: more than people have.
const MOST_FILES: usize = 64;
const LONGEST: u64 = 1 << 20;
const MOST_BYTES: usize = 4 << 20;
const FOLDER: &str = ".config/git";

#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// The config.
    text: Vec<u8>,
    /// Files that it names, by their paths in the private HOME.
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Each setting that holds, with its last value.
    pub(super) last: BTreeMap<Vec<u8>, Vec<u8>>,
    /// What was not read though a setting names it, and why.
    pub(super) unread: Vec<(PathBuf, &'static str)>,
    bytes: usize,
    read: usize,
}

/// Writes the settings into a private HOME that has none.
pub(in crate::tools) fn carry(git: &GitFiles, bounds: Bounds<'_>, home: &Path) -> io::Result<()> {
    let gathered = Gathered::of(git, bounds, home, None);
    let config = (!gathered.text.is_empty()).then(|| (home.join(".gitconfig"), gathered.text));
    if !gathered.files.is_empty() {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(home.join(FOLDER))?;
    }
    for (path, content) in gathered.files.into_iter().chain(config) {
        let mut options = std::fs::OpenOptions::new();
        match options.write(true).create_new(true).mode(0o600).open(path) {
            Ok(mut file) => file.write_all(&content)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Gathered {
    /// The settings of these files for a private HOME, and which of them hold in a directory; without one, all may.
    pub(super) fn of(git: &GitFiles, bounds: Bounds<'_>, home: &Path, directory: Option<&Path>) -> Self {
        let mut gathered = Self::default();
        let mut text = Vec::new();
        let mut reader = Reader {
            git,
            bounds,
            home,
            directory,
            gathered: &mut gathered,
        };
        // What a command reads itself needs no word about what is left out of it.
        if let Some(path) = &git.system {
            let is_read = AbsPath::new(path).is_ok_and(|path| bounds.reads(&path));
            reader.config(path, 0, !is_read, &mut text);
        }
        for path in &git.own {
            reader.config(path, 0, true, &mut text);
        }
        for (folder, name) in git
            .folder
            .iter()
            .flat_map(|folder| ["ignore", "attributes"].map(|name| (folder, name)))
        {
            if let Trust::Whole(found) | Trust::Plain(found) =
                bounds.trust_content(&folder.join(name), git.home.as_deref())
                && let Some(content) = reader.content(&found)
            {
                reader.gathered.files.push((home.join(FOLDER).join(name), content));
            }
        }
        gathered.text = text;
        gathered
    }
}

#[derive(Clone, Copy)]
struct Source<'a> {
    /// As it was named: what it includes is found beside this.
    named: &'a Path,
    /// Where it lies: what its conditions name is found beside this.
    real: &'a Path,
    /// Whether what it names is looked at.
    leads: bool,
    depth: usize,
    /// Whether what is left out of it is missed.
    holds: bool,
}

struct Reader<'a> {
    git: &'a GitFiles,
    bounds: Bounds<'a>,
    home: &'a Path,
    directory: Option<&'a Path>,
    gathered: &'a mut Gathered,
}

impl Reader<'_> {
    /// Adds what is carried of a config to `text`; `holds` says whether what is left out of it is missed.
    fn config(&mut self, named: &Path, depth: usize, holds: bool, text: &mut Vec<u8>) {
        let (found, leads) = match self.bounds.trust(named) {
            Trust::Whole(found) => (found, true),
            Trust::Plain(found) => (found, false),
            Trust::Not(None) => return,
            Trust::Not(Some(why)) => {
                if depth > 0 && holds {
                    self.gathered.unread.push((named.to_owned(), why));
                }
                return;
            }
        };
        let settings = self.content(&found).as_deref().map(git_settings);
        let Some(Some(settings)) = settings else {
            if holds && settings.is_some() {
                self.gathered.unread.push((named.to_owned(), "is not understood"));
            }
            return;
        };
        let real = found.path.as_path();
        let source = Source {
            named,
            real,
            leads,
            depth,
            holds,
        };
        for setting in &settings {
            self.setting(setting, source, text);
        }
    }

    fn setting(&mut self, one: &GitSetting, source: Source<'_>, text: &mut Vec<u8>) {
        match kind(one) {
            Kind::Plain => write(one, &one.value, text),
            Kind::Path => {
                let resolved_path = self
                    .resolved_path(&one.value, source)
                    .filter(|_| one.value.starts_with(b"~"));
                write(
                    one,
                    resolved_path
                        .as_deref()
                        .map_or(&one.value, |resolved_path| resolved_path.as_os_str().as_bytes()),
                    text,
                );
            }
            Kind::File if is_relative(&one.value) => write(one, &one.value, text),
            Kind::File => self.file(one, source, text),
            Kind::Include | Kind::IncludeIf if source.depth >= DEEPEST => {}
            Kind::Include | Kind::IncludeIf if !source.leads => {
                if source.holds {
                    let why = "is included by a file that commands or another user may write";
                    self.gathered
                        .unread
                        .push((PathBuf::from(OsStr::from_bytes(&one.value)), why));
                }
            }
            Kind::Include => {
                if let Some(resolved_path) = self.resolved_path(&one.value, source) {
                    self.config(&resolved_path, source.depth + 1, source.holds, text);
                }
            }
            Kind::IncludeIf => self.included(one, source, text),
            Kind::LeftOut => {}
        }
        if source.holds {
            let parts = [Some(&one.section), one.subsection.as_ref(), Some(&one.key)];
            let parts: Vec<&[u8]> = parts.into_iter().flatten().map(Vec::as_slice).collect();
            self.gathered.last.insert(parts.join(&b'.'), one.value.clone());
        }
    }

    /// A file that is included on a condition: git judges that inside, for the repository that it finds there.
    fn included(&mut self, one: &GitSetting, source: Source<'_>, text: &mut Vec<u8>) {
        let condition = one.subsection.as_deref().unwrap_or_default();
        let Some((word, pattern)) = split(condition) else {
            return;
        };
        let (Some(resolved_path), Some(pattern)) = (
            self.resolved_path(&one.value, source),
            self.pattern(word, pattern, source),
        ) else {
            return;
        };
        let holds = source.holds && self.may_hold(word, &pattern);
        let mut inner = Vec::new();
        self.config(&resolved_path, source.depth + 1, holds, &mut inner);
        if !inner.is_empty()
            && let Some(path) = self.kept(inner)
        {
            let changed = GitSetting {
                subsection: Some([word, b":", &pattern].concat()),
                ..one.clone()
            };
            write(&changed, path.as_os_str().as_bytes(), text);
        }
    }

    /// A pattern as it stands where HOME is another one.
    fn pattern(&self, word: &[u8], pattern: &[u8], source: Source<'_>) -> Option<Vec<u8>> {
        let below = |folder: &Path, rest: &[u8]| [folder.as_os_str().as_bytes(), b"/", rest].concat();
        if !matches!(word, b"gitdir" | b"gitdir/i") {
            return Some(pattern.to_vec());
        }
        match (pattern.strip_prefix(b"~/"), pattern.strip_prefix(b"./")) {
            (Some(rest), _) => self.git.home.as_ref().map(|home| below(home, rest)),
            (None, Some(rest)) => source.real.parent().map(|folder| below(folder, rest)),
            (None, None) => Some(pattern.to_vec()),
        }
    }

    fn may_hold(&self, word: &[u8], pattern: &[u8]) -> bool {
        let Some(directory) = self.directory else { return true };
        let is_glob = pattern.iter().any(|b| b"*?[\\".contains(b)) || !pattern.starts_with(b"/");
        if word != b"gitdir" || is_glob {
            return true;
        }
        directory.starts_with(Path::new(OsStr::from_bytes(pattern)))
    }

    /// A file that a setting names: its content is carried.
    fn file(&mut self, one: &GitSetting, source: Source<'_>, text: &mut Vec<u8>) {
        if one.value.is_empty() {
            return write(one, &one.value, text);
        }
        let Some(resolved_path) = self.resolved_path(&one.value, source) else {
            return;
        };
        let trust = if !is_called_so(one, &resolved_path) {
            Trust::Not(Some(
                "is not called as such a file is (`ignore`, `attributes`, `template`, `mailmap` or `order` in its name)",
            ))
        } else if source.leads {
            self.bounds.trust_content(&resolved_path, self.git.home.as_deref())
        } else {
            Trust::Not(Some("is named by a file that commands or another user may write"))
        };
        match trust {
            Trust::Whole(found) | Trust::Plain(found) => {
                match self.content(&found).and_then(|content| self.kept(content)) {
                    Some(path) => write(one, path.as_os_str().as_bytes(), text),
                    None => self.gathered.unread.push((resolved_path, "cannot be read")),
                }
            }
            Trust::Not(None) => {}
            Trust::Not(Some(why)) => self.gathered.unread.push((resolved_path, why)),
        }
    }

    /// Where a path leads that stands in a config; `None` where that is not known.
    fn resolved_path(&self, value: &[u8], source: Source<'_>) -> Option<PathBuf> {
        let value = value.strip_prefix(b":(optional)").unwrap_or(value);
        if let Some(rest) = value.strip_prefix(b"~/") {
            return Some(self.git.home.as_ref()?.join(OsStr::from_bytes(rest)));
        }
        let is_known = !value.is_empty() && !value.starts_with(b"~") && !value.starts_with(b"%(");
        is_known.then(|| {
            source
                .named
                .parent()
                .unwrap_or(source.named)
                .join(OsStr::from_bytes(value))
        })
    }

    fn content(&mut self, found: &Found) -> Option<Vec<u8>> {
        let content = found.content(LONGEST)?;
        let (read, bytes) = (self.gathered.read + 1, self.gathered.bytes + content.len());
        if read > MOST_FILES || bytes > MOST_BYTES {
            return None;
        }
        (self.gathered.read, self.gathered.bytes) = (read, bytes);
        Some(content)
    }

    /// Stores a file for the private HOME and returns its path there.
    fn kept(&mut self, content: Vec<u8>) -> Option<PathBuf> {
        let number = self.gathered.files.len();
        let path = self.home.join(FOLDER).join(format!("of-user-{number}"));
        let is_room = number < MOST_FILES;
        is_room.then(|| {
            self.gathered.files.push((path.clone(), content));
            path
        })
    }
}

/// Whether the name of a file says that it is what the setting wants: a setting that a command has written somehow must not give
/// away the content of any other.
fn is_called_so(one: &GitSetting, resolved_path: &Path) -> bool {
    let words: &[&[u8]] = match one.key.to_ascii_lowercase().as_slice() {
        b"excludesfile" => &[b"ignore", b"exclude"],
        b"attributesfile" => &[b"attributes"],
        b"ignorerevsfile" => &[b"ignore"],
        b"file" => &[b"mailmap"],
        b"orderfile" => &[b"order"],
        _ => &[b"template", b"message"],
    };
    let name = resolved_path
        .file_name()
        .map(|name| name.as_bytes().to_ascii_lowercase())
        .unwrap_or_default();
    words
        .iter()
        .any(|word| name.windows(word.len()).any(|part| part == *word))
}

/// The word of a condition and its pattern, where git knows such a condition.
fn split(condition: &[u8]) -> Option<(&[u8], &[u8])> {
    let words: [&[u8]; 4] = [b"gitdir", b"gitdir/i", b"onbranch", b"hasconfig:remote.*.url"];
    let of = |word: &&[u8]| condition.strip_prefix(*word).and_then(|rest| rest.strip_prefix(b":"));
    words.iter().find_map(|word| of(word).map(|pattern| (*word, pattern)))
}

/// Whether git takes a path from where it works: there it leads inside as outside.
fn is_relative(value: &[u8]) -> bool {
    !value.is_empty()
        && !value.starts_with(b"/")
        && !value.starts_with(b"~")
        && !value.starts_with(b"%(")
        && !value.starts_with(b":(")
}

fn write(one: &GitSetting, value: &[u8], text: &mut Vec<u8>) {
    text.push(b'[');
    text.extend(&one.section);
    if let Some(subsection) = &one.subsection {
        text.extend(b" \"");
        for byte in subsection {
            text.extend(matches!(byte, b'"' | b'\\').then_some(b'\\'));
            text.push(*byte);
        }
        text.push(b'"');
    }
    text.extend(b"]\n\t");
    text.extend(&one.key);
    text.extend(b" = ");
    text.extend(written(value));
    text.push(b'\n');
}
