//! Git directories and work trees that are not where one looks first: what git obeys in them stays the host's.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use serde_json::Value;

    use crate::common::{Fixture, in_all_namespaces, in_both_regimes};
    use crate::covered::tests::outcome;

    in_both_regimes! {
        a_git_directory_that_others_share_is_protected_without_a_head ["git"];
        hooks_in_a_work_tree_that_a_command_makes_are_taken_away ["git"];
        hooks_of_a_git_directory_that_is_made_again_are_taken_away ["git"];
        hooks_and_settings_that_a_shared_git_directory_elsewhere_names_are_protected ["git"];
        a_relative_path_to_a_persons_config_is_refused ["git"];
        hooks_that_a_commit_of_the_host_has_are_checked_out_in_a_new_work_tree ["git"];
        a_persons_config_whose_way_leaves_a_directory_of_the_workspace_is_refused ["git"];
        a_directory_of_links_that_is_made_again_is_ordinary_work ["git"];
    }

    mod namespaces {
        use super::{a_git_file_behind_a_link_leads_on, in_all_namespaces};

        in_all_namespaces! {
            a_git_file_behind_a_link_leads_on ["git"];
        }
    }

    fn host(world: &Fixture, line: &str) -> String {
        world.bare("/bin/sh").args(["-c", line]).output().ok()
    }

    /// A new repository in which this was done.
    fn repository(world: &Fixture, line: &str) -> PathBuf {
        let begun = "rm -rf ./* ./.git; git init -q -b main . && git config user.name n && git config user.email e && mkdir src && \
                     echo 1 > src/a && git add src && git commit -q -m one";
        host(world, &format!("{begun}; {line}"));
        world.workspace()
    }

    /// What a hook or a setting of a command would leave, run by the host's git.
    fn trace(world: &Fixture) -> PathBuf {
        world.outside().join("trace")
    }

    #[track_caller]
    fn holds(world: &Fixture, makes: &str, commands: &[String], uses: &str) {
        repository(world, makes);
        for line in commands {
            let run = world.shell(line).output();
            assert!(run.code() != 125, "{makes}: {line}: {}", run.err());
        }
        let _used = world.bare("/bin/sh").args(["-c", &format!("{uses}; true")]).output();
        assert!(!trace(world).exists(), "{makes}: {commands:?}");
    }

    fn a_git_directory_that_others_share_is_protected_without_a_head(world: &Fixture) {
        let trace = trace(world);
        let monitor = |git: &str| {
            format!(
                "git config -f {git}/config core.fsmonitor 'echo x >> {}; false'",
                trace.display()
            )
        };
        let hook = |git: &str| {
            let hook = format!("{git}/hooks/pre-commit");
            format!(
                "mkdir -p {git}/hooks; printf '#!/bin/sh\\necho x >> {}\\n' > {hook}; chmod 755 {hook}",
                trace.display()
            )
        };
        let bare = "git clone -q --bare . repo.git; rm -rf .git src; git -C repo.git worktree add -q $PWD/main main";
        let uses = "cd main && git status -s; git -c user.name=n -c user.email=e commit -q --allow-empty -m x";
        for commands in [
            vec!["rm repo.git/HEAD".to_owned(), monitor("repo.git")],
            vec![format!("rm repo.git/HEAD; {}", hook("repo.git"))],
            vec![
                format!("mv repo.git/refs x; {}", hook("repo.git")),
                "mv x repo.git/refs".to_owned(),
            ],
        ] {
            holds(world, bare, &commands, uses);
        }
        // In an ordinary repository, all of it made by commands.
        let commands = [
            "git clone -q --bare . build/r.git && git -C build/r.git worktree add -q --no-checkout $PWD/build/x && \
             mv build/x/.git src/.git && echo $PWD/src/.git > build/r.git/worktrees/x/gitdir; git -C src reset -q"
                .to_owned(),
            "rm build/r.git/HEAD".to_owned(),
            monitor("build/r.git"),
        ];
        holds(world, "true", &commands, "cd src && git status -s");
        // The twin: with no sandbox between them the host's git obeys it.
        repository(world, bare);
        host(
            world,
            &format!("rm repo.git/HEAD; {}; {uses}; true", monitor("repo.git")),
        );
        assert!(trace.exists());
    }

    /// Commands that write an executable of this name.
    fn script(world: &Fixture, path: &str) -> String {
        let trace = trace(world);
        let (folder, _) = path.rsplit_once('/').unwrap();
        format!(
            "mkdir -p {folder}; printf '#!/bin/sh\\necho x >> {}\\n' > {path}; chmod 755 {path}",
            trace.display()
        )
    }

    fn hooks_in_a_work_tree_that_a_command_makes_are_taken_away(world: &Fixture) {
        let commit = |place: &str| format!("cd {place} && git commit -q --allow-empty -m x; git status -s");
        let relative = "git config core.hooksPath tools/h";
        let tracked = "mkdir -p tools/h; printf '#!/bin/sh\\n' > tools/h/pre-commit; chmod 755 tools/h/pre-commit; git add .; \
                       git commit -q -m hooks; git config core.hooksPath tools/h";
        for (makes, command, place) in [
            (
                relative,
                format!("git worktree add -q wt; {}", script(world, "wt/tools/h/pre-commit")),
                "wt",
            ),
            (
                relative,
                format!(
                    "git worktree add -q wt; {}",
                    script(world, "wt/tools/h/post-index-change")
                ),
                "wt",
            ),
            (
                tracked,
                format!("git worktree add -q wt; {}", script(world, "wt/tools/h/pre-commit")),
                "wt",
            ),
            (
                relative,
                format!(
                    "echo \"gitdir: $PWD/.git\" > src/.git; {}",
                    script(world, "src/tools/h/pre-commit")
                ),
                "src",
            ),
            (
                "git config core.hooksPath ../h",
                format!("git worktree add -q d/wt; {}", script(world, "d/h/pre-commit")),
                "d/wt",
            ),
            (
                "git config core.hooksPath .",
                format!("git worktree add -q wt; {}", script(world, "wt/pre-commit")),
                "wt",
            ),
        ] {
            holds(world, makes, &[command], &commit(place));
        }
        // In the git directory itself, of one that was there and of a new one.
        let hook = |path: &str| script(world, path);
        let inside = "git -C .git branch zz; git -C x/y.git branch zz";
        holds(
            world,
            "git config core.hooksPath ../h",
            &[hook("h/reference-transaction")],
            inside,
        );
        let commands = ["git clone -q --bare . x/y.git".to_owned() + "; " + &hook("x/h/reference-transaction")];
        holds(
            world,
            "git config core.hooksPath ../h",
            &commands,
            &format!("git config -f x/y.git/config core.hooksPath ../h; {inside}"),
        );
        // Written before there was a work tree.
        let commands = [
            script(world, "src/tools/h/pre-commit"),
            "echo \"gitdir: $PWD/.git\" > src/.git".to_owned(),
        ];
        holds(world, relative, &commands, &commit("src"));
        // In a directory that it shut, and opens again with the next command.
        let commands = [
            format!(
                "git worktree add -q wt; {}; chmod 0 wt/tools",
                script(world, "wt/tools/h/pre-commit")
            ),
            "chmod 755 wt/tools; true".to_owned(),
        ];
        holds(world, relative, &commands, &commit("wt"));
        // The twin.
        repository(world, relative);
        host(
            world,
            &format!(
                "git worktree add -q wt; {}; {}",
                script(world, "wt/tools/h/pre-commit"),
                commit("wt")
            ),
        );
        assert!(trace(world).exists());
    }

    /// A `.git` that led nowhere when the command began, or leads to another git directory than it did.
    fn hooks_of_a_git_directory_that_is_made_again_are_taken_away(world: &Fixture) {
        let again = |git: &str, common: &str| {
            format!(
                "mkdir -p {git}; echo ref: refs/heads/wt > {git}/HEAD; echo {common} > {git}/commondir; echo $PWD/wt/.git > {git}/gitdir; \
                 cp .git/index {git}/index; {}",
                script(world, "wt/tools/h/pre-commit")
            )
        };
        let uses = "cd wt && git commit -q --allow-empty -m x";
        let relative = "git config core.hooksPath tools/h";
        let work_tree = format!("{relative}; git worktree add -q wt");
        let removed = "rm -rf .git/worktrees/wt".to_owned();
        let made = again(".git/worktrees/wt", "../..");
        holds(
            world,
            relative,
            &["git worktree add -q wt".to_owned(), removed.clone(), made.clone()],
            uses,
        );
        holds(world, &work_tree, &[format!("{removed}; {made}")], uses);
        holds(
            world,
            &format!("{work_tree}; {removed}"),
            std::slice::from_ref(&made),
            uses,
        );
        // Where a link leads, or a file to nothing that git has made.
        for dangling in ["ln -s ../com wt/.git", "echo 'gitdir: ../com' > wt/.git"] {
            let makes = format!("{relative}; git branch wt; mkdir wt; {dangling}");
            holds(world, &makes, &[again("com", "../.git")], uses);
        }
        // A directory on the way that was moved, and gets a link in its place: to a git directory that was there.
        let moved = "rm -rf proj gits gitstore; mkdir gits; git init -q --separate-git-dir gits/p proj; git -C proj config user.name n; \
                     git -C proj config user.email e; git -C proj config core.hooksPath tools/h; mv gits gitstore";
        let relative_file = "echo 'gitdir: ../gits/p' > proj/.git";
        for makes in [
            moved.to_owned(),
            format!("{moved}; {relative_file}"),
            format!("{moved}; rm proj/.git; ln -s ../gits/p proj/.git"),
            // Git reads the file as if it lay at the link.
            format!("{moved}; echo 'gitdir: ../gits/p' > file; rm proj/.git; ln -s ../file proj/.git"),
        ] {
            let hook = script(world, "proj/tools/h/pre-commit");
            let uses = "cd proj && git commit -q --allow-empty -m x";
            holds(world, &makes, &[format!("{hook}; ln -s gitstore gits")], uses);
            holds(world, &makes, &[hook.clone(), "ln -s gitstore gits".to_owned()], uses);
            repository(world, &makes);
            host(world, &format!("{hook}; ln -s gitstore gits; {uses}"));
            assert!(trace(world).exists(), "{makes}");
            fs::remove_file(trace(world)).unwrap();
        }
        // Of a submodule.
        let submodule = "git clone -q . ../m; git -c protocol.file.allow=always submodule add -q $PWD/../m wt; git commit -q -m m; \
                         git branch wt";
        let remade = format!("rm -rf .git/modules/wt; {}", again(".git/modules/wt", "../.."));
        repository(world, &format!("rm -rf ../m; {relative}; {submodule}"));
        // Covers keep it from being removed whole, and the new `commondir` ends the command.
        let _killed = world.shell(&remade).output();
        let _used = world.bare("/bin/sh").args(["-c", &format!("{uses}; true")]).output();
        assert!(!trace(world).exists());
        // The twin.
        repository(world, &format!("{work_tree}; {removed}"));
        host(world, &format!("{made}; {uses}"));
        assert!(trace(world).exists());
    }

    fn hooks_and_settings_that_a_shared_git_directory_elsewhere_names_are_protected(world: &Fixture) {
        let store = world.outside().join("store");
        let makes = |leads: &str| {
            format!(
                "rm -rf {store}; git clone -q --bare . {store}; git -C {store} config core.bare false; git -C {store} config user.name n; \
                 git -C {store} config user.email e; git -C {store} config core.hooksPath $PWD/tools; \
                 git -C {store} config include.path $PWD/team.cfg; mkdir -p tools wt/.git; cp .git/HEAD wt/.git/HEAD; \
                 echo {store} > wt/.git/commondir; rm -rf .git; {leads}; git -C wt reset -q --hard",
                store = store.display()
            )
        };
        let uses = "cd wt && git status -s; git commit -q --allow-empty -m x";
        let hook = script(world, "tools/pre-commit");
        let setting = format!(
            "printf '[core]\n\tfsmonitor = \"echo x >> {}; false\"\n' > team.cfg",
            trace(world).display()
        );
        for leads in [
            "true",
            "mv wt/.git gd; echo 'gitdir: ../gd' > wt/.git",
            "mv wt/.git gd; ln -s ../gd wt/.git",
        ] {
            for command in [&hook, &setting] {
                holds(world, &makes(leads), std::slice::from_ref(command), uses);
            }
        }
        for command in [hook, setting] {
            repository(world, &makes("true"));
            host(world, &format!("{command}; {uses}"));
            assert!(trace(world).exists(), "{command}");
            fs::remove_file(trace(world)).unwrap();
        }
    }

    /// Git reads it in any directory, so a command can put one there.
    fn a_relative_path_to_a_persons_config_is_refused(world: &Fixture) {
        repository(world, "mkdir cfg; touch cfg/git.cfg");
        for (variable, value) in [
            ("GIT_CONFIG_GLOBAL", "cfg/git.cfg"),
            ("GIT_CONFIG_SYSTEM", "cfg/git.cfg"),
            ("XDG_CONFIG_HOME", "cfg"),
            ("HOME", "cfg"),
        ] {
            let run = world.shell("echo ran").env(variable, value).output();
            assert!(
                run.code() == 125 && run.err().contains("a relative path") && run.err().contains(variable),
                "{variable}: {}",
                run.err()
            );
        }
        // What says that there is none.
        for value in ["", "/dev/null"] {
            world
                .shell("echo ran")
                .env("GIT_CONFIG_GLOBAL", value)
                .output()
                .exits(0);
        }
    }

    fn hooks_that_a_commit_of_the_host_has_are_checked_out_in_a_new_work_tree(world: &Fixture) {
        let place = repository(
            world,
            "mkdir -p tools/h; printf '#!/bin/sh\\nexit 0\\n' > tools/h/pre-commit; chmod 755 tools/h/pre-commit; git add .; \
             git commit -q -m hooks; git config core.hooksPath tools/h",
        );
        let (outcome, restored) = outcome(world, "git worktree add -q wt && git -C wt status -s");
        assert_eq!(
            (&outcome["code"], outcome["stdout"].as_str()),
            (&0.into(), Some("")),
            "{outcome:#}"
        );
        assert_eq!(restored, Vec::<Value>::new());
        let hook = fs::read_to_string(place.join("wt/tools/h/pre-commit")).unwrap();
        assert_eq!(hook, "#!/bin/sh\nexit 0\n");
    }

    fn a_persons_config_whose_way_leaves_a_directory_of_the_workspace_is_refused(world: &Fixture) {
        let place = repository(world, "mkdir build; touch cfg");
        for variable in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
            let run = world
                .shell("echo ran")
                .env(variable, place.join("build/../cfg"))
                .output();
            assert!(
                run.code() == 125 && run.err().contains("write the path without"),
                "{variable}: {}",
                run.err()
            );
        }
        world
            .shell("echo ran")
            .env("GIT_CONFIG_GLOBAL", place.join("cfg"))
            .output()
            .exits(0);
        // Through a link outside, it is another file than the text says.
        let link = world.outside().join("l");
        std::os::unix::fs::symlink(place.join("build"), &link).unwrap();
        let run = world
            .shell("echo '[core]' > cfg; true")
            .env("GIT_CONFIG_GLOBAL", link.join("../cfg"))
            .output();
        assert!(
            run.code() == 125 || fs::read(place.join("cfg")).unwrap().is_empty(),
            "{}",
            run.err()
        );
    }

    /// As `npm` and `git rebase` do.
    fn a_directory_of_links_that_is_made_again_is_ordinary_work(world: &Fixture) {
        let makes = "mkdir -p node_modules/p scripts/hooks tools; echo > node_modules/p/hook; ln -s ../scripts/hooks tools/hooks; \
                     ln -s ../../node_modules/p/hook .git/hooks/pre-commit; git config core.hooksPath tools/hooks";
        repository(world, makes);
        let again = "rm -r tools; mkdir a b tools; ln -s ../scripts/hooks tools/hooks; sleep 0.3; echo done";
        let (outcome, restored) = outcome(world, again);
        assert_eq!(outcome["stdout"], "done\n", "{outcome:#}");
        assert_eq!(restored, Vec::<Value>::new());
    }

    fn a_git_file_behind_a_link_leads_on(world: &Fixture) {
        let place = repository(
            world,
            "mv .git gd; echo 'gd*\nev*' > gd/info/exclude; ln -s gd lnk; echo 'gitdir: lnk' > gf; ln -s gf .git",
        );
        let (outcome, _) = outcome(world, "cp -r gd ev.git; ln -sfn ev.git lnk; sleep 600");
        let why = outcome["why"].as_str().unwrap_or_default();
        assert!(outcome["status"] == "failed" && why.contains("lnk"), "{outcome:#}");
        assert_eq!(fs::read_link(place.join("lnk")).unwrap(), PathBuf::from("gd"));
    }
}
