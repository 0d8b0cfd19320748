//! Bytes between a command and the caller, while the command lives.
//!
//! Each output is one loop: read a piece, hand it to the sink, wait until the sink took it. Nothing is queued beyond
//! that piece, so a slow reader makes the command wait, not Stockade grow. A loop ends at end of file. A background
//! child would keep the pipe open, so the caller says when the tree is dead; from then on what is left is read, and
//! a pipe that still stays open is given up after [`GRACE`].
//!
//! When the caller's stdout is closed (`stockade run … | head -1`), or a person ends the command with the end key
//! ([`EndKey`]), the relay returns at once and says so; the caller kills the tree and ends as SIGPIPE or
//! SIGQUIT would have ended it.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::isatty;
use tokio::sync::watch;

use super::capture::{Captured, HeadTail, StreamCap};
use super::channel::Channel;
use super::delivery::Delivery;
use super::end_key::EndKey;
use super::error::IoError;
use super::host::{HostReader, HostWriter};
use super::keyboard::{Keyboard, Permit};
use super::pause::Pause;
use super::stdio::{Input, OutputMode, ParentEnds};
use super::terminal::Session;
use crate::backend::host::terminal_lock::ControllingTerminal;

/// How long a silent pipe is waited for once the tree is dead. Its end of file is normally there already.
pub const GRACE: Duration = Duration::from_millis(500);

/// Bytes moved at once: what a pipe holds by default.
const PIECE: usize = 64 * 1024;

/// Bytes that are read once the tree is dead: what a terminal or the largest pipe of a user can still hold. More comes from
/// somebody outside who holds the other end.
const MAX_REMAINING: usize = 1024 * 1024 + PIECE;

/// Why a relay returned before the tree was dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The caller's stdout, or stderr, was closed by its reader.
    BrokenPipe,
    /// A person pressed the end key.
    EndKey,
}

/// How a relay ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Relayed {
    /// What the command wrote to stdout; counted only, where it was streamed.
    pub stdout: Captured,
    /// What the command wrote to stderr; counted only, where it was streamed.
    pub stderr: Captured,
    /// Why it ended early, if it did. The tree may be alive still, and is to be killed.
    pub cut: Option<Cut>,
    /// Bytes that the caller's reader had not taken when it was given up.
    pub undelivered: u64,
}

impl Relayed {
    fn cut_by(cut: Cut) -> Self {
        Self {
            cut: Some(cut),
            ..Self::default()
        }
    }
}

