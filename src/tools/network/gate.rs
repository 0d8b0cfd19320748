//! Decides about the connections of one command.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::bounds::{SETTING, UNLISTED};
use super::log::Log;
use super::question::{About, Answered, Asker, QuestionHandle, request};
use super::tried::NetworkUse;
use crate::policy::{Host, HostAccess, HostList};
use crate::proxy::{Attempt, ConnectRequest, Decision, Gate, Refusal, Verdict};

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_mins(2);
/// The most questions that one command may ask; what comes after them is refused.
const MOST_QUESTIONS: usize = 32;

/// Finds out which process has the other end of a connection, for people to read.
pub(in crate::tools) type FindProcess = Arc<dyn Fn(SocketAddr) -> Option<String> + Send + Sync>;

/// Receives each refusal at once: the host and the reason.
pub(in crate::tools) type ReportRefusal = Arc<dyn Fn(String) + Send + Sync>;

/// The gate of one command.
///
/// A yes or a no holds for that command; where somebody said so, for the session. The answer to one question counts for all
/// connections to the same host and port. A question stays open until it is answered or nobody waits for it any more, so
/// that a command cannot put another one in its place.
pub(in crate::tools) struct HostGate {
    list: HostList,
    about: About,
    asker: Option<Asker>,
    find_process: FindProcess,
    report: Option<ReportRefusal>,
    runtime: tokio::runtime::Handle,
    patience: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    hosts: BTreeMap<(Host, u16), HostState>,
    log: Log,
    /// How many questions were put.
    questions: usize,
    ended: bool,
}

/// Whether a question about a host and port is open or answered.
#[derive(Debug)]
enum HostState {
    Asked(PendingQuestion),
    Answered(Answered),
}

#[derive(Debug, Clone)]
struct PendingQuestion {
    answer: watch::Receiver<Option<Answered>>,
    until: Instant,
    open: Arc<QuestionHandle>,
    /// How many connections wait for it.
    waiting: usize,
}

/// A connection that waits for an answer. The last one to leave before there is any takes the question with it.
struct Waiter<'a> {
    gate: &'a HostGate,
    key: (Host, u16),
    open: Arc<QuestionHandle>,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        let Some(HostState::Asked(pending)) = state.hosts.get_mut(&self.key) else {
            return;
        };
        if !Arc::ptr_eq(&pending.open, &self.open) {
            return;
        }
        pending.waiting = pending.waiting.saturating_sub(1);
        if pending.waiting == 0 {
            state.hosts.remove(&self.key);
            drop(state);
            self.open.withdraw();
        }
    }
}

impl HostGate {
    /// A gate for a command with this list. Without an `asker` nobody is asked, and what would be asked about is refused.
    /// Needs a running runtime.
    pub(in crate::tools) fn new(
        list: HostList,
        about: About,
        asker: Option<Asker>,
        find_process: FindProcess,
        report: Option<ReportRefusal>,
    ) -> Self {
        Self {
            list,
            about,
            asker,
            find_process,
            report,
            runtime: tokio::runtime::Handle::current(),
            patience: PATIENCE,
            state: Mutex::default(),
        }
    }

    /// The same with another timeout for answers.
    #[cfg(test)]
    pub(super) fn waiting(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Withdraws what is still asked: the command has ended, and nothing is asked any more.
    pub(in crate::tools) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        for host in state.hosts.values() {
            match host {
                HostState::Asked(pending) => pending.open.withdraw(),
                HostState::Answered(_) => {}
            }
        }
    }

