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

/// How long nothing may come, with nothing that waits in the kernel, before nothing more is expected. It hands records to a
/// thread of its own, which is about a millisecond behind where there are few.
const QUIET: Duration = Duration::from_millis(50);
/// The longest that is waited for that.
const PATIENCE: Duration = Duration::from_millis(500);
/// The most that is read before others have a turn.
const AT_ONCE: usize = 256;

/// The records of the commands of one worker; dropping it stops the listening.
#[derive(Debug)]
pub struct Records {
    heard: Arc<Mutex<Heard>>,
    listening: JoinHandle<()>,
    mark: OwnedFd,
    /// What the kernel had to say of its audit when the command began.
    before: Mutex<Option<Status>>,
}

/// What was heard, and the roll of who put on the layer of a command.
#[derive(Debug)]
struct Heard {
    gathered: Gathered,
    roll: Roll,
    /// Whether all that had arrived was read.
    is_drained: bool,
    /// Whether the socket has overflowed: it takes nothing more in until it is drained.
    is_congested: bool,
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
        let heard = Arc::new(Mutex::new(Heard {
            gathered,
            roll,
            is_drained: true,
            is_congested: false,
        }));
        let listening = tokio::spawn(listen(group, Arc::clone(&heard)));
        Ok(Self {
            heard,
            listening,
            mark,
            before: Mutex::new(None),
        })
    }

    /// What the worker gets, for those who put on the layer of a command to sign.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub fn mark(&self) -> io::Result<OwnedFd> {
        self.mark.try_clone()
    }

    /// Forgets what came so far: it is not about the command that begins now.
    pub async fn begin(&self) {
        let before = status().await;
        {
            let mut heard = locked(&self.heard);
            let is_congested = heard.is_congested;
            let gathered = heard.by_the_roll();
            let _earlier = gathered.told();
            if is_congested {
                gathered.distrust();
            }
        }
        *locked(&self.before) = before;
    }

    /// What came since, once the kernel has caught up.
    pub async fn told(&self) -> Recorded {
        let until = Instant::now() + PATIENCE;
        let mut before = locked(&self.heard).gathered.heard;
        let (is_quiet, now) = loop {
            sleep(QUIET).await;
            let now = status().await;
            let (heard, is_drained) = {
                let heard = locked(&self.heard);
                (heard.gathered.heard, heard.is_drained)
            };
            let waits_nothing = now.is_some_and(|now| now.waiting == 0);
            if waits_nothing && is_drained && heard == before {
                break (true, now);
            }
            if Instant::now() >= until {
                break (false, now);
            }
            before = heard;
        };
        let mut heard = locked(&self.heard);
        let gathered = heard.by_the_roll();
        if !is_quiet {
            gathered.lose();
        }
        let same = now.filter(|now| now.is_on).zip(*locked(&self.before));
        if self.listening.is_finished() || same.is_none_or(|(now, before)| now.lost != before.lost) {
            gathered.distrust();
        }
        gathered.told()
    }
}

/// What the kernel says of its audit, asked where nobody else waits for the answer.
async fn status() -> Option<Status> {
    tokio::task::spawn_blocking(netlink::status).await.ok()?.ok()
}

impl Confinement {
    /// What the kernel recorded of the denials of the last command, which has ended; `None` where nobody reads that.
    pub async fn recorded(&self) -> Option<Recorded> {
        match &self.records {
            Some(records) => Some(records.told().await),
            None => None,
        }
    }

    /// Reads no records of this worker: nobody will ask for them.
    pub fn unrecorded(&mut self) {
        self.records = None;
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
            heard.is_drained = false;
            match next {
                // Whoever put on a layer said so before anything was refused by it.
                Ok(Some(message)) => heard.by_the_roll().take(message.kind, message.text),
                // Not the kernel's, or not yet.
                Ok(None) | Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => {
                    heard.is_drained = true;
                    heard.is_congested = false;
                    ready.clear_ready();
                    break;
                }
                Err(Errno::ENOBUFS) => {
                    heard.is_congested = true;
                    heard.gathered.lose();
                }
                Err(_) => return,
            }
        }
        drop(ready);
        tokio::task::yield_now().await;
    }
}
