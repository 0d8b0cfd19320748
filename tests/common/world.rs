//! The scratch world: who acts, where, and what is there before and after.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::unistd::{Uid, geteuid};
use tempfile::TempDir;

use super::process::{Invocation, PATIENCE};

/// Who runs Stockade in a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    Root,
    User,
}

impl Actor {
    /// Who runs the tests.
    pub(crate) fn invoker() -> Self {
        if geteuid().is_root() { Self::Root } else { Self::User }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::User => "user",
        }
    }

    pub(crate) fn is_possible(self) -> bool {
        match self {
            Self::Root => geteuid().is_root(),
            Self::User => true,
        }
    }

    pub(crate) fn uid(self) -> u32 {
        match self {
            Self::Root => 0,
            Self::User if !geteuid().is_root() => geteuid().as_raw(),
            Self::User => std::env::var("STOCKADE_TEST_UID").map_or(1000, |uid| uid.parse().unwrap()),
        }
    }

    /// The id to switch to, where the actor is not who runs the tests.
    pub(crate) fn switch_to(self) -> Option<u32> {
        (Uid::from_raw(self.uid()) != geteuid()).then(|| self.uid())
    }

    /// The invoker's own PATH; for somebody else the system's.
    pub(crate) fn path(self) -> String {
        match self.switch_to() {
            None => std::env::var("PATH").unwrap(),
            Some(_) => "/usr/local/bin:/usr/bin:/bin".to_owned(),
        }
    }
}

/// What holds the commands of a fixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Landlock,
    /// Namespaces that Stockade makes itself.
    Namespaces,
    /// Namespaces that bwrap makes.
    Bwrap,
}

impl Backend {
    /// Its name, as `--backend` has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Namespaces => "namespaces",
            Self::Bwrap => "bwrap",
        }
    }

    /// Whether commands run in namespaces, whoever makes them.
    pub(crate) fn is_in_namespaces(self) -> bool {
        match self {
            Self::Landlock => false,
            Self::Namespaces | Self::Bwrap => true,
        }
    }
}

/// Where `actor` finds `program`.
pub(crate) fn find_program(actor: Actor, program: &str) -> Option<PathBuf> {
    let path = actor.path();
    let mut candidates = path.split(':').map(|folder| Path::new(folder).join(program));
    candidates.find(|file| fs::metadata(file).is_ok_and(|file| file.is_file() && file.mode() & 0o111 != 0))
}

/// A temporary folder, world-searchable and owned by the actor, with `workspace`, `home`, `outside` and `run` in it.
#[derive(Debug)]
pub(crate) struct Fixture {
    base: TempDir,
    pub(crate) actor: Actor,
    pub(crate) backend: Backend,
    binary: PathBuf,
}

/// What the secret file in the fixture's home says.
pub(crate) const SECRET: &str = "the-private-key-of-the-fixture";

impl Drop for Fixture {
    /// Whoever puts protected names back after a kill may still be at it, and what comes in between stops a removal.
    fn drop(&mut self) {
        let until = Instant::now() + Duration::from_mins(1);
        while fs::remove_dir_all(self.base.path()).is_err() && self.base.path().exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A new folder whose name says nothing: among random letters there is `Env` or `Key` now and then, which is a name of secrets.
fn own_folder() -> TempDir {
    static FOLDERS: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("stockade-test-{}-{number}", std::process::id());
        match tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir() {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.unwrap(),
        }
    }
}

impl Fixture {
    pub(crate) fn new(actor: Actor, backend: Backend) -> Self {
        let base = own_folder();
        let binary = reachable(base.path(), Path::new(env!("CARGO_BIN_EXE_stockade")));
        let world = Self {
            base,
            actor,
            backend,
            binary,
        };
        world.own(world.base.path(), 0o755);
        for (folder, mode) in [
            ("workspace", 0o755),
            ("home", 0o755),
            ("outside", 0o755),
            ("run", 0o700),
        ] {
            fs::create_dir(world.base.path().join(folder)).unwrap();
            world.own(&world.base.path().join(folder), mode);
        }
        fs::create_dir(world.home().join(".ssh")).unwrap();
        world.own(&world.home().join(".ssh"), 0o700);
        world.write(world.home().join(".ssh/id_ed25519"), SECRET);
        world.write(world.outside().join("secret"), SECRET);
        world
    }

    /// The directory that the command is started in.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.base.path().join("workspace")
    }

    /// The actor's HOME.
    pub(crate) fn home(&self) -> PathBuf {
        self.base.path().join("home")
    }

    /// A folder beside the workspace, in which everything belongs to the actor; it holds a file `secret`.
    pub(crate) fn outside(&self) -> PathBuf {
        self.base.path().join("outside")
    }

    /// The fixture's folder.
    pub(crate) fn base(&self) -> &Path {
        self.base.path()
    }

    /// The binary under test, at a path that the actor can reach.
    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    /// Another program that was built, at such a path.
    pub(crate) fn reachable(&self, built: &Path) -> PathBuf {
        reachable(self.base(), built)
    }

    fn own(&self, path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        if let Some(uid) = self.actor.switch_to() {
            chown(path, Some(uid), Some(uid)).unwrap();
        }
    }

