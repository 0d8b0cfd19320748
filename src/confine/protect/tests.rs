//! Attacks, played by plain file operations between snapshot and settle, each beside what must pass.

mod around;
mod attacks;
mod covers;
mod crash;
mod hostile;
mod links;
mod names;
mod offers;
mod ordinary;
mod program;
mod tracked;
mod vcs;
mod worktrees;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Effect, Guard, SettlementReport, Violation};

/// A temporary directory with a store in it. What lies in quarantine is shut; an ordinary user could not remove it so.
struct Opened(tempfile::TempDir);

impl Opened {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Opened {
    #[expect(clippy::disallowed_methods, reason = "opens what a test left shut")]
    fn drop(&mut self) {
        let opened = Command::new("chmod")
            .args(["-R", "u+rwX"])
            .arg(self.path())
            .stderr(Stdio::null())
            .status();
        // The removal that follows fails then, which the scripts report.
        let _opened = opened.is_ok();
    }
}

/// A root with a repository in it, and a store outside.
struct Scene {
    folder: Opened,
}

impl Scene {
    /// A root that holds a git repository with one commit and an active hook.
    fn new() -> Self {
        let scene = Self::empty();
        scene.git(&["init", "-q", "-b", "main"]);
        scene.write("file", "text");
        scene.git(&["add", "."]);
        scene.git(&["commit", "-qm", "first"]);
        scene.write(".git/hooks/pre-push", "#!/bin/sh\nexit 1\n");
        scene
    }

    fn empty() -> Self {
        let folder = Opened::new();
        fs::create_dir(folder.path().join("root")).unwrap();
        fs::create_dir(folder.path().join("store")).unwrap();
        Self { folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root().join(path)
    }

    fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: impl AsRef<Path>) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.at(path).symlink_metadata().is_ok()
    }

    fn git(&self, arguments: &[&str]) {
        self.git_in(".", arguments);
    }

    #[expect(clippy::disallowed_methods, reason = "plays the command that would be confined")]
    fn git_in(&self, directory: &str, arguments: &[&str]) {
        let status = Command::new("git")
            .args([
                "-c",
                "user.name=A",
                "-c",
                "user.email=a@example.org",
                "-c",
                "protocol.file.allow=always",
            ])
            .args(arguments)
            .current_dir(self.at(directory))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "git {arguments:?}");
    }

    fn guard(&self) -> Guard {
        Guard::snapshot(&[self.root()], &[], &self.store()).unwrap()
    }

    /// What settling reports when `command` ran in between.
    fn run(&self, command: impl FnOnce(&Self)) -> Vec<Violation> {
        let guard = self.guard();
        command(self);
        let violations = whole(guard.settle());
        assert_eq!(fs::read_dir(self.store().join("journal")).unwrap().count(), 0);
        violations
    }

    /// The violations as path below the root and what happened.
    fn report(&self, command: impl FnOnce(&Self)) -> Vec<(PathBuf, Effect)> {
        let found = self.run(command);
        let root = self.root();
        found
            .into_iter()
            .map(|v| (v.path.strip_prefix(&root).unwrap().to_owned(), v.kind))
            .collect()
    }
}

fn one(path: &str, what: Effect) -> Vec<(PathBuf, Effect)> {
    vec![(PathBuf::from(path), what)]
}

/// The violations of a settling that could do all it should.
#[track_caller]
fn whole(settled: SettlementReport) -> Vec<Violation> {
    assert!(settled.errors.is_empty(), "{:?}", settled.errors);
    settled.violations
}
