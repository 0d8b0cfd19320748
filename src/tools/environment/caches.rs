//! What leads tools to what they downloaded outside.
//!
//! HOME is private, so a tool finds none of it by itself. Where commands may read such a cache, a variable names it, or a link in the
//! private HOME does. A tool that must write to its cache gets the one outside only where it could download nothing anyway: with the
//! network off, or on for other hosts than its registry. Which tool is led how, and which cannot be: docs/config.md.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::config::Context;
use crate::policy::{AbsPath, Access, Host, HostAccess, Network, Operation};
use crate::profile::{FileReach, Profile};
use crate::tools::search::UngrantedFiles;

/// A name that stands for every name that no clause speaks of.
const ANY: &str = ".any-file";

/// The most buckets of uv's cache that are linked; it has about ten.
const MOST_BUCKETS: usize = 64;

/// Where tools keep what they download, outside: for each the places to look at, the first that commands may read counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caches {
    cargo: Vec<PathBuf>,
    go: Vec<PathBuf>,
    uv: Vec<PathBuf>,
    uv_pythons: Vec<PathBuf>,
    maven: Vec<PathBuf>,
    gradle: Vec<PathBuf>,
    tool_versions: Vec<PathBuf>,
    mise_trust: Vec<PathBuf>,
}

impl Caches {
    /// Where they are for the user of this context.
    pub fn of_user(context: &Context) -> Self {
        let homes = [context.home.clone(), context.path_variable("HOME")];
        let variable = |name: &str| context.path_variable(name).map(|path| path.as_path().to_owned());
        let paths = |moved: &[Option<PathBuf>], usual: &str| {
            let moved = moved.iter().flatten().cloned();
            let usual = homes.iter().flatten().map(|home| home.as_path().join(usual));
            moved.chain(usual).collect()
        };
        let below = |name: &str, rest: &str| variable(name).map(|path| path.join(rest));
        Self {
            cargo: paths(&[variable("CARGO_HOME")], ".cargo"),
            go: paths(
                &[
                    below("GOMODCACHE", "cache/download"),
                    below("GOPATH", "pkg/mod/cache/download"),
                ],
                "go/pkg/mod/cache/download",
            ),
            uv: paths(&[variable("UV_CACHE_DIR"), below("XDG_CACHE_HOME", "uv")], ".cache/uv"),
            uv_pythons: paths(&[variable("UV_PYTHON_INSTALL_DIR")], ".local/share/uv/python"),
            maven: paths(&[], ".m2/repository"),
            gradle: paths(
                &[variable("GRADLE_RO_DEP_CACHE"), below("GRADLE_USER_HOME", "caches")],
                ".gradle/caches",
            ),
            tool_versions: paths(&[], ".tool-versions"),
            mise_trust: paths(
                &[below("MISE_STATE_DIR", "trusted-configs")],
                ".local/state/mise/trusted-configs",
            ),
        }
    }

    /// The variables that lead a command under `profile` to them.
    pub(super) fn variables(
        &self,
        profile: &Profile,
        ungranted: UngrantedFiles,
        home: &Path,
    ) -> Vec<(OsString, OsString)> {
        let reach = Reach { profile, ungranted };
        let is_offline = profile.network == Network::Off;
        let mut all = Vec::new();
        let mut set = |name: &str, value: OsString| all.push((OsString::from(name), value));
        if let Some(cargo) = reach.cargo(&self.cargo) {
            match cargo {
                Cargo::InPlace(outside) => {
                    set("CARGO_HOME", outside.into());
                    set("CARGO_INSTALL_ROOT", home.join(".cargo").into());
                }
                Cargo::Linked(_) => {}
            }
            if is_offline {
                set("CARGO_NET_OFFLINE", "true".into());
            }
        }
        // The module cache has the layout of a proxy. Beside a real one it would answer for `latest` with what is old.
        if !reach.reaches("proxy.golang.org")
            && let Some(cache) = self.go.iter().find_map(|path| reach.directory(path))
            && let Some(cache) = plain(&cache)
        {
            let next = if is_offline { "off" } else { "direct" };
            set("GOPROXY", format!("file://{cache},{next}").into());
            if is_offline {
                // No checksum database is reached. What is taken is held against go.sum all the same.
                set("GOSUMDB", "off".into());
            }
        }
        if reach.uv(&self.uv).is_some() {
            // From one file system to another there are no hard links.
            set("UV_LINK_MODE", "copy".into());
            if is_offline {
                set("UV_OFFLINE", "1".into());
            }
        }
        if !reach.reaches("github.com")
            && let Some(pythons) = self.uv_pythons.iter().find_map(|path| reach.directory(path))
        {
            set("UV_PYTHON_INSTALL_DIR", pythons.into());
        }
        if let Some(repository) = self.maven.iter().find_map(|path| reach.directory(path))
            && let Some(repository) = plain(&repository)
        {
            let mut arguments = format!("-Dmaven.repo.local.tail={repository}");
            if is_offline {
                arguments.push_str(" --offline");
            }
            set("MAVEN_ARGS", arguments.into());
        }
        let modules = |path: &PathBuf| reach.directory(&path.join("modules-2"));
        if let Some(modules) = self.gradle.iter().find_map(modules)
            && let Some(caches) = modules.parent()
        {
            set("GRADLE_RO_DEP_CACHE", caches.into());
        }
        all
    }