    /// Writes a file of the actor's; a relative path lies in the workspace. Missing folders are made.
    pub(crate) fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.workspace().join(path);
        let mut missing: Vec<_> = path.ancestors().skip(1).take_while(|folder| !folder.exists()).collect();
        while let Some(folder) = missing.pop() {
            fs::create_dir(folder).unwrap();
            self.own(folder, 0o755);
        }
        fs::write(&path, content).unwrap();
        self.own(&path, 0o644);
        path
    }

    /// A config under which commands write the workspace, and protected names that exist are read-only.
    pub(crate) fn preventing(&self) -> String {
        let text = format!(
            "extends: [system]\nsandbox: {{protect: prevent, protect_fallback: undo, paths: {{w: {{root: {}, mode: rw, \
             execute: true, write_approval: false}}}}}}\nshell: {{default: {{allowed: true, approval: none}}}}\n",
            self.workspace().display()
        );
        let config = self.write(self.outside().join("prevents.yaml"), text);
        config.to_str().unwrap().to_owned()
    }

    /// Writes a program of the actor's.
    ///
    /// A process of its own does: a test beside this one that forks meanwhile would hold a file that this process writes open
    /// for a moment, in which nobody can execute it.
    pub(crate) fn program(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let text = self.write(self.base().join("program.text"), content);
        let program = self.write(path, "");
        let install = self.bare("/usr/bin/install").args(["-m", "755", "--"]);
        install.args([&text, &program]).output().ok();
        fs::remove_file(text).unwrap();
        program
    }

    /// `program` as the actor, in the workspace, with a small environment; nothing confines it.
    pub(crate) fn bare(&self, program: impl AsRef<Path>) -> Invocation {
        Invocation::new(program.as_ref(), self.actor.switch_to(), &self.workspace())
            .env("PATH", self.actor.path())
            .env("HOME", self.home())
            .env("XDG_RUNTIME_DIR", self.base().join("run"))
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
    }

    /// The binary under test.
    pub(crate) fn stockade(&self, args: &[&str]) -> Invocation {
        self.bare(&self.binary).args(self.arguments(args))
    }

    /// The arguments, with the fixture's backend in them where commands are run.
    pub(crate) fn arguments<'a>(&self, args: &[&'a str]) -> Vec<&'a str> {
        let backend = self.backend.name();
        match args {
            [does @ ("run" | "call" | "mcp" | "learn" | "check"), rest @ ..] => {
                [&[*does, "--backend", backend], rest].concat()
            }
            _ => args.to_vec(),
        }
    }

    /// `stockade run -- ARGV`, with the default preset.
    pub(crate) fn run(&self, argv: &[&str]) -> Invocation {
        self.stockade(&["run", "--"]).args(argv)
    }

    /// `stockade run -c LINE`, with the default preset.
    pub(crate) fn shell(&self, line: &str) -> Invocation {
        self.stockade(&["run", "-c", line])
    }
}

/// A program that was built, or a copy of it where a folder above it is closed to others.
fn reachable(base: &Path, built: &Path) -> PathBuf {
    let open = |folder: &Path| fs::metadata(folder).is_ok_and(|folder| folder.mode() & 0o001 != 0);
    if built.ancestors().skip(1).all(open) {
        return built.to_owned();
    }
    let copy = base.join(built.file_name().unwrap());
    fs::copy(built, &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    copy
}

/// All that a run could leave on the host: everything in the fixture but the workspace, and whatever bears
/// Stockade's name in the shared temporary folders.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, String>);

/// The state noted for an entry of a folder that all tests share.
const SHARED: &str = "shared";

impl Snapshot {
    pub(crate) fn of(world: &Fixture) -> Self {
        let mut seen = BTreeMap::new();
        for folder in [world.home(), world.outside(), world.base().join("run")] {
            record(&folder, &mut seen);
        }
        let user_runtime = PathBuf::from(format!("/run/user/{}", world.actor.uid()));
        for shared in [
            Path::new("/tmp"),
            Path::new("/var/tmp"),
            Path::new("/dev/shm"),
            Path::new("/run"),
            &user_runtime,
        ] {
            for entry in fs::read_dir(shared).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let bytes = name.as_bytes();
                let ours = bytes.windows(8).any(|part| part == b"stockade") && !bytes.starts_with(b"stockade-test-");
                if ours && fs::metadata(entry.path()).is_ok_and(|entry| entry.uid() == world.actor.uid()) {
                    // A folder of sessions is everybody's; each session is somebody's.
                    let within: Vec<_> = fs::read_dir(entry.path()).into_iter().flatten().flatten().collect();
                    let paths = match within.as_slice() {
                        [] => vec![entry.path()],
                        within => within.iter().map(fs::DirEntry::path).collect(),
                    };
                    seen.extend(paths.into_iter().map(|path| (path, SHARED.to_owned())));
                }
            }
        }
        Self(seen)
    }
}

fn record(path: &Path, seen: &mut BTreeMap<PathBuf, String>) {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return;
    };
    let size = if metadata.is_file() { metadata.len() } else { 0 };
    seen.insert(path.to_owned(), format!("{:o} {size}", metadata.mode()));
    if metadata.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            record(&entry.path(), seen);
        }
    }
}

/// Fails, naming what appeared, changed or vanished since `before`.
///
/// A leak stays; what is being removed goes. What lies in shared folders may be a concurrent test's, whose session ends as
/// well. What appears there later is not of a run that is over.
#[track_caller]
pub(crate) fn assert_nothing_left_behind(before: &Snapshot, world: &Fixture) {
    let start = Instant::now();
    let first = Snapshot::of(world);
    loop {
        let after = Snapshot::of(world);
        let fresh: Vec<_> = after
            .0
            .iter()
            .filter(|(path, state)| before.0.get(*path) != Some(state))
            .filter(|(path, state)| *state != SHARED || first.0.contains_key(*path))
            .collect();
        let lost: Vec<_> = before
            .0
            .iter()
            .filter(|(path, state)| !after.0.contains_key(*path) && *state != SHARED)
            .collect();
        if fresh.is_empty() && lost.is_empty() {
            return;
        }
        assert!(
            start.elapsed() < PATIENCE,
            "left behind or changed: {fresh:?}; lost: {lost:?}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}
