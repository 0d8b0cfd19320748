//! The user's git name and e-mail, carried into the private HOME.
//!
//! Only `[user] name` and `email` of the user's own git config are read, by a recogniser that takes
//! the plain form and nothing else; whatever it does not understand is left out, and nothing is run.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::config::Context;
use crate::confine::protect::Person;
use crate::policy::AbsPath;

/// Longer than any git config a person writes.
const LONGEST: u64 = 1 << 20;

/// Who git says the user is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GitIdentity {
    name: Option<String>,
    email: Option<String>,
}

/// Whose git may run or obey what a command leaves: the user of this context.
pub fn person(context: &Context) -> Person {
    let homes = [context.home.clone(), context.path_variable("HOME")];
    let homes = homes.iter().flatten().map(AbsPath::as_path);
    Person::of(homes, |name| {
        context.path_variable(name).map(|path| path.as_path().to_owned())
    })
}

impl GitIdentity {
    /// The identity in the user's own git config, which lies in `home` or below its `.config`.
    pub fn of_user(home: &Path) -> Self {
        let read = |path: PathBuf| small_file(&path).map(|text| Self::parse(&text)).unwrap_or_default();
        let (classic, xdg) = (read(home.join(".gitconfig")), read(home.join(".config/git/config")));
        Self {
            name: classic.name.or(xdg.name),
            email: classic.email.or(xdg.email),
        }
    }

    fn parse(text: &str) -> Self {
        let mut identity = Self::default();
        let mut in_user = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                in_user = line.eq_ignore_ascii_case("[user]");
            } else if in_user && let Some((key, value)) = line.split_once('=') {
                let value = plain(value.trim());
                match key.trim().to_ascii_lowercase().as_str() {
                    "name" => identity.name = value,
                    "email" => identity.email = value,
                    _ => {}
                }
            }
        }
        identity
    }

    /// Writes a `.gitconfig` with the identity into a private HOME that has none.
    pub fn write_into(&self, home: &Path) -> io::Result<()> {
        let lines: String = [("name", &self.name), ("email", &self.email)]
            .into_iter()
            .filter_map(|(key, value)| value.as_ref().map(|value| format!("\t{key} = \"{value}\"\n")))
            .collect();
        if lines.is_empty() {
            return Ok(());
        }
        let path = home.join(OsStr::new(".gitconfig"));
        match fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
        {
            Ok(mut file) => file.write_all(format!("[user]\n{lines}").as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The text of a regular file of at most [`LONGEST`] bytes; never waits for a FIFO.
fn small_file(path: &Path) -> Option<String> {
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path)
        .ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// A value without anything that git would read as more than text.
fn plain(value: &str) -> Option<String> {
    let value = value
        .strip_prefix('"')
        .and_then(|v| v.strip_suffix('"'))
        .unwrap_or(value);
    let plain = !value.is_empty() && !value.contains(['"', '\\', '#', ';']) && !value.chars().any(char::is_control);
    plain.then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_email_are_carried_over() {
        let identity =
            GitIdentity::parse("[core]\n\tname = x\n[user]\n\tname = Ann Example\n\temail = \"ann@example.org\"\n");
        let home = tempfile::tempdir().unwrap();
        identity.write_into(home.path()).unwrap();
        let text = fs::read_to_string(home.path().join(".gitconfig")).unwrap();
        assert_eq!(
            text,
            "[user]\n\tname = \"Ann Example\"\n\temail = \"ann@example.org\"\n"
        );
    }

    #[test]
    fn nothing_but_plain_text_is_carried_over() {
        let identity =
            GitIdentity::parse("[user]\n\tname = a\\\"\\n[core]\n\temail = x ; y\n[core]\n\tsshCommand = evil\n");
        assert_eq!(identity, GitIdentity::default());
    }
}
