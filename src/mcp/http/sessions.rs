//! Sessions of the older protocol revisions, limited in number and age.
//!
//! rmcp has no limit on their number, and its timeout would close a session whose command still runs. So both are counted here: a
//! session is idle when no request of it is under way, and only idle ones are closed.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager as _};
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use super::Bounds;

/// The longest interval between checks for idle sessions.
const CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// All sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    registry: Arc<Mutex<Registry>>,
    most: usize,
    idle: Duration,
}

#[derive(Debug, Default)]
struct Registry {
    sessions: HashMap<SessionId, SessionState>,
    /// Sessions that are being created.
    pending: usize,
}

#[derive(Debug)]
struct SessionState {
    under_way: usize,
    end: SessionEnd,
    since: Instant,
}

/// Cancelled when the client ends the session: its calls are stopped at once.
#[derive(Debug, Clone, Default)]
pub(in crate::mcp) struct SessionEnd(pub(in crate::mcp) CancellationToken);

/// Keeps a session in use until dropped.
#[derive(Debug)]
pub(super) struct SessionUse {
    pub(super) end: SessionEnd,
    registry: Arc<Mutex<Registry>>,
    id: SessionId,
}

/// A reservation for a session that is being created.
#[derive(Debug)]
pub(super) struct PendingSession {
    registry: Arc<Mutex<Registry>>,
}

fn locked(registry: &Mutex<Registry>) -> MutexGuard<'_, Registry> {
    registry.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let mut config = SessionConfig::default();
        config.keep_alive = None;
        let mut manager = LocalSessionManager::default();
        manager.session_config = config;
        Self {
            manager: Arc::new(manager),
            registry: Arc::default(),
            most: bounds.sessions,
            idle: bounds.session_idle,
        }
    }

    /// The session manager of rmcp.
    pub(super) fn manager(&self) -> Arc<LocalSessionManager> {
        Arc::clone(&self.manager)
    }

    /// Marks a session as in use, if it exists.
    pub(super) fn acquire(&self, id: &str) -> Option<SessionUse> {
        let mut registry = locked(&self.registry);
        let (id, session) = registry
            .sessions
            .get_key_value(id)
            .map(|(id, _)| id.clone())
            .and_then(|id| {
                let session = registry.sessions.get_mut(&id)?;
                Some((id, session))
            })?;
        session.under_way += 1;
        Some(SessionUse {
            end: session.end.clone(),
            registry: Arc::clone(&self.registry),
            id,
        })
    }

    /// Reserves room for a session; closes the longest idle one if needed.
    pub(super) async fn reserve(&self) -> Option<PendingSession> {
        self.refresh().await;
        let evicted = {
            let mut registry = locked(&self.registry);
            let evicted = if registry.sessions.len() + registry.pending < self.most {
                None
            } else {
                Some(registry.take_oldest()?)
            };
            registry.pending += 1;
            evicted
        };
        let pending = PendingSession {
            registry: Arc::clone(&self.registry),
        };
        if let Some(evicted) = evicted {
            self.close(&evicted).await;
        }
        Some(pending)
    }

    /// Records a created session.
    pub(super) fn created(&self, pending: PendingSession, id: &str) {
        locked(&self.registry).note(id.into());
        drop(pending);
    }

    /// Closes idle sessions, forever.
    pub(super) async fn watch(&self) -> Infallible {
        let pause = CHECK_INTERVAL.min(self.idle / 2).max(Duration::from_millis(10));
        loop {
            tokio::time::sleep(pause).await;
            self.refresh().await;
            let expired: Vec<_> = locked(&self.registry).take_idle(self.idle);
            for id in expired {
                self.close(&id).await;
            }
        }
    }

    /// Reads the existing sessions from rmcp: some ended, and some were created without a client to receive them.
    async fn refresh(&self) {
        let existing = self.manager.sessions.read().await;
        let mut registry = locked(&self.registry);
        registry.sessions.retain(|id, _| existing.contains_key(id));
        for id in existing.keys() {
            registry.note(SessionId::clone(id));
        }
    }

    async fn close(&self, id: &SessionId) {
        // An error means that it has ended.
        let _ended = self.manager.close_session(id).await;
    }
}

impl Registry {
    fn note(&mut self, id: SessionId) {
        self.sessions.entry(id).or_insert_with(|| SessionState {
            under_way: 0,
            end: SessionEnd::default(),
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

impl Drop for SessionUse {
    fn drop(&mut self) {
        if let Some(session) = locked(&self.registry).sessions.get_mut(&self.id) {
            session.under_way = session.under_way.saturating_sub(1);
            session.since = Instant::now();
        }
    }
}

impl Drop for PendingSession {
    fn drop(&mut self) {
        let mut registry = locked(&self.registry);
        registry.pending = registry.pending.saturating_sub(1);
    }
}