impl ParentEnds {
    /// Serves the streams until `tree_is_dead` and the output is drained, or until the caller's stdout is closed.
    ///
    /// `limit` caps each stream, head and tail; a terminal is not capped. Dropping the future stops at once and gives
    /// the user's terminal its settings back. Needs a runtime with I/O and time.
    pub async fn relay(self, limit: Option<u64>, tree_is_dead: impl Future<Output = ()>) -> Result<Relayed, IoError> {
        let Self {
            input,
            stdout,
            stderr,
            terminal,
            mode,
            own,
            pause,
            delivery,
        } = self;
        let (dead_sender, dead) = watch::channel(false);
        let wait_for_tree = async {
            tree_is_dead.await;
            // Every output may have ended already.
            let _sent = dead_sender.send(true);
            Ok(())
        };
        let sink = |to: &OwnedFd| -> Result<Sink, IoError> {
            Ok(match mode {
                OutputMode::Stream => Sink::Stream {
                    cap: StreamCap::new(limit),
                    to: HostWriter::new(to.try_clone().map_err(IoError::Copy)?, delivery.clone()),
                    pause: pause.clone(),
                    delivery: delivery.clone(),
                },
                OutputMode::Capture => Sink::Capture(HeadTail::new(limit)),
            })
        };
        let (stdout_sink, stderr_sink) = (sink(&own.stdout)?, sink(&own.stderr)?);
        let output = async {
            tokio::try_join!(
                drain(stdout, stdout_sink, dead.clone()),
                drain(stderr, stderr_sink, dead.clone()),
                wait_for_tree
            )
        };
        let ended = match terminal {
            None => {
                let feed = feed(input, &pause);
                serve(output, feed).await.map(Some)
            }
            Some(terminal) => {
                let master = Channel::new(terminal.master)?;
                let user = HostReader::new(own.stdin).map_err(IoError::Watch)?;
                let keyboard = Keyboard::default();
                let mut session = Session::start(user.fd(), master.fd(), &keyboard, pause.clone())?;
                let to = own.stdout.try_clone().map_err(IoError::Copy)?;
                let shown = Sink::Stream {
                    cap: StreamCap::new(None),
                    to: HostWriter::new(to, delivery.clone()),
                    pause: pause.clone(),
                    delivery: delivery.clone(),
                };
                let output = async {
                    let (shown, (_, stderr, ())) = tokio::try_join!(drain_from(&master, shown, dead.clone()), output)?;
                    Ok((shown, stderr, ()))
                };
                tokio::select! {
                    ended = output => ended.map(Some),
                    () = ended_by_key(keys(&user, &master, &keyboard, &pause)) => Ok(None),
                    Err(error) = session.follow() => Err(error),
                }
            }
        };
        match ended {
            Ok(Some((stdout, stderr, ()))) => Ok(Relayed {
                stdout,
                stderr,
                ..Relayed::default()
            }),
            Ok(None) => Ok(Relayed::cut_by(Cut::EndKey)),
            Err(IoError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(Relayed::cut_by(Cut::BrokenPipe)),
            Err(error) => Err(error),
        }
    }
}

/// Waits for `output`, feeding the command meanwhile; that the input has ended ends nothing.
async fn serve<T>(output: impl Future<Output = T>, input: impl Future<Output = ()>) -> T {
    let input = async {
        input.await;
        std::future::pending::<T>().await
    };
    tokio::select! {
        ended = output => ended,
        never = input => never,
    }
}

/// Where the pieces of an output go.
#[derive(Debug)]
enum Sink {
    Stream {
        cap: StreamCap,
        to: HostWriter,
        pause: Pause,
        delivery: Delivery,
    },
    Capture(HeadTail),
}

impl Sink {
    async fn take(&mut self, piece: &[u8]) -> Result<(), IoError> {
        match self {
            Self::Stream { cap, to, pause, .. } => {
                let head = cap.push(piece).to_vec();
                let _pass = pause.pass().await;
                to.write(head).await.map_err(IoError::Write)
            }
            Self::Capture(kept) => {
                kept.push(piece);
                Ok(())
            }
        }
    }

    async fn finish(self) -> Result<Captured, IoError> {
        match self {
            Self::Stream { cap, mut to, pause, .. } => {
                let total = cap.total();
                let _pass = pause.pass().await;
                to.write(cap.finish()).await.map_err(IoError::Write)?;
                Ok(Captured {
                    total,
                    ..Captured::default()
                })
            }
            Self::Capture(kept) => Ok(kept.finish()),
        }
    }
}

/// A sink, and where its pieces come from. Dropped with its sink, it counts what is lost by that.
#[derive(Debug)]
struct Draining<'a> {
    from: &'a Channel,
    sink: Option<Sink>,
}

impl Drop for Draining<'_> {
    fn drop(&mut self) {
        if let Some(Sink::Stream { cap, delivery, .. }) = &self.sink {
            let unread = self.from.unread();
            delivery.dropped(unread.saturating_add(cap.withheld()));
        }
    }
}

async fn drain(from: Option<OwnedFd>, sink: Sink, dead: watch::Receiver<bool>) -> Result<Captured, IoError> {
    match from {
        Some(from) => drain_from(&Channel::new(from)?, sink, dead).await,
        None => Ok(Captured::default()),
    }
}

