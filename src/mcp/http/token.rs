//! The bearer token of the agent.

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

/// The shortest token; shorter ones could be guessed.
const MIN_LENGTH: usize = 16;
/// The longest token.
const MAX_LENGTH: usize = 1024;

/// The token of a server.
#[derive(Debug, Clone)]
pub struct HttpToken {
    pub(super) token: Token,
    pub(super) source: TokenSource,
}

/// The source of a token; only a generated one is shown.
#[derive(Debug, Clone)]
pub(super) enum TokenSource {
    /// Generated at the start.
    Generated,
    /// Read from this file.
    File(PathBuf),
}

impl HttpToken {
    /// Generates a token for this run.
    pub fn generate() -> Result<Self, HttpError> {
        let token = Token::generate().map_err(HttpError::Random)?;
        Ok(Self {
            token,
            source: TokenSource::Generated,
        })
    }

    /// Reads the token from a file that only the user can read. `reached` returns why commands could reach a path,
    /// if they could.
    pub fn read(file: &Path, reached: impl Fn(&AbsPath) -> Option<String>) -> Result<Self, HttpError> {
        let refused = |why: String| HttpError::TokenFile {
            file: file.to_owned(),
            why,
        };
        let token = read_token(file).map_err(refused)?;
        let real = std::path::absolute(file).map_err(|error| refused(error.to_string()))?;
        let real = walk(&real).map_err(|error| refused(error.to_string()))?.path;
        if let Some(why) = reached(&real) {
            return Err(refused(format!("it is in reach of commands: {why}")));
        }
        Ok(Self {
            token: Token::new(token),
            source: TokenSource::File(file.to_owned()),
        })
    }

    /// Whether the headers have the token.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let header = headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok());
        header
            .and_then(|header| header.split_once(' '))
            .is_some_and(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer") && self.token.matches(token.trim()))
    }
}

fn read_token(file: &Path) -> Result<String, String> {
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
    let most = u64::try_from(MAX_LENGTH).unwrap_or(u64::MAX).saturating_add(2);
    // No error shows the content.
    opened
        .take(most)
        .read_to_string(&mut text)
        .map_err(|_| "it cannot be read as text".to_owned())?;
    let token = text.trim();
    let is_valid = token
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte));
    if !is_valid || !(MIN_LENGTH..=MAX_LENGTH).contains(&token.len()) {
        return Err(format!(
            "it holds no token: {MIN_LENGTH} to {MAX_LENGTH} letters, digits and `-._~+/=` on one line; `openssl rand -hex 32` makes one"
        ));
    }
    Ok(token.to_owned())
}
