//! A control group that was delegated to this process, in which the kernel can limit a process tree.
//!
//! Groups of cgroup v2 belong to their manager, mostly systemd, which resets limits that others set. Groups that systemd
//! delegates are marked (`user.delegate`); without systemd, a group that the user owns counts. A mark that users can set
//! themselves does not count: `systemd --user` sets none and honours none. Nothing is changed by the search. Sources: cgroups(7), "Delegating a hierarchy to a
//! less privileged user"; systemd's "Control Group APIs and Delegation".

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use nix::unistd::{AccessFlags, Uid, access, geteuid};

/// Where the one hierarchy is mounted, or the second beside those of cgroup v1.
const HIERARCHIES: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// The marks of a group that systemd delegated; only root can read the second.
const MARKS: [&str; 2] = ["user.delegate", "trusted.delegate"];
/// Exists if systemd manages the machine: `sd_booted(3)`.
const SYSTEMD: &str = "/run/systemd/system";
/// The suffixes of groups that systemd makes.
const UNITS: [&str; 3] = [".slice", ".scope", ".service"];
/// The prefix of all groups that Stockade makes.
pub const PREFIX: &str = "stockade-";
/// The controllers that limit processes and memory.
const CONTROLLERS: [&str; 2] = ["pids", "memory"];

/// A control group in which this process may make others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegatedGroup {
    /// Its directory.
    pub directory: PathBuf,
    /// Where this process is.
    pub location: ProcessLocation,
}

/// Where this process is, in relation to its delegated group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessLocation {
    /// In a group of its own below it.
    InSubgroup,
    /// In the group itself, alone. It must first move into a group inside: only a group without processes can have limited
    /// groups.
    InGroupItself,
}

/// Why there is no delegated group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoDelegatedGroup {
    /// This process's group is found in no hierarchy of cgroup v2.
    NotFound,
    /// It belongs to somebody else.
    NotOurs,
    /// It was delegated, and cannot be written here.
    ReadOnly,
    /// No group may be made inside it.
    Full,
    /// Other processes are in it.
    Shared,
    /// It lacks one of the controllers.
    NoControllers,
}

impl NoDelegatedGroup {
    /// Why the kernel does not enforce a limit, and what to do, if anything.
    pub fn why(self) -> &'static str {
        match self {
            Self::NotFound => "this process is in no control group (cgroup v2) that it can see",
            Self::NotOurs if geteuid().is_root() => {
                "no control group was delegated to this process; start it by `systemd-run --scope -p Delegate=yes`"
            }
            Self::NotOurs => {
                "no control group is marked as delegated to this process; a system unit with `User=` and `Delegate=yes` has one"
            }
            Self::ReadOnly => {
                "the control group that was delegated to this process cannot be written to; start it where /sys/fs/cgroup is \
                 writable (without `ProtectControlGroups=`)"
            }
            Self::Full => {
                "no group may be made in the control group that was delegated to this process (`cgroup.max.*`)"
            }
            Self::Shared => "other processes are in the control group that was delegated to this one",
            Self::NoControllers => "the control group of this process has no `memory` and `pids` (cgroup v2)",
        }
    }
}

impl DelegatedGroup {
    /// Finds the group of this process.
    pub fn find() -> Result<Self, NoDelegatedGroup> {
        let Group { hierarchy, directory } = own()?;
        let parent = directory.parent().filter(|parent| parent.starts_with(hierarchy));
        // Nothing but this process has a group of this name: names of units have an ending.
        let is_ours = directory.file_name() == Some(OsStr::new(&own_name()));
        if let Some(parent) = parent
            && is_ours
            && is_handed_over(hierarchy, parent)
            && may_change(parent)
            && lists(&parent.join("cgroup.subtree_control"))
        {
            return Ok(Self {
                directory: parent.to_owned(),
                location: ProcessLocation::InSubgroup,
            });
        }
        if !is_handed_over(hierarchy, &directory) {
            return Err(NoDelegatedGroup::NotOurs);
        }
        if !may_change(&directory) {
            return Err(NoDelegatedGroup::ReadOnly);
        }
        if is_full(&directory) {
            return Err(NoDelegatedGroup::Full);
        }
        if !lists(&directory.join("cgroup.controllers")) {
            return Err(NoDelegatedGroup::NoControllers);
        }
        if processes(&directory) != [std::process::id()] {
            return Err(NoDelegatedGroup::Shared);
        }
        Ok(Self {
            directory,
            location: ProcessLocation::InGroupItself,
        })
    }
}

/// The name of the group that this process moves itself into.
pub fn own_name() -> String {
    format!("{PREFIX}own-{}", std::process::id())
}

/// A control group, and the hierarchy that it was found in.
struct Group {
    hierarchy: &'static Path,
    directory: PathBuf,
}

