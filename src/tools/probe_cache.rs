//! That namespaces work here, remembered in the user's state directory, so that not every start tries them out.
//!
//! Only a success is kept, with the circumstances it was seen under; in others nothing is remembered. Nothing is held by
//! it: a start that fails all the same takes the regime below, or is refused, and the memory is dropped.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::backend::Regime;
use crate::backend::host::{BwrapFile, Host, KnownMaker, Maker};
use crate::config::state_files;

/// The most bytes that are read of the cache file.
const MOST_BYTES: u64 = 64 << 10;

/// What decides whether a program may make namespaces, as far as it can be told without trying.
const SETTINGS: [&str; 4] = [
    "user/max_user_namespaces",
    "kernel/unprivileged_userns_clone",
    "kernel/apparmor_restrict_unprivileged_userns",
    "kernel/apparmor_restrict_unprivileged_unconfined",
];

/// What a process is confined by already.
const STATUS: [&str; 4] = ["NoNewPrivs:", "Seccomp:", "Seccomp_filters:", "CapBnd:"];

/// The state of the machine for which a cached probe is valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CacheKey {
    stockade: String,
    boot: String,
    kernel: String,
    user: u32,
    user_namespace: PathBuf,
    label: String,
    status: Vec<String>,
    settings: Vec<Option<String>>,
    proc: Vec<String>,
    bwrap: Option<BwrapFile>,
}

/// A cached probe result and its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CacheEntry {
    circumstances: CacheKey,
    seen: KnownMaker,
}

/// What this machine can do, where namespaces are tried out only if nobody remembers that they work.
pub(super) fn host(state: &Path) -> Host {
    let now = CacheKey::now(Host::bwrap_file());
    let cached = now.as_ref().and_then(|now| load(&cache_file(state), now));
    let host = Host::with_acting_namespaces(cached);
    let seen = (host.regime() == Regime::Namespaces).then(|| host.maker()).flatten();
    if let (None, Some(circumstances), Some(seen)) = (cached, now, seen.and_then(Maker::seen)) {
        let memory = CacheEntry { circumstances, seen };
        // Who cannot keep it tries again at the next start.
        let _stored = store(&cache_file(state), &memory);
    }
    host
}

/// Removes the cached result after it proved wrong.
pub(super) fn remove(state: &Path) {
    let _removed = fs::remove_file(cache_file(state));
}

fn cache_file(state: &Path) -> PathBuf {
    state.join("namespaces.json")
}

fn load(cache_file: &Path, now: &CacheKey) -> Option<KnownMaker> {
    let memory: CacheEntry = serde_json::from_slice(&state_files::read(cache_file, MOST_BYTES).ok()?).ok()?;
    (memory.circumstances == *now).then_some(memory.seen)
}

fn store(cache_file: &Path, memory: &CacheEntry) -> std::io::Result<()> {
    if let Some(state) = cache_file.parent() {
        state_files::create_directory(state)?;
    }
    state_files::replace(cache_file, &serde_json::to_vec_pretty(memory)?)
}

impl CacheKey {
    /// The key for this process; `None` where it cannot be read.
    fn now(bwrap: Option<BwrapFile>) -> Option<Self> {
        let line = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        // A filter binds a thread; what is started from here is under the same.
        let status = line("/proc/thread-self/status")?;
        let is_listed = |line: &&str| STATUS.iter().any(|name| line.starts_with(name));
        Some(Self {
            stockade: env!("CARGO_PKG_VERSION").to_owned(),
            boot: line("/proc/sys/kernel/random/boot_id")?,
            kernel: line("/proc/sys/kernel/osrelease")?,
            user: nix::unistd::geteuid().as_raw(),
            user_namespace: fs::read_link("/proc/self/ns/user").ok()?,
            label: line("/proc/self/attr/current").unwrap_or_default(),
            status: status.lines().filter(is_listed).map(str::to_owned).collect(),
            settings: SETTINGS.map(|name| line(&format!("/proc/sys/{name}"))).into(),
            proc: of_proc(&line("/proc/thread-self/mountinfo")?),
            bwrap,
        })
    }
}

