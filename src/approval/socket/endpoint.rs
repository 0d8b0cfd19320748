//! The socket and its token file: created for this session, out of reach of commands, and removed with it.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
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
use crate::config::{OwnerCheck, identity, walk};
use crate::policy::hex::hex;
use crate::policy::{AbsPath, Identity};

/// How long to wait for the lock. Another session holds it for a moment only, on a busy machine for seconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The socket and the token file; both are removed when it is dropped.
#[derive(Debug)]
pub(super) struct Endpoint {
    files: Vec<(AbsPath, Identity)>,
}

/// Whose directory the socket lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directory {
    /// A directory that the user named.
    OfUser,
    /// The one that all sessions of the user share.
    OfSessions,
}

/// Random bytes in the name of a session's socket. Few, because paths of sockets are short.
const NAME_BYTES: usize = 4;

/// The token file of a socket.
pub(super) fn token_path(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(".token");
    PathBuf::from(name)
}

impl Endpoint {
    /// Creates both, or neither.
    pub(super) fn create(
        path: &Path,
        reachable: impl Fn(&AbsPath) -> Option<String>,
    ) -> Result<(Self, UnixListener, Token), String> {
        Self::create_at(Directory::OfUser, path, reachable)
    }

    /// Creates both, or neither, in the directory that all sessions share.
    pub(super) fn create_in(
        directory: &Path,
        reachable: impl Fn(&AbsPath) -> Option<String>,
    ) -> Result<(Self, UnixListener, Token), String> {
        let name = hex(&random::<NAME_BYTES>().map_err(|error| error.to_string())?);
        Self::create_at(Directory::OfSessions, &directory.join(name), reachable)
    }

