//! An interpreter of the arguments of bwrap.
//!
//! It knows exactly the options that [`render`](super::MountPlan::render) writes and refuses every other. It keeps
//! the table of mounts as bwrap would make them, one after the other: a later mount hides what was at or
//! below its point. A source other than the destination is refused, so a path inside is that path outside. The
//! private copies, which the caller lists, are the exception.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::copies::PrivateCopy;
use super::plan::{BindAccess, DEVICES, MASK};
use crate::backend::survey::{Kind, Survey};
use crate::policy::{AbsPath, Access, Operation, path};
use crate::profile::index::Index;
use crate::profile::order::Permission;
use crate::profile::{FileReach, Landmarks, Reach, Witness};

pub(super) const PLAN: &str = "the mounts";

/// What is mounted somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mount {
    /// The host's tree.
    Host(BindAccess),
    /// A private copy of what the host has there, to be changed.
    Copy,
    /// Nothing that can be opened.
    Mask,
    /// An empty directory in memory.
    Tmpfs(Frozen),
    /// A /proc of the namespace's own.
    Proc(Frozen),
    /// A /dev of the namespace's own.
    Dev(Frozen),
}

impl Mount {
    /// Whether nothing of what was there, and nothing of the host, is shown.
    const fn hides(self) -> bool {
        match self {
            Self::Mask | Self::Tmpfs(_) => true,
            Self::Host(_) | Self::Copy | Self::Proc(_) | Self::Dev(_) => false,
        }
    }
}

/// Whether a mount was made read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frozen {
    /// No.
    No,
    /// Yes, for everybody.
    Yes,
}

/// A mount namespace, with the other namespaces and capabilities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The namespaces that are new, by bwrap's names.
    pub namespaces: BTreeSet<OsString>,
    /// Whether every capability is dropped.
    pub capabilities_dropped: bool,
    /// The mounts by their points.
    pub mounts: BTreeMap<AbsPath, Mount>,
    /// Links on tmpfs.
    links: BTreeSet<AbsPath>,
}

/// What the arguments do, or what in them is not understood or would be done on the host.
pub fn read(argv: &[OsString], copies: &[PrivateCopy], survey: &Survey) -> Result<View, Witness> {
    let mut reader = Reader {
        view: View {
            namespaces: BTreeSet::new(),
            capabilities_dropped: false,
            mounts: [(AbsPath::root(), Mount::Tmpfs(Frozen::No))].into(),
            links: BTreeSet::new(),
        },
        survey,
        copies,
        private: None,
        sized: None,
    };
    let mut rest = argv.iter();
    while let Some(option) = rest.next() {
        reader.option(option, &mut rest)?;
    }
    if reader.private.is_some() || reader.sized.is_some() {
        return Err(refused("--perms or --size at the end".to_owned()));
    }
    Ok(reader.view)
}

/// Something only the mounts say.
pub(super) fn refused(what: String) -> Witness {
    Witness {
        what: Permission::Kernel(what),
        wide: PLAN,
        tight: "the profile",
    }
}

struct Reader<'a> {
    view: View,
    survey: &'a Survey,
    /// The private copies, whose source differs from the destination.
    copies: &'a [PrivateCopy],
    /// What `--perms` said of the next tmpfs.
    private: Option<OsString>,
    /// What `--size` said of the next tmpfs.
    sized: Option<OsString>,
}

