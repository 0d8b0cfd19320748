//! What the config says of an operation on a path that was looked at.

use std::collections::BTreeSet;
use std::path::Path;

use super::arguments::FileKind;
use crate::confine::protect::protected_by;
use crate::policy::{AbsPath, Access, Demand, DemandSource, Grant, Operation, Policy, Root, Target};
use crate::profile::ApprovedRoots;
use crate::tools::call::ToolError;
use crate::tools::protected_names::names;
use crate::tools::session_policy::SessionPolicy;

/// A path that may be used, and what that demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    /// The path, without symlinks.
    pub(super) path: AbsPath,
    /// The root that speaks for it.
    pub(super) root: String,
    pub(super) demand: Demand,
    /// Whether a line demands it, or the default.
    pub(super) demand_source: DemandSource,
    /// The config lines that demand it.
    pub(super) why: Vec<AskingLine>,
    pub(super) limit: Option<u64>,
}

/// A line of the config, or its default, for which somebody is asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AskingLine {
    /// What it says.
    pub(super) sentence: String,
    /// What to write there instead, so that nobody is asked.
    pub(super) remedy: &'static str,
}

/// What several judged paths demand together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) demand: Demand,
    /// Whether a line demands any of it, or the default.
    pub(super) demand_source: DemandSource,
    /// The lines that ask for it.
    pub(super) why: Vec<AskingLine>,
    /// What is asked for when somebody says yes, or nothing demands it.
    pub(super) approved_roots: ApprovedRoots,
}

/// What judges the paths of a session: the config's own words, and what flags leave of them.
#[derive(Debug, Clone, Copy)]
pub(in crate::tools) struct Judge<'a>(pub(in crate::tools) &'a SessionPolicy);

