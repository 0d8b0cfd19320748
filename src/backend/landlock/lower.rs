//! Grants → rules.
//!
//! A grant with nothing in its way is one rule. Where a deny, a suffix or a pattern holds for part
//! of a tree, the operations it touches cannot be given to the directory, because Landlock's rights
//! are a union up the path; they are given to its entries instead, one by one and only to those that
//! are there now. Operations that nothing touches stay with the directory, so a tree with a read-only
//! corner is still readable by one rule.

use super::plan::{Beneath, LandlockPlan, Rule};
use super::rights::{IOCTL_DEV, OLDEST_ABI, RESOLVE_UNIX, RESOLVE_UNIX_ABI, TCP_ABI, handled, to_give};
use crate::backend::Regime;
use crate::backend::clauses::aliases::{Granted, refuse_aliases};
use crate::backend::clauses::links::Links;
use crate::backend::clauses::obstacles::{DenyReach, Obstacles, Operations, at, granted_operations};
use crate::backend::clauses::statuses::{deny_status, frozen};
use crate::backend::status::{ClauseStatus, Refusal, Status, metadata, refuse_hosts};
use crate::backend::survey::{Kind, Mounts, Node, Survey, SurveyError};
use crate::policy::{
    AbsPath, Access, DenyFallback, Grant, Network, Operation, Residuals, Right, Rights, Scope, Target, UnixSockets,
};
use crate::profile::index::Index;
use crate::profile::{FileReach, Profile, Reach};

/// What a lowering depends on besides profile and survey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The Landlock ABI of the kernel.
    pub abi: u32,
    /// What to do about a deny inside a granted tree.
    pub deny_fallback: DenyFallback,
    /// What to do about metadata, which Landlock does not hide.
    pub residuals: Residuals,
}

/// Where Unix sockets are granted.
pub(in crate::backend) const SOCKETS: &str = "shell.unix_sockets";

/// A plan, and the status of each clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lowered {
    /// The layer.
    pub plan: LandlockPlan,
    /// One status per clause, and those of the regime itself.
    pub statuses: Vec<ClauseStatus>,
}

/// Surveys what [`lower`] needs.
pub fn survey(profile: &Profile, options: &Options) -> Result<Survey, SurveyError> {
    survey_after(&Survey::default(), profile, options)
}

/// The same, reusing the survey `seen`.
pub fn survey_after(seen: &Survey, profile: &Profile, options: &Options) -> Result<Survey, SurveyError> {
    let mounts = if profile.denies.is_empty() {
        Mounts::default()
    } else {
        Mounts::take()?
    };
    let obstacles = Obstacles::new(profile);
    let grants: Index<'_, &Grant> = profile.grants.iter().map(|grant| (&grant.path, grant)).collect();
    let opens = |path: &AbsPath| {
        grants
            .above(path)
            .any(|grant| by_entry(grant, path, &obstacles, options.deny_fallback))
    };
    let root = AbsPath::root();
    let denied = profile.denies.iter().filter_map(|deny| match &deny.target {
        Target::Path(path) => Some(path),
        Target::Pattern { .. } => None,
    });
    let granted = profile.grants.iter().map(|grant| &grant.path);
    let paths = granted.chain(denied).chain(std::iter::once(&root));
    Survey::take_after(seen, paths, opens, mounts)
}

/// Whether lowering the grant may look at the entries of this directory.
pub(in crate::backend) fn by_entry(
    grant: &Grant,
    path: &AbsPath,
    obstacles: &Obstacles<'_>,
    fallback: DenyFallback,
) -> bool {
    let operations = granted_operations(grant);
    let reaches = |deny_reach| operations.iter().any(|op| obstacles.deny_reach(op, path) == deny_reach);
    let named = operations.iter().any(|op| is_by_name(grant, op));
    // Where all is denied there is nothing to give, but files with a second name are looked for.
    let all_denied = || {
        operations
            .iter()
            .any(|op| obstacles.deny_reach(op, &grant.path) == DenyReach::All)
    };
    let needed = match fallback {
        // A deny in the way refuses the start whatever the entries are.
        DenyFallback::Refuse | DenyFallback::CoverExisting => named && !reaches(DenyReach::Part) || all_denied(),
        DenyFallback::Decompose => named || reaches(DenyReach::Part) || reaches(DenyReach::All),
    };
    grant.scope != Scope::File && needed
}

fn is_by_name(grant: &Grant, operation: Operation) -> bool {
    grant.suffixes.is_some() && operation != Operation::List
}