impl Reader<'_> {
    fn option<'a>(&mut self, option: &OsStr, rest: &mut impl Iterator<Item = &'a OsString>) -> Result<(), Witness> {
        let mut value = || {
            rest.next()
                .ok_or_else(|| refused(format!("{} without its value", path::display(option))))
        };
        let pending = self.private.is_some() || self.sized.is_some();
        match option.as_bytes() {
            b"--tmpfs" => return self.tmpfs(value()?),
            b"--perms" if self.private.is_none() => {
                self.private = Some(value()?.clone());
                return Ok(());
            }
            b"--size" if self.sized.is_none() => {
                self.sized = Some(value()?.clone());
                return Ok(());
            }
            _ if pending => {
                return Err(refused(format!("--perms or --size before {}", path::display(option))));
            }
            b"--cap-drop" if value()?.as_bytes() == b"ALL" => self.view.capabilities_dropped = true,
            b"--chdir" if value()?.as_bytes() == b"/" => {}
            b"--ro-bind" => self.bind(value()?, value()?, BindAccess::ReadOnly)?,
            b"--bind" => self.bind(value()?, value()?, BindAccess::Writable)?,
            b"--dev-bind" => self.bind(value()?, value()?, BindAccess::Device)?,
            b"--proc" => self.add_mount(value()?, Mount::Proc(Frozen::No), IsDirectory::Yes)?,
            b"--dev" => self.add_mount(value()?, Mount::Dev(Frozen::No), IsDirectory::Yes)?,
            b"--remount-ro" => self.freeze(value()?)?,
            b"--symlink" => {
                let (_, link) = (value()?, value()?);
                self.symlink(link)?;
            }
            b"--dir" => self.directory(value()?)?,
            bytes => match bytes.strip_prefix(b"--unshare-") {
                Some(name @ (b"user" | b"ipc" | b"pid" | b"uts" | b"cgroup" | b"net")) => {
                    self.view.namespaces.insert(OsStr::from_bytes(name).to_owned());
                }
                Some(_) | None => return Err(refused(format!("the option {}", path::display(option)))),
            },
        }
        Ok(())
    }

    fn bind(&mut self, source: &OsStr, at: &OsStr, access: BindAccess) -> Result<(), Witness> {
        let from = normal(source)?;
        let kind = self
            .survey
            .node(&from)
            .map(|node| node.kind)
            .ok_or_else(|| refused(format!("a bind of {from}, which was not looked at")))?;
        let is_directory = match kind {
            Kind::Directory => IsDirectory::Yes,
            Kind::File | Kind::Device | Kind::Fifo | Kind::Socket => IsDirectory::No,
            Kind::Symlink => return Err(refused(format!("a bind of {from}, which is a link"))),
        };
        if source == at {
            return self.add_mount(at, Mount::Host(access), is_directory);
        }
        if access == BindAccess::Writable && self.copies.iter().any(|copy| copy.is_shown(source, at)) {
            return match self.view.around(&normal(at)?) {
                Some((_, Mount::Host(BindAccess::Writable))) => self.add_mount(at, Mount::Copy, is_directory),
                Some(_) | None => Err(refused(format!("a copy to be changed at {}", path::display(at)))),
            };
        }
        let masks = source.as_bytes() == MASK.as_bytes() && kind == Kind::Device && access == BindAccess::ReadOnly;
        if masks {
            return self.add_mount(at, Mount::Mask, IsDirectory::No);
        }
        Err(refused(format!("{from} shown at {}", path::display(at))))
    }

    fn tmpfs(&mut self, at: &OsStr) -> Result<(), Witness> {
        let mode = self.private.take();
        let sized = self.sized.take();
        let masks = mode.as_deref().is_some_and(|mode| mode.as_bytes() == b"0000");
        let bounded = sized.is_some_and(|bytes| bytes.to_str().is_some_and(|text| text.parse::<u64>().is_ok()));
        if !masks && !bounded {
            return Err(refused(format!("memory without a bound at {}", path::display(at))));
        }
        self.add_mount(at, Mount::Tmpfs(Frozen::No), IsDirectory::Yes)
    }

    fn freeze(&mut self, at: &OsStr) -> Result<(), Witness> {
        let point = normal(at)?;
        let mount = self
            .view
            .mounts
            .get_mut(&point)
            .ok_or_else(|| refused(format!("--remount-ro of {point}, which is no mount")))?;
        *mount = match *mount {
            Mount::Host(BindAccess::ReadOnly | BindAccess::Writable) => Mount::Host(BindAccess::ReadOnly),
            Mount::Tmpfs(_) => Mount::Tmpfs(Frozen::Yes),
            Mount::Dev(_) => Mount::Dev(Frozen::Yes),
            Mount::Proc(_) => Mount::Proc(Frozen::Yes),
            Mount::Host(BindAccess::Device) | Mount::Copy | Mount::Mask => {
                return Err(refused(format!("--remount-ro of {point}")));
            }
        };
        Ok(())
    }

    /// An empty directory in memory; below a mount of the host it would be made on the host.
    fn directory(&self, at: &OsStr) -> Result<(), Witness> {
        let directory = normal(at)?;
        self.in_memory(&directory, "a directory")?;
        self.no_link_above(&directory)?;
        if self.view.links.contains(&directory) {
            return Err(refused(format!("a directory in the place of the link {directory}")));
        }
        Ok(())
    }

    /// Refuses what is not made on a tmpfs of the plan.
    fn in_memory(&self, path: &AbsPath, what: &str) -> Result<(), Witness> {
        match self.view.around(path) {
            Some((point, Mount::Tmpfs(Frozen::No))) if point != path => Ok(()),
            Some(_) | None => Err(refused(format!("{what} made at {path}"))),
        }
    }

    fn symlink(&mut self, at: &OsStr) -> Result<(), Witness> {
        let link = normal(at)?;
        self.in_memory(&link, "a link")?;
        self.no_link_above(&link)?;
        if self
            .view
            .mounts
            .range(link.clone()..)
            .next()
            .is_some_and(|(point, _)| point.is_within(&link))
        {
            return Err(refused(format!("a link in the place of the mount at {link}")));
        }
        self.view.links.insert(link);
        Ok(())
    }

    /// Mounts something; what was there before is hidden by it.
    fn add_mount(&mut self, at: &OsStr, mount: Mount, is_directory: IsDirectory) -> Result<(), Witness> {
        let point = normal(at)?;
        self.no_link_above(&point)?;
        match self.view.around(&point) {
            // A mount point that is there already, or is made in memory.
            Some((above, _)) if *above == point => {}
            Some((_, Mount::Tmpfs(Frozen::No) | Mount::Dev(Frozen::No))) => {}
            Some((_, Mount::Host(_))) if self.is_there(&point, is_directory) => {}
            Some((_, Mount::Host(_))) => return Err(refused(format!("a mount point made on the host at {point}"))),
            // Covers alone.
            Some((_, Mount::Proc(_))) if mount.hides() && self.is_there(&point, is_directory) => {}
            Some((
                _,
                Mount::Copy | Mount::Mask | Mount::Proc(_) | Mount::Tmpfs(Frozen::Yes) | Mount::Dev(Frozen::Yes),
            ))
            | None => {
                return Err(refused(format!("a mount at {point}, where none can be made")));
            }
        }
        // What lies below a path follows it.
        let mounts = self.view.mounts.range(point.clone()..).map(|(other, _)| other);
        let hidden: Vec<AbsPath> = mounts.take_while(|other| other.is_within(&point)).cloned().collect();
        for other in hidden {
            self.view.mounts.remove(&other);
        }
        self.view.links.retain(|link| !link.is_within(&point));
        self.view.mounts.insert(point, mount);
        Ok(())
    }

    /// Whether what was seen at a mount point is of the kind that is mounted there.
    fn is_there(&self, point: &AbsPath, is_directory: IsDirectory) -> bool {
        match (self.survey.node(point).map(|node| node.kind), is_directory) {
            (Some(Kind::Directory), IsDirectory::Yes)
            | (Some(Kind::File | Kind::Device | Kind::Fifo | Kind::Socket), IsDirectory::No) => true,
            (Some(_) | None, _) => false,
        }
    }

    fn no_link_above(&self, point: &AbsPath) -> Result<(), Witness> {
        let is_link = |path: &AbsPath| {
            self.view.links.contains(path) || self.survey.node(path).is_some_and(|node| node.kind == Kind::Symlink)
        };
        match point.ancestors().find(is_link) {
            Some(link) => Err(refused(format!("a mount at {point}, through the link {link}"))),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IsDirectory {
    Yes,
    No,
}

/// The path, if it is written in the one normal way.
fn normal(text: &OsStr) -> Result<AbsPath, Witness> {
    AbsPath::new(Path::new(text))
        .ok()
        .filter(|path| path.as_bytes() == text.as_bytes())
        .ok_or_else(|| refused(format!("the path {}", path::display(text))))
}

impl View {
    /// The mount that a path lies in.
    pub fn around(&self, path: &AbsPath) -> Option<(&AbsPath, Mount)> {
        let mut above = path.ancestors();
        above.find_map(|at| self.mounts.get_key_value(&at).map(|(point, mount)| (point, *mount)))
    }

    /// Whether something of the regime's own lies over what the host has at a path. Its /proc does not count: what is in there
    /// has the same names everywhere.
    pub fn hiding(&self) -> impl Fn(&AbsPath) -> bool + '_ {
        let mounts = self.index();
        move |path| match Mount::around(&mounts, path) {
            Mount::Mask | Mount::Tmpfs(_) | Mount::Dev(_) => true,
            Mount::Host(_) | Mount::Copy | Mount::Proc(_) => false,
        }
    }

    /// The mounts, to be found fast.
    pub(super) fn index(&self) -> Index<'_, Mount> {
        self.mounts.iter().map(|(point, mount)| (point, *mount)).collect()
    }
}

