//! One operation on one path: which clause decides about it, what backends make of that, and what would change it.

use std::cmp::Ordering;
use std::path::Path;

use serde::Serialize;

use crate::backend::Regime;
use crate::backend::status::Status;
use crate::config::amend::{self, Writing};
use crate::confine::protect::protected_by;
use crate::policy::path::display;
use crate::policy::{AbsPath, Access, Demand, Deny, Grant, Operation, Origin, Policy, Right, Rights, Root};
use crate::profile::{ApprovedRoots, Decided, FileReach, Profile};
use crate::tools::checked_plan::CheckedPlan;
use crate::tools::plan::PlanError;
use crate::tools::protected_names::names;

/// The answer about one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// `read`, `list`, `write` or `execute`.
    pub operation: String,
    /// Whether it is permitted, and to whom.
    pub permitted: Permitted,
    /// Why the name is protected whatever is permitted, if it is.
    pub protected: Option<String>,
    /// The size of the largest file, where writing is permitted up to one.
    pub up_to: Option<u64>,
    /// The clause that decides; none where no clause speaks of the path.
    pub clause: Option<Clause>,
    /// What each backend makes of it.
    pub backends: Vec<BackendAnswer>,
    /// What would change the answer.
    pub change: Vec<String>,
    /// What else holds.
    pub notes: Vec<String>,
}

/// Whether something is permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Permitted {
    /// To every command.
    Yes,
    /// To a command that was approved.
    Approved,
    /// To none.
    No,
}

/// A clause and where it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Clause {
    /// The clause in words.
    pub text: String,
    /// Its line.
    pub origin: String,
}

/// What one backend makes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackendAnswer {
    /// The backend.
    pub backend: Regime,
    /// What a reader should know of all that is said of it.
    pub caveat: Option<&'static str>,
    /// `enforced`, `stricter`, `undone`, `residual`, or `refused` where this backend would start nothing.
    pub status: &'static str,
    /// What exactly, where there is more to say.
    pub detail: Option<String>,
}

/// What decides about a path: a policy, and the two profiles it comes to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Permissions<'a> {
    pub(crate) policy: &'a Policy,
    /// What a command gets when all that needs asking was approved.
    pub(crate) approved: &'a Profile,
    /// What a command gets that nobody was asked about.
    pub(crate) unasked: &'a Profile,
}

