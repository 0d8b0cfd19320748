//! Where the socket and its token lie: made for this session, out of reach of commands, and removed with it.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, listen, socket};
use nix::sys::stat::{Mode, fchmod};
use nix::unistd::geteuid;

use crate::approval::random;
use crate::approval::token::Token;
use crate::config::{OwnerCheck, walk};
use crate::policy::hex::hex;
use crate::policy::{AbsPath, Identity};

/// How long another start at the same place is waited for. It holds the place for a moment; a busy machine makes seconds of that.
const PATIENCE: Duration = Duration::from_secs(30);

/// The socket and the token file; both are removed when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    made: Vec<(AbsPath, Identity)>,
}

/// What else is in the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    /// Nothing that this knows.
    AreNone,
    /// Sockets and tokens of other sessions.
    AreSessions,
}

/// How many random bytes name a session's socket: short, because paths of sockets are.
const NAME: usize = 4;

/// The token file of a socket.
pub(super) fn token_of(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(".token");
    PathBuf::from(name)
}

impl Place {
    /// Makes both, or neither.
    pub(super) fn make(
        path: &Path,
        reached: impl Fn(&AbsPath) -> Option<String>,
    ) -> Result<(Self, UnixListener, Token), String> {
        Self::make_beside(Others::AreNone, path, reached)
    }

    /// Makes both, or neither, beside those of other sessions in a directory of theirs.
    pub(super) fn make_among(
        directory: &Path,
        reached: impl Fn(&AbsPath) -> Option<String>,
    ) -> Result<(Self, UnixListener, Token), String> {
        let name = hex(&random::<NAME>().map_err(|error| error.to_string())?);
        Self::make_beside(Others::AreSessions, &directory.join(name), reached)
    }

