//! Several calls of one config under way at once, so that a long command does not hold up a read.
//!
//! A session carries out one call after the other, because its forker does. A lane is a session of its own beside the
//! first; each has one call at a time. What only looks has lanes of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, SemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;

use super::call::ToolError;
use super::command_slots::CommandSlots;
use super::output::Output;
use super::provider::{ProvidedCall, Provider};
use super::session::Session;
use super::set::ToolInfo;
use super::tool::{Boxed, Effect};

/// How long a call that was cancelled may take to end before it is killed without ceremony.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// The tools of one config, for several calls at once.
#[derive(Debug)]
pub struct Lanes {
    session: Session,
    infos: Vec<ToolInfo>,
    readers: LanePool,
    writers: LanePool,
    slots: CommandSlots,
}

/// How many calls may hold a lane for each that may run: most of the others wait for a person.
const LANES_PER_SLOT: usize = 4;

/// Lanes of one kind. The one with the lowest number is taken first, so that calls that come one after the other find the
/// same private HOME.
#[derive(Debug)]
struct LanePool {
    permits: Semaphore,
    free: Mutex<BTreeSet<usize>>,
    /// The sessions of the lanes that were ever needed.
    made: AsyncMutex<BTreeMap<usize, Session>>,
}

/// A lane that one call has for itself, until it is dropped.
#[derive(Debug)]
struct Lane<'a> {
    pool: &'a LanePool,
    number: usize,
    _permit: SemaphorePermit<'a>,
}

impl Lanes {
    /// Lanes beside this session: for `width` calls that only look, and as many commands and changes, at once.
    pub fn new(session: Session, width: usize) -> Self {
        let infos = session.tools().list();
        let lanes = width.saturating_mul(LANES_PER_SLOT);
        let (readers, writers) = (LanePool::new(width), LanePool::new(lanes));
        let slots = CommandSlots::new(u32::try_from(width).unwrap_or(u32::MAX));
        Self {
            session,
            infos,
            readers,
            writers,
            slots,
        }
    }

    fn pool(&self, tool: &str) -> &LanePool {
        let effect = self.infos.iter().find(|info| info.name == tool).map(|info| info.effect);
        match effect {
            Some(Effect::Reads) => &self.readers,
            Some(Effect::Adds | Effect::Destroys(_)) | None => &self.writers,
        }
    }

    async fn carry_out(&self, call: ProvidedCall) -> Result<Output, ToolError> {
        let ProvidedCall {
            context,
            approver,
            withdraw,
            extra_approver,
            cancelled,
            progress: _,
        } = call;
        let lane = tokio::select! {
            biased;
            () = cancelled.cancelled() => return Err(stopped()),
            lane = self.pool(&context.tool_name).take() => lane?,
        };
        let session = lane.session(&self.session, &self.slots).await;
        // One that was given up may have been told to stop when it had ended already.
        session.forget_stops().await;
        let stopper = session.stopper();
        let session = session.asking(approver, withdraw, extra_approver);
        let mut work = std::pin::pin!(session.call_in(&context));
        let done = tokio::select! {
            done = &mut work => done,
            () = stop(&cancelled, &stopper) => Err(stopped()),
        };
        drop(lane);
        done
    }
}

/// Passes a cancellation on; never ends before the call does, unless the call does not end.
async fn stop(cancelled: &CancellationToken, stopper: &mpsc::Sender<Signal>) {
    cancelled.cancelled().await;
    // A call that has ended hears nothing any more.
    let _sent = stopper.send(Signal::SIGTERM).await;
    tokio::time::sleep(STOP_TIMEOUT).await;
    let _sent = stopper.send(Signal::SIGKILL).await;
    std::future::pending::<()>().await;
}

fn stopped() -> ToolError {
    ToolError::Stopped(Signal::SIGTERM)
}

impl LanePool {
    fn new(width: usize) -> Self {
        let width = width.max(1);
        Self {
            permits: Semaphore::new(width),
            free: Mutex::new((0..width).collect()),
            made: AsyncMutex::default(),
        }
    }

    async fn take(&self) -> Result<Lane<'_>, ToolError> {
        let ended = || ToolError::Refused("the server is ending; no call is taken any more".to_owned());
        let permit = self.permits.acquire().await.map_err(|_closed| ended())?;
        let number = self.free().pop_first().ok_or_else(ended)?;
        Ok(Lane {
            pool: self,
            number,
            _permit: permit,
        })
    }

    fn free(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn finish(&self) {
        self.permits.close();
        let made = std::mem::take(&mut *self.made.lock().await);
        for session in made.into_values() {
            session.finish().await;
        }
    }
}

impl Lane<'_> {
    async fn session(&self, first: &Session, slots: &CommandSlots) -> Session {
        let mut made = self.pool.made.lock().await;
        if let Some(session) = made.get(&self.number) {
            return session.clone();
        }
        let session = first.beside_in(slots.clone()).await;
        made.insert(self.number, session.clone());
        session
    }
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        self.pool.free().insert(self.number);
    }
}

impl Provider for Lanes {
    fn list(&self) -> Vec<ToolInfo> {
        self.infos.clone()
    }

    fn call(&self, call: ProvidedCall) -> Boxed<'_, Result<Output, ToolError>> {
        Box::pin(self.carry_out(call))
    }

    fn finish(&self) -> Boxed<'_, ()> {
        Box::pin(async {
            self.readers.finish().await;
            self.writers.finish().await;
            self.session.finish().await;
        })
    }
}
