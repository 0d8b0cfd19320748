//! Profile → mounts, and the Landlock layer for inside.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::copies::{PrivateCopy, partition_copies, retarget_rules};
use super::covers::{CoverPlan, rights_of};
use super::matches::{NewNames, open_patterns, refuse_symlinks};
use super::mounting::{MountRequest, Mounted, mount};
use super::own::{OwnFileSystem, OwnMounts, OwnRule, covered_internals, in_own_mount, in_proc, is_own_path, literal};
use super::plan::{MOST_ARGUMENTS, MountPlan, NetworkNamespace};
use super::statuses::clause_statuses;
use super::visibility::Visibility;
use crate::backend::Regime;
use crate::backend::clauses::aliases::{Granted, refuse_aliases};
use crate::backend::clauses::links::Links;
use crate::backend::clauses::obstacles::{Obstacles, at, granted_operations};
use crate::backend::landlock::lower::{by_entry, layer};
use crate::backend::landlock::rights::{RESOLVE_UNIX, RESOLVE_UNIX_ABI, SCOPE_ABI};
use crate::backend::landlock::{self, LandlockPlan};
use crate::backend::status::{ClauseStatus, Refusal, metadata};
use crate::backend::survey::{Kind, Mounts, Survey, SurveyError, link_at, links_in};
use crate::policy::private_names::ORIGIN_OF_STOCKADE;
use crate::policy::{AbsPath, Deny, DenyFallback, Ending, Grant, Operation, Residuals, Scope, UnixSockets};
use crate::profile::Profile;
use crate::profile::index::Index;

/// The oldest ABI of the layer inside: below it a file in a read-only root can be emptied. Namespaces
/// stand in for the scopes of later ones.
pub const OLDEST_ABI: u32 = 3;

/// What a lowering depends on besides profile and survey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The Landlock ABI of the kernel.
    pub abi: u32,
    /// What to do about a deny that neither mounts nor the layer can hold.
    pub deny_fallback: DenyFallback,
    /// What to do about metadata; nothing of it is left open here.
    pub residuals: Residuals,
    /// The most the private /tmp holds, in bytes.
    pub tmp_bytes: u64,
    /// Protected paths that exist now, to be read-only.
    pub protect: Vec<AbsPath>,
    /// Protected paths that exist now and have copies, which are changed in their place.
    pub copies: Vec<PrivateCopy>,
    /// What this program needs to start inside: the loader, libraries, and the links on the way to them.
    /// They are shown read-only, and no rule inside is on them.
    pub loader: Vec<AbsPath>,
    /// Files that must be seen to be there: a mask stands for each.
    pub veiled: Vec<AbsPath>,
    /// The directory that commands start in, where no root is around it.
    pub start: Option<AbsPath>,
}

impl Options {
    /// Whether names that match a pattern may appear.
    pub(super) const fn new_names(&self) -> NewNames {
        NewNames::under(self.deny_fallback, self.residuals)
    }
}

/// A plan, and the status of each clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lowered {
    /// The namespaces and mounts.
    pub plan: MountPlan,
    /// The Landlock layer for inside.
    pub layer: LandlockPlan,
    /// The rules of that layer on the regime's own mounts.
    pub own: Vec<OwnRule>,
    /// One status per clause, and those of the regime itself.
    pub statuses: Vec<ClauseStatus>,
    /// The protected paths that are read-only or not reachable; the others are as absent ones.
    pub protected: Vec<AbsPath>,
    /// What is covered because a pattern matches it whose new names are admitted.
    pub matched: Vec<AbsPath>,
}

/// Surveys what [`lower`] needs.
pub fn survey(profile: &Profile, options: &Options) -> Result<Survey, SurveyError> {
    survey_after(&Survey::default(), profile, options)
}