    /// Holds the directory, which it makes where it is missing.
    fn lock_among(socket: &AbsPath) -> Result<Flock<File>, String> {
        let directory = socket.parent().unwrap_or_else(AbsPath::root);
        let started = Instant::now();
        loop {
            let mut make = fs::DirBuilder::new();
            make.recursive(true)
                .mode(0o700)
                .create(&directory)
                .map_err(|error| format!("{directory} cannot be made: {error}"))?;
            match lock(socket) {
                // Somebody removed it meanwhile.
                Ok(locked) if is_at(&locked, &directory) => return Ok(locked),
                Err(why) if directory.as_path().exists() || started.elapsed() >= PATIENCE => return Err(why),
                Ok(_) if started.elapsed() >= PATIENCE => {
                    return Err(format!("{directory} is removed again and again"));
                }
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn make_beside(
        others: Others,
        path: &Path,
        reached: impl Fn(&AbsPath) -> Option<String>,
    ) -> Result<(Self, UnixListener, Token), String> {
        let (socket, links) = real(path)?;
        let token = AbsPath::new(token_of(socket.as_path())).map_err(|error| error.to_string())?;
        // A link that a command could re-point would lead whoever answers to somebody else.
        for place in [&socket, &token].into_iter().chain(&links) {
            if let Some(why) = reached(place) {
                return Err(format!(
                    "{place} is in reach of commands, which could approve themselves: {why}"
                ));
            }
        }
        // Their directory stays when the last session ends: sandboxes of others hide it by a mount, which goes with it.
        let _alone = match others {
            Others::AreNone => lock(&socket)?,
            Others::AreSessions => {
                let locked = Self::lock_among(&socket)?;
                sweep(&socket.parent().unwrap_or_else(AbsPath::root));
                locked
            }
        };
        remove_stale(&socket)?;
        remove_token(&token)?;
        let mut place = Self { made: Vec::new() };
        let bound = place
            .bind(&socket)
            .map_err(|errno| format!("it cannot be made: {errno}"))?;
        let words = Token::made().map_err(|error| error.to_string())?;
        place
            .write(&token, &words)
            .map_err(|error| format!("its token {token} cannot be made: {error}"))?;
        believed(&token)?;
        // Whoever can connect finds the token there.
        listen(&bound, Backlog::new(64).unwrap_or(Backlog::MAXCONN)).map_err(|errno| errno.to_string())?;
        Ok((place, UnixListener::from(bound), words))
    }

    fn bind(&mut self, path: &AbsPath) -> io::Result<OwnedFd> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let made = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        // Before it has a name, so that it never has one with another mode.
        fchmod(&made, Mode::S_IRUSR | Mode::S_IWUSR)?;
        bind(made.as_raw_fd(), &UnixAddr::new(path.as_path())?)?;
        let found = fs::symlink_metadata(path)?;
        self.made.push((path.clone(), identity(&found)));
        Ok(made)
    }

    fn write(&mut self, path: &AbsPath, token: &Token) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        self.made.push((path.clone(), identity(&file.metadata()?)));
        file.write_all(token.words().as_bytes())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for (path, identity_then) in &self.made {
            // What somebody put in its place is theirs. What cannot be removed is, by the next start.
            if fs::symlink_metadata(path).is_ok_and(|found| identity(&found) == *identity_then) {
                let _left = fs::remove_file(path);
            }
        }
    }
}

fn identity(found: &Metadata) -> Identity {
    Identity {
        device: found.dev(),
        inode: found.ino(),
    }
}

/// The path with the links on the way to it resolved, and where these stand; it is itself none.
fn real(path: &Path) -> Result<(AbsPath, Vec<AbsPath>), String> {
    let whole = std::path::absolute(path).map_err(|error| error.to_string())?;
    let (Some(directory), Some(name)) = (whole.parent(), whole.file_name()) else {
        return Err("it names no file".to_owned());
    };
    let walked = walk(directory).map_err(|error| error.to_string())?;
    let real = walked.path.child(name).ok_or("it names no file")?;
    Ok((real, walked.links))
}

/// Holds the directory against another start, and refuses one that is not the user's alone.
fn lock(socket: &AbsPath) -> Result<Flock<File>, String> {
    let directory = socket.parent().unwrap_or_else(AbsPath::root);
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(&directory)
        .map_err(|error| format!("{directory} cannot be opened: {error}"))?;
    let found = file.metadata().map_err(|error| error.to_string())?;
    if found.uid() != geteuid().as_raw() {
        return Err(format!("{directory} belongs to another user (uid {})", found.uid()));
    }
    if found.mode() & 0o022 != 0 {
        return Err(format!("others can write {directory}: `chmod go-w` it"));
    }
    let started = Instant::now();
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(locked) => return Ok(locked),
            Err((file, Errno::EWOULDBLOCK | Errno::EINTR)) if started.elapsed() < PATIENCE => file,
            Err((_, errno)) => return Err(format!("{directory} is held by somebody else: {errno}")),
        };
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether the directory of this name is still the one that is held.
fn is_at(held: &File, directory: &AbsPath) -> bool {
    let held = held.metadata().map(|found| identity(&found));
    let named = fs::symlink_metadata(directory).map(|found| identity(&found));
    matches!((held, named), (Ok(held), Ok(named)) if held == named)
}

/// Removes a socket at which nobody listens; anything else that is there stays, and is an error.
fn remove_stale(path: &AbsPath) -> Result<(), String> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    if !found.file_type().is_socket() || found.uid() != geteuid().as_raw() {
        return Err("something else is there, and is not replaced".to_owned());
    }
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let tried = socket(AddressFamily::Unix, SockType::Stream, flags, None)
        .and_then(|socket| connect(socket.as_raw_fd(), &UnixAddr::new(path.as_path())?));
    match tried {
        Err(Errno::ECONNREFUSED) => fs::remove_file(path).map_err(|error| error.to_string()),
        Ok(()) | Err(Errno::EAGAIN) => Err("another session listens there".to_owned()),
        Err(errno) => Err(format!(
            "it cannot be told whether another session listens there: {errno}"
        )),
    }
}

/// Removes what killed sessions left. Whoever makes a socket holds the directory until it listens.
fn sweep(directory: &AbsPath) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let of = name.strip_suffix(".token").unwrap_or(name);
        if of.len() != 2 * NAME || !of.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            continue;
        }
        let Some(socket) = directory.child(OsStr::new(of)) else {
            continue;
        };
        // What cannot be removed, or is alive, stays.
        if remove_stale(&socket).is_ok()
            && let Ok(token) = AbsPath::new(token_of(socket.as_path()))
        {
            let _left = remove_token(&token);
        }
    }
}

/// Removes a token that was left behind.
fn remove_token(path: &AbsPath) -> Result<(), String> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() && found.uid() == geteuid().as_raw() => {
            fs::remove_file(path).map_err(|error| error.to_string())
        }
        Ok(_) => Err(format!("something else is at {path}, and is not replaced")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Refuses a token that somebody but the user and root could put another in the place of.
fn believed(token: &AbsPath) -> Result<(), String> {
    let guards = OwnerCheck {
        owners: vec![0, geteuid().as_raw()],
        from: AbsPath::root(),
    };
    let walked = walk(token.as_path()).map_err(|error| error.to_string())?;
    guards.objection(token, &walked).map_or(Ok(()), Err)
}