impl Mount {
    /// The mount that a path lies in: the last of those above. Where there is none nothing can be opened.
    pub(super) fn around(mounts: &Index<'_, Self>, path: &AbsPath) -> Self {
        mounts.above(path).last().copied().unwrap_or(Self::Mask)
    }

    /// Whether it shows the host's files, or copies of them.
    pub(super) const fn is_of_the_host(self) -> bool {
        match self {
            Self::Host(_) | Self::Copy => true,
            Self::Mask | Self::Tmpfs(_) | Self::Proc(_) | Self::Dev(_) => false,
        }
    }

    /// What it alone lets be done at a path in it. Names of directories on a frozen tmpfs count as nothing.
    pub(super) fn reach(self, path: &AbsPath) -> Reach {
        Reach::of(|operation| {
            let permitted = match self {
                Self::Host(BindAccess::ReadOnly) | Self::Proc(Frozen::Yes) => operation != Operation::Write,
                Self::Host(BindAccess::Writable | BindAccess::Device)
                | Self::Copy
                | Self::Proc(Frozen::No)
                | Self::Tmpfs(Frozen::No)
                | Self::Dev(Frozen::No) => true,
                Self::Mask | Self::Tmpfs(Frozen::Yes) => false,
                Self::Dev(Frozen::Yes) => DEVICES.iter().any(|device| path.as_bytes() == device.as_bytes()),
            };
            if permitted { Access::Full } else { Access::Denied }
        })
    }
}

impl FileReach for View {
    fn name(&self) -> &'static str {
        PLAN
    }

    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>) {
        self.mounts.keys().for_each(|point| landmarks.path(point));
        let devices = DEVICES.iter().filter_map(|device| AbsPath::new(device).ok());
        devices.for_each(|device| landmarks.owned(device));
    }

    fn prepared(&self) -> Box<dyn Fn(&AbsPath) -> Reach + '_> {
        let mounts = self.index();
        Box::new(move |path| Mount::around(&mounts, path).reach(path))
    }
}
