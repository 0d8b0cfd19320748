//! A command that is assessed, and what it may do when it runs.

use std::ffi::OsString;

use super::approval_authority::ApprovalAuthority;
use super::call::ShellCommand;
use super::files::Operands;
use super::search::Search;
use super::tool::OverrideByConfig;
use crate::policy::AbsPath;
use crate::profile::{ApprovedRoots, Call};

#[derive(Debug)]
pub(super) struct Permit {
    /// What its profile is derived for.
    pub(super) call: Call,
    /// The writable files it names, as they were when it was assessed.
    pub(super) operands: Operands,
    /// Where its programs are searched.
    pub(super) search: Search,
    /// Whether an entry of `tools:` may loosen what it needs.
    pub(super) override_by_config: OverrideByConfig,
}

impl Permit {
    pub(super) fn approved(self) -> Self {
        Self {
            call: approved(&self.call),
            ..self
        }
    }
}

/// The same call after a yes.
pub(super) fn approved(call: &Call) -> Call {
    Call {
        approved_roots: ApprovedRoots::All,
        ..call.clone()
    }
}

/// A command as far as a question is about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandRequest<'a> {
    pub(super) command: &'a ShellCommand,
    pub(super) directory: &'a AbsPath,
    /// Where the session starts: relative paths in rules are meant from there.
    pub(super) start: &'a AbsPath,
    pub(super) environment: &'a [(OsString, OsString)],
    pub(super) caller: Option<&'a str>,
    pub(super) authority: ApprovalAuthority,
}