/// The same, reusing the survey `seen`.
pub fn survey_after(seen: &Survey, profile: &Profile, options: &Options) -> Result<Survey, SurveyError> {
    let shown = without_own_mounts(profile);
    let obstacles = Obstacles::new(&shown);
    let grants: Index<'_, &Grant> = shown.grants.iter().map(|grant| (&grant.path, grant)).collect();
    let copied = options.copies.iter().map(|copy| &copy.path);
    let protected: Vec<&AbsPath> = options.protect.iter().chain(copied).collect();
    let protect: Index<'_, ()> = protected.iter().map(|path| (*path, ())).collect();
    let opens = |path: &AbsPath| {
        // What is covered is looked through for files with a second name.
        protect.above(path).next().is_some()
            || grants
                .above(path)
                .any(|grant| by_entry(grant, path, &obstacles, DenyFallback::Decompose))
    };
    let fixed = [
        "/",
        super::own::PROC,
        super::own::DEV,
        super::own::TMP,
        super::plan::MASK,
    ];
    let mut paths: Vec<AbsPath> = fixed.iter().filter_map(|path| AbsPath::new(path).ok()).collect();
    paths.extend(super::own::open_internals());
    paths.extend(shown.grants.iter().map(|grant| grant.path.clone()));
    let (links, files): (Vec<&AbsPath>, Vec<&AbsPath>) =
        options.loader.iter().partition(|path| path.as_path().is_symlink());
    paths.extend(files.iter().copied().cloned());
    paths.extend(options.veiled.iter().cloned());
    // Directories on the way to a mount may have to be pinned.
    let denied = shown.denies.iter().filter_map(literal);
    let ends = shown.denies.iter().flat_map(|deny| deny.ends.iter().map(Ending::path));
    let mut on_the_way = Parents::default();
    for path in denied.chain(ends).chain(protected).filter(|path| !in_own_mount(path)) {
        paths.push(path.clone());
        paths.extend(on_the_way.above(path));
    }
    paths.extend(options.copies.iter().map(|copy| copy.source.clone()));
    let mounts = if profile.denies.is_empty() {
        Mounts::default()
    } else {
        Mounts::take()?
    };
    let mut survey = Survey::take_after(seen, &paths, opens, mounts)?;
    let in_tree = |path: &AbsPath| grants.above(path).any(|grant| grant.scope != Scope::File);
    let mut looked = Parents::default();
    for path in shown.grants.iter().map(|grant| &grant.path).chain(files) {
        for directory in looked.above(path).into_iter().filter(|directory| !in_tree(directory)) {
            for (path, link) in links_in(&directory) {
                survey.insert_link(path, link);
            }
        }
    }
    for (path, link) in links.into_iter().filter_map(|path| Some((path, link_at(path)?))) {
        survey.insert_link(path.clone(), link);
    }
    Ok(survey)
}

/// Directories above paths, each returned once.
#[derive(Default)]
struct Parents(BTreeSet<AbsPath>);

impl Parents {
    /// The directories above the path that were not returned yet.
    fn above(&mut self, path: &AbsPath) -> Vec<AbsPath> {
        // All above a returned one were returned.
        let new = path
            .ancestors()
            .skip(1)
            .take_while(|above| self.0.insert(above.clone()));
        new.collect()
    }
}

/// The profile without what the regime's own mounts replace.
fn without_own_mounts(profile: &Profile) -> Cow<'_, Profile> {
    let granted = profile.grants.iter().map(|grant| &grant.path);
    if !granted.chain(profile.identities.keys()).any(in_proc) {
        return Cow::Borrowed(profile);
    }
    let mut shown = profile.clone();
    shown.grants.retain(|grant| !in_proc(&grant.path));
    shown.identities.retain(|path, _| !in_proc(path));
    Cow::Owned(shown)
}

/// The plan for a profile, or the reason why there is none.
pub fn lower(profile: &Profile, survey: &Survey, options: &Options) -> Result<Lowered, Refusal> {
    if options.abi < OLDEST_ABI {
        return Err(Refusal::AbiInside {
            have: options.abi,
            need: OLDEST_ABI,
        });
    }
    let network = NetworkNamespace::of(&profile.network);
    match (network, profile.unix_sockets) {
        (NetworkNamespace::Host, UnixSockets::All) if options.abi < SCOPE_ABI => {
            return Err(Refusal::AbstractSockets {
                have: options.abi,
                need: SCOPE_ABI,
            });
        }
        // In a network namespace of its own there are no abstract sockets but its own; elsewhere none can be made.
        (
            NetworkNamespace::Own | NetworkNamespace::Host,
            UnixSockets::None | UnixSockets::WithinRoots | UnixSockets::All,
        ) => {}
    }
    let mut statuses = vec![metadata(Regime::Namespaces, options.residuals)?];
    refuse_aliases(profile, &Granted::new(profile), survey)?;
    let shown = without_own_mounts(profile);
    let open = open_patterns(options.new_names(), &shown);
    let (copies, narrowed) = partition_copies(&options.copies, &open, &shown, survey);
    // A protected path whose copy cannot be shown is read-only.
    let narrowed = narrowed.iter().map(|copy| &copy.path);
    let protect: Vec<AbsPath> = options.protect.iter().chain(narrowed).cloned().collect();
    let cover_plan = CoverPlan::new(&shown, survey, &protect, options.new_names());
    refuse_symlinks(&cover_plan.open, profile, survey)?;
    let borders = cover_plan.open.iter().map(|deny| at(deny).clone()).collect();
    let request = MountRequest {
        profile: &shown,
        covers: &cover_plan.covers,
        movable: &cover_plan.movable,
        borders: &borders,
        copies: &copies,
        loader: &options.loader,
        veiled: &options.veiled,
        internals: &covered_internals(profile, survey),
        tmp_bytes: options.tmp_bytes,
        start: options.start.as_ref(),
    };
    let mounted = mount(&request, survey)?;
    refuse_links(&shown, survey, &cover_plan, &mounted)?;
    let beneath = copies.iter().map(|copy| &copy.path);
    refuse_protected_links(protect.iter().chain(beneath), survey)?;
    let own = OwnMounts::new(profile, mounted.tmp).rules(&cover_plan.for_landlock);
    let (mut layer, mut own, inside) = self::inside(&shown, &cover_plan, survey, options, &mounted, own)?;
    retarget_rules(&copies, &mounted.copied, &mut layer, survey);
    own.sort();
    statuses.extend(clause_statuses(profile, &cover_plan, inside, &mounted));

    let plan = MountPlan {
        network,
        steps: mounted.steps,
    };
    let have = plan.render().len();
    if have > MOST_ARGUMENTS {
        return Err(Refusal::TooManyMounts {
            have,
            most: MOST_ARGUMENTS,
        });
    }
    let is_covered = |path: &&AbsPath| cover_plan.covers.contains_key(*path);
    let mut protected: Vec<AbsPath> = protect.iter().filter(is_covered).cloned().collect();
    protected.extend(mounted.copied);
    let is_made = |path: &&AbsPath| mounted.made.contains_key(*path);
    Ok(Lowered {
        matched: cover_plan.open_covers.iter().filter(is_made).cloned().collect(),
        plan,
        layer,
        own,
        statuses,
        protected,
    })
}