async fn drain_from(from: &Channel, sink: Sink, mut dead: watch::Receiver<bool>) -> Result<Captured, IoError> {
    let mut draining = Draining { from, sink: Some(sink) };
    let mut piece = vec![0; PIECE];
    let mut left = MAX_REMAINING;
    loop {
        let known_dead = *dead.borrow_and_update();
        let count = if known_dead {
            match tokio::time::timeout(GRACE, from.read(&mut piece)).await {
                Ok(count) => count.map_err(IoError::Read)?,
                Err(_elapsed) => 0,
            }
        } else {
            tokio::select! {
                count = from.read(&mut piece) => count.map_err(IoError::Read)?,
                // An error means that the sender was dropped, which also ends the wait.
                _ended = dead.wait_for(|dead| *dead) => continue,
            }
        };
        if known_dead {
            left = left.saturating_sub(count);
        }
        let Some(sink) = &mut draining.sink else {
            return Ok(Captured::default());
        };
        if count > 0 && left > 0 {
            sink.take(&piece[..count]).await?;
        } else if let Some(sink) = draining.sink.take() {
            return sink.finish().await;
        }
    }
}

/// Feeds a command's stdin until its source ends or the command closes it. What fails here is the end of the input.
async fn feed(input: Input, pause: &Pause) {
    let _ended: io::Result<()> = match input {
        Input::Nothing => Ok(()),
        Input::Bytes { bytes, to } => feed_bytes(&bytes, to).await,
        Input::Pumped { from, to } => feed_from(from, to, pause).await,
    };
}

async fn feed_bytes(bytes: &[u8], to: OwnedFd) -> io::Result<()> {
    nonblocking(to)?.write_all(bytes).await
}

/// How often to look whether another process still has the keys.
const RETRY: Duration = Duration::from_millis(50);

/// Whether another process of Stockade has the keys of the terminal.
fn is_taken_by_another() -> bool {
    let terminal = ControllingTerminal::find();
    terminal.is_ok_and(|terminal| matches!(terminal.try_lock(), Ok(Err(_))))
}

async fn feed_from(from: OwnedFd, to: OwnedFd, pause: &Pause) -> io::Result<()> {
    let to = nonblocking(to)?;
    let from = HostReader::new(from)?;
    let terminal = isatty(from.fd()).unwrap_or(false);
    let mut piece = vec![0; PIECE];
    loop {
        if terminal {
            from.ready().await?;
            let is_raw = || Ok::<_, io::Error>(!tcgetattr(from.fd())?.local_flags.contains(LocalFlags::ICANON));
            if is_raw()? {
                // A question of another process takes keys only until it is answered. It restores the settings first.
                if is_taken_by_another() || !is_raw()? {
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
                // Keys belong to whoever made the terminal raw: a pager at the end of the pipeline.
                return std::future::pending().await;
            }
        }
        let count = if terminal {
            from.read_in_foreground(&mut piece, pause, Permit::now).await?
        } else {
            from.read(&mut piece).await?
        };
        if count == 0 {
            return Ok(());
        }
        to.write_all(&piece[..count]).await?;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// Either terminal was closed.
    Closed,
    /// The end key was pressed.
    EndKey,
}

/// Returns when the end key was pressed, and only then.
async fn ended_by_key(keys: impl Future<Output = Keys>) {
    match keys.await {
        Keys::EndKey => {}
        Keys::Closed => std::future::pending().await,
    }
}

/// Passes keys to a command's terminal until either terminal is closed or the end key is pressed, also where the command reads
/// nothing.
async fn keys(user: &HostReader, master: &Channel, keyboard: &Keyboard, pause: &Pause) -> Keys {
    let mut piece = vec![0; 4096];
    let mut waiting: Vec<u8> = Vec::new();
    let mut end_key = EndKey::default();
    let ours = || keyboard.is_taken().then_some(());
    loop {
        tokio::select! {
            read = user.read_in_foreground(&mut piece, pause, ours), if waiting.len() < MAX_REMAINING => match read {
                Ok(0) | Err(_) => {
                    // What was typed before is still the command's.
                    let _set = master.write_all(&waiting).await;
                    return Keys::Closed;
                }
                Ok(count) => {
                    if end_key.press(&piece[..count], Instant::now()) {
                        return Keys::EndKey;
                    }
                    waiting.extend_from_slice(&piece[..count]);
                }
            },
            written = master.write(&waiting), if !waiting.is_empty() => match written {
                Ok(count) => drop(waiting.drain(..count)),
                Err(_) => return Keys::Closed,
            },
        }
    }
}

fn nonblocking(fd: OwnedFd) -> io::Result<Channel> {
    Channel::new(fd).map_err(io::Error::other)
}
