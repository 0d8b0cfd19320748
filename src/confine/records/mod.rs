//! What the kernel itself records of the denials of Landlock, where that can be read. It decides nothing.
//!
//! Since Linux 6.15 Landlock writes an audit record for each denial, where audit is switched on for the whole machine.
//! A process with `CAP_AUDIT_READ` may listen without becoming the audit daemon ([`netlink`]); Stockade does where
//! somebody wants to know what was denied, asks for no privilege and never switches anything on.
//! The records of all sandboxes of the machine arrive there. Each names its Landlock domain by number, and the first of a
//! domain says which process made it; name and program in it are what a command chose, so they are not looked at.
//! The layer of each command is whole where records are read, so that it is the innermost of Stockade's that refuses
//! ([`super::compiled`]), and only its domain counts. [`roll`] tells the parent which process put it on: the kernel vouches
//! for its number, dead or alive. That layer is tried before the command is executed, and the kernel speaks of the trial: so its domain is
//! known before the command can make another, and it is known from where on records are about the command.
//! [`text`] reads a record, and [`gathered`] keeps those of that domain, within bounds. What the kernel itself dropped it
//! counts; where it dropped any meanwhile nothing is believed.

mod gathered;
mod netlink;
mod roll;
mod text;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::confinement::Confinement;
use super::sys;
use gathered::Gathered;
use netlink::Status;
use roll::Roll;

pub use gathered::Recorded;
pub use netlink::{OLDEST_ABI, Unreadable, readable};
pub(crate) use roll::sign;
pub use text::{Blocker, Object, Record, Refusal, parse};

/// How long nothing may come before nothing more is expected. The kernel hands records to a thread of its own, which
/// is about a millisecond behind.
const QUIET: Duration = Duration::from_millis(50);
/// The longest that is waited for that.
const PATIENCE: Duration = Duration::from_millis(500);
/// The most that is read before others have a turn.
const AT_ONCE: usize = 256;

/// The records of one worker's domains; dropping it stops the listening.
#[derive(Debug)]
pub struct Records {
    heard: Arc<Mutex<Heard>>,
    listening: JoinHandle<()>,
    mark: OwnedFd,
    /// What the kernel had to say of its audit when the command began.
    before: Mutex<Option<Status>>,
}

/// What was heard, and the roll of who stands in a layer.
#[derive(Debug)]
struct Heard {
    gathered: Gathered,
    roll: Roll,
}

impl Heard {
    /// What was gathered, by the roll as it is now.
    fn by_the_roll(&mut self) -> &mut Gathered {
        while let Some(pid) = self.roll.called() {
            self.gathered.stands(pid);
        }
        &mut self.gathered
    }
}

impl Records {
    /// Listens from here on, on the runtime that is running.
    ///
    /// # Errors
    /// The records cannot be read here, and why.
    pub fn open(landlock_abi: Option<u32>) -> Result<Self, Unreadable> {
        let group = netlink::join(landlock_abi)?;
        let (roll, mark) = roll::pair().map_err(Unreadable::Socket)?;
        let failed =
            |(_, error): (_, io::Error)| Unreadable::Socket(Errno::from_raw(error.raw_os_error().unwrap_or(0)));
        let group = sys::watch_readiness(group, Interest::READABLE).map_err(failed)?;
        let gathered = Gathered::default();
        let heard = Arc::new(Mutex::new(Heard { gathered, roll }));
        let listening = tokio::spawn(listen(group, Arc::clone(&heard)));
        Ok(Self {
            heard,
            listening,
            mark,
            before: Mutex::new(None),
        })
    }

    /// What the worker gets, to put itself on the roll with those who stand in its layers.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub fn mark(&self) -> io::Result<OwnedFd> {
        self.mark.try_clone()
    }

    /// Forgets what came so far: it is not about the command that begins now.
    pub fn begin(&self) {
        let _earlier = locked(&self.heard).by_the_roll().told();
        *locked(&self.before) = netlink::status().ok();
    }

    /// What came since, once the kernel has caught up.
    pub async fn told(&self) -> Recorded {
        let until = Instant::now() + PATIENCE;
        let heard = || locked(&self.heard).gathered.heard;
        let mut before = heard();
        let is_quiet = loop {
            sleep(QUIET).await;
            let now = heard();
            if now == before {
                break true;
            }
            if Instant::now() >= until {
                break false;
            }
            before = now;
        };
        let mut heard = locked(&self.heard);
        let gathered = heard.by_the_roll();
        if !is_quiet || self.listening.is_finished() {
            gathered.lose();
        }
        let now = netlink::status().ok();
        if now.is_none_or(|now| !now.is_on) || *locked(&self.before) != now {
            gathered.distrust();
        }
        gathered.told()
    }
}

impl Confinement {
    /// What the kernel recorded of the denials of the last command, which has ended; `None` where nobody reads that.
    pub async fn recorded(&self) -> Option<Recorded> {
        match &self.records {
            Some(records) => Some(records.told().await),
            None => None,
        }
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

fn locked<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads until the socket fails.
async fn listen(group: AsyncFd<OwnedFd>, heard: Arc<Mutex<Heard>>) {
    let mut buffer = vec![0; netlink::LARGEST];
    loop {
        let Ok(mut ready) = group.readable().await else { return };
        for _ in 0..AT_ONCE {
            let next = netlink::next(group.get_ref().as_fd(), &mut buffer);
            let mut heard = locked(&heard);
            match next {
                // Whoever put on a layer said so before anything was refused by it.
                Ok(Some(message)) => heard.by_the_roll().take(message.kind, message.text),
                // Not the kernel's, or not yet.
                Ok(None) | Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => {
                    ready.clear_ready();
                    break;
                }
                Err(Errno::ENOBUFS) => heard.gathered.lose(),
                Err(_) => return,
            }
        }
        drop(ready);
        tokio::task::yield_now().await;
    }
}
