//! What programs of the host run at once is covered while a command runs, and harmless changes reach it afterwards.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    use nix::sys::signal::Signal;
    use nix::unistd::{Uid, User};
    use serde_json::{Value, json};

    use super::super::protected::tests::kill_all_of;
    use crate::common::{Backend, Fixture, as_root_and_as_user, eventually, in_all_namespaces, marker};

    as_root_and_as_user! {
        a_harmless_change_of_a_config_is_the_hosts_and_nothing_is_said ["git"];
        of_a_config_only_what_may_run_something_is_kept_from_the_host ["git"];
        a_hook_and_an_envrc_work_inside_and_the_host_keeps_its_own ["git"];
        a_session_with_git_leaves_what_it_leaves_outside ["git"];
        what_git_does_over_several_commands_is_what_it_does_outside ["git"];
        a_clone_that_was_there_is_moved_back_and_one_that_is_new_is_moved ["git"];
        in_landlock_the_hosts_git_runs_it_before_it_is_undone ["git"];
        in_landlock_prevention_is_refused [];
        in_landlock_what_leads_git_elsewhere_is_undone_at_the_end ["git"];
    }

    in_all_namespaces! {
        a_harmless_change_of_a_config_is_the_hosts_and_nothing_is_said ["git"];
        of_a_config_only_what_may_run_something_is_kept_from_the_host ["git"];
        a_hook_and_an_envrc_work_inside_and_the_host_keeps_its_own ["git"];
        a_session_with_git_leaves_what_it_leaves_outside ["git"];
        what_git_does_over_several_commands_is_what_it_does_outside ["git"];
        a_clone_that_was_there_is_moved_back_and_one_that_is_new_is_moved ["git"];
        the_hosts_git_runs_nothing_of_a_command_that_is_still_running ["git"];
        only_a_plain_file_beside_it_is_renamed_onto_a_copy ["git", "python3"];
        a_command_that_leads_git_elsewhere_is_killed_and_that_is_taken_away ["git", "python3"];
        what_leads_git_where_it_led_is_ordinary_work ["git"];
        what_git_obeys_is_covered_where_it_was_not_there ["git"];
        a_clone_of_the_hosts_that_cannot_be_removed_is_explained ["git"];
        what_a_clause_narrows_inside_is_read_only ["git"];
        no_copy_is_left_behind ["git"];
        what_a_command_moves_into_a_covered_directory_is_kept_whole ["git"];
        a_file_of_any_length_that_was_written_over_a_covered_one_is_kept_whole ["git", "python3"];
        what_a_command_moves_into_a_covered_directory_and_closes_is_kept_whole ["git"];
        what_a_command_put_into_a_copy_is_kept_where_everybody_was_killed ["git"];
        after_an_ordinary_end_no_later_start_reports_a_copy ["git"];
        hooks_beside_the_usual_ones_are_covered_too ["git"];
        a_config_that_the_host_replaced_is_covered_again_beside_a_file_server ["git"];
        what_is_covered_in_a_root_that_is_ruled_entry_by_entry_is_a_copy [];
    }

    fn what_is_covered_in_a_root_that_is_ruled_entry_by_entry_is_a_copy(world: &Fixture) {
        fs::create_dir(world.workspace().join("src")).unwrap();
        let envrc = world.write(".envrc", "mine\n");
        let config = world.write(
            "agent.yaml",
            "extends: [system]\nsandbox:\n  deny_fallback: decompose\n  protect_fallback: undo\n  paths:\n    project: {root: ., mode: rw, execute: true, approval: {write: none}}\n    \
             src: {root: ./src, mode: ro}\nshell: {default: {approval: none}}\n",
        );
        let line = "grep -c decompose agent.yaml; echo theirs >> .envrc && cat .envrc";
        let run = world
            .stockade(&["run", "--config", config.to_str().unwrap(), "-c", line])
            .output()
            .exits(0);
        assert_eq!(run.out(), "1\nmine\ntheirs\n");
        assert_eq!(fs::read_to_string(envrc).unwrap(), "mine\n");
    }

    fn git(world: &Fixture, line: &str) -> String {
        world.bare("/bin/sh").args(["-c", line]).output().ok()
    }

    fn repository(world: &Fixture) -> PathBuf {
        git(
            world,
            "git init -q -b main . && git config user.name n && git config user.email e && echo 1 > file && \
             git add file && git commit -q -m one",
        );
        world.workspace()
    }

    /// The outcome of a command, and what of this world it says was restored.
    pub(crate) fn outcome(world: &Fixture, line: &str) -> (Value, Vec<Value>) {
        let run = world.stockade(&["run", "--json", "-c", line]).output();
        let outcome: Value = serde_json::from_str(&run.out()).unwrap_or_else(|_| panic!("{} {}", run.out(), run.err()));
        assert_eq!(outcome["unsettled"], Value::Null, "{outcome:#}");
        let restored = outcome["restored"].as_array().cloned().unwrap_or_default();
        let mine = |one: &Value| Path::new(one["path"].as_str().unwrap()).starts_with(world.base());
        (outcome, restored.into_iter().filter(mine).collect())
    }

    fn what_a_command_moves_into_a_covered_directory_is_kept_whole(world: &Fixture) {
        repository(world);
        world.program(".git/hooks/pre-commit", "#!/bin/sh\n");
        world.write("src/tree/a/b", "deep\n");
        world.write("src/tree/c", "");
        // More than is looked at one by one.
        for number in 0..1_200 {
            world.write(format!("src/many/{number}"), "");
        }
        let kept = |restored: &[Value], name: &str| {
            let all = restored.iter().filter_map(|one| one["quarantined"].as_str());
            let found: Vec<PathBuf> = all.map(PathBuf::from).collect();
            let here = found.iter().map(|place| (place.clone(), place.join(name)));
            let place = here
                .flat_map(|(place, inside)| [place, inside])
                .find(|place| place.is_dir() && place.ends_with(name) || place.join("a/b").exists());
            place.unwrap_or_else(|| panic!("{name}: {restored:?}"))
        };
        // A directory that is kept is shut, so that no tool of the host looks for settings in it. Here it is looked into.
        let open = |restored: &[Value]| {
            for place in restored
                .iter()
                .filter_map(|one| one["quarantined"].as_str())
                .map(Path::new)
            {
                let mode = fs::symlink_metadata(place).unwrap();
                if mode.is_dir() {
                    assert_eq!(mode.permissions().mode() & 0o777, 0, "{place:?}");
                    fs::set_permissions(place, fs::Permissions::from_mode(0o700)).unwrap();
                }
            }
        };
        let (_, restored) = outcome(world, "mv src/tree .git/hooks/");
        open(&restored);
        let tree = kept(&restored, "tree");
        assert_eq!(fs::read_to_string(tree.join("a/b")).unwrap(), "deep\n");
        assert!(tree.join("c").exists() && restored.len() == 1, "{restored:?}");
        let (_, restored) = outcome(world, "mv src/many .git/hooks/");
        open(&restored);
        let many = kept(&restored, "many");
        assert_eq!(fs::read_dir(many).unwrap().count(), 1_200);
        assert!(world.workspace().join(".git/hooks/pre-commit").exists());
        let hooks = fs::read_dir(world.workspace().join(".git/hooks")).unwrap();
        let names: Vec<_> = hooks
            .map(|one| one.unwrap().file_name())
            .filter(|name| !name.as_bytes().ends_with(b".sample"))
            .collect();
        assert_eq!(names, ["pre-commit"]);
    }

    /// Two calls of one session: the second when the first was answered.
    const ONE_AFTER_THE_OTHER: &str = r#"
