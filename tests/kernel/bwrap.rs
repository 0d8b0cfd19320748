//! The mounts on a real kernel: rendered arguments given to the real bwrap, as root and as an ordinary user, each
//! denial beside a twin that succeeds. No Landlock layer is inside, so that what denies is the mounts alone.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::ffi::{OsStr, OsString};
    use std::fmt::Write;
    use std::fs;
    use std::net::TcpListener;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use stockade::backend::attributes::AttributePlan;
    use stockade::backend::namespaces::reader::{Mount, read};
    use stockade::backend::namespaces::{LayeredPlan, Lowered, NewNames, Options, lower, survey, validate};
    use stockade::backend::survey::Survey;
    use stockade::policy::{
        AbsPath, Access, Deny, DenyFallback, Environment, Grant, Limits, Network, Operation, Origin, Pattern,
        Residuals, Rights, Target, UnixSockets,
    };
    use stockade::profile::{FileReach, Profile};

    use crate::common::{Fixture, Run, SECRET, as_root_and_as_user};

    as_root_and_as_user! {
        what_is_not_granted_does_not_exist ["bwrap"];
        a_read_only_tree_is_neither_written_nor_has_its_attributes_changed ["bwrap"];
        a_denied_file_and_directory_cannot_be_opened_moved_or_removed ["bwrap"];
        a_write_denied_path_is_read_and_not_changed ["bwrap"];
        a_directory_above_a_mount_is_not_moved_away ["bwrap"];
        a_protected_path_that_exists_is_read_only ["bwrap"];
        a_pattern_in_a_read_only_tree_masks_all_that_matches ["bwrap"];
        hostile_names_keep_their_mounts ["bwrap"];
        tmp_is_private_and_bounded ["bwrap"];
        proc_shows_the_namespace_alone ["bwrap"];
        a_host_listener_is_not_reached_and_an_own_one_is ["bwrap", "python3"];
        a_mask_is_not_unmounted ["bwrap"];
        the_root_and_dev_are_shut ["bwrap"];
        every_file_is_as_the_reader_says ["bwrap"];
    }

    fn path(path: impl AsRef<Path>) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    fn origin() -> Origin {
        Origin::Builtin("test")
    }

    /// A profile over a fixture, and what is put into it.
    struct Case<'a> {
        world: &'a Fixture,
        profile: Profile,
        options: Options,
    }

    impl<'a> Case<'a> {
        /// The system's programs, and the workspace with all rights.
        fn new(world: &'a Fixture) -> Self {
            let case = Self {
                world,
                profile: Profile {
                    grants: Vec::new(),
                    denies: Vec::new(),
                    identities: std::collections::BTreeMap::new(),
                    network: Network::Off,
                    unix_sockets: UnixSockets::None,
                    limits: Limits::default(),
                    environment: Environment::default(),
                },
                options: Options {
                    abi: 3,
                    deny_fallback: DenyFallback::Refuse,
                    residuals: Residuals::Refuse,
                    tmp_bytes: 1 << 20,
                    protect: Vec::new(),
                    copies: Vec::new(),
                    loader: Vec::new(),
                    veiled: Vec::new(),
                    start: None,
                },
            };
            let system = ["/usr", "/bin", "/sbin", "/lib", "/lib64"];
            let real = system
                .iter()
                .filter(|top| fs::symlink_metadata(top).is_ok_and(|top| top.is_dir()));
            let workspace = world.workspace();
            real.fold(case, |case, top| case.grant(top, Rights::READ | Rights::EXECUTE))
                .grant(workspace, Rights::ALL)
        }

        fn grant(mut self, at: impl AsRef<Path>, rights: Rights) -> Self {
            self.profile.grants.push(Grant::tree(path(at), rights, origin()));
            self
        }

        fn deny(mut self, at: impl AsRef<Path>, rights: Rights) -> Self {
            let at = path(self.world.workspace().join(at));
            self.profile.denies.push(Deny::tree(at, rights, origin()));
            self
        }

        fn deny_pattern(mut self, root: impl AsRef<Path>, pattern: Pattern) -> Self {
            let target = Target::Pattern {
                root: path(root),
                pattern,
            };
            let deny = Deny::tree(AbsPath::root(), Rights::ALL, origin());
            self.profile.denies.push(Deny { target, ..deny });
            self
        }

        fn protect(mut self, at: &str) -> Self {
            self.options.protect.push(path(self.world.workspace().join(at)));
            self
        }

        /// The plan, held against the profile as every start does.
        fn lowered(&self) -> (Lowered, Survey) {
            let survey = survey(&self.profile, &self.options).unwrap();
            let lowered = lower(&self.profile, &survey, &self.options).unwrap();
            let argv = lowered.plan.render();
            let layered_plan = LayeredPlan {
                argv: &argv,
                layer: &lowered.layer,
                own: &lowered.own,
                copies: &[],
                loader: &[],
                new_names: NewNames::Refused,
            };
            validate(&layered_plan, &AttributePlan::default(), &self.profile, &survey).unwrap();
            (lowered, survey)
        }

        fn run(&self, line: impl AsRef<OsStr>) -> Run {
            let bytes = self.lowered().0.plan.bytes();
            self.world
                .bare("/usr/bin/bwrap")
                .args([OsStr::new("--args"), OsStr::new("0"), OsStr::new("--")])
                .args([OsStr::new("/bin/sh"), OsStr::new("-c"), line.as_ref()])
                .stdin(bytes)
                .output()
        }

        /// Runs in the workspace.
        fn there(&self, line: &str) -> Run {
            let mut whole = OsString::from("cd '");
            whole.push(self.world.workspace());
            whole.push("' && ");
            whole.push(line);
            self.run(whole)
        }

        #[track_caller]
        fn works(&self, line: &str) -> String {
            self.there(line).ok()
        }

        #[track_caller]
        fn fails(&self, line: &str, why: &str) {
            let run = self.there(line);
            assert_ne!(run.code(), 0, "`{line}` succeeded: {}", run.out());
            assert!(run.err().contains(why), "`{line}`: {}", run.err());
        }
    }

    fn what_is_not_granted_does_not_exist(world: &Fixture) {
        world.write("mine", "mine");
        let case = Case::new(world);
        let secret = world.outside().join("secret");
        case.fails(&format!("cat '{}'", secret.display()), "No such file");
        case.fails(&format!("stat '{}'", world.home().display()), "No such file");
        assert_eq!(world.bare("/bin/cat").args([&secret]).output().ok(), SECRET);
        assert_eq!(case.works("cat mine"), "mine");
        let seen = case.works(&format!("ls -A '{}'", world.base().display()));
        assert_eq!(seen.trim(), "workspace");
    }

    fn a_read_only_tree_is_neither_written_nor_has_its_attributes_changed(world: &Fixture) {
        world.write("mine", "mine");
        let file = world.write(world.outside().join("ro/file"), "content");
        let case = Case::new(world).grant(world.outside().join("ro"), Rights::READ);
        let file = file.display();
        assert_eq!(case.works(&format!("cat '{file}'")), "content");
        case.fails(&format!("echo x > '{file}'"), "Read-only");
        case.fails(&format!("chmod 600 '{file}'"), "Read-only");
        case.fails(&format!("rm -f '{file}'"), "Read-only");
        case.works("echo x > mine && chmod 600 mine && rm mine");
    }

    fn a_denied_file_and_directory_cannot_be_opened_moved_or_removed(world: &Fixture) {
        world.write(".env", SECRET);
        world.write("keys/id", SECRET);
        world.write("other/id", "plain");
        let case = Case::new(world).deny(".env", Rights::ALL).deny("keys", Rights::READ);
        case.fails("cat .env", "Permission denied");
        case.fails("echo x > .env", "Permission denied");
        case.fails("mv .env env", "busy");
        case.fails("rm -f .env", "busy");
        case.fails("ln .env env", "cross-device");
        assert!(!case.there("ls keys; cat keys/id").out().contains("id"));
        case.fails("echo x > keys/new", if world.actor.uid() == 0 { "" } else { "denied" });
        case.fails("mv keys kept", "busy");
        case.fails("rmdir keys", "busy");
        assert_eq!(
            case.works("cat other/id && mv other kept && echo x > env && rm -r kept env"),
            "plain"
        );
        assert_eq!(fs::read_to_string(world.workspace().join(".env")).unwrap(), SECRET);
        assert_eq!(fs::read_to_string(world.workspace().join("keys/id")).unwrap(), SECRET);
    }

    fn a_write_denied_path_is_read_and_not_changed(world: &Fixture) {
        world.write("vendor/lib", "lib");
        world.write("src/lib", "lib");
        let case = Case::new(world).deny("vendor", Rights::WRITE);
        assert_eq!(case.works("cat vendor/lib"), "lib");
        case.fails("echo x > vendor/lib", "Read-only");
        case.fails("touch vendor/new", "Read-only");
        case.fails("mv vendor v", "busy");
        case.works("echo x > src/lib && touch src/new && mv src s");
    }

    fn a_directory_above_a_mount_is_not_moved_away(world: &Fixture) {
        world.write("a/b/c/secret", SECRET);
        world.write("x/b/c/plain", "plain");
        let case = Case::new(world).deny("a/b/c/secret", Rights::ALL);
        // Beside itself: from one mount into another would be a copy.
        for (above, beside) in [("a", "z"), ("a/b", "a/z"), ("a/b/c", "a/b/z")] {
            case.fails(&format!("mv {above} {beside}"), "busy");
        }
        case.works("touch a/b/c/new && mv a/b/c/new a/b/c/newer && mv x moved && mv moved/b/c moved/d");
    }

    fn a_protected_path_that_exists_is_read_only(world: &Fixture) {
        world.write(".git/config", "[core]");
        world.write(".git/hooks/pre-commit", "hook");
        let case = Case::new(world)
            .protect(".git/config")
            .protect(".git/hooks")
            .protect(".envrc");
        let (lowered, _) = case.lowered();
        assert_eq!(lowered.protected.len(), 2, "{:?}", lowered.protected);
        assert_eq!(case.works("cat .git/config .git/hooks/pre-commit"), "[core]hook");
        case.fails("echo x >> .git/config", "Read-only");
        case.fails("echo x > .git/hooks/post-merge", "Read-only");
        case.fails("mv .git git", "busy");
        case.fails("rm -rf .git/hooks", "Read-only");
        case.works("echo x > .git/index && mkdir .git/objects && mv .git/index .git/objects/x");
        assert!(!world.workspace().join(".envrc").exists());
    }

    fn a_pattern_in_a_read_only_tree_masks_all_that_matches(world: &Fixture) {
        let tree = world.outside().join("ro");
        for file in ["a.pem", "deep/er/b.pem", "deep/c.txt"] {
            world.write(tree.join(file), SECRET);
        }
        let case = Case::new(world)
            .grant(&tree, Rights::READ)
            .deny_pattern(&tree, Pattern::Suffix(".pem".into()));
        let at = |file: &str| format!("cat '{}'", tree.join(file).display());
        case.fails(&at("a.pem"), "Permission denied");
        case.fails(&at("deep/er/b.pem"), "Permission denied");
        assert_eq!(case.works(&at("deep/c.txt")), SECRET);
    }

    fn hostile_names_keep_their_mounts(world: &Fixture) {
        let name = OsString::from_vec(b"--bind a\tb\n'\"\\040\xff".to_vec());
        let folder = Path::new(&name);
        world.write(folder.join("secret"), SECRET);
        world.write(folder.join("open"), "plain");
        let case = Case::new(world).deny(folder.join("secret"), Rights::ALL);
        case.fails("cat ./--bind*/secret", "Permission denied");
        assert_eq!(case.works("cat ./--bind*/open"), "plain");
        case.fails("mv ./--bind* moved", "busy");
    }

    fn tmp_is_private_and_bounded(world: &Fixture) {
        let case = Case::new(world);
        let name = format!("stockade-private-{}", std::process::id());
        case.works(&format!("echo x > /tmp/{name} && cat /tmp/{name}"));
        assert!(!Path::new("/tmp").join(&name).exists());
        case.fails("dd if=/dev/zero of=/tmp/big bs=65536 count=64", "No space");
        case.works("dd if=/dev/zero of=big bs=65536 count=64 2>&1 && rm big");
    }

    fn proc_shows_the_namespace_alone(world: &Fixture) {
        let case = Case::new(world);
        let processes = case.works("ls /proc | grep -c '^[0-9]'");
        assert!(processes.trim().parse::<u32>().unwrap() < 10, "{processes}");
        assert_eq!(case.works("cat /proc/self/comm").trim(), "cat");
        case.fails(&format!("kill -0 {}", std::process::id()), "No such process");
    }

    fn a_host_listener_is_not_reached_and_an_own_one_is(world: &Fixture) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connect = format!("import socket; socket.create_connection(('127.0.0.1', {port}), 2)");
        let case = Case::new(world);
        case.fails(&format!("python3 -c \"{connect}\""), "refused");
        world.bare("/usr/bin/python3").args(["-c", &connect]).output().ok();
        case.works("python3 -c \"import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname(), 2)\"");
    }

    fn a_mask_is_not_unmounted(world: &Fixture) {
        world.write(".env", SECRET);
        let case = Case::new(world).deny(".env", Rights::ALL);
        let run = case.there("umount .env; mount -o remount,rw,bind .env; cat .env; grep CapEff /proc/self/status");
        assert!(!run.out().contains(SECRET), "{}", run.out());
        assert!(
            run.out().contains("CapEff:\t0000000000000000"),
            "{} {}",
            run.out(),
            run.err()
        );
    }

    fn the_root_and_dev_are_shut(world: &Fixture) {
        let case = Case::new(world);
        for place in ["/new", "/dev/new", "/dev/shm/new"] {
            case.fails(&format!("echo x > {place}"), "Read-only");
        }
        case.works("echo x > /dev/null && echo x > new && head -c 4 /dev/urandom > new");
    }

    /// Everything in the fixture, in both ways a file is opened, and nothing of it is changed or left.
    fn every_file_is_as_the_reader_says(world: &Fixture) {
        for file in ["a/x", "a/deep/y", "b/x", "b/in/y", "c.pem", "b/in/c.pem", ".git/config"] {
            world.write(file, "x");
            world.write(world.outside().join(file), "x");
        }
        let case = Case::new(world)
            .grant(world.outside(), Rights::READ)
            .grant(world.outside().join("b/in"), Rights::READ | Rights::WRITE)
            .deny("a/deep", Rights::ALL)
            .deny("b", Rights::WRITE)
            .deny("c.pem", Rights::READ)
            .protect(".git/config");
        let before = files_below(world.base());
        let (lowered, survey) = case.lowered();
        let view = read(&lowered.plan.render(), &[], &survey).unwrap();
        let mut line = String::new();
        for file in &before {
            let shown = file.display();
            writeln!(line, "(: < '{shown}') 2>/dev/null && echo 'read {shown}'").unwrap();
            writeln!(line, "(: >> '{shown}') 2>/dev/null && echo 'write {shown}'").unwrap();
        }
        let out = case.run(line + "true").ok();
        for file in &before {
            for (word, operation) in [("read", Operation::Read), ("write", Operation::Write)] {
                let done = out.lines().any(|line| line == format!("{word} {}", file.display()));
                // What lies in the private /tmp is made there; nothing of the host's shows in it.
                let shown = matches!(view.around(&path(file)), Some((_, Mount::Host(_))));
                let said = shown && view.access(operation, &path(file)) == Access::Full;
                assert_eq!(done, said, "{word} {}", file.display());
            }
        }
        assert_eq!(files_below(world.base()), before);
    }

    fn files_below(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut todo = vec![folder.to_owned()];
        while let Some(folder) = todo.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    todo.push(entry.path());
                } else {
                    found.push(entry.path());
                }
            }
        }
        found.sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
        found
    }
}