    /// Locks the directory, which it creates if missing.
    fn lock_or_create(socket: &AbsPath) -> Result<Flock<File>, String> {
        let directory = socket.parent().unwrap_or_else(AbsPath::root);
        let started = Instant::now();
        loop {
            let mut create = fs::DirBuilder::new();
            create
                .recursive(true)
                .mode(0o700)
                .create(&directory)
                .map_err(|error| format!("{directory} cannot be made: {error}"))?;
            match lock(socket) {
                Ok(locked) if is_same(&locked, &directory) => return Ok(locked),
                Err(why) if directory.as_path().exists() || started.elapsed() >= LOCK_TIMEOUT => return Err(why),
                Ok(_) if started.elapsed() >= LOCK_TIMEOUT => {
                    return Err(format!("{directory} is removed again and again"));
                }
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn create_at(
        directory: Directory,
        path: &Path,
        reachable: impl Fn(&AbsPath) -> Option<String>,
    ) -> Result<(Self, UnixListener, Token), String> {
        let (socket, links) = resolve(path)?;
        let token = AbsPath::new(token_path(socket.as_path())).map_err(|error| error.to_string())?;
        // A command that can change a link on the way could redirect the client.
        for path in [&socket, &token].into_iter().chain(&links) {
            if let Some(why) = reachable(path) {
                return Err(format!(
                    "{path} is in reach of commands, which could approve themselves: {why}"
                ));
            }
        }
        // The shared directory stays when the last session ends: other sandboxes hide it by a mount, which would go with it.
        let _lock = match directory {
            Directory::OfUser => lock(&socket)?,
            Directory::OfSessions => {
                let locked = Self::lock_or_create(&socket)?;
                sweep(&socket.parent().unwrap_or_else(AbsPath::root));
                locked
            }
        };
        remove_stale(&socket)?;
        remove_token(&token)?;
        let mut endpoint = Self { files: Vec::new() };
        let bound = endpoint
            .bind(&socket)
            .map_err(|errno| format!("it cannot be made: {errno}"))?;
        let secret = Token::generate().map_err(|error| error.to_string())?;
        endpoint
            .write(&token, &secret)
            .map_err(|error| format!("its token {token} cannot be made: {error}"))?;
        check_token_path(&token)?;
        // Last, so that a client that connects finds the token.
        listen(&bound, Backlog::new(64).unwrap_or(Backlog::MAXCONN)).map_err(|errno| errno.to_string())?;
        Ok((endpoint, UnixListener::from(bound), secret))
    }

    fn bind(&mut self, path: &AbsPath) -> io::Result<OwnedFd> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let bound = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        // Before bind, so that the socket never has another mode.
        fchmod(&bound, Mode::S_IRUSR | Mode::S_IWUSR)?;
        bind(bound.as_raw_fd(), &UnixAddr::new(path.as_path())?)?;
        let found = fs::symlink_metadata(path)?;
        self.files.push((path.clone(), identity(&found)));
        Ok(bound)
    }

    fn write(&mut self, path: &AbsPath, token: &Token) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        self.files.push((path.clone(), identity(&file.metadata()?)));
        file.write_all(token.as_str().as_bytes())
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        for (path, created) in &self.files {
            // A file that somebody else put there stays. The next session removes what this one could not.
            if fs::symlink_metadata(path).is_ok_and(|found| identity(&found) == *created) {
                let _left = fs::remove_file(path);
            }
        }
    }
}

/// The path with the links on the way to it resolved, and where these stand; it is itself none.
fn resolve(path: &Path) -> Result<(AbsPath, Vec<AbsPath>), String> {
    let absolute = std::path::absolute(path).map_err(|error| error.to_string())?;
    let (Some(directory), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err("it names no file".to_owned());
    };
    let walked = walk(directory).map_err(|error| error.to_string())?;
    let resolved = walked.path.child(name).ok_or("it names no file")?;
    Ok((resolved, walked.links))
}

/// Locks the directory against other sessions, and refuses one that somebody else can write.
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
            Err((file, Errno::EWOULDBLOCK | Errno::EINTR)) if started.elapsed() < LOCK_TIMEOUT => file,
            Err((_, errno)) => return Err(format!("{directory} is held by somebody else: {errno}")),
        };
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether this path still leads to the locked directory.
fn is_same(locked: &File, directory: &AbsPath) -> bool {
    let locked = locked.metadata().map(|found| identity(&found));
    let named = fs::symlink_metadata(directory).map(|found| identity(&found));
    matches!((locked, named), (Ok(locked), Ok(named)) if locked == named)
}

/// Removes a socket without a listener. Any other file there stays and is an error.
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
    let connected = socket(AddressFamily::Unix, SockType::Stream, flags, None)
        .and_then(|socket| connect(socket.as_raw_fd(), &UnixAddr::new(path.as_path())?));
    match connected {
        Err(Errno::ECONNREFUSED) => fs::remove_file(path).map_err(|error| error.to_string()),
        Ok(()) | Err(Errno::EAGAIN) => Err("another session listens there".to_owned()),
        Err(errno) => Err(format!(
            "it cannot be told whether another session listens there: {errno}"
        )),
    }
}

/// Removes what killed sessions left. No live session is hit: each holds the lock until it listens.
fn sweep(directory: &AbsPath) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let of = name.strip_suffix(".token").unwrap_or(name);
        if of.len() != 2 * NAME_BYTES || !of.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            continue;
        }
        let Some(socket) = directory.child(OsStr::new(of)) else {
            continue;
        };
        // A live session, and what cannot be removed, stays.
        if remove_stale(&socket).is_ok()
            && let Ok(token) = AbsPath::new(token_path(socket.as_path()))
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

/// Refuses a token file that anybody but the user and root could replace.
fn check_token_path(token: &AbsPath) -> Result<(), String> {
    let guards = OwnerCheck {
        owners: vec![0, geteuid().as_raw()],
        from: AbsPath::root(),
    };
    let walked = walk(token.as_path()).map_err(|error| error.to_string())?;
    guards.objection(token, &walked).map_or(Ok(()), Err)
}