/// The layer for inside: the profile without the denies that mounts hold, on what is shown of the host.
fn inside(
    shown: &Profile,
    cover_plan: &CoverPlan,
    survey: &Survey,
    options: &Options,
    mounted: &Mounted,
    mut own: Vec<OwnRule>,
) -> Result<(LandlockPlan, Vec<OwnRule>, Vec<ClauseStatus>), Refusal> {
    let mut part = Profile {
        denies: cover_plan.for_landlock.clone(),
        ..shown.clone()
    };
    // A rule for sockets reaches all of a tree, and a read-only bind in it does not stop connecting.
    if part.unix_sockets == UnixSockets::WithinRoots && !cover_plan.covers.is_empty() {
        part.unix_sockets = UnixSockets::None;
    }
    let landlock = landlock::Options {
        abi: options.abi,
        deny_fallback: options.deny_fallback,
        residuals: options.residuals,
    };
    let landlock::Lowered { mut plan, statuses } =
        layer(&part, survey, landlock).map_err(|refusal| cover_plan.explain_refusal(refusal))?;
    // In a network namespace of one's own there is nothing but a loopback, which is free.
    plan.handle_tcp = false;
    plan.rules.retain(|rule| {
        AbsPath::new(&rule.path).is_ok_and(|path| match around(mounted, &path) {
            Visibility::ReadOnly | Visibility::Writable | Visibility::Device => true,
            Visibility::Masked => false,
            Visibility::Nothing => is_own_path(&path),
        })
    });
    let root_is_own = around(mounted, &AbsPath::root()) == Visibility::Nothing;
    if root_is_own && shown.unix_sockets == UnixSockets::All && options.abi >= RESOLVE_UNIX_ABI {
        own.push(OwnRule {
            path: "/".into(),
            file_system: OwnFileSystem::Tmpfs,
            access: RESOLVE_UNIX,
        });
    }
    Ok((plan, own, statuses))
}

fn around(mounted: &Mounted, path: &AbsPath) -> Visibility {
    let found = path.ancestors().find_map(|at| mounted.made.get(&at).copied());
    found.unwrap_or(Visibility::Nothing)
}

/// Refuses a covered file with another name, by which a command could avoid the cover.
fn refuse_links(profile: &Profile, survey: &Survey, cover_plan: &CoverPlan, mounted: &Mounted) -> Result<(), Refusal> {
    let mut links = Links::new(profile, survey);
    links.refuse_targets()?;
    let grants: Index<'_, &Grant> = profile.grants.iter().map(|grant| (&grant.path, grant)).collect();
    let all_denies: Index<'_, &Deny> = profile.denies.iter().map(|deny| (at(deny), deny)).collect();
    for path in cover_plan.covers.keys().filter(|path| mounted.made.contains_key(*path)) {
        let Some(node) = survey.node(path) else { continue };
        if node.kind != Kind::Directory {
            links.refuse(path, node, Operation::ALL.into_iter().collect())?;
            continue;
        }
        let taken = all_denies.above(path).filter(|deny| deny.covers(path));
        let taken = taken.filter(|deny| deny.origin != ORIGIN_OF_STOCKADE);
        for operation in taken.flat_map(|deny| Operation::ALL.into_iter().filter(|op| rights_of(deny).has(op.right())))
        {
            let gives = |grant: &Grant| granted_operations(grant).has(operation);
            if grants.above(path).any(|grant| gives(grant)) {
                links.refuse_below(path, operation)?;
            }
        }
    }
    Ok(())
}

/// The same for protected files: whoever has another name of one could change it by that.
fn refuse_protected_links<'a>(protect: impl Iterator<Item = &'a AbsPath>, survey: &Survey) -> Result<(), Refusal> {
    let mut todo: Vec<AbsPath> = protect.cloned().collect();
    while let Some(path) = todo.pop() {
        match survey.node(&path) {
            Some(node) if node.kind == Kind::Directory => {
                todo.extend(survey.entries(&path).into_iter().flatten());
            }
            Some(node) if node.links > 1 && node.kind != Kind::Symlink => {
                return Err(Refusal::HardLink {
                    clause: format!("protect {path}"),
                    path,
                    origin: "sandbox.protect".to_owned(),
                });
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}