    /// Makes the links of a private HOME that has none; what is there already stays.
    pub(in crate::tools) fn link(&self, profile: &Profile, ungranted: UngrantedFiles, home: &Path) -> io::Result<()> {
        for (name, target) in self.links(profile, ungranted) {
            let link = home.join(name);
            if let Some(folder) = link.parent() {
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            match std::os::unix::fs::symlink(target, link) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The links, by their paths in the private HOME, with what each leads to.
    fn links(&self, profile: &Profile, ungranted: UngrantedFiles) -> Vec<(PathBuf, PathBuf)> {
        let reach = Reach { profile, ungranted };
        let mut links = Vec::new();
        if let Some(Cargo::Linked(outside)) = reach.cargo(&self.cargo) {
            let parts = ["registry", "git"].into_iter();
            links.extend(parts.filter_map(|part| {
                let path = reach.directory(&outside.join(part))?;
                Some((Path::new(".cargo").join(part), path))
            }));
        }
        if let Some(cache) = reach.uv(&self.uv) {
            let buckets = buckets(&cache).into_iter();
            links.extend(buckets.map(|bucket| (Path::new(".cache/uv").join(&bucket), cache.join(&bucket))));
        }
        let mut single = |paths: &[PathBuf], link: &str, found: &dyn Fn(&Path) -> Option<PathBuf>| {
            links.extend(
                paths
                    .iter()
                    .find_map(|path| found(path))
                    .map(|path| (PathBuf::from(link), path)),
            );
        };
        single(&self.tool_versions, ".tool-versions", &|path| reach.file(path));
        single(&self.mise_trust, ".local/state/mise/trusted-configs", &|path| {
            reach.directory(path)
        });
        links
    }
}

enum Cargo {
    /// To the whole `CARGO_HOME` outside. Crates then lie where they lie outside, and cargo does not build them anew in each session: it
    /// takes a crate under another path for another one.
    InPlace(PathBuf),
    /// To parts of it, from the private HOME. Cargo fails on a config that is there and cannot be read.
    Linked(PathBuf),
}

#[derive(Clone, Copy)]
struct Reach<'a> {
    profile: &'a Profile,
    ungranted: UngrantedFiles,
}

impl Reach<'_> {
    fn reads(self, path: &Path) -> bool {
        AbsPath::new(path).is_ok_and(|path| self.profile.access(Operation::Read, &path) == Access::Full)
    }

    /// A directory in which everything may be read, without links: those on the way to it are not seen in namespaces.
    fn directory(self, path: &Path) -> Option<PathBuf> {
        let path = path.canonicalize().ok()?;
        (path.is_dir() && self.reads(&path.join(ANY))).then_some(path)
    }

    fn file(self, path: &Path) -> Option<PathBuf> {
        let path = path.canonicalize().ok()?;
        (path.is_file() && self.reads(&path)).then_some(path)
    }

    /// Whether commands may get to a registry, with a question or without.
    fn reaches(self, name: &str) -> bool {
        match &self.profile.network {
            Network::Off => false,
            Network::Full => true,
            Network::Hosts(list) => Host::parse(name).is_ok_and(|host| list.access(&host, 443) != HostAccess::Denied),
        }
    }

    fn cargo(self, paths: &[PathBuf]) -> Option<Cargo> {
        if self.reaches("static.crates.io") {
            return None;
        }
        let registry = paths.iter().find_map(|path| self.directory(&path.join("registry")))?;
        let is_called_so = registry.file_name() == Some(OsStr::new("registry"));
        let outside = registry.parent().filter(|_| is_called_so)?.to_owned();
        let is_unreadable = |name: &str| {
            let config = outside.join(name);
            config.symlink_metadata().is_ok() && !self.reads(&config)
        };
        Some(match self.ungranted {
            UngrantedFiles::Visible if ["config", "config.toml"].iter().any(|name| is_unreadable(name)) => {
                Cargo::Linked(outside)
            }
            UngrantedFiles::Visible | UngrantedFiles::Hidden => Cargo::InPlace(outside),
        })
    }

    fn uv(self, paths: &[PathBuf]) -> Option<PathBuf> {
        if self.reaches("pypi.org") {
            return None;
        }
        paths.iter().find_map(|path| self.directory(path))
    }
}

/// The parts of uv's cache that hold downloads. The rest of it uv must write to.
fn buckets(cache: &Path) -> Vec<OsString> {
    let is_download = |name: &OsStr| {
        let name = name.as_bytes();
        [&b"archive-v"[..], b"simple-v", b"wheels-v"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    let entries = std::fs::read_dir(cache).into_iter().flatten().flatten();
    let found =
        entries.filter(|entry| is_download(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_dir()));
    found.map(|entry| entry.file_name()).take(MOST_BUCKETS).collect()
}

/// A path in which no character means anything to go in GOPROXY or to the shell script `mvn`; `None` for another.
fn plain(path: &Path) -> Option<&str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.+@".contains(c);
    path.to_str().filter(|path| path.chars().all(is_plain))
}