    pub(in crate::tools) fn tried(&self) -> NetworkUse {
        self.state().log.summary()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn judge(&self, wanted: ConnectRequest) -> Verdict {
        let access = self.list.access(&wanted.host, wanted.port);
        // Where one of these stands, what the config says would not help alone.
        let bound = || self.about.bounds.setting(&wanted.host, wanted.port, access);
        match access {
            HostAccess::Free => Verdict::Allowed,
            HostAccess::Denied => {
                let setting = bound().map_or(Cow::Borrowed(SETTING), Cow::Owned);
                Verdict::Refused(Refusal::NotListed(setting))
            }
            HostAccess::Asked => {
                let bound = bound();
                match self.answer_for(wanted).await {
                    Answered::Yes => Verdict::Allowed,
                    Answered::No => Verdict::Refused(Refusal::Denied),
                    Answered::Nobody(why) => Verdict::Refused(unanswered(bound.as_deref(), &why)),
                }
            }
        }
    }

    /// The answer about a host and port; asks if nobody has yet.
    async fn answer_for(&self, wanted: ConnectRequest) -> Answered {
        let nobody = |why: &str| Answered::Nobody(why.to_owned());
        let Some(asker) = &self.asker else {
            return nobody("nobody is asked about what this command does");
        };
        let key = (wanted.host.clone(), wanted.port);
        let PendingQuestion {
            mut answer,
            until,
            open,
            ..
        } = {
            let mut state = self.state();
            let state = &mut *state;
            if state.ended {
                return nobody("the command has ended");
            }
            match state.hosts.get_mut(&key) {
                Some(HostState::Answered(answer)) => return answer.clone(),
                Some(HostState::Asked(pending)) => {
                    pending.waiting += 1;
                    pending.clone()
                }
                None if state.questions >= MOST_QUESTIONS => {
                    return nobody("this command has asked about too many hosts");
                }
                None => {
                    let (sender, answer) = watch::channel(None);
                    let pending = PendingQuestion {
                        answer,
                        until: Instant::now() + self.patience,
                        open: Arc::new(QuestionHandle::default()),
                        waiting: 1,
                    };
                    state.questions += 1;
                    state.hosts.insert(key.clone(), HostState::Asked(pending.clone()));
                    self.pending(asker.clone(), wanted, sender, Arc::clone(&pending.open));
                    pending
                }
            }
        };
        let waiting = Waiter {
            gate: self,
            key: key.clone(),
            open: Arc::clone(&open),
        };
        let answered = match tokio::time::timeout_at(until, answer.wait_for(Option::is_some)).await {
            Ok(Ok(answer)) => answer.clone().unwrap_or(Answered::Nobody(String::new())),
            Ok(Err(_closed)) => nobody("the question was lost"),
            Err(_elapsed) => {
                open.withdraw();
                Answered::Nobody(String::new())
            }
        };
        self.state().hosts.insert(key, HostState::Answered(answered.clone()));
        drop(waiting);
        answered
    }

    /// Asks on a thread of its own: whoever answers may take as long as they like, and nobody joins it.
    fn pending(
        &self,
        asker: Asker,
        wanted: ConnectRequest,
        sender: watch::Sender<Option<Answered>>,
        open: Arc<QuestionHandle>,
    ) {
        let (about, find_process, runtime) = (self.about.clone(), Arc::clone(&self.find_process), self.runtime.clone());
        let asking = move || {
            let request = request(&about, &wanted.host, wanted.port, find_process(wanted.client));
            sender.send_replace(Some(asker.ask(request, &open, &runtime)));
        };
        // Without a thread the sender is gone, which whoever waits takes for no answer.
        let _started = std::thread::Builder::new().name("question".to_owned()).spawn(asking);
    }
}

/// Why a host is refused that was to be asked about; without a reason, nobody answered in time.
fn unanswered(bound: Option<&str>, why: &str) -> Refusal {
    let nobody = match (bound, why) {
        (None, "") => return Refusal::Unanswered,
        (Some(_), "") => "answered in time".to_owned(),
        (None | Some(_), why) => format!("could be asked: {why}"),
    };
    let setting = bound.map_or_else(String::new, |setting| format!(" ({setting})"));
    Refusal::Other(Cow::Owned(format!("{UNLISTED}{setting}, and nobody {nobody}")))
}

impl Gate for HostGate {
    fn decide(&self, wanted: ConnectRequest) -> Decision<'_> {
        Box::pin(self.judge(wanted))
    }

    fn reaches(&self, address: IpAddr, port: u16) -> bool {
        // A yes is for a host of the internet: who is asked cannot tell whether its address is this machine's.
        self.list.names_by_number(address, port)
    }

    fn attempted(&self, attempt: Attempt) {
        let new = self.state().log.add(&attempt);
        if let (Some(report), Some(line)) = (&self.report, new) {
            report(line);
        }
    }
}

impl fmt::Debug for HostGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostGate")
            .field("list", &self.list)
            .field("about", &self.about)
            .finish_non_exhaustive()
    }
}