/// The plan for a profile, or the reason why there is none.
pub fn lower(profile: &Profile, survey: &Survey, options: &Options) -> Result<Lowered, Refusal> {
    if options.abi < OLDEST_ABI {
        return Err(Refusal::Abi {
            have: options.abi,
            need: OLDEST_ABI,
        });
    }
    refuse_hosts(&profile.network, Regime::Landlock)?;
    let metadata = metadata(Regime::Landlock, options.residuals)?;
    let mut lowered = layer(profile, survey, *options)?;
    lowered.statuses.insert(0, metadata);
    Ok(lowered)
}

/// The layer alone, for any ABI: what a regime asks of the kernel and leaves open is not looked at.
pub(in crate::backend) fn layer(profile: &Profile, survey: &Survey, options: Options) -> Result<Lowered, Refusal> {
    let mut statuses = Vec::new();
    let obstacles = Obstacles::new(profile);
    let granted = Granted::new(profile);
    refuse_aliases(profile, &granted, survey)?;

    let mut lowering = Lowering {
        profile,
        says: profile.prepared(),
        survey,
        options: &options,
        obstacles,
        rules: Vec::new(),
        links: Links::new(profile, survey),
    };
    lowering.links.refuse_targets()?;
    for grant in &profile.grants {
        let losses = lowering.grant(grant)?;
        statuses.push(ClauseStatus::with_losses(grant, &grant.origin, &losses));
    }
    statuses.extend(profile.denies.iter().map(|deny| {
        let executes = granted.near(Rights::EXECUTE, at(deny));
        deny_status(deny, executes)
    }));
    statuses.push(lowering.sockets()?);

    let plan = LandlockPlan {
        abi: options.abi,
        handle_tcp: profile.network != Network::Full && options.abi >= TCP_ABI,
        rules: one_each(lowering.rules),
    };
    Ok(Lowered { plan, statuses })
}

/// Rules sorted by path, what several grants give to one path in one.
fn one_each(mut given: Vec<GrantedAccess>) -> Vec<Rule> {
    // Stable, and grants mostly come sorted: what is there is the first's word.
    given.sort_by(|a, b| a.path.cmp(&b.path));
    given.dedup_by(|more, first| {
        let same = more.path == first.path;
        if same {
            first.access |= more.access;
        }
        same
    });
    let rules = given.into_iter().map(|given| Rule {
        path: given.path.into_os_string(),
        device: given.node.identity.device,
        inode: given.node.identity.inode,
        beneath: given.beneath,
        access: given.access,
    });
    rules.collect()
}

/// What one grant gives to one path.
struct GrantedAccess {
    path: AbsPath,
    beneath: Beneath,
    node: Node,
    access: u64,
}

struct Lowering<'a> {
    profile: &'a Profile,
    says: Box<dyn Fn(&AbsPath) -> Reach + 'a>,
    survey: &'a Survey,
    options: &'a Options,
    obstacles: Obstacles<'a>,
    rules: Vec<GrantedAccess>,
    links: Links<'a>,
}

