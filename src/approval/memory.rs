//! The approvals that hold for the session.

use std::collections::BTreeMap;
use std::time::SystemTime;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::request::{ApprovalRequest, Fingerprint};
use super::scope::Remember;
use crate::policy::Channel;

/// The most approvals that hold at a time; an older one is asked about again.
const MAX_APPROVALS: usize = 10_000;
/// The most commands whose facts are remembered: what changed since is told of the latest.
const MAX_FACTS: usize = 1_000;

/// When a yes was given, and the facts by name.
type FactsAt = (Timestamp, Vec<(String, Fingerprint)>);

/// The approvals that hold for the session.
#[derive(Debug, Default)]
pub(super) struct Memory {
    approvals: BTreeMap<(String, Fingerprint), Approval>,
    /// The facts of the last yes to the same words.
    facts: BTreeMap<(String, Fingerprint), FactsAt>,
    last_id: u64,
}

/// One yes that holds for the session.
///
/// [`Session::approvals`](crate::Session::approvals) lists them, [`Session::revoke`](crate::Session::revoke) takes one back.
///
/// ```no_run
/// /// Takes back every approval of the tool `shell`.
/// fn revoke_commands(session: &stockade::Session) {
///     for approval in session.approvals().iter().filter(|approval| approval.tool_name == "shell") {
///         session.revoke(approval.id);
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The number by which it can be revoked. A session uses no number twice.
    pub id: u64,
    /// The tool that it holds for.
    pub tool_name: String,
    /// The fingerprint of the payload that it holds for.
    pub fingerprint: Fingerprint,
    /// The approved call in one line.
    pub description: String,
    /// The time of the yes.
    pub at: SystemTime,
    /// The channel of the answer; `None` where nobody was asked.
    pub channel: Option<Channel>,
}

impl Memory {
    /// A yes that covers the request: to the very call, or to something wider that it is part of.
    pub(super) fn covering(&self, request: &ApprovalRequest) -> Option<&Approval> {
        let wider = request.scopes.iter().map(|scope| &scope.key);
        let keys = std::iter::once(&request.payload)
            .chain(wider)
            .chain(&request.covered_by);
        keys.map(|key| memory_key(request, key))
            .find_map(|key| self.approvals.get(&key))
    }

    /// Keeps an approval for what it is to cover; a later one for the same replaces it.
    pub(super) fn keep(&mut self, request: &ApprovalRequest, remember: Remember, channel: Option<Channel>) {
        let (description, covered) = match remember {
            Remember::None => return,
            Remember::Session => (&request.description, &request.payload),
            Remember::Scope(number) => match request.scopes.get(usize::from(number)) {
                Some(scope) => (&scope.covers, &scope.key),
                // What was not offered is not covered.
                None => return,
            },
        };
        self.last_id += 1;
        let key = memory_key(request, covered);
        let approval = Approval {
            id: self.last_id,
            tool_name: key.0.clone(),
            fingerprint: key.1,
            description: description.clone(),
            at: SystemTime::now(),
            channel,
        };
        self.approvals.insert(key, approval);
        if self.approvals.len() > MAX_APPROVALS
            && let Some(oldest) = self.approvals.values().map(|approval| approval.id).min()
        {
            self.revoke(oldest);
        }
    }

    /// Remembers what a yes to these words was given for.
    pub(super) fn note_facts(&mut self, request: &ApprovalRequest) {
        if request.subject.is_empty() {
            return;
        }
        let facts = request.facts.iter();
        let facts = facts
            .map(|fact| (fact.name.clone(), Fingerprint::of(&fact.value)))
            .collect();
        let key = memory_key(request, &request.subject);
        self.facts.insert(key, (Timestamp::now(), facts));
        if self.facts.len() > MAX_FACTS
            && let Some(oldest) = self.facts.iter().min_by_key(|(_, (at, _))| *at)
        {
            let oldest = oldest.0.clone();
            self.facts.remove(&oldest);
        }
    }

    /// What has changed since the last yes to the same words, one line each.
    pub(super) fn changes(&self, request: &ApprovalRequest) -> Vec<String> {
        let key = memory_key(request, &request.subject);
        let Some((at, before)) = self.facts.get(&key).filter(|_| !request.subject.is_empty()) else {
            return Vec::new();
        };
        let at = at.to_zoned(TimeZone::system()).strftime("%H:%M");
        let now: BTreeMap<&str, Fingerprint> = request
            .facts
            .iter()
            .map(|fact| (fact.name.as_str(), Fingerprint::of(&fact.value)))
            .collect();
        let before: BTreeMap<&str, Fingerprint> = before.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let mut changed = Vec::new();
        for (name, value) in &now {
            match before.get(name) {
                Some(known) if known == value => {}
                Some(_) => changed.push(format!("{name} changed since you said yes at {at}")),
                None => changed.push(format!("{name} was not part of it when you said yes at {at}")),
            }
        }
        for name in before.keys().filter(|name| !now.contains_key(*name)) {
            changed.push(format!("{name} is no longer part of it since you said yes at {at}"));
        }
        changed
    }

    /// Everything that holds, oldest first.
    pub(super) fn list(&self) -> Vec<&Approval> {
        let mut list: Vec<&Approval> = self.approvals.values().collect();
        list.sort_by_key(|approval| approval.id);
        list
    }

    /// Takes one approval back; the same call is asked about again. `None` if no approval has the number.
    pub(super) fn revoke(&mut self, id: u64) -> Option<Approval> {
        let key = self.approvals.iter().find(|(_, approval)| approval.id == id)?.0.clone();
        self.approvals.remove(&key)
    }

    /// Takes every approval back.
    pub(super) fn clear(&mut self) {
        self.approvals.clear();
        self.facts.clear();
    }
}

fn memory_key(request: &ApprovalRequest, covered: &[u8]) -> (String, Fingerprint) {
    (request.tool_name.clone(), Fingerprint::of(covered))
}