/// How /proc and what lies on it is mounted, of a table of mounts: the kernel makes a new one for nobody whose own is
/// covered in part, as containers and services have it.
fn of_proc(table: &str) -> Vec<String> {
    let mounts = table.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(3);
        let (root, point, options) = (fields.next()?, fields.next()?, fields.next()?);
        let below = point.strip_prefix("/proc")?;
        (below.is_empty() || below.starts_with('/')).then(|| format!("{root} {point} {options}"))
    });
    mounts.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const SEEN: KnownMaker = KnownMaker::Bwrap((0, 8, 0));

    fn memory() -> CacheEntry {
        let file = r#"{"path": "/usr/bin/bwrap", "device": 1, "inode": 2, "size": 3, "changed": [4, 5]}"#;
        CacheEntry {
            circumstances: CacheKey::now(serde_json::from_str(file).unwrap()).unwrap(),
            seen: SEEN,
        }
    }

    #[test]
    fn what_is_kept_is_recalled_in_the_same_circumstances_alone() {
        let state = tempfile::tempdir().unwrap();
        let (cache_file, memory) = (cache_file(&state.path().join("new")), memory());
        assert_eq!(load(&cache_file, &memory.circumstances), None);
        store(&cache_file, &memory).unwrap();
        assert_eq!(load(&cache_file, &memory.circumstances), Some(SEEN));
        let changes: [fn(&mut CacheKey); 7] = [
            |now| now.boot.push('x'),
            |now| now.kernel.push('x'),
            |now| now.user += 1,
            |now| now.stockade.push('x'),
            |now| now.status.push("Seccomp:\t2".to_owned()),
            |now| now.settings.push(Some("0".to_owned())),
            |now| now.proc.push("/sys /proc/sys ro".to_owned()),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut other = memory.circumstances.clone();
            change(&mut other);
            assert_eq!(load(&cache_file, &other), None, "{number}");
        }
        remove(&state.path().join("new"));
        assert_eq!(load(&cache_file, &memory.circumstances), None);
    }

    #[test]
    fn of_a_table_of_mounts_what_lies_on_proc_counts_without_numbers_that_change() {
        let table = "21 1 0:20 / /proc rw,nosuid shared:5 - proc proc rw\n\
            22 21 0:20 /sys /proc/sys ro,nosuid - proc proc rw\n\
            23 1 0:21 / /process rw - tmpfs tmpfs rw\n\
            24 1 8:1 / / rw - ext4 /dev/vda rw";
        assert_eq!(of_proc(table), ["/ /proc rw,nosuid", "/sys /proc/sys ro,nosuid"]);
    }

    #[test]
    fn what_others_could_have_written_is_not_believed() {
        let state = tempfile::tempdir().unwrap();
        let (cache_file, memory) = (cache_file(state.path()), memory());
        store(&cache_file, &memory).unwrap();
        fs::set_permissions(&cache_file, fs::Permissions::from_mode(0o620)).unwrap();
        assert_eq!(load(&cache_file, &memory.circumstances), None);
        fs::set_permissions(&cache_file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(load(&cache_file, &memory.circumstances), Some(SEEN));
        fs::rename(&cache_file, state.path().join("other")).unwrap();
        std::os::unix::fs::symlink(state.path().join("other"), &cache_file).unwrap();
        assert_eq!(load(&cache_file, &memory.circumstances), None);
    }

    #[test]
    fn text_that_is_no_memory_is_none() {
        let state = tempfile::tempdir().unwrap();
        let (cache_file, memory) = (cache_file(state.path()), memory());
        state_files::replace(&cache_file, b"{\"works\": true}").unwrap();
        assert_eq!(load(&cache_file, &memory.circumstances), None);
    }
}
