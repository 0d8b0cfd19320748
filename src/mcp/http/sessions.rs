//! The sessions of the older revisions: how many, and for how long.
//!
//! rmcp keeps them. It closes one after a silence, though, however long a command of that session has been running, and
//! it makes as many as are asked for. So their number and their age are kept here: a session is idle when no request of
//! it is under way, and only an idle one is closed.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager as _};
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use super::Bounds;

/// How often idle sessions are looked for, at most.
const LOOK: Duration = Duration::from_mins(1);

/// All sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    known: Arc<Mutex<Known>>,
    most: usize,
    idle: Duration,
}

#[derive(Debug, Default)]
struct Known {
    sessions: HashMap<SessionId, Use>,
    /// Sessions that are being made.
    coming: usize,
}

#[derive(Debug)]
struct Use {
    under_way: usize,
    ending: Ending,
    since: Instant,
}

/// Cancelled when the client ends the session: its calls are stopped at once.
#[derive(Debug, Clone, Default)]
pub(in crate::mcp) struct Ending(pub(in crate::mcp) CancellationToken);

/// A session is in use until this is dropped.
#[derive(Debug)]
pub(super) struct InUse {
    ending: Ending,
    known: Arc<Mutex<Known>>,
    id: SessionId,
}

/// Room for a session that is being made.
#[derive(Debug)]
pub(super) struct Coming {
    known: Arc<Mutex<Known>>,
}

fn locked(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let mut config = SessionConfig::default();
        config.keep_alive = None;
        let mut manager = LocalSessionManager::default();
        manager.session_config = config;
        Self {
            manager: Arc::new(manager),
            known: Arc::default(),
            most: bounds.sessions,
            idle: bounds.session_idle,
        }
    }

    /// Who keeps them.
    pub(super) fn manager(&self) -> Arc<LocalSessionManager> {
        Arc::clone(&self.manager)
    }

    /// Uses a session, if there is one of this name.
    pub(super) fn enter(&self, id: &str) -> Option<InUse> {
        let mut known = locked(&self.known);
        let (id, session) = known
            .sessions
            .get_key_value(id)
            .map(|(id, _)| id.clone())
            .and_then(|id| {
                let session = known.sessions.get_mut(&id)?;
                Some((id, session))
            })?;
        session.under_way += 1;
        Some(InUse {
            ending: session.ending.clone(),
            known: Arc::clone(&self.known),
            id,
        })
    }

    /// Room for another session; the longest idle one makes it if need be.
    pub(super) async fn room(&self) -> Option<Coming> {
        self.look().await;
        let goes = {
            let mut known = locked(&self.known);
            let goes = if known.sessions.len() + known.coming < self.most {
                None
            } else {
                Some(known.take_oldest()?)
            };
            known.coming += 1;
            goes
        };
        let coming = Coming {
            known: Arc::clone(&self.known),
        };
        if let Some(goes) = goes {
            self.close(&goes).await;
        }
        Some(coming)
    }

    /// The session that was made.
    pub(super) fn came(&self, coming: Coming, id: &str) {
        locked(&self.known).note(id.into());
        drop(coming);
    }

    /// Closes what nobody has used for long, for ever.
    pub(super) async fn watch(&self) -> Infallible {
        let pause = LOOK.min(self.idle / 2).max(Duration::from_millis(10));
        loop {
            tokio::time::sleep(pause).await;
            self.look().await;
            let gone: Vec<_> = locked(&self.known).take_idle(self.idle);
            for id in gone {
                self.close(&id).await;
            }
        }
    }

    /// Learns which sessions there are: some ended by themselves, and of some the client went before it was told.
    async fn look(&self) {
        let there = self.manager.sessions.read().await;
        let mut known = locked(&self.known);
        known.sessions.retain(|id, _| there.contains_key(id));
        for id in there.keys() {
            known.note(SessionId::clone(id));
        }
    }

    async fn close(&self, id: &SessionId) {
        // One that cannot be told to end has ended.
        let _ended = self.manager.close_session(id).await;
    }
}

impl Known {
    fn note(&mut self, id: SessionId) {
        self.sessions.entry(id).or_insert_with(|| Use {
            under_way: 0,
            ending: Ending::default(),
            since: Instant::now(),
        });
    }

    fn take_oldest(&mut self) -> Option<SessionId> {
        let idle = self.sessions.iter().filter(|(_, session)| session.under_way == 0);
        let oldest = idle.min_by_key(|(_, session)| session.since)?.0.clone();
        self.sessions.remove(&oldest);
        Some(oldest)
    }

    fn take_idle(&mut self, time: Duration) -> Vec<SessionId> {
        self.sessions
            .extract_if(|_, session| session.under_way == 0 && session.since.elapsed() >= time)
            .map(|(id, _)| id)
            .collect()
    }
}

impl InUse {
    /// For a call of it.
    pub(super) fn ending(&self) -> Ending {
        self.ending.clone()
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(session) = locked(&self.known).sessions.get_mut(&self.id) {
            session.under_way = session.under_way.saturating_sub(1);
            session.since = Instant::now();
        }
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        let mut known = locked(&self.known);
        known.coming = known.coming.saturating_sub(1);
    }
}
