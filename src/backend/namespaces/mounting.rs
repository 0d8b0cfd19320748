//! Grants and covers → steps, parents first.
//!
//! A step is made only where something changes: a path that is already shown as it should be needs none.
//!
//! **Ancestors are pinned.** Renaming a mount point is EBUSY, renaming a directory above it is not: the
//! kernel looks at the renamed entry alone, and the mount moves along (measured with bwrap 0.8.0 on Linux
//! 6.18, as root and as an ordinary user). A command could move `.git` aside and make another with hooks of
//! its own. So every directory between a writable bind and a mount inside it is bound onto itself, which
//! makes it a mount point as well. Renaming and linking between two such mounts is EXDEV; tools copy then.
//! Covers of a pattern whose new names are admitted move along instead, and never out of its directory, which is a mount.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use foldhash::fast::RandomState;

use super::copies::PrivateCopy;
use super::covers::{Cover, Covered, writes_tree};
use super::own::{DEV, PROC, TMP, Tmp, is_own_path};
use super::plan::{BindAccess, MASK, Step};
use super::visibility::{Visibility, beneath, names_file, writes_file};
use crate::backend::landlock::Beneath;
use crate::backend::status::Refusal;
use crate::backend::survey::{Kind, Node, Survey};
use crate::policy::{AbsPath, Grant, Right, Scope};
use crate::profile::Profile;
use crate::profile::index::Index;

/// The mounts so far.
pub(super) struct Mounting<'a> {
    pub(super) survey: &'a Survey,
    pub(super) grants: Index<'a, &'a Grant>,
    pub(super) covers: Index<'a, &'a Covered>,
    pub(super) steps: Vec<Step>,
    /// How the last step at each path shows it.
    pub(super) made: HashMap<AbsPath, Visibility, RandomState>,
    /// Directories on the root tmpfs.
    pub(super) skeleton: HashSet<AbsPath, RandomState>,
}

/// The result.
pub(super) struct Mounted {
    pub(super) steps: Vec<Step>,
    /// How each mount point is shown; below, the deepest one above counts.
    pub(super) made: HashMap<AbsPath, Visibility, RandomState>,
    pub(super) tmp: Tmp,
    /// Where copies are shown.
    pub(super) copied: Vec<AbsPath>,
}

/// What to mount.
pub(super) struct MountRequest<'a> {
    pub(super) profile: &'a Profile,
    pub(super) covers: &'a BTreeMap<AbsPath, Covered>,
    /// The covers that may move with the directories above them.
    pub(super) movable: &'a BTreeSet<AbsPath>,
    /// Directories out of which nothing may be moved.
    pub(super) borders: &'a BTreeSet<AbsPath>,
    /// The private copies shown instead of protected paths.
    pub(super) copies: &'a [&'a PrivateCopy],
    /// What this program needs to start inside; read-only, without Landlock rules.
    pub(super) loader: &'a [AbsPath],
    /// Files shown as a mask, unless something else is there.
    pub(super) veiled: &'a [AbsPath],
    /// The paths covered in the regime's own /proc.
    pub(super) internals: &'a [AbsPath],
    pub(super) tmp_bytes: u64,
    /// The directory that commands start in, to be there though nothing of it is shown.
    pub(super) start: Option<&'a AbsPath>,
}

/// The steps for the request.
pub(super) fn mount(request: &MountRequest<'_>, survey: &Survey) -> Result<Mounted, Refusal> {
    let mut mounting = Mounting {
        survey,
        grants: request
            .profile
            .grants
            .iter()
            .map(|grant| (&grant.path, grant))
            .collect(),
        covers: request.covers.iter().collect(),
        steps: Vec::new(),
        made: HashMap::default(),
        skeleton: HashSet::default(),
    };
    let tmp = mounting.points(request)?;
    let copied = mounting.copies(request.copies)?;
    mounting.links(request);
    if let Some(start) = request.start {
        mounting.start(start);
    }
    mounting.freeze();
    Ok(Mounted {
        steps: mounting.steps,
        made: mounting.made,
        tmp,
        copied,
    })
}

