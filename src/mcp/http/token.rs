//! The token: who knows it is the agent.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use http::HeaderMap;
use http::header::AUTHORIZATION;
use nix::libc;
use nix::unistd::geteuid;

use super::error::HttpError;
use crate::approval::Token;
use crate::config::walk;
use crate::policy::AbsPath;

/// The shortest token that is not guessed.
const SHORTEST: usize = 16;
/// The longest that fits into a header with room to spare.
const LONGEST: usize = 1024;

/// The token of a server.
#[derive(Debug, Clone)]
pub struct HttpToken {
    pub(super) token: Token,
    pub(super) from: TokenFrom,
}

/// Where it is from: what a person must be shown differs.
#[derive(Debug, Clone)]
pub(super) enum TokenFrom {
    /// Made at start, and known to nobody yet.
    Start,
    /// A file that the user has.
    File(PathBuf),
}

impl HttpToken {
    /// One that is made now, for this run.
    pub fn made() -> Result<Self, HttpError> {
        let token = Token::made().map_err(HttpError::Random)?;
        Ok(Self {
            token,
            from: TokenFrom::Start,
        })
    }

    /// The one in a file of the user's own that nobody else can read. `reached` says why commands could get at a path,
    /// if they could.
    pub fn read(file: &Path, reached: impl Fn(&AbsPath) -> Option<String>) -> Result<Self, HttpError> {
        let refused = |why: String| HttpError::TokenFile {
            file: file.to_owned(),
            why,
        };
        let words = words(file).map_err(refused)?;
        let lies = std::path::absolute(file).map_err(|error| refused(error.to_string()))?;
        let lies = walk(&lies).map_err(|error| refused(error.to_string()))?.path;
        if let Some(why) = reached(&lies) {
            return Err(refused(format!("it is in reach of commands: {why}")));
        }
        Ok(Self {
            token: Token::of(words),
            from: TokenFrom::File(file.to_owned()),
        })
    }

    /// Whether the headers say it.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let said = headers.get(AUTHORIZATION).and_then(|said| said.to_str().ok());
        said.and_then(|said| said.split_once(' '))
            .is_some_and(|(scheme, words)| scheme.eq_ignore_ascii_case("bearer") && self.token.is(words.trim()))
    }
}

fn words(file: &Path) -> Result<String, String> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(file)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => "it is a link: name the file itself".to_owned(),
            Some(_) | None => error.to_string(),
        })?;
    let found = opened.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is no regular file".to_owned());
    }
    if found.uid() != geteuid().as_raw() {
        return Err(format!("it belongs to another user (uid {})", found.uid()));
    }
    if found.mode() & 0o077 != 0 {
        return Err(format!(
            "others can get at it (its mode is {:03o}): `chmod 600` it",
            found.mode() & 0o777
        ));
    }
    let mut text = String::new();
    let most = u64::try_from(LONGEST).unwrap_or(u64::MAX).saturating_add(2);
    // What it holds is not told, whatever is wrong with it.
    opened
        .take(most)
        .read_to_string(&mut text)
        .map_err(|_| "it cannot be read as text".to_owned())?;
    let token = text.trim();
    let is_sayable = token
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte));
    if !is_sayable || !(SHORTEST..=LONGEST).contains(&token.len()) {
        return Err(format!(
            "it holds no token: {SHORTEST} to {LONGEST} letters, digits and `-._~+/=` on one line; `openssl rand -hex 32` makes one"
        ));
    }
    Ok(token.to_owned())
}