: > "$2/answers"
{ echo "$4"; until [ -s "$2/answers" ]; do sleep 0.05; done; echo "$5"; } |
    "$1" call -q --config "$3" --stream > "$2/answers"
cat "$2/answers"
"#;

    fn two_calls(world: &Fixture, first: &str, second: &str) -> String {
        let text = format!(
            "extends: [system]\nsandbox: {{backend: {}, paths: {{w: {{root: {}, mode: rw, write_approval: false}}}}}}\n\
             shell: {{default: {{allowed: true, approval: none}}}}\n",
            world.backend.name(),
            world.workspace().display()
        );
        let file = world.write(world.outside().join("agent.yaml"), text);
        let call = |line: &str| json!({"call": {"tool": "shell", "args": {"command": line}}}).to_string();
        world
            .bare("/bin/sh")
            .args(["-c", ONE_AFTER_THE_OTHER, "sh"])
            .args([world.binary(), world.outside().as_path(), file.as_path()])
            .args([call(first), call(second)])
            .output()
            .ok()
    }

    /// More than is compared file by file, and a FIFO, which cannot be copied: the next command must not empty it.
    fn what_a_command_moves_into_a_covered_directory_and_closes_is_kept_whole(world: &Fixture) {
        repository(world);
        for number in 0..1_100 {
            world.write(format!("work/{number}"), "");
        }
        world.write("work/thesis", "mine\n");
        let run = two_calls(
            world,
            "mkfifo work/000fifo; mv work .git/hooks/ && chmod 0 .git/hooks && echo put",
            "ls .git/hooks",
        );
        assert!(run.contains("put\\n") && !run.contains("could NOT"), "{run}");
        let hooks = kept_of(world, ".git/hooks");
        fs::set_permissions(&hooks, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(fs::read_to_string(hooks.join("work/thesis")).unwrap(), "mine\n");
        assert_eq!(fs::read_dir(hooks.join("work")).unwrap().count(), 1_102);
    }

    fn hooks_beside_the_usual_ones_are_covered_too(world: &Fixture) {
        repository(world);
        for name in ["hooks-team", "hooks.local"] {
            world.program(format!(".git/{name}/pre-commit"), "#!/bin/sh\n");
            git(world, &format!("git config core.hooksPath .git/{name}"));
            let (outcome, restored) = outcome(
                world,
                &format!("echo evil >> .git/{name}/pre-commit; git status -s; tail -1 .git/{name}/pre-commit"),
            );
            assert_eq!(outcome["code"], 0, "{outcome:#}");
            assert_eq!(restored.len(), 1, "{restored:?}");
            let hook = world.workspace().join(".git").join(name).join("pre-commit");
            assert_eq!(fs::read_to_string(hook).unwrap(), "#!/bin/sh\n");
        }
    }

    /// Where this protected name is kept that was taken away once.
    fn kept_of(world: &Fixture, name: &str) -> PathBuf {
        let origin = world.workspace().join(name);
        let mut found = Vec::new();
        for batch in fs::read_dir(state(world).join("quarantine")).unwrap().flatten() {
            let Ok(manifest) = fs::read(batch.path().join("manifest.json")) else {
                continue;
            };
            // That of another session may be written now.
            let Ok(items) = serde_json::from_slice::<Vec<Value>>(&manifest) else {
                continue;
            };
            let mine = items.iter().filter(|item| item["path"] == origin.to_str().unwrap());
            found.extend(mine.map(|item| batch.path().join(item["name"].as_str().unwrap())));
        }
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        found.remove(0)
    }

    /// Nothing of it was left to be kept: the host's own change after it is nobody's.
    fn after_an_ordinary_end_no_later_start_reports_a_copy(world: &Fixture) {
        repository(world);
        let (_, restored) = outcome(world, "git config color.ui auto");
        assert!(restored.is_empty(), "{restored:?}");
        git(
            world,
            "git config user.name other && echo '#!/bin/sh' > .git/hooks/pre-push",
        );
        for _ in 0..2 {
            let (_, restored) = outcome(world, "true");
            assert!(restored.is_empty(), "{restored:?}");
        }
        let (_, restored) = outcome(world, "echo evil > .git/hooks/post-merge");
        assert_eq!(restored.len(), 1, "{restored:?}");
        let (_, restored) = outcome(world, "true");
        assert!(restored.is_empty(), "{restored:?}");
    }

    /// Longer than what is copied, so it is moved, and the next command of the session has new mounts.
    fn a_file_of_any_length_that_was_written_over_a_covered_one_is_kept_whole(world: &Fixture) {
        repository(world);
        let config = fs::read(world.workspace().join(".git/config")).unwrap();
        let write = |length: usize| format!("python3 -c \"open('.git/config', 'wb').write(b'x' * ({length}))\"");
        for length in [20 << 20, (64 << 20) + 1] {
            let (_, restored) = outcome(world, &write(length));
            let kept = restored[0]["quarantined"]
                .as_str()
                .unwrap_or_else(|| panic!("{restored:?}"));
            assert_eq!(
                fs::metadata(kept).unwrap().len(),
                u64::try_from(length).unwrap(),
                "{kept}"
            );
            assert_eq!(fs::read(world.workspace().join(".git/config")).unwrap(), config);
        }
        let run = two_calls(
            world,
            &write((64 << 20) + 1),
            "git config user.name && git config color.ui auto && git config core.fsmonitor evil",
        );
        assert!(run.contains("\"n\\n"), "{run}");
        let config = fs::read_to_string(world.workspace().join(".git/config")).unwrap();
        assert!(config.contains("ui = auto") && !config.contains("evil"), "{config}");
    }

    fn what_a_command_put_into_a_copy_is_kept_where_everybody_was_killed(world: &Fixture) {
        repository(world);
        world.program(".git/hooks/pre-commit", "#!/bin/sh\n");
        let config = fs::read(world.workspace().join(".git/config")).unwrap();
        world.write("work/a/b", "deep\n");
        let marker = marker();
        let line = format!("mv work .git/hooks/; echo '# mine' >> .git/config; exec sleep {marker}");
        kill_all_of(world, &line, &marker);
        assert!(!world.workspace().join("work").exists());
        // Any start may have kept it by now; after this one it is kept.
        let (outcome, _) = outcome(world, "ls .git/hooks/work");
        let hooks = kept_of(world, ".git/hooks");
        fs::set_permissions(&hooks, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(fs::read_to_string(hooks.join("work/a/b")).unwrap(), "deep\n");
        assert!(
            fs::read_to_string(kept_of(world, ".git/config"))
                .unwrap()
                .ends_with("# mine\n")
        );
        assert_ne!(
            outcome["code"], 0,
            "the command sees no copy of another session: {outcome:#}"
        );
        assert_eq!(fs::read(world.workspace().join(".git/config")).unwrap(), config);
        assert!(!world.workspace().join(".git/hooks/work").exists());
    }

    fn a_harmless_change_of_a_config_is_the_hosts_and_nothing_is_said(world: &Fixture) {
        let place = repository(world);
        git(world, "git init -q --bare ../origin.git");
        fs::set_permissions(place.join(".git/config"), fs::Permissions::from_mode(0o640)).unwrap();
        for (line, setting) in [
            ("git remote add origin ../origin.git", "remote.origin.url=../origin.git"),
            ("git config color.ui auto", "color.ui=auto"),
            ("cd .git && git config diff.renames copies", "diff.renames=copies"),
            ("git branch -m main trunk", ""),
            (
                "git checkout -q -b b && git branch -q --set-upstream-to=trunk",
                "branch.b.merge=refs/heads/trunk",
            ),
            (
                "cp .git/config x; echo '[log]\n\tdate = iso' >> x; cat x > .git/config; rm x",
                "log.date=iso",
            ),
        ] {
            let (outcome, restored) = outcome(world, line);
            assert_eq!(outcome["code"], 0, "{line}: {outcome:#}");
            assert!(restored.is_empty(), "{line}: {restored:?}");
            let settings = git(world, "git config --local --list");
            assert!(settings.contains(setting), "{line}: {settings}");
        }
        let mode = fs::metadata(place.join(".git/config")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(git(world, "git status -s"), "");
    }

    fn of_a_config_only_what_may_run_something_is_kept_from_the_host(world: &Fixture) {
        let place = repository(world);
        let line = "git config core.fsmonitor ./evil && git config color.ui auto && git config core.hooksPath h && \
                    git config core.fsmonitor";
        let (outcome, restored) = outcome(world, line);
        // Inside it is as git was told.
        assert_eq!(outcome["stdout"], "./evil\n", "{outcome:#}");
        let settings = git(world, "git config --local --list");
        assert!(settings.contains("color.ui=auto"), "{settings}");
        assert!(
            !settings.contains("evil") && !settings.contains("hookspath"),
            "{settings}"
        );
        let [one] = restored.as_slice() else {
            panic!("{restored:?}")
        };
        assert_eq!(one["path"], place.join(".git/config").to_str().unwrap());
        assert_eq!(one["settings"], serde_json::json!(["core.fsmonitor", "core.hookspath"]));
        let kept = fs::read_to_string(one["quarantined"].as_str().unwrap()).unwrap();
        assert!(kept.contains("evil"), "{kept}");
    }

    fn a_hook_and_an_envrc_work_inside_and_the_host_keeps_its_own(world: &Fixture) {
        let place = repository(world);
        world.write(".envrc", "mine");
        let line = "printf '#!/bin/sh\\necho hooked' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit; \
                    git commit -q --allow-empty -m two; echo theirs > .envrc; cat .envrc";
        let (outcome, restored) = outcome(world, line);
        let said = outcome["stderr"].as_str().unwrap().to_owned() + outcome["stdout"].as_str().unwrap();
        assert!(said.contains("hooked") && said.contains("theirs"), "{outcome:#}");
        assert!(!place.join(".git/hooks/post-commit").exists());
        assert_eq!(fs::read_to_string(place.join(".envrc")).unwrap(), "mine");
        let paths: Vec<&str> = restored.iter().map(|one| one["path"].as_str().unwrap()).collect();
        for path in [".git/hooks/post-commit", ".envrc"] {
            assert!(paths.iter().any(|one| one.ends_with(path)), "{paths:?}");
        }
        assert_eq!(paths.len(), 2, "{paths:?}");
        assert_eq!(git(world, "git log --format=%s"), "two\none\n");
    }

    /// Everything that a session with git does in an existing clone.
    const SESSION: &str = "cd r && git checkout -q -b b && mkdir -p .vscode && echo '{\"a\":2}' > .vscode/settings.json && \
        git checkout -q . && git checkout -q old && cat .vscode/settings.json && git checkout -q main && \
        cat .vscode/settings.json && git checkout -q -b work && echo x >> f && git commit -q -am more && \
        git push -q -u origin work && git remote add fork ../fork.git && git branch -m work work2 && \
        git merge -q old -m merged && echo y >> f && git stash -q && git stash pop -q && git checkout -q f && \
        git cherry-pick pick && git worktree add -q ../r/wt old && (cd wt && echo z > z && git add z && git commit -q -m z) && \
        git worktree remove wt && git -c protocol.file.allow=always submodule -q update --init && git rebase -q main old && \
        git checkout -q work2 && git status -s";

    fn a_session_with_git_leaves_what_it_leaves_outside(world: &Fixture) {
        let make = "export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z; \
            rm -rf * && git init -q --bare -b main o.git && git init -q --bare fork.git && git init -q sub && \
            (cd sub && git config user.email e && git config user.name n && echo s > s && git add s && git commit -q -m s) && \
            git init -q -b main src && cd src && git config user.email e && git config user.name n && mkdir .vscode && \
            echo '{\"a\":0}' > .vscode/settings.json && echo f > f && git add . && git commit -q -m one && \
            git checkout -q -b old && echo '{\"a\":1}' > .vscode/settings.json && git commit -q -am old && \
            git checkout -q main && git checkout -q -b pick && echo p > p && git add p && git commit -q -m pick && \
            git checkout -q main && git -c protocol.file.allow=always submodule -q add ../sub sub && git commit -q -m sub && \
            git push -q ../o.git --all && cd .. && git clone -q o.git r && cd r && git config user.email e && \
            git config user.name n && git branch -q old origin/old && git branch -q pick origin/pick";
        let dated = "export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z; ";
        let left = "cd r && git log --all --format='%H %D' && git branch -vv && git status -s && \
                    git config --local --list && cat .vscode/settings.json && git reflog";
        git(world, make);
        let said = git(world, &format!("{dated}{SESSION}"));
        let expected = git(world, left);
        git(world, make);
        let (outcome, restored) = outcome(world, &format!("{dated}{SESSION}"));
        assert_eq!(outcome["code"], 0, "{outcome:#}");
        assert_eq!(outcome["stdout"], said.as_str());
        assert_eq!(git(world, left), expected);
        assert!(restored.is_empty(), "{restored:?}");
    }

    /// Commands of one session with submodules and further work trees, each in a sandbox of its own.
    const LINES: [&str; 21] = [
        "git submodule --quiet add ../sub mod && git commit -q -m mod",
        "git submodule status && cat .gitmodules",
        "git submodule --quiet deinit -f mod && git status -s && ls -A mod",
        "git submodule --quiet update --init mod && git submodule status",
        "git mv mod lib && git commit -q -m lib && git status -s",
        "git submodule --quiet deinit --all -f && git status -s",
        "git submodule --quiet update --init && git -C lib log --format=%s",
        "git worktree add -q ../wt -b wt && cat ../wt/.vscode/settings.json",
        "git worktree move ../wt ../moved && git -C ../moved status -s",
        "cd ../moved && echo w > w && git add w && git commit -q -m w",
        "git worktree lock ../moved && git worktree unlock ../moved && git worktree list --porcelain | grep -c worktree",
        "git worktree remove ../moved && git branch -q -D wt && git status -s",
        "git worktree add -q ../wt origin/old && cat ../wt/.vscode/settings.json",
        "rm -rf ../wt && git worktree prune && git status -s",
        "git checkout -q -b topic origin/old && echo t > t && git add t && git commit -q -m t && echo 2 >> t && git commit -q -am t2",
        "GIT_SEQUENCE_EDITOR='sed -i 2s/pick/fixup/' git rebase -q -i HEAD~2 && git log --format=%s",
        "git checkout -q main && git merge -q --no-ff -m merged topic && cat .vscode/settings.json",
        "echo x >> f && git stash -q && git stash pop -q && git checkout -q f && git notes add -m n && git gc -q && git repack -adq",
        "git remote add fork ../fork.git && git push -q -u fork main topic && git fetch -q fork && git branch -vv",
        "git init -q nested && git clone -q ../sub nested/clone && rm -rf nested && git status -s",
        "git bisect start HEAD HEAD~2 > ../o && git bisect reset && git pull -q --rebase fork main && git status -s",
    ];

    fn what_git_does_over_several_commands_is_what_it_does_outside(world: &Fixture) {
        let make = "export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z; \
            rm -rf * && git init -q --bare -b main o.git && git init -q --bare fork.git && git init -q -b main sub && \
            (cd sub && git config user.email e && git config user.name n && echo s > s && git add s && git commit -q -m s) && \
            git init -q -b main src && cd src && git config user.email e && git config user.name n && mkdir .vscode && \
            echo '{\"a\":0}' > .vscode/settings.json && echo f > f && git add . && git commit -q -m one && \
            git checkout -q -b old && echo '{\"a\":1}' > .vscode/settings.json && git commit -q -am old && \
            git checkout -q main && git push -q ../o.git --all && cd .. && git clone -q o.git r && cd r && \
            git config user.email e && git config user.name n";
        let in_clone = |line: &str| {
            format!(
                "export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z GIT_CONFIG_COUNT=1 \
                 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always; cd r && {line}"
            )
        };
        let left = "cd r && git log --all --format='%H %D' && git status -s && git config --local --list && cat .gitmodules && \
                    cat .git/modules/mod/config lib/.git && git worktree list && git submodule status";
        git(world, make);
        let said: Vec<String> = LINES.iter().map(|line| git(world, &in_clone(line))).collect();
        let expected = git(world, left);
        git(world, make);
        for (line, said) in LINES.iter().zip(said) {
            let (outcome, restored) = outcome(world, &in_clone(line));
            assert_eq!(outcome["code"], 0, "{line}: {outcome:#}");
            assert_eq!(outcome["stdout"], said.as_str(), "{line}: {outcome:#}");
            assert!(restored.is_empty(), "{line}: {restored:?}");
        }
        assert_eq!(git(world, left), expected);
    }

    /// The session, the workspace, and a directory for streams. The host replaces the config while only a file server runs.
    const BESIDE_A_FILE_SERVER: &str = r#"
set -e
mkfifo "$2/calls"
"$1" call -q --backend namespaces --config "$3" --stream < "$2/calls" > "$2/answers" 2> "$2/said" &
exec 3> "$2/calls"
echo '{"call": {"tool": "shell", "args": {"command": "true"}}}' >&3
echo '{"call": {"tool": "read_file", "args": {"path": "file"}}}' >&3
until [ "$(wc -l < "$2/answers")" -ge 2 ]; do sleep 0.05; done
git config color.ui auto
echo '{"call": {"tool": "shell", "args": {"command": "git config core.fsmonitor ./evil; touch begun; until [ -e stop ]; do sleep 0.05; done"}}}' >&3
until [ -e begun ]; do sleep 0.05; done
cat .git/config
touch stop
exec 3>&-
wait || true
cat "$2/answers" "$2/said"
"#;

    fn a_config_that_the_host_replaced_is_covered_again_beside_a_file_server(world: &Fixture) {
        if world.backend != Backend::Namespaces {
            return;
        }
        repository(world);
        let text = format!(
            "extends: [system]\nsandbox: {{protect_fallback: undo, paths: {{w: {{root: {}, mode: rw, write_approval: false}}}}}}\n\
             shell: {{default: {{allowed: true, approval: none}}}}\n",
            world.workspace().display()
        );
        let config = world.write(world.outside().join("agent.yaml"), text);
        let run = world
            .bare("/bin/sh")
            .args(["-c", BESIDE_A_FILE_SERVER, "sh"])
            .args([world.binary(), world.outside().as_path(), config.as_path()])
            .output()
            .ok();
        assert!(run.contains("ui = auto") && run.contains("\"code\":0"), "{run}");
        let while_it_ran = run.split("{\"").next().unwrap();
        assert!(!while_it_ran.contains("evil"), "{run}");
    }

    fn a_clone_that_was_there_is_moved_back_and_one_that_is_new_is_moved(world: &Fixture) {
        git(world, "git init -q nested");
        let (moved, restored) = outcome(world, "mv nested elsewhere && echo moved");
        assert_eq!(moved["stdout"], "moved\n", "{moved:#}");
        assert_eq!(restored.len(), 1, "{restored:?}");
        assert!(world.workspace().join("nested/.git/config").is_file());
        let (new, restored) = outcome(world, "git init -q new && mv new newer && echo moved");
        assert_eq!(new["stdout"], "moved\n", "{new:#}");
        assert!(restored.is_empty(), "{restored:?}");
        assert!(world.workspace().join("newer/.git/config").is_file());
    }

    /// What a command does to have the host's git run something, again and again until it is told to stop.
    fn evil(world: &Fixture, trace: &Path) -> String {
        let evil = world.write("evil", format!("#!/bin/sh\necho ran >> {}\n", trace.display()));
        fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
        let evil = evil.display();
        format!(
            "touch begun; while [ ! -e stop ]; do git config core.fsmonitor {evil}; cp evil .git/hooks/post-index-change; \
             printf '[core]\\n\\tfsmonitor = {evil}\\n\\trepositoryformatversion = 0\\n' > c; cp c .git/config; \
             mv -f c .git/config; done 2>/dev/null; true"
        )
    }

    /// Runs the host's git beside the command; whether that ran anything of it.
    pub(crate) fn hosts_git_beside(world: &Fixture, line: &str, trace: &Path) -> bool {
        let run = world.stockade(&["run", "--json", "-c", line]).spawn();
        let (begun, stop) = (world.workspace().join("begun"), world.workspace().join("stop"));
        eventually("the command runs", || begun.exists());
        for round in 0..25 {
            world.write("file", format!("{round}"));
            // A config that is cut short while git has it mapped ends git by SIGBUS.
            let _said = git(world, "git status -s; git add file; git diff --stat HEAD; true");
        }
        world.write(stop, "");
        let _ended = run.wait();
        trace.exists()
    }

    fn the_hosts_git_runs_nothing_of_a_command_that_is_still_running(world: &Fixture) {
        repository(world);
        let trace = world.outside().join("trace");
        let line = evil(world, &trace);
        assert!(!hosts_git_beside(world, &line, &trace));
        let _after = git(world, "git status -s; git add -A");
        assert!(!trace.exists());
    }

    /// The twin of that: what is only restored afterwards, the host's git does run.
    fn in_landlock_the_hosts_git_runs_it_before_it_is_undone(world: &Fixture) {
        repository(world);
        let trace = world.outside().join("trace");
        let line = evil(world, &trace);
        assert!(
            hosts_git_beside(world, &line, &trace),
            "the test of namespaces proves nothing"
        );
        let settings = git(world, "git config --local --list");
        assert!(!settings.contains("evil"), "{settings}");
    }

    /// A repository with a linked work tree, `tree`, and a submodule, `sub`.
    fn with_trees(world: &Fixture) -> PathBuf {
        let place = repository(world);
        world.write("hooks/on/pre-commit", "#!/bin/sh\n");
        git(
            world,
            "git worktree add -q tree && git init -q -b main sub && cd sub && git config user.name n && \
             git config user.email e && git commit -q --allow-empty -m one && cd .. && rm -rf ../source && mv sub ../source && \
             git -c protocol.file.allow=always submodule --quiet add ../source sub && git commit -q -m sub && git config core.hooksPath hooks/on",
        );
        place
    }

    /// A git directory that runs what a command wants, in `other`.
    const OTHER: &str = "git init -q other; git -C other config core.fsmonitor ./evil; ";

    /// Ways to lead git there, and what they change.
    const WAYS: &[(&str, &str)] = &[
        ("echo ../other/.git > .git/commondir", ".git/commondir"),
        ("echo ../other/.git > c; mv c .git/commondir", ".git/commondir"),
        ("echo ../other/.git > c; ln c .git/commondir", ".git/commondir"),
        ("ln -s c .git/commondir; echo ../other/.git > .git/c", ".git/commondir"),
        ("touch c; ln c .git/commondir; echo ../other/.git > c", ".git/commondir"),
        ("mv .git was; mv other/.git .git", ".git"),
        ("mv .git was; ln -s other/.git .git", ".git"),
        ("mv .git was; echo 'gitdir: other/.git' > .git", ".git"),
        ("mv tree was; ln -s other tree", "tree"),
        ("mv hooks was; mkdir -p hooks/on; echo x > hooks/on/pre-commit", "hooks"),
        (
            "mv .git/modules/sub .git/modules/was; cp -r .git/modules/was .git/modules/sub",
            ".git/modules/sub",
        ),
        ("echo 'gitdir: ../other/.git' > tree/.git", "tree/.git"),
        ("echo 'gitdir: ../other/.git' > c; mv c tree/.git", "tree/.git"),
        ("ln tree/.git c; echo 'gitdir: ../other/.git' > c", "tree/.git"),
        ("echo 'gitdir: ../other/.git' > sub/.git", "sub/.git"),
        (
            "echo ../../../other/.git > .git/worktrees/tree/commondir",
            ".git/worktrees/tree/commondir",
        ),
        (
            "python3 -c \"import mmap; f = open('tree/.git', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[8:11] = b'/x/'; \
             import time; time.sleep(600)\"",
            "tree/.git",
        ),
    ];

    fn a_command_that_leads_git_elsewhere_is_killed_and_that_is_taken_away(world: &Fixture) {
        let place = with_trees(world);
        for (way, changed) in WAYS {
            let before = git(
                world,
                "cat .git/HEAD tree/.git sub/.git .git/worktrees/tree/commondir; git -C tree status -s",
            );
            // Nothing else ends it.
            let (outcome, restored) = outcome(world, &format!("{OTHER}{way}; sleep 600"));
            let why = outcome["why"].as_str().unwrap_or_default();
            assert_eq!(outcome["status"], "failed", "{way}: {outcome:#}");
            assert!(why.contains("leads your git"), "{way}: {outcome:#}");
            let is_it = |one: &&Value| Path::new(one["path"].as_str().unwrap()) == place.join(changed);
            let told = restored
                .iter()
                .find(is_it)
                .unwrap_or_else(|| panic!("{way}: {outcome:#}"));
            assert!(
                Path::new(told["quarantined"].as_str().unwrap())
                    .symlink_metadata()
                    .is_ok(),
                "{way}"
            );
            let after = git(
                world,
                "cat .git/HEAD tree/.git sub/.git .git/worktrees/tree/commondir; git -C tree status -s",
            );
            assert_eq!(after, before, "{way}");
            assert!(!place.join(".git/commondir").exists(), "{way}");
            git(world, "rm -rf other c was .git/modules/was");
        }
    }

    /// The twin of that: what is only restored afterwards does not end a command.
    fn in_landlock_what_leads_git_elsewhere_is_undone_at_the_end(world: &Fixture) {
        let place = with_trees(world);
        let (outcome, restored) = outcome(world, &format!("{OTHER}{}; cat .git/commondir", WAYS[0].0));
        assert_eq!(
            (&outcome["status"], &outcome["code"]),
            (&"exited".into(), &0.into()),
            "{outcome:#}"
        );
        let led = place.join(".git/commondir");
        let is_it = |one: &Value| Path::new(one["path"].as_str().unwrap()) == led;
        assert!(restored.iter().any(is_it), "{outcome:#}");
        assert!(!led.exists());
    }

    fn what_leads_git_where_it_led_is_ordinary_work(world: &Fixture) {
        with_trees(world);
        let line = "set -e; git submodule --quiet deinit -f sub; git submodule --quiet update --init sub; \
                    git worktree remove tree; git worktree add -q tree; git worktree move tree moved; git worktree move moved tree; \
                    git worktree repair; mv .git was; mv was .git; git -C tree status -s; git -C sub status -s";
        let (outcome, restored) = outcome(world, line);
        assert_eq!(
            (&outcome["status"], &outcome["code"]),
            (&"exited".into(), &0.into()),
            "{outcome:#}"
        );
        assert_eq!(restored, Vec::<Value>::new());
    }

    fn what_git_obeys_is_covered_where_it_was_not_there(world: &Fixture) {
        repository(world);
        let trace = world.outside().join("trace");
        let _evil = evil(world, &trace);
        git(world, "rm -rf .git/hooks; git config extensions.worktreeConfig true");
        let line = "touch begun; while [ ! -e stop ]; do cp evil .git/hooks/post-index-change; \
                    printf '[core]\\n\\tfsmonitor = ./evil\\n' > .git/config.worktree; done; true";
        assert!(!hosts_git_beside(world, line, &trace));
        let _after = git(world, "git status -s; git add -A");
        assert!(!trace.exists());
    }

    fn a_clone_of_the_hosts_that_cannot_be_removed_is_explained(world: &Fixture) {
        let place = repository(world);
        git(world, "git clone -q . copy");
        let (outcome, _) = outcome(world, "rm -rf copy");
        let hint = outcome["hint"].as_str().unwrap_or_default();
        assert!(hint.contains("outside the sandbox"), "{outcome:#}");
        assert!(place.join("copy/.git/config").exists());
        let (outcome, _) = self::outcome(world, "git clone -q . made && rm -rf made");
        assert_eq!(
            (&outcome["code"], &outcome["hint"]),
            (&0.into(), &Value::Null),
            "{outcome:#}"
        );
    }

    const RENAMES: &str = r#"
import errno, os
def tried(name, do):
    try:
        do()
        print(name, "done")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
def made(path, text="[core]\n\tbare = false\n"):
    with open(path, "w") as file:
        file.write(text)
git = os.open(".git", os.O_RDONLY)
made(".git/a"); tried("beside", lambda: os.rename(".git/a", ".git/config"))
made(".git/a"); tried("by descriptors", lambda: os.rename("a", "config", src_dir_fd=git, dst_dir_fd=git))
made(".git/a"); tried("by a longer way", lambda: os.rename(".git/../.git/./a", os.path.abspath(".git/config")))
os.symlink(".git", "way"); made(".git/a"); tried("through a link", lambda: os.rename("way/a", ".git/config"))
made("a"); tried("from elsewhere", lambda: os.rename("a", ".git/config"))
os.symlink("/etc/hostname", ".git/l"); tried("a link", lambda: os.rename(".git/l", ".git/config"))
os.mkfifo(".git/p"); tried("a pipe", lambda: os.rename(".git/p", ".git/config"))
os.mkdir(".git/d"); tried("a directory", lambda: os.rename(".git/d", ".git/config"))
made(".git/big", "x" * (17 << 20)); tried("too long", lambda: os.rename(".git/big", ".git/config"))
tried("away", lambda: os.rename(".git/config", ".git/c"))
tried("onto itself", lambda: os.rename(".git/config", ".git/config"))
tried("nothing", lambda: os.rename(".git/none", ".git/config"))
made(".git/a", ""); tried("empty", lambda: os.rename(".git/a", ".git/config"))
print("left", os.path.exists(".git/a"), os.path.getsize(".git/config"))
made("x"); made("y", "y"); tried("elsewhere", lambda: os.rename("x", "y")); print(os.path.getsize("y"))
"#;

    fn only_a_plain_file_beside_it_is_renamed_onto_a_copy(world: &Fixture) {
        let place = repository(world);
        let said = world.run(&["/usr/bin/python3", "-c", RENAMES]).output().exits(0).out();
        let expected = "beside done\nby descriptors done\nby a longer way done\nthrough a link done\nfrom elsewhere EBUSY\n\
                        a link EBUSY\na pipe EBUSY\na directory ENOTDIR\ntoo long EBUSY\naway EBUSY\nonto itself done\n\
                        nothing ENOENT\nempty done\nleft False 0\nelsewhere done\n21\n";
        assert_eq!(said, expected);
        // What it emptied was the copy.
        let left = fs::read_to_string(place.join(".git/config")).unwrap();
        assert!(left.contains("repositoryformatversion = 0"), "{left}");
    }

    fn what_a_clause_narrows_inside_is_read_only(world: &Fixture) {
        let place = repository(world);
        world.write(".git/hooks/secret", "hidden");
        let text = format!(
            "extends: [system]\nsandbox: {{protect_fallback: undo, paths: {{w: {{root: {}, mode: rw, write_approval: false, \
             deny: [.git/hooks/secret]}}}}}}\nshell: {{default: {{allowed: true, approval: none}}}}\n",
            place.display()
        );
        let config = world.write(world.outside().join("narrow.yaml"), text);
        let line = "cat .git/hooks/secret; touch .git/hooks/new; git config color.ui auto && echo done";
        let run = world.stockade(&["run", "--config", config.to_str().unwrap(), "-c", line]);
        let run = run.output();
        assert!(run.out().ends_with("done\n"), "{} {}", run.out(), run.err());
        assert!(!run.out().contains("hidden"), "{}", run.out());
        assert!(run.err().contains("Read-only file system"), "{}", run.err());
        assert!(git(world, "git config --local --list").contains("color.ui=auto"));
    }

    /// Where Stockade keeps what lasts.
    fn state(world: &Fixture) -> PathBuf {
        let user = User::from_uid(Uid::from_raw(world.actor.uid())).unwrap();
        let home = user.map_or_else(|| world.home(), |user| user.dir);
        home.join(".local/state/stockade")
    }

    fn no_copy_is_left_behind(world: &Fixture) {
        let place = repository(world);
        // What the kernel says of the mount has the name of the folder in it.
        let folder = || {
            let mounts = fs::read_to_string(place.join("mounts")).unwrap();
            let (_, name) = mounts.split_once("/copies/").unwrap();
            state(world).join("copies").join(name.split('/').next().unwrap())
        };
        let line = "cat /proc/self/mountinfo > mounts";
        world.shell(line).output().exits(0);
        eventually("the copies are removed", || !folder().exists());
        let mut running = world.shell(&format!("{line}; touch begun; sleep 600")).spawn();
        eventually("the command runs", || place.join("begun").exists());
        let folder = folder();
        assert!(folder.exists(), "{}", folder.display());
        assert!(running.is_alive());
        running.signal(Signal::SIGKILL);
        let _ended = running.wait();
        eventually("the copies are removed", || !folder.exists());
    }

    fn in_landlock_prevention_is_refused(world: &Fixture) {
        let run = world
            .stockade(&["run", "--config", &world.preventing(), "-c", "true"])
            .output();
        assert_eq!(run.code(), 125, "{}", run.err());
        assert!(run.err().contains("needs mounts"), "{}", run.err());
    }
}
