//! Directories and files that let their owner not in, with protected names in them; and directories that an interrupted session
//! changed and that were moved.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use crate::common::{
        Fixture, descendants, eventually, in_both_regimes, marker, stop, wait_for_processes, wait_until_gone,
    };

    in_both_regimes! {
        a_command_that_shuts_protected_names_keeps_no_later_one_from_starting ["git"];
        a_directory_without_protected_names_stays_shut [];
        read_only_hooks_and_shut_configs_are_held_and_stay_so ["git"];
        around_a_directory_that_was_moved_after_a_crash_nothing_starts ["git"];
        what_a_person_shut_around_protected_names_is_named_with_what_to_do ["git"];
    }

    fn host(world: &Fixture, line: &str) {
        world.bare("/bin/sh").args(["-c", line]).output().exits(0);
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn a_command_that_shuts_protected_names_keeps_no_later_one_from_starting(world: &Fixture) {
        for (line, shut) in [
            ("git init -q z; chmod 000 z", Some("z")),
            ("git init -q z; chmod 600 z", Some("z")),
            ("git init -q z; chmod 000 z/.git", Some("z/.git")),
            ("mkdir -p a/z; git init -q a/z; chmod 000 a/z/.git a/z a", Some("a/z")),
            ("git init -q z; chmod 000 z/.git/hooks", Some("z/.git/hooks")),
            ("git init -q z; chmod 000 z/.git/config", None),
        ] {
            let run = world.shell(line).output().exits(0);
            if let Some(shut) = shut {
                let told = format!("{shut} holds protected names and was closed to you");
                assert!(run.err().contains(&told), "{line}: {}", run.err());
                assert_eq!(mode(&world.workspace().join(shut)) & 0o500, 0o500, "{line}");
            }
            let next = world.shell("echo ran").output().exits(0);
            assert_eq!(next.out(), "ran\n", "{line}");
            host(world, "chmod -R u+rwx a z 2>/dev/null; rm -rf a z");
        }
        host(world, "git init -q m; chmod 750 m");
        let run = world.shell("chmod 000 m").output().exits(0);
        assert!(run.err().contains("m holds protected names"), "{}", run.err());
        assert_eq!(mode(&world.workspace().join("m")), 0o700);
        assert_eq!(world.shell("echo ran").output().ok(), "ran\n");
    }

    fn a_directory_without_protected_names_stays_shut(world: &Fixture) {
        let run = world.shell("mkdir d; echo 1 > d/file; chmod 000 d").output().exits(0);
        assert!(!run.err().contains("closed"), "{}", run.err());
        assert_eq!(mode(&world.workspace().join("d")), 0);
        assert_eq!(world.shell("echo ran").output().ok(), "ran\n");
        host(world, "chmod 700 d");
    }

    fn read_only_hooks_and_shut_configs_are_held_and_stay_so(world: &Fixture) {
        for (name, bits) in [("hooks", 0o555), ("config", 0), ("config", 0o444)] {
            host(world, "git init -q m");
            let place = world.workspace().join("m/.git").join(name);
            let config = fs::read(world.workspace().join("m/.git/config")).unwrap();
            set_mode(&place, bits);
            let line = "chmod 755 m/.git/hooks m/.git/config; echo evil > m/.git/hooks/pre-push; echo evil >> m/.git/config; echo ran";
            let run = world.shell(line).output().exits(0);
            assert_eq!(run.out(), "ran\n", "{name} {bits:o}");
            assert!(
                run.err().contains("m/.git/hooks/pre-push is protected"),
                "{}",
                run.err()
            );
            assert_eq!(mode(&place), bits, "{name}");
            set_mode(&place, 0o755);
            assert!(!world.workspace().join("m/.git/hooks/pre-push").exists(), "{name}");
            assert_eq!(
                fs::read(world.workspace().join("m/.git/config")).unwrap(),
                config,
                "{name}"
            );
            host(world, "rm -rf m");
        }
    }

    fn what_a_person_shut_around_protected_names_is_named_with_what_to_do(world: &Fixture) {
        if !world.backend.is_in_namespaces() {
            return in_landlock_what_a_person_shut_is_looked_into(world);
        }
        host(world, "git init -q m");
        for shut in ["m", "m/.git", "m/.git/hooks"] {
            let place = world.workspace().join(shut);
            for bits in [0, 0o200] {
                set_mode(&place, bits);
                let line = format!("chmod 755 {shut}; echo ran");
                let refused = world.shell(&line).output().exits(125);
                assert_eq!(refused.out(), "", "{shut} {bits:o}");
                let advice = format!("chmod u+rwx {}`", place.display());
                assert!(refused.err().contains(&advice), "{shut}: {}", refused.err());
                assert_eq!(mode(&place), bits);
            }
            set_mode(&place, 0o755);
            assert_eq!(world.shell("echo ran").output().ok(), "ran\n", "{shut}");
        }
    }

    fn in_landlock_what_a_person_shut_is_looked_into(world: &Fixture) {
        host(world, "git init -q m; chmod 000 m");
        let place = world.workspace().join("m");
        let line = "chmod 755 m; echo evil > m/.git/hooks/pre-push; chmod 000 m";
        let run = world.shell(line).output().exits(0);
        assert!(
            run.err().contains("m/.git/hooks/pre-push is protected"),
            "{}",
            run.err()
        );
        // It is as the person wanted it.
        assert_eq!(mode(&place), 0);
        set_mode(&place, 0o755);
        assert!(!place.join(".git/hooks/pre-push").exists());
    }

    fn around_a_directory_that_was_moved_after_a_crash_nothing_starts(world: &Fixture) {
        host(world, "mkdir -p P/proj && git init -q P");
        let (before, after) = (world.workspace().join("P"), world.workspace().join("Q"));
        let marker = marker();
        let line = format!("echo evil > .envrc; sleep {marker}");
        let running = world.shell(&line).cwd(before.join("proj")).spawn();
        wait_for_processes(&marker, 1);
        eventually("the change", || before.join("proj/.envrc").exists());
        running.stop();
        // All at once, so that nobody puts anything back.
        let all = descendants(running.pid()).into_iter().map(Pid::from_raw);
        let all: Vec<Pid> = all.collect();
        all.iter().copied().for_each(stop);
        // Before its owner dies: a start of another test puts back what nobody holds any more.
        fs::rename(&before, &after).unwrap();
        for process in all {
            // One may have gone with another.
            let _gone = kill(process, Signal::SIGKILL);
        }
        running.signal(Signal::SIGKILL);
        running.wait().exits(137);
        wait_until_gone(&marker);
        for flags in [&["run", "-c", "echo ran"][..], &["run", "-q", "-c", "echo ran"]] {
            let refused = world.stockade(flags).cwd(&after).output().exits(125);
            assert_eq!(refused.out(), "");
            let told = before.join("proj");
            assert!(refused.err().contains(told.to_str().unwrap()), "{}", refused.err());
            assert!(refused.err().contains("Rename it back"), "{}", refused.err());
        }
        // Elsewhere commands start, and where it was all is put back.
        fs::create_dir_all(world.workspace().join("elsewhere")).unwrap();
        set_mode(&world.workspace().join("elsewhere"), 0o777);
        let other = world
            .shell("echo ran")
            .cwd(world.workspace().join("elsewhere"))
            .output();
        assert_eq!(other.ok(), "ran\n");
        fs::rename(&after, &before).unwrap();
        assert_eq!(world.shell("echo ran").cwd(&before).output().ok(), "ran\n");
        assert!(!before.join("proj/.envrc").exists());
    }
}