impl Permissions<'_> {
    /// The answer about one operation on a path, with what each of these plans makes of it.
    pub(crate) fn answer(
        &self,
        operation: Operation,
        path: &AbsPath,
        writing: Writing,
        plans: &[(Regime, Result<CheckedPlan, PlanError>)],
    ) -> Answer {
        let why = self.approved.explain(operation, path);
        let unasked = self.unasked.access(operation, path);
        let permitted = match (why.access, unasked) {
            (Access::Denied, _) => Permitted::No,
            (_, Access::Denied) => Permitted::Approved,
            (Access::UpTo(_) | Access::Full, Access::UpTo(_) | Access::Full) => Permitted::Yes,
        };
        let (clause, origin) = match why.decided {
            Decided::Grant(grant) => (Some(grant.to_string()), Some(&grant.origin)),
            Decided::Deny(deny) => (Some(deny.to_string()), Some(&deny.origin)),
            Decided::Nothing => (None, None),
        };
        let protection = self.protection(operation, path, why.access);
        let backends = plans
            .iter()
            .map(|(backend, plan)| {
                let question = Question {
                    operation,
                    path,
                    access: why.access,
                    origin,
                    is_protected: protection.is_some(),
                };
                let (status, detail) = match plan.as_ref().map(|plan| question.answer(*backend, plan)) {
                    Ok(Ok(answer)) => answer,
                    Ok(Err(error)) => ("refused", Some(error.to_string())),
                    Err(error) => ("refused", Some(error.to_string())),
                };
                BackendAnswer {
                    backend: *backend,
                    caveat: backend.caveat(),
                    status,
                    detail,
                }
            })
            .collect();
        let speaker = self.policy.root_for(path);
        let asked = speaker.filter(|_| permitted == Permitted::Approved);
        let mut notes: Vec<String> = asked.and_then(|root| asked_by(root, operation)).into_iter().collect();
        let beyond =
            self.policy.ceilings.all.iter().filter(|ceiling| {
                why.access == Access::Denied && ceiling.policy.access(operation, path) == Access::Denied
            });
        notes.extend(
            beyond.map(|ceiling| format!("the ceiling {} does not give it", display(ceiling.file.as_os_str()))),
        );
        Answer {
            operation: operation.to_string(),
            permitted,
            protected: protection,
            up_to: match why.access {
                Access::UpTo(bytes) => Some(bytes),
                Access::Denied | Access::Full => None,
            },
            clause: clause.zip(origin).map(|(text, origin)| Clause {
                text,
                origin: origin.to_string(),
            }),
            backends,
            change: self.change(operation, path, writing),
            notes,
        }
    }

    fn protection(&self, operation: Operation, path: &AbsPath, access: Access) -> Option<String> {
        let files = self.policy.protect.files()?;
        if operation != Operation::Write || access == Access::Denied {
            return None;
        }
        if files.contains(path) {
            return Some("this config decides how the next command is confined".to_owned());
        }
        let writable = |root: &&Root| root.rights.has(Right::Write) && path.is_within(&root.path);
        let inside = self.policy.roots.iter().filter(writable);
        let names = names(self.policy);
        inside
            .filter_map(|root| path.as_path().strip_prefix(root.path.as_path()).ok())
            .find_map(|relative: &Path| protected_by(&names, relative))
    }

    /// What a person would edit.
    fn change(&self, operation: Operation, path: &AbsPath, writing: Writing) -> Vec<String> {
        let why = self.approved.explain(operation, path);
        let mut change = Vec::new();
        match why.decided {
            Decided::Grant(_) if self.policy.root_for(path).is_some_and(|root| why.access_from(root)) => {
                let root = self.policy.root_for(path).map_or("", |root| root.name.as_str());
                change.push(format!("`deny:` in root `{root}` would forbid it"));
                change.extend(why.granted.iter().map(|grant| remove(grant)));
            }
            Decided::Grant(_) => change.extend(why.granted.iter().map(|grant| remove(grant))),
            Decided::Deny(_) => {
                change.extend(without(&why.denied));
            }
            Decided::Nothing => {
                change.extend(why.missed.first().map(|grant| missing(grant, operation, path, writing)));
                if self.policy.root_for(path).is_none() {
                    change.push(match amend::quoted_path(path) {
                        Some(name) => format!(
                            "a root under `sandbox.paths` that holds it would permit it: `{{root: {name}{}}}`",
                            mode(self.granted_rights(path) | operation.right().into(), writing)
                        ),
                        None => "a root under `sandbox.paths` that holds it would permit it: a directory above it, as its own \
                                 name is no text"
                            .to_owned(),
                    });
                }
                if !why.denied.is_empty() {
                    let denies = why.denied.iter().map(|deny| format!("`{deny}` ({})", deny.origin));
                    let denies: Vec<String> = denies.collect();
                    change.push(format!("{} would have to go as well", denies.join(", ")));
                }
            }
        }
        change
    }
}

impl Permissions<'_> {
    /// What a root there would take away if it did not say it: it speaks in the place of all that is around it.
    fn granted_rights(&self, path: &AbsPath) -> Rights {
        let each = [(Operation::Write, Rights::WRITE), (Operation::Execute, Rights::EXECUTE)];
        let granted_rights = each
            .into_iter()
            .filter(|(operation, _)| self.approved.access(*operation, path) != Access::Denied);
        granted_rights.fold(Rights::NONE, |all, (_, right)| all | right)
    }
}

impl crate::profile::Explanation<'_> {
    /// Whether one of the grants that give it is the root's own.
    fn access_from(&self, root: &Root) -> bool {
        self.granted.iter().any(|grant| grant.origin == root.origin)
    }
}

/// What would permit something that these denies are in the way of.
pub(crate) fn without(denies: &[&Deny]) -> Vec<String> {
    let all = denies.iter();
    let mut change: Vec<String> = all
        .map(|deny| format!("without `{deny}` ({}) it would be permitted", deny.origin))
        .collect();
    if change.len() > 1 {
        change.insert(0, "all of these would have to go:".to_owned());
    }
    change
}

fn remove(grant: &Grant) -> String {
    format!("without `{grant}` ({}) it would lose that grant", grant.origin)
}

fn missing(grant: &Grant, operation: Operation, path: &AbsPath, writing: Writing) -> String {
    let named = path
        .name()
        .is_some_and(|name| grant.suffixes.as_ref().is_some_and(|suffixes| !suffixes.matches(name)));
    let lacks = if !grant.rights.has(operation.right()) {
        format!("gives no {}", operation.right())
    } else if named && operation != Operation::List {
        "is for other suffixes".to_owned()
    } else {
        format!("does not give {operation} there")
    };
    let how = match &grant.origin {
        Origin::File { .. } | Origin::Preset { .. } if !grant.rights.has(operation.right()) => {
            mode(operation.right().into(), writing)
        }
        Origin::File { .. } | Origin::Preset { .. } | Origin::Flag(_) | Origin::Builtin(_) => String::new(),
    };
    let hint = how
        .strip_prefix(", ")
        .map_or_else(String::new, |how| format!("; a root there would need `{how}`"));
    format!("`{grant}` ({}) {lacks}{hint}", grant.origin)
}

