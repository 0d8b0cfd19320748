//! A stage that was started before anybody asked for one.
//!
//! A program that knows from its first word that it will confine something, as `stockade run` does, starts
//! the stage at once: that waits by the time the config has been read. It is forked where one that is started later is
//! executed; it knows nothing, and ends when nobody takes it.
//!
//! Where it is certain early that it will be needed, and for what, it is told so before everything else
//! is made ready: it looks at the roots meanwhile. One that was told something else than is needed in the end is ended.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use super::child::Child;
use super::error::ConfineError;
use super::protocol::{Announcement, Place, ProtectSetup};
use super::session::{self, Named};
use super::unheard::{self, HEARD_OUT};
use super::{group, wire};

/// How often it is looked whether a stage that says its last word was stopped.
const LOOK_EVERY: Duration = Duration::from_millis(500);

static AHEAD: Mutex<Option<Ahead>> = Mutex::new(None);

/// The stage that was started ahead.
#[derive(Debug)]
struct Ahead {
    spawned: Spawned,
    told: Option<Told>,
}

/// What a stage was told before it was needed.
#[derive(Debug)]
struct Told {
    session: Named,
    protect: Option<ProtectSetup>,
    place: Place,
    aside: UnixStream,
}

/// Starts a stage for whoever needs the first one.
///
/// For a program whose `main` hands a stage over to [`stage::main`](super::stage::main), and before it does anything else:
/// the stage is forked from it, and has whatever is in its memory by then, where arguments and environment lie excepted. Where there is
/// a further thread already, it is executed. [`end_stage`] ends it if nobody did.
pub fn start_stage() {
    // One that cannot be started now is started, or complained about, when it is needed.
    if let Ok(spawned) = Spawned::start_first() {
        put(Ahead { spawned, told: None });
    }
}

/// Ends the stage of [`start_stage`], if nobody needed it, and waits for its end.
pub fn end_stage() {
    if let Some(ahead) = take() {
        ahead.end();
    }
}

/// Tells the stage of [`start_stage`] for which session it is, and what to look at; where that fails, it is told to
/// another one when it is needed.
pub fn announce(session: Named, protect: Option<ProtectSetup>, place: Place) {
    let Some(ahead) = take() else { return };
    if ahead.told.is_some() {
        return put(ahead);
    }
    match tell(&ahead.spawned, &session, protect.clone(), place) {
        Ok(aside) => put(Ahead {
            told: Some(Told {
                session,
                protect,
                place,
                aside,
            }),
            ..ahead
        }),
        Err(_) => ahead.end(),
    }
}

fn tell(spawned: &Spawned, session: &Named, protect: Option<ProtectSetup>, place: Place) -> io::Result<UnixStream> {
    let (aside, theirs) = UnixStream::pair()?;
    let announcement = Announcement::of(session, protect, place);
    wire::send(&spawned.control, &announcement, &[theirs.as_raw_fd()])?;
    Ok(aside)
}

impl Announcement {
    /// What a stage for this session is told.
    pub(super) fn of(session: &Named, protect: Option<ProtectSetup>, place: Place) -> Self {
        Self {
            session: session.path().as_os_str().to_owned(),
            protect,
            place,
        }
    }
}

fn put(ahead: Ahead) {
    *AHEAD.lock().unwrap_or_else(PoisonError::into_inner) = Some(ahead);
}

fn take() -> Option<Ahead> {
    AHEAD.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Ahead {
    fn end(self) {
        let Self { spawned, told } = self;
        let Spawned { control, mut child } = spawned;
        let may_tell = told.as_ref().is_some_and(|told| told.protect.is_some());
        if may_tell && control.shutdown(Shutdown::Write).is_ok() && control.set_read_timeout(Some(LOOK_EVERY)).is_ok() {
            let deadline = Instant::now() + HEARD_OUT;
            loop {
                match wire::receive(&control) {
                    Ok(Some((reply, _))) => unheard::hear(reply),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => {
                        child.go_on_if_stopped();
                    }
                    Ok(None) | Err(_) => break,
                }
            }
        }
        // Whoever has not said it by now finds nobody that listens, and ends.
        drop(control);
        child.wait();
        if let Some(told) = told {
            // What it was to lie in is there, and one that was killed has not removed it.
            session::remove(told.session.path());
        }
    }
}

/// A started stage, and the socket that it listens to.
#[derive(Debug)]
pub(super) struct Spawned {
    pub(super) control: UnixStream,
    pub(super) child: Child,
}

/// Done before the first child is started, which would have to move as well.
fn settle() {
    static DONE: Once = Once::new();
    DONE.call_once(group::settle);
}

/// A stage that has been told what it needs to know.
#[derive(Debug)]
pub(super) struct Announced {
    pub(super) spawned: Spawned,
    pub(super) session: Named,
    pub(super) aside: UnixStream,
}

impl Announced {
    /// The stage that was told just this, for a session that is acceptable, if it is still alive.
    pub(super) fn take(
        acceptable: impl FnOnce(&Named) -> bool,
        protect: Option<&ProtectSetup>,
        place: Place,
    ) -> Option<Self> {
        let mut ahead = take()?;
        match ahead.told.take() {
            Some(told)
                if told.protect.as_ref() == protect
                    && told.place == place
                    && acceptable(&told.session)
                    && ahead.spawned.child.is_alive() =>
            {
                Some(Self {
                    spawned: ahead.spawned,
                    session: told.session,
                    aside: told.aside,
                })
            }
            told => {
                put(Ahead { told, ..ahead });
                None
            }
        }
    }
}

impl Spawned {
    /// The one that was started ahead if it is still alive and was told nothing, else a new one.
    pub(super) fn take() -> Result<Self, ConfineError> {
        let Some(mut ahead) = take() else { return Self::start() };
        if ahead.told.is_none() && ahead.spawned.child.is_alive() {
            return Ok(ahead.spawned);
        }
        ahead.end();
        Self::start()
    }

    fn start() -> Result<Self, ConfineError> {
        let (control, theirs) = UnixStream::pair().map_err(ConfineError::Spawn)?;
        settle();
        let child = Child::start(theirs.into()).map_err(ConfineError::Spawn)?;
        Ok(Self { control, child })
    }

    fn start_first() -> io::Result<Self> {
        let (control, theirs) = UnixStream::pair()?;
        settle();
        let child = Child::start_first(theirs.into())?;
        Ok(Self { control, child })
    }
}
