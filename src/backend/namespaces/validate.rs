//! Checks the arguments of bwrap and the Landlock layer against a profile.
//!
//! Three checks. Mounts and layer together permit only what the profile permits. Mounts alone show and change only what some clause
//! names, so the first wall is as tight as mounts can be. The namespaces exist, the root is read-only, and no mount can be moved
//! away.

use std::ffi::{OsStr, OsString};

use super::copies::PrivateCopy;
use super::lower::OLDEST_ABI;
use super::matches::{NewNames, open_patterns};
use super::mount_reach::check_mount_reach;
use super::new_names::{NewNamesReach, without};
use super::own::{DEV, OwnFileSystem, OwnRule, PROC, ProfileWithOwnMounts, TMP, Tmp, is_internal};
use super::plan::BindAccess;
use super::reader::{Frozen, Mount, View, read, refused};
use crate::backend::attributes::AttributePlan;
use crate::backend::landlock::reader::{check_rules, sockets_within};
use crate::backend::landlock::rights::{RESOLVE_UNIX, SCOPE_ABI};
use crate::backend::landlock::{Beneath, LandlockPlan, Rule};
use crate::backend::survey::{Kind, Survey};
use crate::policy::{AbsPath, Access, Deny, Network, Operation, Pattern, Target, UnixSockets};
use crate::profile::index::Index;
use crate::profile::order::Permission;
use crate::profile::{FileReach, Landmarks, Profile, Reach, Witness, files_within};

/// The mounts, namespaces and Landlock layer of the `namespaces` regime.
#[derive(Debug, Clone, Copy)]
pub struct LayeredPlan<'a> {
    /// The arguments of bwrap.
    pub argv: &'a [OsString],
    /// The layer inside.
    pub layer: &'a LandlockPlan,
    /// Its rules on the regime's own mounts.
    pub own: &'a [OwnRule],
    /// The private copies that may be shown.
    pub copies: &'a [PrivateCopy],
    /// What this program needs to start inside, which mounts show and no rule is on.
    pub loader: &'a [AbsPath],
    /// Whether names that match a pattern may appear.
    pub new_names: NewNames,
}

/// Checks the layered plan and the attribute plan against the profile and the survey.
pub fn validate(
    layered_plan: &LayeredPlan<'_>,
    attributes: &AttributePlan,
    profile: &Profile,
    survey: &Survey,
) -> Result<(), Witness> {
    let layered_reach = LayeredReach::read(layered_plan, survey)?;
    let view = &layered_reach.view;
    check_namespaces(view, profile)?;
    let open = open_patterns(layered_plan.new_names, profile);
    check_pins(view, profile, &open)?;
    if layered_plan.layer.abi < OLDEST_ABI {
        return Err(refused(format!(
            "emptying files (Landlock ABI {})",
            layered_plan.layer.abi
        )));
    }
    // No path leads to them: a network namespace or a scope keeps them out, or that no socket can be made.
    if !view.namespaces.contains(OsStr::new("net"))
        && profile.unix_sockets == UnixSockets::All
        && layered_plan.layer.abi < SCOPE_ABI
    {
        return Err(refused("the host's abstract sockets".to_owned()));
    }
    check_rules(layered_plan.layer, profile)?;
    check_own_rules(layered_plan.own, view, profile)?;
    sockets_within(layered_plan.layer, profile)?;
    let tmp = tmp_of(view);
    let permitted = ProfileWithOwnMounts { profile, tmp };
    let later = without(profile, &open);
    let admitted = NewNamesReach {
        now: &permitted,
        later: ProfileWithOwnMounts { profile: &later, tmp },
        open: &open,
        survey,
    };
    layered_reach.nodes_within(&permitted)?;
    files_within(&layered_reach, &admitted)?;
    files_within(attributes, &permitted)?;
    check_mount_reach((view, tmp_of(view)), layered_plan.loader, profile, survey)
}

/// Whether the private directory is there.
fn tmp_of(view: &View) -> Tmp {
    match AbsPath::new(TMP).ok().and_then(|top| view.mounts.get(&top)) {
        Some(Mount::Tmpfs(_)) => Tmp::Private,
        Some(Mount::Host(_) | Mount::Copy | Mount::Mask | Mount::Proc(_) | Mount::Dev(_)) | None => Tmp::Granted,
    }
}

