//! A whole profile as JSON, and back.
//!
//! Paths are text where they are text, arrays of bytes where they are not. The inodes that a start
//! checks are left out: they belong to one machine and one moment, and change nothing about the reach.

mod clauses;
mod error;
mod hosts;
mod profile;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::inspection::Inspection;
use super::show::{Table, rule_approvals};
use crate::policy::{Access, NameChanges, Operation, Policy};
use crate::profile::{FileReach as _, Profile};
pub use error::{DocumentError, VERSION};
use profile::WrittenProfile;

/// What a policy permits, as a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The version of the format: [`VERSION`].
    pub stockade_profile: u32,
    /// What an approved command gets.
    approved: WrittenProfile,
    /// What a command gets that nobody was asked about.
    unasked: WrittenProfile,
    /// What holds beside the profiles, by name.
    settings: BTreeMap<String, String>,
    /// The shell rules and tool overrides, in words, in file order.
    rules: Vec<String>,
}

/// The content of a document, as profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// What an approved command gets.
    pub approved: Profile,
    /// What a command gets that nobody was asked about.
    pub unasked: Profile,
    /// What holds beside the profiles, by name.
    pub settings: BTreeMap<String, String>,
    /// The shell rules and tool overrides, in words, in file order.
    pub rules: Vec<String>,
}

impl Document {
    /// The document of an inspection.
    pub fn of(inspection: &Inspection) -> Self {
        let side = Side::of(inspection);
        Self {
            stockade_profile: VERSION,
            approved: WrittenProfile::of(&side.approved),
            unasked: WrittenProfile::of(&side.unasked),
            settings: side.settings,
            rules: side.rules,
        }
    }

    /// Whether a text claims to be a document.
    pub fn is_document(text: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct Mark {
            #[expect(dead_code, reason = "that it is there is the answer")]
            stockade_profile: u32,
        }
        serde_json::from_slice::<Mark>(text).is_ok()
    }

    /// Parses a document.
    pub fn read(text: &[u8]) -> Result<Side, DocumentError> {
        let document: Self = serde_json::from_slice(text)?;
        if document.stockade_profile != VERSION {
            return Err(DocumentError::Version(document.stockade_profile));
        }
        Ok(Side {
            approved: document.approved.profile()?,
            unasked: document.unasked.profile()?,
            settings: document.settings,
            rules: document.rules,
        })
    }
}

/// The protected files that commands could write if they were not. Where none of two configs lies in what either lets
/// commands write, it makes no difference that each protects itself.
fn protected_files(inspection: &Inspection) -> String {
    let Some(files) = inspection.policy.protect.files() else {
        return String::new();
    };
    let access = inspection.approved.prepared();
    let profile = files
        .iter()
        .filter(|file| access(file).get(Operation::Write) != Access::Denied);
    profile.map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// What is protected besides the list, and what of it is not.
fn protected_names(policy: &Policy) -> String {
    let NameChanges { add, except } = &policy.names;
    let added = add.iter().map(|name| format!("+{name}"));
    let all = added.chain(except.iter().map(|name| format!("-{name}")));
    all.filter(|_| policy.protect.files().is_some())
        .collect::<Vec<_>>()
        .join(" ")
}

impl Side {
    /// An inspection in the terms of a comparison.
    pub fn of(inspection: &Inspection) -> Self {
        let table = Table::of(inspection);
        let protect = if table.protected.names.is_empty() {
            "none"
        } else {
            "default"
        };
        let settings = [
            ("home", table.home.to_owned()),
            ("mode", table.mode),
            ("os_sandbox", table.os_sandbox.to_owned()),
            ("protect", protect.to_owned()),
            ("protected_names", protected_names(&inspection.policy)),
            ("protected_files", protected_files(inspection)),
        ];
        let rules = rule_approvals(&inspection.policy);
        let tools = inspection.policy.tool_networks.iter();
        let tools = tools.map(|(name, own)| (format!("network of tool {name}"), own.network.to_string()));
        Self {
            approved: inspection.approved.clone(),
            unasked: inspection.unasked.clone(),
            settings: settings
                .map(|(name, value)| (name.to_owned(), value))
                .into_iter()
                // Documents of earlier versions say nothing of names.
                .filter(|(name, value)| name != "protected_names" || !value.is_empty())
                .chain(tools)
                .collect(),
            rules: rules
                .iter()
                .map(|ask| format!("{}: {}", ask.what, ask.approval))
                .collect(),
        }
    }
}
