//! The table: what may be read, written, executed and reached, and the line that says so.

use std::collections::BTreeMap;

use serde::Serialize;

use super::answers::{AdvanceAnswer, answers};
use super::hosts::NetworkRow;
use super::inspection::Inspection;
use crate::policy::path::escape;
use crate::policy::{
    AbsPath, Demand, DemandSource, Deny, EnvRule, Grant, HomeChoice, Limits, OsSandbox, Policy, Right, Rights, Scope,
};
use crate::profile::cuts;
use crate::tools::explain::size;
use crate::tools::protected_names;

/// What a policy permits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// What may be read, written and executed, sorted by path.
    pub files: Vec<FileRow>,
    /// What is forbidden whatever the rows above say, sorted.
    pub denies: Vec<DenyRow>,
    /// What was asked for beyond a ceiling: the line, what, and the ceiling.
    pub cuts: Vec<String>,
    /// Reach over IP.
    pub network: String,
    /// The same with each host and its line, and every network that a rule or a tool has in its place.
    pub networks: Vec<NetworkRow>,
    /// Reach over Unix sockets.
    pub unix_sockets: String,
    /// Bounds of a command, those that are set.
    pub limits: BTreeMap<&'static str, String>,
    /// Variables of a command.
    pub environment: Vec<Variable>,
    /// HOME of a command.
    pub home: &'static str,
    /// What demands a yes, with its line.
    pub asks: Vec<ApprovalRow>,
    /// What runs without a question, and where it writes.
    pub runs_unasked: Vec<AdvanceAnswer>,
    /// Names that are protected below writable roots.
    pub protected: Protected,
    /// Who answers questions.
    pub mode: String,
    /// Whether commands may run unconfined.
    pub os_sandbox: &'static str,
}

/// One granted place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FileRow {
    /// Where.
    pub path: String,
    /// What an approved command may do there: `read+write`, or `list` for names alone.
    pub may: String,
    /// What a command may do that nobody was asked about.
    pub unasked: String,
    /// How it is narrowed: one file, suffixes, a size.
    pub only: Vec<String>,
    /// The line that grants it.
    pub origin: String,
}

/// One forbidden place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DenyRow {
    /// A path, or names at any depth below one.
    pub target: String,
    /// What it takes.
    pub takes: String,
    /// How it is narrowed.
    pub only: Vec<String>,
    /// The line that forbids it.
    pub origin: String,
    /// Whether it is only in the profile of what nobody was asked about.
    pub unasked_only: bool,
}

/// One variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// `passed`, or the value it is set to.
    pub value: String,
}

/// One demand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApprovalRow {
    /// What is asked about.
    pub what: String,
    /// `required`, `once_per_session`, `deny`, or `none` where that is worth saying.
    pub approval: String,
    /// The line that demands it.
    pub origin: String,
}

/// What is protected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Protected {
    /// The names as patterns, or none.
    pub names: Vec<String>,
    /// Single files.
    pub files: Vec<String>,
}

impl Table {
    /// The table of a policy.
    pub fn of(inspection: &Inspection) -> Self {
        let Inspection {
            policy,
            approved,
            unasked,
            ..
        } = inspection;
        let mut left: BTreeMap<GrantKey<'_>, Rights> = BTreeMap::new();
        for grant in &unasked.grants {
            let rights = left.entry(grant_key(grant)).or_default();
            *rights = *rights | grant.rights;
        }
        let mut grants: Vec<&Grant> = approved.grants.iter().collect();
        grants.sort();
        grants.dedup();
        let files = grants.iter().map(|grant| {
            let rights = left.get(&grant_key(grant)).copied().unwrap_or_default();
            file_row(grant, rights.and(grant.rights))
        });
        let mut denies: Vec<DenyRow> = approved.denies.iter().map(|deny| deny_row(deny, false)).collect();
        let known: std::collections::BTreeSet<&Deny> = approved.denies.iter().collect();
        let more = unasked.denies.iter().filter(|deny| !known.contains(deny));
        denies.extend(more.map(|deny| deny_row(deny, true)));
        denies.sort();
        denies.dedup();
        Self {
            files: files.collect(),
            denies,
            cuts: cuts(policy).iter().map(ToString::to_string).collect(),
            network: approved.network.to_string(),
            networks: inspection.reaches().iter().map(NetworkRow::of).collect(),
            unix_sockets: approved.unix_sockets.to_string(),
            limits: limits(&approved.limits),
            environment: approved.environment.iter().map(variable).collect(),
            home: match policy.home {
                HomeChoice::Private => "private",
                HomeChoice::Real => "real",
            },
            asks: approvals(policy),
            runs_unasked: answers(policy, &[], &inspection.narrowing),
            protected: protection(policy),
            mode: policy.mode.to_string(),
            os_sandbox: match policy.os_sandbox {
                OsSandbox::FailFast => "required",
                OsSandbox::RefuseTools => "required (calls are refused without it)",
                OsSandbox::NotRequired => "not required: commands may run unconfined",
            },
        }
    }
}

/// Identifies a grant within a policy.
type GrantKey<'a> = (&'a AbsPath, Scope, &'a crate::policy::Origin);

fn grant_key(grant: &Grant) -> GrantKey<'_> {
    (&grant.path, grant.scope, &grant.origin)
}

