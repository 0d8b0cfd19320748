//! The approvals that hold for the session.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::request::{ApprovalRequest, Fingerprint};
use crate::policy::Channel;

/// The most approvals that hold at a time; an older one is asked about again.
const MAX_APPROVALS: usize = 10_000;

/// The approvals that hold for the session.
#[derive(Debug, Default)]
pub(super) struct Memory {
    approvals: BTreeMap<(String, Fingerprint), Approval>,
    last_id: u64,
}

/// One approval that holds for the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The number by which it can be revoked; never used twice.
    pub id: u64,
    /// The tool it holds for.
    pub tool_name: String,
    /// The payload it holds for.
    pub fingerprint: Fingerprint,
    /// What was approved, in a line.
    pub description: String,
    /// When.
    pub at: SystemTime,
    /// Where it was given, if somebody was asked.
    pub channel: Option<Channel>,
}

impl Memory {
    /// The yes to this tool with this payload, if there was one.
    pub(super) fn covering(&self, request: &ApprovalRequest) -> Option<&Approval> {
        self.approvals.get(&key(request))
    }

    /// Keeps an approval; a later one for the same call replaces it.
    pub(super) fn keep(&mut self, request: &ApprovalRequest, channel: Option<Channel>) {
        self.last_id += 1;
        let key = key(request);
        let approval = Approval {
            id: self.last_id,
            tool_name: key.0.clone(),
            fingerprint: key.1,
            description: request.description.clone(),
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
    }
}

fn key(request: &ApprovalRequest) -> (String, Fingerprint) {
    (request.tool_name.clone(), Fingerprint::of(&request.payload))
}