impl Judge<'_> {
    /// Judges one operation on one path; the reason where it is forbidden.
    pub(super) fn judge(self, operation: Operation, path: &AbsPath) -> Result<Judged, String> {
        let policy = &self.0.policy;
        let root = policy.root_for(path).ok_or_else(|| self.in_no_root(path))?;
        let limit = match self.0.may(operation, path) {
            Access::Denied => return Err(self.forbidden(operation, path, root)),
            Access::UpTo(limit) => Some(limit),
            Access::Full => None,
        };
        match operation {
            Operation::Write => self.unprotected(path, root)?,
            Operation::Read | Operation::List | Operation::Execute => {}
        }
        let (demand, demand_source, why) = demanded(policy, operation, path);
        Ok(Judged {
            path: path.clone(),
            root: root.name.clone(),
            demand,
            demand_source,
            why,
            limit,
        })
    }

    /// Whether the path may be replaced or taken away with all that is below it.
    pub(super) fn judge_tree(self, path: &AbsPath) -> Result<(), String> {
        let policy = &self.0.policy;
        if let Some(root) = policy.roots.iter().find(|root| root.path.is_within(path)) {
            let what = if root.path == *path { "is" } else { "contains" };
            return Err(format!("{path} {what} the root `{}` ({})", root.name, root.origin));
        }
        let denies = policy.roots.iter().flat_map(|root| &root.denies);
        let inside = denies.chain(&self.0.envelope.denies).find(|deny| match &deny.target {
            Target::Path(place) => place.is_within(path),
            Target::Pattern { .. } => false,
        });
        match inside {
            Some(deny) => Err(format!("{path} contains what is denied at {}", deny.origin)),
            None => Ok(()),
        }
    }

    /// Whether a directory may go there with files of every kind in it: each place must take the same.
    pub(super) fn judge_kinds(self, from: &AbsPath, to: &AbsPath) -> Result<(), String> {
        let ceilings = self.0.policy.ceilings.all.iter().map(|ceiling| &ceiling.policy);
        for policy in std::iter::once(&self.0.policy).chain(ceilings) {
            let kinds = |path| policy.root_for(path).and_then(|root| root.suffixes.as_ref());
            let (before, after) = (kinds(from), kinds(to));
            if let Some(suffixes) = after.or(before).filter(|_| before != after) {
                return Err(format!(
                    "only files that end in {suffixes} count on one side: move the files of {from} one by one"
                ));
            }
        }
        Ok(())
    }

    /// What several paths demand together, and what a yes to it opens.
    pub(super) fn sum(self, judged: &[Judged]) -> Sum {
        let demand = judged.iter().map(|one| one.demand).max().unwrap_or(Demand::None);
        let sources = judged.iter().map(|one| one.demand_source);
        let demand_source = sources.max().unwrap_or(DemandSource::Default);
        let mut why: Vec<AskingLine> = judged.iter().flat_map(|one| one.why.clone()).collect();
        why.sort();
        why.dedup();
        let by_a_ceiling = self.0.policy.ceilings.all.iter().any(|ceiling| {
            judged.iter().any(|one| {
                ceiling
                    .policy
                    .root_for(&one.path)
                    .is_some_and(|root| root.read_approval.max(root.write_approval) > Demand::None)
            })
        });
        let roots: BTreeSet<String> = judged.iter().map(|one| one.root.clone()).collect();
        let approved_roots = match demand {
            Demand::None => ApprovedRoots::None,
            // A ceiling's roots have names of their own.
            Demand::OncePerSession | Demand::Required | Demand::Deny if by_a_ceiling => ApprovedRoots::All,
            Demand::OncePerSession | Demand::Required | Demand::Deny => ApprovedRoots::Named(roots),
        };
        Sum {
            demand,
            demand_source,
            why,
            approved_roots,
        }
    }

    /// Whether the tool asks nobody about these paths: `safe_paths` of its entry. That answers for writing only, and not for what a
    /// ceiling demands.
    pub(super) fn is_safe(
        self,
        kind: FileKind,
        judged: &[Judged],
        approved_roots: &ApprovedRoots,
        view_access: &ApprovedRoots,
    ) -> bool {
        let Some(safe) = self.0.policy.safe_paths.get(kind.name()) else {
            return false;
        };
        let is_safe = |one: &Judged| safe.iter().any(|safe| one.path.is_within(&safe.path));
        match (approved_roots, view_access) {
            (ApprovedRoots::None | ApprovedRoots::Named(_), ApprovedRoots::None) => {
                !judged.is_empty() && judged.iter().all(is_safe)
            }
            (ApprovedRoots::InAdvance(_) | ApprovedRoots::All, _)
            | (_, ApprovedRoots::InAdvance(_) | ApprovedRoots::Named(_) | ApprovedRoots::All) => false,
        }
    }

    fn in_no_root(self, path: &AbsPath) -> String {
        let roots: Vec<String> = self
            .0
            .policy
            .roots
            .iter()
            .map(|root| format!("`{}` ({})", root.name, root.path))
            .collect();
        if roots.is_empty() {
            return format!("{path} lies in no root, and the config has none; add one under `sandbox.paths`");
        }
        format!(
            "{path} lies in no root; file tools reach {}. A root for it under `sandbox.paths` would allow it",
            roots.join(", ")
        )
    }

    /// Names the line that forbids it, and what would allow it.
    fn forbidden(self, operation: Operation, path: &AbsPath, root: &Root) -> String {
        let verb = match operation {
            Operation::Read => "reading",
            Operation::List => "listing",
            Operation::Write => "writing",
            Operation::Execute => "executing",
        };
        let start = format!("{verb} {path} is not permitted:");
        let denies = self.0.policy.roots.iter().flat_map(|root| &root.denies);
        if let Some(deny) = denies
            .into_iter()
            .find(|deny| deny.leaves(operation, path) == Access::Denied)
        {
            return format!("{start} a deny at {} forbids it, whatever else permits it", deny.origin);
        }
        let own = self.0.policy.access(operation, path);
        if own != Access::Denied {
            return format!(
                "{start} a flag of this session takes it away from the root `{}`",
                root.name
            );
        }
        if let Some(suffixes) = &root.suffixes
            && without_suffixes(root).gives(operation, path) > root.grant().gives(operation, path)
        {
            return format!(
                "{start} the root `{}` ({}) takes only files that end in {suffixes}",
                root.name, root.origin
            );
        }
        if root.grant().gives(operation, path) == Access::Denied {
            let would = match operation {
                Operation::Write => "; `mode: rw` there would allow it",
                Operation::Execute => "; `execute: true` there would allow it",
                Operation::Read | Operation::List => "",
            };
            return format!(
                "{start} the root `{}` ({}) does not give it{would}",
                root.name, root.origin
            );
        }
        format!(
            "{start} a ceiling takes it away from the root `{}` ({})",
            root.name, root.origin
        )
    }

    /// Refuses protected names.
    fn unprotected(self, path: &AbsPath, root: &Root) -> Result<(), String> {
        let Some(extra) = self.0.policy.protect.files() else {
            return Ok(());
        };
        let below = path
            .as_path()
            .strip_prefix(root.path.as_path())
            .unwrap_or(Path::new(""));
        let reason = if extra.contains(path) {
            Some("it says what agents may do here".to_owned())
        } else {
            protected_by(&names(&self.0.policy), below)
        };
        match reason {
            Some(reason) => Err(format!(
                "{path} is protected ({reason}); no approval opens it to a tool. A person can change it, and \
                 `sandbox: {{protect: none}}` would allow it"
            )),
            None => Ok(()),
        }
    }

    /// The approval needed to look at these paths.
    pub(super) fn view_access(self, judged: &[Judged]) -> ApprovedRoots {
        self.view_access_of(judged.iter().map(|one| &one.path))
    }

    pub(super) fn view_access_of<'a>(self, paths: impl IntoIterator<Item = &'a AbsPath>) -> ApprovedRoots {
        let closed: BTreeSet<String> = paths
            .into_iter()
            .filter_map(|path| self.0.policy.root_for(path))
            .filter(|root| root.read_approval > Demand::None)
            .map(|root| root.name.clone())
            .collect();
        if closed.is_empty() {
            ApprovedRoots::None
        } else {
            ApprovedRoots::Named(closed)
        }
    }

    /// Why a path may not even be looked at, if it may not.
    pub(super) fn judge_view(self, path: &AbsPath) -> Result<(), String> {
        let seen = [Operation::Read, Operation::List]
            .into_iter()
            .find_map(|operation| self.judge(operation, path).ok());
        match seen {
            Some(_) => Ok(()),
            None => self.judge(Operation::Read, path).map(drop),
        }
    }

    pub(super) fn writable(self, path: &AbsPath) -> Result<Judged, ToolError> {
        self.judge(Operation::Write, path).map_err(ToolError::Blocked)
    }

    /// Suffixes say which files there may be, not which directories: one is judged by a file that may be in it.
    pub(super) fn writable_directory(self, path: &AbsPath) -> Result<Judged, ToolError> {
        let suffixes = self.0.policy.root_for(path).and_then(|root| root.suffixes.as_ref());
        let file = suffixes
            .and_then(|suffixes| suffixes.iter().next())
            .and_then(|suffix| path.child(format!("file{suffix}")));
        let judged = self.judge(Operation::Write, file.as_ref().unwrap_or(path));
        Ok(Judged {
            path: path.clone(),
            ..judged.map_err(ToolError::Blocked)?
        })
    }

    /// The path that was given, or the working directory; where that may not be listed, the roots are named.
    pub(super) fn path_or_working_directory<'a>(
        self,
        written: Option<&'a str>,
        directory: &Path,
    ) -> Result<&'a str, ToolError> {
        if let Some(written) = written {
            return Ok(written);
        }
        let here = AbsPath::new(directory).map_err(|_| ToolError::Directory(directory.to_owned()))?;
        if self.0.may(Operation::List, &here) > Access::Denied && self.0.policy.root_for(&here).is_some() {
            return Ok(".");
        }
        let roots: Vec<String> = self
            .0
            .policy
            .roots
            .iter()
            .map(|root| format!("`{}:` ({})", root.name, root.path))
            .collect();
        Err(ToolError::File(format!(
            "the working directory {here} lies in no root; name one as the path: {}",
            roots.join(", ")
        )))
    }

    /// Whether an entry below the start may be reported.
    pub(super) fn may_report(self, operation: Operation, path: &AbsPath, approved_roots: &ApprovedRoots) -> bool {
        if self.0.may(operation, path) == Access::Denied {
            return false;
        }
        let open = |name: &str| match approved_roots {
            ApprovedRoots::None | ApprovedRoots::InAdvance(_) => false,
            ApprovedRoots::Named(names) => names.contains(name),
            ApprovedRoots::All => true,
        };
        self.0
            .policy
            .root_for(path)
            .is_some_and(|root| root.read_approval == Demand::None || open(&root.name))
    }
}

