//! Real sessions of real tools in `workspace-write`: what works bare works confined.
//!
//! What only the invoker's own toolchain can do (cargo, npm) runs as the invoker; the rest as root and as a user.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use crate::common::{Actor, Backend, Fixture, Snapshot, assert_nothing_left_behind, in_both_regimes, world_with};

    in_both_regimes! {
        git_makes_a_repository_and_commits ["git"];
        git_reads_a_repository_that_was_there_before ["git"];
        python_makes_a_virtual_environment_and_runs_unittests ["python3"];
        make_builds_in_parallel ["make"];
        tar_makes_a_round_trip ["tar"];
        find_walks_the_workspace ["find"];
        cp_keeps_attributes [];
        touch_sets_times [];
        install_sets_modes [];
        rsync_copies_with_attributes ["rsync"];
        nothing_is_left_on_the_host ["git", "python3"];
    }

    /// As who runs the tests, in both regimes.
    fn as_invoker(programs: &[&str], test: fn(&Fixture)) {
        for backend in [Backend::Landlock, Backend::Namespaces] {
            if let Some(world) = world_with(Actor::invoker(), backend, programs) {
                test(&world);
            }
        }
    }

    #[test]
    fn cargo_builds_and_runs_a_crate_without_dependencies() {
        as_invoker(&["cargo"], builds_without_dependencies);
    }

    #[test]
    fn cargo_builds_tests_and_runs_a_crate_with_a_vendored_dependency_and_a_build_script() {
        as_invoker(&["cargo"], builds_with_a_vendored_dependency);
    }

    #[test]
    fn npm_makes_a_package() {
        as_invoker(&["npm", "node"], makes_a_package);
    }

    fn builds_without_dependencies(world: &Fixture) {
        world.write(
            "Cargo.toml",
            "[package]\nname = \"hello\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
        );
        world.write(
            "src/main.rs",
            "fn main() { println!(\"hello from {}\", env!(\"CARGO_PKG_NAME\")); }\n",
        );
        world.stockade(&["run"]).args(["--", "cargo", "build"]).output().ok();
        assert_eq!(
            world
                .stockade(&["run"])
                .args(["--", "cargo", "run", "-q"])
                .output()
                .ok(),
            "hello from hello\n"
        );
    }

    fn builds_with_a_vendored_dependency(world: &Fixture) {
        world.write(
            "Cargo.toml",
            "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\ngreet = { path = \"vendor/greet\" }\n",
        );
        world.write(
            "build.rs",
            "fn main() { println!(\"cargo::rustc-env=BUILT=by script\"); }\n",
        );
        world.write(
            "src/main.rs",
            "fn main() { println!(\"{} {}\", greet::greet(), env!(\"BUILT\")); }\n#[test]\nfn works() { assert_eq!(greet::greet(), \"hello\"); }\n",
        );
        world.write(
            "vendor/greet/Cargo.toml",
            "[package]\nname = \"greet\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
        );
        world.write(
            "vendor/greet/src/lib.rs",
            "pub fn greet() -> &'static str { \"hello\" }\n",
        );
        let run = |argv: &[&str]| world.stockade(&["run"]).args(["--"]).args(argv).output();
        assert_eq!(run(&["cargo", "run", "-q", "--offline"]).ok(), "hello by script\n");
        assert!(run(&["cargo", "test", "-q", "--offline"]).ok().contains("1 passed"));
    }

    fn makes_a_package(world: &Fixture) {
        world.stockade(&["run"]).args(["--", "npm", "init", "-y"]).output().ok();
        let made = fs::read_to_string(world.workspace().join("package.json")).unwrap();
        assert!(made.contains("\"name\": \"workspace\""), "{made}");
        let line = "require('fs').writeFileSync('out', String(require('./package.json').version))";
        world.stockade(&["run"]).args(["--", "node", "-e", line]).output().ok();
        assert_eq!(fs::read_to_string(world.workspace().join("out")).unwrap(), "1.0.0");
    }

    fn git(world: &Fixture, argv: &[&str]) -> String {
        let identity = ["git", "-c", "user.name=A Person", "-c", "user.email=person@example.org"];
        world.run(&identity).args(argv).output().ok()
    }

    fn git_makes_a_repository_and_commits(world: &Fixture) {
        git(world, &["init", "-q"]);
        world.write("a file", "one\n");
        git(world, &["add", "."]);
        git(world, &["commit", "-q", "-m", "First"]);
        world.write("a file", "two\n");
        git(world, &["commit", "-q", "-a", "-m", "Second"]);
        git(world, &["checkout", "-q", "-b", "side", "HEAD~1"]);
        assert_eq!(
            git(world, &["log", "--all", "--format=%s %an"]),
            "Second A Person\nFirst A Person\n"
        );
        assert_eq!(git(world, &["status", "--porcelain"]), "");
        assert_eq!(fs::read_to_string(world.workspace().join("a file")).unwrap(), "one\n");
        // What was made inside is an ordinary repository outside.
        world
            .bare("/usr/bin/env")
            .args(["git", "fsck", "--strict"])
            .output()
            .ok();
    }

    fn git_reads_a_repository_that_was_there_before(world: &Fixture) {
        world.write("file", "one\n");
        let line = "git init -q && git add . && git -c user.name=x -c user.email=x@x commit -q -m Before";
        world.bare("/bin/sh").args(["-c", line]).output().ok();
        assert_eq!(git(world, &["log", "--format=%s"]), "Before\n");
        world.write("file", "two\n");
        assert!(git(world, &["diff"]).contains("+two"));
        git(world, &["stash"]);
        git(world, &["stash", "pop"]);
        git(world, &["commit", "-q", "-a", "-m", "After"]);
        git(world, &["gc", "-q"]);
        assert_eq!(git(world, &["log", "--format=%s"]), "After\nBefore\n");
    }

    fn python_makes_a_virtual_environment_and_runs_unittests(world: &Fixture) {
        world
            .run(&["/usr/bin/python3", "-m", "venv", "--without-pip", "env"])
            .output()
            .ok();
        world.write(
            "test_it.py",
            "import subprocess, sys, tempfile, unittest\nfrom multiprocessing import Process\n\n\nclass It(unittest.TestCase):\n    def test_prefix(self):\n        self.assertNotEqual(sys.prefix, sys.base_prefix)\n\n    def test_child(self):\n        self.assertEqual(subprocess.run(['true']).returncode, 0)\n\n    def test_fork(self):\n        p = Process(target=print)\n        p.start()\n        p.join()\n        self.assertEqual(p.exitcode, 0)\n\n    def test_temporary(self):\n        with tempfile.TemporaryDirectory() as d:\n            open(d + '/x', 'w').close()\n",
        );
        let run = world.run(&["env/bin/python", "-m", "unittest"]).output();
        assert!(run.err().contains("Ran 4 tests"), "{}", run.err());
        run.ok();
    }

    fn make_builds_in_parallel(world: &Fixture) {
        world.write(
            "Makefile",
            "all: a b c d\n\tcat a b c d > all\na b c d:\n\t@sleep 0.1; echo $@ > $@\nclean:\n\trm -f a b c d all\n.PHONY: clean\n",
        );
        world.run(&["make", "-j2"]).output().ok();
        assert_eq!(
            fs::read_to_string(world.workspace().join("all")).unwrap(),
            "a\nb\nc\nd\n"
        );
        world.run(&["make", "clean"]).output().ok();
        assert!(!world.workspace().join("all").exists());
    }

    fn tar_makes_a_round_trip(world: &Fixture) {
        let script = world.write("tree/bin/run", "#!/bin/sh\n");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
        world.write("tree/data", vec![7; 100_000]);
        world
            .shell("ln -s data tree/link && ln tree/data tree/hard && touch -d 2001-02-03T04:05:06Z tree/data")
            .output()
            .ok();
        world
            .shell("tar czf tree.tar.gz tree && mkdir out && tar xzpf tree.tar.gz -C out && diff -r tree out/tree")
            .output()
            .ok();
        let (was, is) = (
            fs::metadata(script).unwrap(),
            fs::metadata(world.workspace().join("out/tree/bin/run")).unwrap(),
        );
        assert_eq!((was.mode(), was.uid()), (is.mode(), is.uid()));
        assert_eq!(
            fs::metadata(world.workspace().join("out/tree/data")).unwrap().mtime(),
            981_173_106
        );
    }

    fn find_walks_the_workspace(world: &Fixture) {
        for name in ["a/1.txt", "a/b/2.txt", "a/b/3.md"] {
            world.write(name, "x");
        }
        let line = "find . -name '*.txt' -type f -newermt 2001-01-01 -exec grep -l x {} + | sort";
        assert_eq!(world.shell(line).output().ok(), "./a/1.txt\n./a/b/2.txt\n");
        world.run(&["find", "a", "-delete"]).output().ok();
        assert!(!world.workspace().join("a").exists());
    }

    fn cp_keeps_attributes(world: &Fixture) {
        let from = world.write("from", "content");
        fs::set_permissions(&from, fs::Permissions::from_mode(0o640)).unwrap();
        world
            .shell("touch -d 2001-02-03T04:05:06Z from && cp -a from to && cp -a from .to.tmp && mv .to.tmp to")
            .output()
            .ok();
        let to = fs::metadata(world.workspace().join("to")).unwrap();
        assert_eq!((to.mode() & 0o7777, to.mtime()), (0o640, 981_173_106));
    }

    fn touch_sets_times(world: &Fixture) {
        world.write("file", "");
        world
            .run(&["touch", "-d", "2001-02-03T04:05:06.123456789Z", "file", "new"])
            .output()
            .ok();
        for name in ["file", "new"] {
            let file = fs::metadata(world.workspace().join(name)).unwrap();
            assert_eq!((file.mtime(), file.mtime_nsec()), (981_173_106, 123_456_789));
        }
    }

    fn install_sets_modes(world: &Fixture) {
        world.write("tool", "#!/bin/sh\necho installed\n");
        world
            .run(&["install", "-D", "-m", "755", "-p", "tool", "prefix/bin/tool"])
            .output()
            .ok();
        assert_eq!(
            fs::metadata(world.workspace().join("prefix/bin/tool")).unwrap().mode() & 0o7777,
            0o755
        );
        assert_eq!(world.run(&["prefix/bin/tool"]).output().ok(), "installed\n");
    }

    fn rsync_copies_with_attributes(world: &Fixture) {
        world.write("from/deep/file", "content");
        world
            .shell("chmod 604 from/deep/file && touch -d 2001-02-03T04:05:06Z from/deep/file && rsync -a from/ to/")
            .output()
            .ok();
        let to = fs::metadata(world.workspace().join("to/deep/file")).unwrap();
        assert_eq!((to.mode() & 0o7777, to.mtime()), (0o604, 981_173_106));
    }

    fn nothing_is_left_on_the_host(world: &Fixture) {
        let before = Snapshot::of(world);
        git(world, &["init", "-q"]);
        world
            .run(&["/usr/bin/python3", "-c", "import tempfile; tempfile.mkdtemp()"])
            .output()
            .ok();
        assert_nothing_left_behind(&before, world);
    }
}