fn file_row(grant: &Grant, unasked: Rights) -> FileRow {
    let may = |rights: Rights| match grant.scope {
        Scope::Names if rights.has(Right::Read) => "list".to_owned(),
        Scope::Names | Scope::Tree | Scope::File => rights.to_string(),
    };
    let mut only = Vec::new();
    if grant.scope == Scope::File {
        only.push("this file".to_owned());
    }
    only.extend(grant.suffixes.as_ref().map(ToString::to_string));
    let writes = grant.rights.has(Right::Write);
    only.extend(
        grant
            .max_file_bytes
            .filter(|_| writes)
            .map(|bytes| format!("files up to {}", size(bytes))),
    );
    FileRow {
        path: grant.path.to_string(),
        may: may(grant.rights),
        unasked: may(unasked),
        only,
        origin: grant.origin.to_string(),
    }
}

fn deny_row(deny: &Deny, unasked_only: bool) -> DenyRow {
    let mut only = Vec::new();
    only.extend(deny.except.as_ref().map(|except| format!("all but {except}")));
    only.extend(deny.beyond.map(|bytes| format!("files above {}", size(bytes))));
    only.extend(deny.ends.iter().map(|end| format!("outside {}", end.path())));
    DenyRow {
        target: deny.target.to_string(),
        takes: deny.rights.to_string(),
        only,
        origin: deny.origin.to_string(),
        unasked_only,
    }
}

/// The limits that are set, as a person reads them.
pub(super) fn limits(limits: &Limits) -> BTreeMap<&'static str, String> {
    let Limits {
        timeout,
        memory,
        processes,
        open_files,
        file_size,
        output,
    } = limits;
    let all = [
        ("timeout", timeout.map(|time| format!("{}s", time.as_secs_f64()))),
        ("memory", memory.map(size)),
        ("processes", processes.map(|count| count.to_string())),
        ("open_files", open_files.map(|count| count.to_string())),
        ("file_size", file_size.map(size)),
        ("output", output.map(size)),
    ];
    all.into_iter()
        .filter_map(|(name, value)| value.map(|value| (name, value)))
        .collect()
}

fn variable((name, rule): (&crate::policy::VarName, &EnvRule)) -> Variable {
    use std::os::unix::ffi::OsStrExt;
    Variable {
        name: escape(name.as_str().as_bytes()),
        value: match rule {
            EnvRule::Pass => "passed".to_owned(),
            EnvRule::Set(value) => format!("= {}", escape(value.as_bytes())),
        },
    }
}

fn approvals(policy: &Policy) -> Vec<ApprovalRow> {
    let mut asks = Vec::new();
    for root in &policy.roots {
        let demands = [
            ("read", root.read_approval, Right::Read),
            ("write", root.write_approval, Right::Write),
        ];
        for (operation, demand, right) in demands
            .into_iter()
            .filter(|(_, demand, right)| *demand != Demand::None && root.rights.has(*right))
        {
            asks.push(ApprovalRow {
                what: format!("{operation} in {}", root.path),
                approval: match (right, root.write_demand_source) {
                    (Right::Write, DemandSource::Default) => format!("{demand} by default"),
                    _ => demand.to_string(),
                },
                origin: root.origin.to_string(),
            });
        }
    }
    asks.extend(rule_approvals(policy));
    asks
}

/// What the shell rules and the tool overrides demand, in file order.
pub(super) fn rule_approvals(policy: &Policy) -> Vec<ApprovalRow> {
    let rules = policy.rules.iter().chain([&policy.default_rule]);
    let mut asks: Vec<ApprovalRow> = Vec::new();
    asks.extend(rules.map(|rule| ApprovalRow {
        what: if rule.pattern.is_empty() {
            "any other command".to_owned()
        } else {
            let paths = rule.sandbox_paths.as_ref();
            let paths = paths.map(|names| format!(" (in {} only)", names.join(", ")));
            let pattern = escape(rule.pattern.join(" ").as_bytes());
            let network = rule.network.as_ref().map(|own| format!(" (network {})", own.network));
            format!(
                "command `{pattern}`{}{}",
                paths.unwrap_or_default(),
                network.unwrap_or_default()
            )
        },
        approval: if rule.allowed {
            rule.approval.to_string()
        } else {
            "blocked".to_owned()
        },
        origin: rule.origin.to_string(),
    }));
    asks.extend(policy.tools.iter().map(|(name, rule)| ApprovalRow {
        what: format!("tool {name}"),
        approval: rule.approval.to_string(),
        origin: rule.origin.to_string(),
    }));
    asks.extend(policy.dangerous.iter().map(|pattern| ApprovalRow {
        what: format!("lines that match `{}`", pattern.expression),
        approval: Demand::Required.to_string(),
        origin: pattern.origin.to_string(),
    }));
    for (tool, paths) in &policy.safe_paths {
        asks.extend(paths.iter().map(|safe| ApprovalRow {
            what: format!("tool {tool} below {}", safe.path),
            approval: Demand::None.to_string(),
            origin: safe.origin.to_string(),
        }));
    }
    asks
}

fn protection(policy: &Policy) -> Protected {
    match policy.protect.files() {
        None => Protected {
            names: Vec::new(),
            files: Vec::new(),
        },
        Some(files) => {
            let mut names = protected_names::names(policy).all();
            names.push(".git".to_owned());
            names.sort_unstable();
            names.dedup();
            Protected {
                names,
                files: files.iter().map(ToString::to_string).collect(),
            }
        }
    }
}