fn without_suffixes(root: &Root) -> Grant {
    Grant {
        suffixes: None,
        ..root.grant()
    }
}

/// The demand of the root that speaks, and of each ceiling's, with the lines that say so.
fn demanded(policy: &Policy, operation: Operation, path: &AbsPath) -> (Demand, DemandSource, Vec<AskingLine>) {
    let mut demand = Demand::None;
    let mut source = DemandSource::Default;
    let mut why = Vec::new();
    let ceilings = policy.ceilings.all.iter().map(|ceiling| &ceiling.policy);
    for (index, policy) in std::iter::once(policy).chain(ceilings).enumerate() {
        let Some(root) = policy.root_for(path) else { continue };
        let reading = root.read_approval;
        let (own, doing, remedy) = match operation {
            Operation::Write if reading > Demand::None => (
                root.write_approval.max(reading),
                "writing",
                "`approval: {read: none, write: none}`",
            ),
            Operation::Write => (root.write_approval, "writing", "`approval: {write: none}`"),
            Operation::Read | Operation::List | Operation::Execute => (reading, "reading", "`approval: {read: none}`"),
        };
        if own > Demand::None {
            let what = if index == 0 { "root" } else { "ceiling's root" };
            let is_default = reading == Demand::None && root.write_demand_source == DemandSource::Default;
            let by_default = if is_default { " by default" } else { "" };
            source = source.max(if index == 0 && is_default {
                DemandSource::Default
            } else {
                DemandSource::Config
            });
            why.push(AskingLine {
                sentence: format!(
                    "{doing} in the {what} `{}` ({}) {}{by_default}",
                    root.name,
                    root.origin,
                    own.phrase()
                ),
                remedy,
            });
        }
        demand = demand.max(own);
    }
    (demand, source, why)
}