impl Lowering<'_> {
    /// Adds the rules of one grant; answers with what the OS blocks beyond it.
    fn grant(&mut self, grant: &Grant) -> Result<Vec<String>, Refusal> {
        let mut losses = Vec::new();
        if grant.max_file_bytes.is_some() && grant.rights.has(Right::Write) {
            losses.push("a size limit cannot be held for commands: nothing here can be written by them".to_owned());
        }
        if grant.rights.has(Right::Execute) && !grant.rights.has(Right::Read) {
            losses.push("the kernel reads what it executes: nothing here runs without the read right".to_owned());
        }
        let Some(node) = self.survey.node(&grant.path) else {
            losses.push("there is nothing to get to at this path, and what appears later is not reachable".to_owned());
            return Ok(losses);
        };
        if self
            .profile
            .identities
            .get(&grant.path)
            .is_some_and(|identity| *identity != node.identity)
        {
            return Err(Refusal::Replaced(grant.path.clone()));
        }
        match (grant.scope, node.kind) {
            (_, Kind::Symlink) => return Err(Refusal::Symlink(grant.path.clone())),
            (Scope::Tree | Scope::Names, Kind::Directory) => {
                if self.tree(grant, node)? {
                    losses.push(frozen(grant));
                }
            }
            (Scope::File, Kind::Directory) => losses.push("a directory is where a file was granted".to_owned()),
            (Scope::File | Scope::Tree, Kind::File | Kind::Device | Kind::Fifo | Kind::Socket) => {
                self.links.refuse(&grant.path, node, granted_operations(grant))?;
                self.entry(grant, &grant.path, node, granted_operations(grant));
            }
            (Scope::Names, Kind::File | Kind::Device | Kind::Fifo | Kind::Socket) => {
                losses.push("this is not a directory: there is nothing to list".to_owned());
            }
        }
        Ok(losses)
    }

    /// Rules a tree; answers whether parts of it had to be ruled entry by entry.
    fn tree(&mut self, grant: &Grant, node: Node) -> Result<bool, Refusal> {
        let mut by_entry = false;
        let mut todo = vec![(grant.path.clone(), node, granted_operations(grant))];
        while let Some((path, node, operations)) = todo.pop() {
            let (mut clear, mut open, mut denied) = <(Operations, Operations, Operations)>::default();
            for operation in operations.iter() {
                match self.obstacles.deny_reach(operation, &path) {
                    DenyReach::All => self.links.refuse_below(&path, operation)?,
                    DenyReach::Private => {}
                    DenyReach::Part => {
                        open.add(operation);
                        denied.add(operation);
                    }
                    DenyReach::Nothing if is_by_name(grant, operation) => open.add(operation),
                    DenyReach::Nothing => clear.add(operation),
                }
            }
            self.rule(&path, Beneath::Directory, node, bits(clear, Beneath::Directory));
            if open.is_empty() {
                continue;
            }
            if self.options.deny_fallback != DenyFallback::Decompose
                && let Some(deny) = self.obstacles.culprit(denied, &path)
            {
                return Err(Refusal::DenyBelowGrant {
                    clause: deny.to_string(),
                    origin: deny.origin.to_string(),
                    granted: grant.path.clone(),
                });
            }
            by_entry = true;
            for (child, node) in self.survey.children(&path).map_err(Refusal::NotSurveyed)? {
                match node.kind {
                    Kind::Directory => todo.push((child, node, open)),
                    Kind::File | Kind::Device | Kind::Fifo | Kind::Socket => {
                        self.links.refuse(&child, node, open)?;
                        self.entry(grant, &child, node, open);
                    }
                    // A rule would hold for the link itself, and links lead nowhere by themselves.
                    Kind::Symlink => {}
                }
            }
        }
        Ok(by_entry)
    }

    /// Rules one thing that is not a directory.
    fn entry(&mut self, grant: &Grant, path: &AbsPath, node: Node, operations: Operations) {
        let reach = (self.says)(path);
        let permitted: Operations = operations
            .iter()
            .filter(|op| *op != Operation::List)
            .filter(|op| grant.gives(*op, path) == Access::Full && reach.get(*op) == Access::Full)
            .collect();
        let mut access = bits(permitted, Beneath::File);
        // A terminal is of no use without ioctl. Only a clause that names the device itself asks for that.
        let named = *path == grant.path && path.as_bytes().starts_with(b"/dev/");
        let device = named && node.kind == Kind::Device;
        if device && permitted.has(Operation::Read) && permitted.has(Operation::Write) {
            access |= IOCTL_DEV;
        }
        self.rule(path, Beneath::File, node, access);
    }

    fn rule(&mut self, path: &AbsPath, beneath: Beneath, node: Node, access: u64) {
        let governs_sockets = self.profile.unix_sockets == UnixSockets::WithinRoots;
        let sockets = if governs_sockets && beneath == Beneath::Directory && writes(access) {
            RESOLVE_UNIX
        } else {
            0
        };
        let access = (access | sockets) & handled(self.options.abi);
        if access != 0 {
            self.rules.push(GrantedAccess {
                path: path.clone(),
                beneath,
                node,
                access,
            });
        }
    }

    fn sockets(&mut self) -> Result<ClauseStatus, Refusal> {
        let sockets = self.profile.unix_sockets;
        let governed = self.options.abi >= RESOLVE_UNIX_ABI;
        let status = match sockets {
            UnixSockets::None => Status::Enforced,
            UnixSockets::WithinRoots if governed => Status::Enforced,
            UnixSockets::WithinRoots => Status::Stricter(format!(
                "below Landlock ABI {RESOLVE_UNIX_ABI} sockets cannot be told apart by path: all are refused"
            )),
            UnixSockets::All => {
                if governed {
                    let root = AbsPath::root();
                    let node = self
                        .survey
                        .node(&root)
                        .ok_or_else(|| Refusal::NotSurveyed(root.clone()))?;
                    self.rule(&root, Beneath::Directory, node, RESOLVE_UNIX);
                }
                Status::Enforced
            }
        };
        Ok(ClauseStatus {
            clause: format!("unix sockets {sockets}"),
            origin: SOCKETS.to_owned(),
            status,
        })
    }
}

fn bits(operations: Operations, beneath: Beneath) -> u64 {
    operations
        .iter()
        .fold(0, |bits, operation| bits | to_give(operation, beneath))
}

const fn writes(access: u64) -> bool {
    access & super::rights::WRITE_FILE != 0
}