/// The namespaces, the capabilities and the mounts that must be there.
pub(super) fn check_namespaces(view: &View, profile: &Profile) -> Result<(), Witness> {
    let net: &[&str] = match profile.network {
        Network::Off | Network::Hosts(_) => &["net"],
        Network::Full => &[],
    };
    for name in ["user", "ipc", "pid", "uts", "cgroup"].iter().chain(net) {
        if !view.namespaces.contains(OsStr::new(name)) {
            return Err(refused(format!("the host's {name} namespace")));
        }
    }
    if !view.capabilities_dropped {
        return Err(refused("capabilities over the mounts".to_owned()));
    }
    let at = |path: &str| {
        AbsPath::new(path)
            .ok()
            .and_then(|path| view.around(&path).map(|(_, mount)| mount))
    };
    match at(PROC) {
        Some(Mount::Proc(Frozen::Yes)) => {}
        // What its owner changes there, modes among it, is changed in every /proc.
        Some(Mount::Proc(Frozen::No)) => return Err(refused("changing what the kernel tells in /proc".to_owned())),
        Some(_) | None => return Err(refused("the host's processes in /proc".to_owned())),
    }
    match at(DEV) {
        Some(Mount::Dev(Frozen::Yes) | Mount::Host(BindAccess::Device)) => {}
        Some(_) | None => return Err(refused("another /dev".to_owned())),
    }
    match view.mounts.get(&AbsPath::root()) {
        Some(Mount::Tmpfs(Frozen::Yes) | Mount::Host(_)) => Ok(()),
        Some(_) | None => Err(refused("a root directory to write in".to_owned())),
    }
}

/// A directory between a writable bind and a mount inside it must be a mount itself, or it could be renamed. Whoever moves a
/// copy may write where it was, and a cover that is moved stays one where an `open` pattern matches.
pub(super) fn check_pins(view: &View, profile: &Profile, open: &[&Deny]) -> Result<(), Witness> {
    let holding = view.mounts.iter().filter(|(_, mount)| **mount != Mount::Copy);
    for (point, holding) in holding {
        let Some(parent) = point.parent() else { continue };
        let Some((above, mount)) = view.around(&parent) else {
            continue;
        };
        let is_named = |pattern: &Pattern| point.name().is_some_and(|name| pattern.matches(name));
        let stays_denied = |deny: &&&Deny| match &deny.target {
            Target::Path(_) => false,
            Target::Pattern { root, pattern } => above.is_within(root) && is_named(pattern),
        };
        let is_cover = matches!(holding, Mount::Mask | Mount::Tmpfs(Frozen::Yes));
        let mut others = profile.denies.iter().filter(|deny| !open.contains(deny));
        if is_cover && open.iter().any(|deny| stays_denied(&deny)) && !others.any(|deny| deny.covers(point)) {
            continue;
        }
        let movable = match mount {
            Mount::Host(BindAccess::Writable | BindAccess::Device) => *above != parent,
            Mount::Host(BindAccess::ReadOnly)
            | Mount::Copy
            | Mount::Mask
            | Mount::Tmpfs(_)
            | Mount::Proc(_)
            | Mount::Dev(_) => false,
        };
        if movable {
            return Err(refused(format!("renaming {parent}, and with it the mount at {point}")));
        }
    }
    Ok(())
}

fn check_own_rules(own: &[OwnRule], view: &View, profile: &Profile) -> Result<(), Witness> {
    for rule in own {
        let rule_path = AbsPath::new(&rule.path)
            .ok()
            .filter(|path| path.as_bytes() == rule.path.as_encoded_bytes());
        let rule_path = rule_path.ok_or_else(|| refused("a rule on a path that is not normal".to_owned()))?;
        let fits = match (view.mounts.get(&rule_path), rule.file_system) {
            (Some(Mount::Proc(_)), OwnFileSystem::Proc) => rule.access & RESOLVE_UNIX == 0,
            (Some(Mount::Tmpfs(_)), OwnFileSystem::Tmpfs) => {
                rule.access & RESOLVE_UNIX == 0
                    || profile.unix_sockets == UnixSockets::All && rule.access == RESOLVE_UNIX
            }
            (Some(_) | None, _) => false,
        };
        if !fits {
            return Err(refused(format!(
                "a rule on {rule_path}, which is no mount of the regime's own"
            )));
        }
    }
    Ok(())
}