/// The group of this process, which must say that this process is in it.
fn own() -> Result<Group, NoDelegatedGroup> {
    let table = fs::read("/proc/self/cgroup").map_err(|_| NoDelegatedGroup::NotFound)?;
    let path = path_in(&table).ok_or(NoDelegatedGroup::NotFound)?;
    let found = HIERARCHIES.into_iter().map(Path::new).find_map(|hierarchy| {
        let directory = hierarchy.join(path);
        let is_it = statfs(&directory).is_ok_and(|found| found.filesystem_type() == CGROUP2_SUPER_MAGIC)
            && processes(&directory).contains(&std::process::id());
        is_it.then_some(Group { hierarchy, directory })
    });
    found.ok_or(NoDelegatedGroup::NotFound)
}

/// The path in the hierarchy of cgroup v2, without the slash before it. One that leads out of what can be seen is none.
fn path_in(table: &[u8]) -> Option<&Path> {
    let path = table
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"0::/"))?;
    let path = Path::new(OsStr::from_bytes(path));
    let stays = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
    path.components().all(stays).then_some(path)
}

fn processes(group: &Path) -> Vec<u32> {
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    // What a namespace hides has the number 0, and is somebody all the same.
    listed.lines().map(|line| line.parse().unwrap_or(0)).collect()
}

/// Whether a list of controllers has both.
fn lists(list: &Path) -> bool {
    let list = fs::read_to_string(list).unwrap_or_default();
    CONTROLLERS
        .iter()
        .all(|wanted| list.split_ascii_whitespace().any(|there| there == *wanted))
}

/// Whether this user may make groups in it and move processes there.
fn may_change(group: &Path) -> bool {
    let may_write = |name: &str| access(&group.join(name), AccessFlags::W_OK).is_ok();
    [".", "cgroup.procs", "cgroup.subtree_control"]
        .into_iter()
        .all(may_write)
}

/// Whether whoever manages a group gave it to this user. The group of the whole machine is nobody's to hand over: it is the
/// one without a type.
fn is_handed_over(hierarchy: &Path, group: &Path) -> bool {
    if !group.join("cgroup.type").exists() {
        return false;
    }
    let owned = |group: &Path| fs::metadata(group).is_ok_and(|found| Uid::from_raw(found.uid()) == geteuid());
    let path = group.strip_prefix(hierarchy).unwrap_or(group);
    if is_marked(group) {
        // Who owns the group above as well has all of it from there on, and may have set the mark.
        let above = group.parent().filter(|above| above.starts_with(hierarchy));
        return geteuid().is_root() || !above.is_some_and(owned);
    }
    owned(group) && !is_of_a_unit(path) && !Path::new(SYSTEMD).exists()
}

/// Whether systemd made a group, or one around it, by its path in the hierarchy.
fn is_of_a_unit(path: &Path) -> bool {
    let is_unit = |name: &OsStr| UNITS.iter().any(|ending| name.as_bytes().ends_with(ending.as_bytes()));
    path.iter().any(is_unit)
}

fn is_marked(group: &Path) -> bool {
    let is_set = |mark: &&str| matches!(xattr::get(group, mark), Ok(Some(value)) if value == b"1");
    MARKS.iter().any(is_set)
}

/// Whether somebody forbade the groups inside it: one for this process, and one for a command beside that.
fn is_full(group: &Path) -> bool {
    let is_less = |name: &str, least: u64| {
        let most = fs::read_to_string(group.join(name)).unwrap_or_default();
        most.trim().parse().is_ok_and(|most: u64| most < least)
    };
    is_less("cgroup.max.depth", 1) || is_less("cgroup.max.descendants", 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_the_second_version_is_found_among_those_of_the_first() {
        let table = b"8:pids:/\n1:name=systemd:/a\n0::/user.slice/a b.scope\n";
        assert_eq!(path_in(table), Some(Path::new("user.slice/a b.scope")));
        assert_eq!(path_in(b"0::/\n"), Some(Path::new("")));
        assert_eq!(path_in(b"4:memory:/x\n"), None);
    }

    #[test]
    fn a_group_outside_what_a_namespace_shows_is_none() {
        assert_eq!(path_in(b"0::/../other\n"), None);
        assert_eq!(path_in(b"0::/..\n"), None);
    }

    #[test]
    fn the_group_of_the_whole_machine_is_not_delegated_to_anybody() {
        for hierarchy in HIERARCHIES {
            let machine = Path::new(hierarchy);
            assert!(!is_handed_over(machine, machine), "{hierarchy}");
        }
    }

    #[test]
    fn a_group_is_of_a_unit_also_inside_it_and_where_systemd_cannot_be_seen() {
        for path in ["user.slice/a", "system.slice/x.service", "a/b.scope/stockade-own-1"] {
            assert!(is_of_a_unit(Path::new(path)), "{path}");
        }
        for path in ["", "docker/abc", "slice/scope", "a.slices"] {
            assert!(!is_of_a_unit(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_list_must_name_both_controllers_as_whole_words() {
        let list = tempfile::NamedTempFile::new().unwrap();
        for (text, is_enough) in [
            ("cpu memory pids\n", true),
            ("cpu memory\n", false),
            ("pids memory_recursiveprot\n", false),
            ("", false),
        ] {
            fs::write(list.path(), text).unwrap();
            assert_eq!(lists(list.path()), is_enough, "{text}");
        }
    }
}