impl Mounting<'_> {
    fn points(&mut self, request: &MountRequest<'_>) -> Result<Tmp, Refusal> {
        let [proc, dev, top] = [PROC, DEV, TMP].map(|path| AbsPath::new(path).unwrap_or_else(|_| AbsPath::root()));
        let matching = self.survey.nodes().filter(|(path, node)| {
            let by_name = |grant: &&Grant| grant.suffixes.is_some() && names_file(grant, path);
            node.kind != Kind::Directory && self.grants.above(path).any(by_name)
        });
        let mut points: BTreeSet<AbsPath> = matching.map(|(path, _)| path.clone()).collect();
        points.extend(request.profile.grants.iter().map(|grant| grant.path.clone()));
        points.extend(request.covers.keys().cloned());
        points.extend(request.covers.values().flat_map(Covered::ends).cloned());
        points.extend(request.borders.iter().cloned());
        points.extend([proc.clone(), dev.clone(), top.clone()]);
        points.extend(request.loader.iter().chain(request.veiled).cloned());
        points.extend(request.internals.iter().cloned());

        // If the host's directory is granted, there is no private one.
        let tmp = match self.shown(&top, Kind::Directory) {
            Visibility::Nothing => Tmp::Private,
            Visibility::Masked | Visibility::ReadOnly | Visibility::Writable | Visibility::Device => Tmp::Granted,
        };
        let dev_is_granted = self.grants.exactly(&dev).any(|grant| grant.scope == Scope::Tree);
        for path in &points {
            let at = || path.as_path().as_os_str().to_owned();
            if *path == proc {
                self.mount_own(path, Step::Proc { path: at() })?;
            } else if *path == dev && !dev_is_granted {
                self.mount_own(path, Step::Dev { path: at() })?;
            } else if *path == top && tmp == Tmp::Private {
                let bytes = request.tmp_bytes;
                self.mount_own(path, Step::Tmp { path: at(), bytes })?;
            } else if request.internals.contains(path) {
                self.cover_internal(path)?;
            } else if !path.is_within(&proc) && (dev_is_granted || !is_own_path(path)) {
                self.point(path, request)?;
            }
        }
        Ok(tmp)
    }

    /// A mount of the regime's own.
    fn mount_own(&mut self, path: &AbsPath, step: Step) -> Result<(), Refusal> {
        let is_directory = self.survey.node(path).is_some_and(|node| node.kind == Kind::Directory);
        if self.around(path).1 != Visibility::Nothing && !is_directory {
            return Err(Refusal::NoMountPoint {
                path: path.clone(),
                wanted: "a directory",
            });
        }
        self.make(path, Visibility::Nothing, step);
        Ok(())
    }

    /// Every /proc has the same entries, so the mount point exists in the regime's own.
    fn cover_internal(&mut self, path: &AbsPath) -> Result<(), Refusal> {
        let node = self
            .survey
            .node(path)
            .ok_or_else(|| Refusal::NotSurveyed(path.clone()))?;
        let step = self.step(path, node, Visibility::Masked)?;
        self.make(path, Visibility::Masked, step);
        Ok(())
    }

    fn point(&mut self, path: &AbsPath, request: &MountRequest<'_>) -> Result<(), Refusal> {
        let Some(node) = self.survey.node(path) else {
            return Ok(());
        };
        if node.kind == Kind::Symlink {
            return Ok(());
        }
        let mut shown = self.shown(path, node.kind);
        if shown == Visibility::Nothing && request.loader.contains(path) {
            shown = Visibility::ReadOnly;
        }
        let (above, around) = self.around(path);
        let is_veiled = shown == Visibility::Nothing && node.kind == Kind::File && request.veiled.contains(path);
        if is_veiled && around == Visibility::Nothing {
            let step = self.step(path, node, Visibility::Masked)?;
            self.make(path, Visibility::Masked, step);
            return Ok(());
        }
        let is_border = shown == Visibility::Writable && request.borders.contains(path);
        let same = shown == around && !(is_border && above.as_ref() != Some(path));
        let hidden = around == Visibility::Masked || around == Visibility::Nothing && shown == Visibility::Masked;
        if same || hidden || shown == Visibility::Nothing {
            return Ok(());
        }
        if around == Visibility::Writable
            && let Some(above) = above.filter(|_| !request.movable.contains(path))
        {
            self.pin(path, &above)?;
        }
        let step = self.step(path, node, shown)?;
        self.make(path, shown, step);
        Ok(())
    }

    /// Shows copies where the host's would be to be changed; where they are.
    ///
    /// The directories above are not pinned: one that is moved takes its copy along, and what comes in its place is undone
    /// after the command.
    fn copies(&mut self, copies: &[&PrivateCopy]) -> Result<Vec<AbsPath>, Refusal> {
        let mut shown = Vec::new();
        for PrivateCopy { path, source } in copies {
            let Some(there) = self.survey.node(path) else { continue };
            if there.kind == Kind::Symlink || is_own_path(path) || self.around(path).1 != Visibility::Writable {
                continue;
            }
            let copy = self.survey.node(source);
            let copy = copy.ok_or_else(|| Refusal::NotSurveyed(source.clone()))?;
            let step = Step::Copy {
                path: path.as_path().as_os_str().to_owned(),
                source: source.as_path().as_os_str().to_owned(),
                device: copy.identity.device,
                inode: copy.identity.inode,
                beneath: beneath(copy.kind),
            };
            self.make(path, Visibility::Writable, step);
            shown.push(path.clone());
        }
        Ok(shown)
    }

    fn step(&self, path: &AbsPath, node: Node, shown: Visibility) -> Result<Step, Refusal> {
        let path = path.as_path().as_os_str().to_owned();
        let beneath = beneath(node.kind);
        let bind = |access| Step::Bind {
            path: path.clone(),
            access,
            device: node.identity.device,
            inode: node.identity.inode,
            beneath,
        };
        Ok(match (shown, beneath) {
            (Visibility::Masked | Visibility::Nothing, Beneath::Directory) => Step::MaskDirectory { path },
            (Visibility::Masked | Visibility::Nothing, Beneath::File) => {
                let mask = AbsPath::new(MASK).ok();
                let device = mask.as_ref().and_then(|mask| self.survey.node(mask));
                if device.is_none_or(|node| node.kind != Kind::Device) {
                    return Err(Refusal::NoMountPoint {
                        path: mask.unwrap_or_else(AbsPath::root),
                        wanted: "a device",
                    });
                }
                Step::MaskFile { path }
            }
            (Visibility::ReadOnly, _) => bind(BindAccess::ReadOnly),
            (Visibility::Writable, _) => bind(BindAccess::Writable),
            (Visibility::Device, _) => bind(BindAccess::Device),
        })
    }

    /// Makes mount points of the directories between a writable bind and a mount in it.
    fn pin(&mut self, path: &AbsPath, above: &AbsPath) -> Result<(), Refusal> {
        let mut between: Vec<AbsPath> = path
            .ancestors()
            .skip(1)
            .take_while(|directory| directory.is_below(above))
            .collect();
        between.reverse();
        for directory in between {
            let node = self
                .survey
                .node(&directory)
                .filter(|node| node.kind == Kind::Directory)
                .ok_or_else(|| Refusal::NotSurveyed(directory.clone()))?;
            let step = self.step(&directory, node, Visibility::Writable)?;
            self.make(&directory, Visibility::Writable, step);
        }
        Ok(())
    }

    fn make(&mut self, path: &AbsPath, shown: Visibility, step: Step) {
        for directory in path.ancestors().skip(1) {
            // Above one that is known, all are.
            if self.skeleton.contains(&directory) {
                break;
            }
            if self.around(&directory).0.is_none() {
                self.skeleton.insert(directory);
            }
        }
        self.made.insert(path.clone(), shown);
        self.steps.push(step);
    }

    /// The deepest mount at the path or above it, and how it shows what is below.
    pub(super) fn around(&self, path: &AbsPath) -> (Option<AbsPath>, Visibility) {
        let mut above = path.ancestors();
        above
            .find_map(|at| self.made.get(&at).map(|shown| (Some(at.clone()), *shown)))
            .unwrap_or((None, Visibility::Nothing))
    }

    /// How the profile wants a path to be shown.
    fn shown(&self, path: &AbsPath, kind: Kind) -> Visibility {
        let cover = self
            .covers
            .above(path)
            .filter_map(|covered| covered.over(path, kind))
            .max();
        if cover == Some(Cover::Mask) {
            return Visibility::Masked;
        }
        let is_file = kind != Kind::Directory;
        let reaches = |grant: &&&Grant| match grant.scope {
            Scope::File => is_file && names_file(grant, path),
            Scope::Names => grant.rights.has(Right::Read),
            // Without a listing, only the files that match are spoken of.
            Scope::Tree if grant.suffixes.is_some() && !grant.rights.has(Right::Read) => {
                is_file && names_file(grant, path)
            }
            Scope::Tree => !grant.rights.is_empty(),
        };
        let mut shown = Visibility::Nothing;
        for grant in self.grants.above(path).filter(reaches) {
            let acts = path.as_bytes().starts_with(b"/dev/") || path.as_bytes() == b"/dev";
            let writes = writes_tree(grant) || is_file && writes_file(grant, path);
            let here = match (cover, acts, writes) {
                (None, true, _) if kind == Kind::Device || grant.path.as_bytes() == b"/dev" => Visibility::Device,
                (None, _, true) => Visibility::Writable,
                (None | Some(_), _, _) => Visibility::ReadOnly,
            };
            shown = shown.max(here);
        }
        shown
    }

    /// Nothing more is made on the tmpfs of the plan, but for the private directory, and nothing is changed in /proc.
    fn freeze(&mut self) {
        let own = [PROC, DEV, "/"];
        for path in own.into_iter().filter_map(|path| AbsPath::new(path).ok()) {
            let is_own = match self.made.get(&path) {
                Some(shown) => *shown == Visibility::Nothing,
                None => path == AbsPath::root(),
            };
            if is_own {
                self.steps.push(Step::Freeze {
                    path: path.as_path().as_os_str().to_owned(),
                });
            }
        }
    }
}