/// The layer with the rules whose inodes are not known before the namespace is there.
fn with_own_mounts(layer: &LandlockPlan, own: &[OwnRule]) -> LandlockPlan {
    let mut layer = layer.clone();
    layer.rules.extend(own.iter().map(|rule| Rule {
        path: rule.path.clone(),
        device: 0,
        inode: 0,
        beneath: Beneath::Directory,
        access: rule.access,
    }));
    layer
}

/// What mounts and Landlock layer together permit, given the survey.
#[derive(Debug)]
pub struct LayeredReach<'a> {
    layer: LandlockPlan,
    view: View,
    survey: &'a Survey,
}

impl<'a> LayeredReach<'a> {
    /// Reads the bytes.
    pub fn read(layered_plan: &LayeredPlan<'_>, survey: &'a Survey) -> Result<Self, Witness> {
        Ok(Self {
            layer: with_own_mounts(layered_plan.layer, layered_plan.own),
            view: read(layered_plan.argv, layered_plan.copies, survey)?,
            survey,
        })
    }

    /// The mounts alone.
    pub fn mounts(&self) -> &View {
        &self.view
    }

    /// Everything that was seen, path by path: whether something exists decides as well, and the finitely
    /// many classes of paths know nothing of that.
    fn nodes_within(&self, permitted: &ProfileWithOwnMounts<'_>) -> Result<(), Witness> {
        let (reach, profile) = (self.prepared(), permitted.prepared());
        // A link is never opened itself; what it leads to is looked at where it lies.
        let seen = self.survey.nodes().filter(|(_, node)| node.kind != Kind::Symlink);
        let beyond = seen.filter_map(|(path, _)| {
            let (operation, access) = reach(path).beyond(|| profile(path))?;
            Some((path, operation, access))
        });
        match beyond.min_by_key(|(path, ..)| *path) {
            None => Ok(()),
            Some((path, operation, access)) => Err(Witness {
                what: Permission::File {
                    operation,
                    path: path.clone(),
                    access,
                },
                wide: self.name(),
                tight: permitted.name(),
            }),
        }
    }
}

impl FileReach for LayeredReach<'_> {
    fn name(&self) -> &'static str {
        "the mounts and the Landlock plan"
    }

    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>) {
        self.view.landmarks(landmarks);
        self.layer.landmarks(landmarks);
        // What lies in a directory that was not listed may exist, whatever its name.
        let unlisted = self
            .survey
            .nodes()
            .filter(|(path, node)| node.kind == Kind::Directory && self.survey.entries(path).is_none());
        unlisted.for_each(|(path, _)| landmarks.path(path));
    }

    fn prepared(&self) -> Box<dyn Fn(&AbsPath) -> Reach + '_> {
        let (layer, mounts) = (self.layer.prepared(), self.view.index());
        let is_file = |point: &AbsPath| {
            let node = self.survey.node(point);
            node.is_some_and(|node| node.kind != Kind::Directory)
        };
        let files = self.view.mounts.keys().filter(|point| is_file(point));
        let files: Index<'_, &AbsPath> = files.map(|point| (point, point)).collect();
        Box::new(move |path| {
            // A file that is a mount stays one, and has nothing below it.
            if files.above(path).any(|file| *file != path) {
                return Reach::of(|_| Access::Denied);
            }
            let mount = Mount::around(&mounts, path);
            let (mounts, rules) = (mount.reach(path), layer(path));
            let both = Reach::of(|operation| mounts.get(operation).min(rules.get(operation)));
            // What this user could not open on the host is the same for it inside.
            let shut = matches!(mount, Mount::Proc(_)) && is_internal(path);
            if shut && self.survey.node(path).is_none() {
                return Reach::of(|_| Access::Denied);
            }
            // What does not exist, and cannot be made, is not there to be reached; what a link leads to is reached
            // where it lies.
            let nothing =
                || self.survey.is_absent(path) || self.survey.node(path).is_some_and(|node| node.kind == Kind::Symlink);
            if mount.is_of_the_host() && both.get(Operation::Write) == Access::Denied && nothing() {
                return Reach::of(|_| Access::Denied);
            }
            both
        })
    }
}