/// What a root needs for these rights, as one writes it behind its path.
fn mode(rights: Rights, writing: Writing) -> String {
    // Where a root says nothing of it, writing is for commands that were asked about.
    let is_free = writing == Writing::Free;
    let limit = [
        (rights.has(Right::Write), ", mode: rw"),
        (rights.has(Right::Write) && is_free, ", write_approval: false"),
        (rights.has(Right::Execute), ", execute: true"),
    ];
    limit
        .into_iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, what)| what)
        .collect()
}

/// Who may have to write in what a command that was permitted this lacks.
pub(crate) const fn writing(approved_roots: &ApprovedRoots) -> Writing {
    match approved_roots {
        ApprovedRoots::None | ApprovedRoots::InAdvance(_) => Writing::Free,
        ApprovedRoots::Named(_) | ApprovedRoots::All => Writing::Asked,
    }
}

/// The demand that keeps it from a command nobody was asked about.
fn asked_by(root: &Root, operation: Operation) -> Option<String> {
    let demand = |word: &str, demand: Demand| {
        (demand != Demand::None).then(|| {
            format!(
                "{word} in root `{}` is asked about: {demand} ({})",
                root.name, root.origin
            )
        })
    };
    let read = demand("reading", root.read_approval);
    match operation {
        Operation::Read | Operation::List | Operation::Execute => read,
        Operation::Write => demand("writing", root.write_approval).or(read),
    }
}

/// What is asked of each backend, with what the profile says.
struct Question<'a> {
    operation: Operation,
    path: &'a AbsPath,
    access: Access,
    origin: Option<&'a Origin>,
    is_protected: bool,
}

impl Question<'_> {
    fn answer(&self, backend: Regime, plan: &CheckedPlan) -> Result<(&'static str, Option<String>), PlanError> {
        if let Some(why) = &plan.refuses {
            return Ok(("refused", Some(why.clone())));
        }
        let in_plan = plan.access(self.operation, self.path)?;
        Ok(match (in_plan.cmp(&self.access), self.is_protected) {
            (Ordering::Less, true) => ("enforced", Some("protected: no command can write it here".to_owned())),
            (Ordering::Less, false) => ("stricter", Some(self.losses(in_plan, plan))),
            (Ordering::Equal, true) => ("undone", Some("a change is restored after the command".to_owned())),
            (Ordering::Equal, false) => {
                let open = (self.access == Access::Denied).then(|| plan.left_open()).flatten();
                ("enforced", open.map(|open| format!("left open: {open}")))
            }
            // The plan was held against the profile, so this is what a backend says it gives beyond it.
            (Ordering::Greater, _) => match self.admitted(plan) {
                Some(open) => ("residual", Some(open)),
                None => match backend {
                    Regime::Landlock | Regime::Namespaces => (
                        "enforced",
                        Some("it is the sandbox's own there: nothing of the host's is reached".to_owned()),
                    ),
                    Regime::None => ("residual", Some("nothing confines a command there".to_owned())),
                    Regime::Seatbelt => (
                        "residual",
                        Some("permitted to every command by the rules that no program there can do without".to_owned()),
                    ),
                },
            },
        })
    }

    /// What the clause that denies it leaves open, where the config admits that.
    fn admitted(&self, plan: &CheckedPlan) -> Option<String> {
        let origin = self.origin.map(ToString::to_string)?;
        plan.clauses.iter().find_map(|clause| match &clause.status {
            Status::Residual(residual) if clause.origin == origin => Some(residual.what.clone()),
            Status::Residual(_) | Status::Enforced | Status::Undone | Status::Stricter(_) => None,
        })
    }

    /// What the backend takes beyond the clause.
    fn losses(&self, in_plan: Access, plan: &CheckedPlan) -> String {
        let origin = self.origin.map(ToString::to_string);
        let of_clause = plan
            .clauses
            .iter()
            .filter(|clause| Some(&clause.origin) == origin.as_ref());
        let losses = of_clause.filter_map(|clause| match &clause.status {
            Status::Stricter(what) => Some(what.clone()),
            Status::Enforced | Status::Undone | Status::Residual(_) => None,
        });
        let losses: Vec<String> = losses.collect();
        let limit = match in_plan {
            Access::Denied => "commands are refused here".to_owned(),
            Access::UpTo(bytes) => format!("up to {} here", size(bytes)),
            Access::Full => String::new(),
        };
        let detail = [limit, losses.join("; ")].into_iter().filter(|text| !text.is_empty());
        detail.collect::<Vec<_>>().join(": ")
    }
}

/// Bytes in the largest unit that loses nothing.
pub fn size(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    units
        .iter()
        .find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift)
        .map_or_else(
            || format!("{bytes} B"),
            |(unit, shift)| format!("{} {unit}", bytes >> shift),
        )
}
