//! Roots that hold more than their writer thinks: everything, a home directory, a place for private directories.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::path::{Path, PathBuf};

    use nix::sys::signal::Signal;

    use crate::common::{Fixture, Run, SECRET, eventually, in_both_regimes};

    in_both_regimes! {
        a_root_that_is_everything_is_refused_with_what_to_do_and_check_says_so [];
        private_directories_do_not_lie_where_a_deny_takes_them [];
        what_is_private_in_a_home_directory_is_denied_and_named [];
        what_a_config_names_in_a_home_directory_is_given [];
        flags_give_a_home_directory_without_what_is_private_in_it [];
        a_deny_of_one_private_file_opens_no_other_and_a_grant_of_one_is_warned_of [];
        as_it_stands_it_is_held_by_mounts_and_refused_by_landlock_alone [];
        tokens_of_other_sessions_are_not_read_even_where_a_config_gives_all_around_them [];
        a_session_that_asks_later_hides_its_token_too [];
        the_token_of_a_session_with_other_variables_is_not_read [];
        where_a_link_in_a_private_directory_leads_is_not_read [];
    }

    const END: &str = "shell: {default: {approval: none}}\n";

    fn config(world: &Fixture, sandbox: &str) -> PathBuf {
        world.write(
            world.base().join("agent.yaml"),
            format!("extends: [system]\nsandbox:\n{sandbox}{END}"),
        )
    }

    fn run(world: &Fixture, config: &Path, place: &Path, line: &str) -> Run {
        let [config, place] = [config, place].map(|path| path.to_str().unwrap());
        let args = ["run", "--config", config, "--cwd", place, "-c", line];
        world.stockade(&args).output()
    }

    fn a_root_that_is_everything_is_refused_with_what_to_do_and_check_says_so(world: &Fixture) {
        let advice = "name the directories";
        let refused = world.stockade(&["run", "--ro", "/", "--", "true"]).output().exits(125);
        assert!(refused.err().contains(advice), "{}", refused.err());
        assert!(!refused.err().contains("TMPDIR to"), "{}", refused.err());
        for sandbox in ["  base: {read: [/]}\n", "  paths: {all: {root: /}}\n"] {
            let file = config(world, sandbox);
            let refused = run(world, &file, &world.workspace(), "true").exits(125);
            assert!(refused.err().contains(advice), "{sandbox}: {}", refused.err());
            let check = world.stockade(&["check", file.to_str().unwrap()]).output().exits(125);
            assert!(check.err().contains(advice), "{sandbox}: {}", check.err());
        }
        // What the advice says works.
        let outside = world.outside();
        let line = format!("cat {}/secret", outside.display());
        let place = outside.to_str().unwrap();
        let args = ["run", "--ro", place, "--cwd", place, "-c", &line];
        assert_eq!(world.stockade(&args).output().ok(), SECRET);
        let file = config(world, &format!("  base: {{read: [{}]}}\n", outside.display()));
        assert_eq!(run(world, &file, &outside, &line).ok(), SECRET);
        world.stockade(&["check", file.to_str().unwrap()]).output().exits(0);
    }

    fn private_directories_do_not_lie_where_a_deny_takes_them(world: &Fixture) {
        world.write("private/key", SECRET);
        world.write("plain", "plain\n");
        for deny in ["./private", "private"] {
            let root = world.workspace();
            let sandbox = format!(
                "  deny_fallback: decompose\n  paths: {{w: {{root: {}, deny: [{deny}]}}}}\n",
                root.display()
            );
            let file = config(world, &sandbox);
            let run = |line: &str| {
                let args = ["run", "--config", file.to_str().unwrap(), "-c", line];
                let place = root.join("private");
                world.stockade(&args).env("TMPDIR", place).output()
            };
            let ran = run("cat plain && echo x > \"$TMPDIR/x\" && cat \"$TMPDIR/x\"");
            assert_eq!(ran.out(), "plain\nx\n", "{deny}: {}", ran.err());
            run("cat private/key").assert_denied();
            let left: Vec<_> = fs::read_dir(root.join("private")).unwrap().collect();
            assert_eq!(left.len(), 1, "{left:?}");
        }
    }

    /// A home directory with a history and a plain file, and a config that has it as a root.
    fn home(world: &Fixture, more: &str, roots: &str) -> PathBuf {
        world.write(world.home().join(".bash_history"), SECRET);
        world.write(world.home().join("notes"), "plain\n");
        let home = world.home();
        config(
            world,
            &format!("{more}  paths:\n    home: {{root: {}}}\n{roots}", home.display()),
        )
    }

    const DECOMPOSE: &str = "  deny_fallback: decompose\n";

    fn what_is_private_in_a_home_directory_is_denied_and_named(world: &Fixture) {
        let file = home(world, DECOMPOSE, "");
        let at = |name: &str| format!("cat {}/{name}", world.home().display());
        let denied = run(world, &file, &world.home(), &at(".ssh/id_ed25519"));
        denied.assert_denied();
        run(world, &file, &world.home(), &at(".bash_history")).assert_denied();
        assert_eq!(run(world, &file, &world.home(), &at("notes")).ok(), "plain\n");
        let check = world.stockade(&["check", file.to_str().unwrap()]).output().exits(0);
        let said = check.out() + &check.err();
        assert!(
            said.contains(".ssh, .bash_history") && said.contains("is denied there"),
            "{said}"
        );
    }

    fn flags_give_a_home_directory_without_what_is_private_in_it(world: &Fixture) {
        world.write(world.home().join("notes"), "plain\n");
        let home = world.home();
        // A link that leads nowhere is denied under its own name.
        symlink(".kube", home.join(".kube")).unwrap();
        let place = home.to_str().unwrap();
        let above = home.parent().unwrap().to_str().unwrap();
        for root in [place, above] {
            let run = |line: &str| {
                let args = [
                    "run",
                    "--ro",
                    root,
                    "--deny-fallback",
                    "decompose",
                    "--cwd",
                    place,
                    "-c",
                    line,
                ];
                world.stockade(&args).output()
            };
            let denied = run(&format!("cat {place}/.ssh/id_ed25519"));
            let told = denied.err();
            assert!(told.contains("is denied there") && told.contains(".kube"), "{told}");
            denied.assert_denied();
            assert_eq!(run(&format!("cat {place}/notes")).ok(), "plain\n");
        }
    }

    fn a_deny_of_one_private_file_opens_no_other_and_a_grant_of_one_is_warned_of(world: &Fixture) {
        world.write(world.home().join(".ssh/other"), SECRET);
        let home = world.home();
        let read = |name: &str| format!("cat {}/.ssh/{name}", home.display());
        let file = config(
            world,
            &format!(
                "{DECOMPOSE}  paths:\n    home: {{root: {}/, deny: [./.ssh/id_ed25519]}}\n",
                home.display()
            ),
        );
        run(world, &file, &home, &read("other")).assert_denied();
        let one = format!("    one: {{root: {}/.ssh/other}}\n", home.display());
        let file = self::home(world, DECOMPOSE, &one);
        let given = run(world, &file, &home, &read("other"));
        assert_eq!(given.ok(), SECRET);
        let check = world.stockade(&["check", file.to_str().unwrap()]).output().exits(0);
        assert!(check.out().contains("gives all of"), "{}", check.out());
    }

    fn what_a_config_names_in_a_home_directory_is_given(world: &Fixture) {
        let keys = format!("    keys: {{root: {}/.ssh}}\n", world.home().display());
        let file = home(world, DECOMPOSE, &keys);
        let read = format!("cat {}/.ssh/id_ed25519", world.home().display());
        let place = &world.home();
        assert_eq!(run(world, &file, place, &read).ok(), SECRET);
        let other = format!("cat {}/.bash_history", world.home().display());
        run(world, &file, place, &other).assert_denied();
        // A root that is not around it says nothing of it.
        let file = config(
            world,
            &format!("  paths: {{k: {{root: {}/.ssh}}}}\n", world.home().display()),
        );
        let place = &world.home().join(".ssh");
        assert_eq!(run(world, &file, place, &read).ok(), SECRET);
    }

    fn as_it_stands_it_is_held_by_mounts_and_refused_by_landlock_alone(world: &Fixture) {
        let file = home(world, "", "");
        let at = |name: &str| format!("cat {}/{name}", world.home().display());
        if world.backend.is_in_namespaces() {
            run(world, &file, &world.home(), &at(".ssh/id_ed25519")).assert_denied();
            assert_eq!(run(world, &file, &world.home(), &at("notes")).ok(), "plain\n");
        } else {
            let refused = run(world, &file, &world.home(), &at("notes")).exits(125);
            for said in ["private in a home directory", "deny_fallback: decompose"] {
                assert!(refused.err().contains(said), "{said}: {}", refused.err());
            }
        }
    }

    fn tokens_of_other_sessions_are_not_read_even_where_a_config_gives_all_around_them(world: &Fixture) {
        let state = world.home().join(".local/state/stockade/approvals");
        let run = world.base().join("run");
        let tokens = [
            state.join("a.token"),
            world.home().join(".config/stockade/token"),
            run.join("stockade-approvals/b.token"),
        ];
        for token in &tokens {
            world.write(token, SECRET);
        }
        world.write(world.home().join(".local/state/other"), "plain\n");
        for place in [world.home().join(".local/state"), world.home(), world.base().to_owned()] {
            let roots = format!("  unix: {{root: {}}}\n", place.display());
            let file = world.write(
                world.base().join("agent.yaml"),
                format!(
                    "extends: [system]\nsandbox:\n{DECOMPOSE}  paths:\n  {roots}shell: {{unix_sockets: all, default: {{approval: none}}}}\n"
                ),
            );
            for token in tokens.iter().filter(|token| token.starts_with(&place)) {
                let line = format!("cat {}", token.display());
                self::run(world, &file, &place, &line).assert_denied();
            }
            let plain = format!("cat {}/.local/state/other", world.home().display());
            assert_eq!(self::run(world, &file, &place, &plain).ok(), "plain\n");
        }
        let file = config(world, &format!("  paths: {{k: {{root: {}}}}}\n", state.display()));
        let refused = self::run(world, &file, &world.workspace(), "true").exits(125);
        assert!(refused.err().contains("belongs to Stockade"), "{}", refused.err());
    }

    fn a_session_that_asks_later_hides_its_token_too(world: &Fixture) {
        let place = world.base().join("run");
        world.write(place.join("bus"), "plain\n");
        let file = config(
            world,
            &format!("{DECOMPOSE}  paths: {{r: {{root: {}}}}}\n", place.display()),
        );
        let line = format!(
            "echo started; read x; cat {0}/bus; cat {0}/stockade-approvals/a.token",
            place.display()
        );
        let [file, cwd] = [&file, &place].map(|path| path.to_str().unwrap());
        let args = ["run", "--config", file, "--cwd", cwd, "-c", &line];
        let mut running = world.stockade(&args).converse();
        let mut told = BufReader::new(running.stdout.take().unwrap());
        let mut first = String::new();
        told.read_line(&mut first).unwrap();
        assert_eq!(first, "started\n");
        world.write(place.join("stockade-approvals/a.token"), SECRET);
        running.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut rest = String::new();
        told.read_to_string(&mut rest).unwrap();
        assert!(!running.wait().unwrap().success());
        assert_eq!(rest, "plain\n");
    }

    fn the_token_of_a_session_with_other_variables_is_not_read(world: &Fixture) {
        let place = world.base().join("elsewhere");
        world.write(place.join("bus"), "plain\n");
        let text = format!(
            "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths: {{w: {{root: {}, mode: rw, write_approval: false}}}}\n",
            world.workspace().display()
        );
        let asks = world.write(world.base().join("asks.yaml"), text);
        let args = [
            "run",
            "--config",
            asks.to_str().unwrap(),
            "--approvals-socket",
            "default",
            "-c",
            "touch never",
        ];
        let running = world.stockade(&args).env("XDG_RUNTIME_DIR", &place).spawn();
        let mut token = None;
        eventually("the token", || {
            let entries = fs::read_dir(place.join("stockade-approvals"))
                .into_iter()
                .flatten()
                .flatten();
            token = entries
                .map(|entry| entry.path())
                .find(|path| path.extension().is_some_and(|end| end == "token"));
            token.is_some()
        });
        let token = token.unwrap();
        let file = config(
            world,
            &format!("{DECOMPOSE}  paths: {{r: {{root: {}}}}}\n", place.display()),
        );
        run(world, &file, &place, &format!("cat {}", token.display())).assert_denied();
        assert_eq!(
            run(world, &file, &place, &format!("cat {}/bus", place.display())).ok(),
            "plain\n"
        );
        let of_flags = |line: &str| {
            let place = place.to_str().unwrap();
            world
                .stockade(&["run", "--ro", place, "--cwd", place, "-c", line])
                .output()
        };
        let read = of_flags(&format!("cat {}", token.display()));
        assert!(
            read.code() != 0 && !read.out().contains(&fs::read_to_string(&token).unwrap()),
            "{}",
            read.out()
        );
        running.signal(Signal::SIGTERM);
        running.wait().exits(143);
    }

    fn where_a_link_in_a_private_directory_leads_is_not_read(world: &Fixture) {
        let home = world.home();
        world.write(home.join("dot/ssh/key"), SECRET);
        world.write(home.join("dot/ssh/plain"), "plain\n");
        symlink("../dot/ssh/key", home.join(".ssh/key")).unwrap();
        let file = self::home(world, DECOMPOSE, "");
        let read = |name: &str| format!("cat {}/dot/ssh/{name}", home.display());
        run(world, &file, &home, &read("key")).assert_denied();
        assert_eq!(run(world, &file, &home, &read("plain")).ok(), "plain\n");
    }

    /// What namespaces hold as it stands.
    mod mounts {
        use super::*;
        use crate::common::in_namespaces;

        in_namespaces! {
            what_a_quarantine_keeps_stops_no_start_with_a_root_around_it [];
        }

        fn what_a_quarantine_keeps_stops_no_start_with_a_root_around_it(world: &Fixture) {
            let undone = world.stockade(&[
                "run",
                "-c",
                "mkdir -p .husky; echo 1 > .husky/pre-commit; echo e > x; ln x .envrc",
            ]);
            assert!(undone.output().err().contains("quarantine"));
            let uid = nix::unistd::Uid::from_raw(fs::metadata(world.workspace()).unwrap().uid());
            let home = nix::unistd::User::from_uid(uid).unwrap().unwrap().dir;
            let [home, place] = [home, world.workspace()].map(|path| path.display().to_string());
            let run = |line: &str| {
                let args = ["run", "--ro", &home, "--rw", &place, "-c", line];
                world.stockade(&args).output()
            };
            assert_eq!(run("echo ok").ok(), "ok\n");
            run(&format!("ls {home}/.local/state/stockade")).assert_denied();
        }
    }
}
