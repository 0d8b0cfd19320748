//! Git in the sandbox as its user has it: with their settings, in a linked work tree, in a submodule.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, chown, symlink};
    use std::path::Path;

    use serde_json::Value;

    use crate::common::{Actor, Fixture, SECRET, in_both_regimes};

    in_both_regimes! {
        plain_settings_of_the_user_do_inside_what_they_do_outside ["git"];
        nothing_that_names_a_program_a_credential_or_another_url_is_in_the_sandbox ["git"];
        a_setting_leads_to_no_file_that_a_command_could_have_named ["git"];
        a_file_that_the_config_denies_is_not_carried_in_by_a_setting ["git"];
        settings_that_are_missed_are_told_to_the_commands_that_miss_them ["git"];
        a_directory_that_the_user_declared_safe_is_safe_inside ["git"];
        a_linked_work_tree_works_and_hooks_and_settings_of_its_repository_stay ["git"];
        a_submodule_works_and_its_settings_stay ["git"];
        a_git_file_that_is_not_answered_gives_nothing ["git"];
        a_git_directory_that_a_command_made_of_another_gives_nothing ["git"];
        with_a_config_the_root_that_is_missing_is_told ["git"];
        a_repository_around_the_workspace_is_told_to_git_alone ["git"];
        a_workspace_entered_by_a_link_is_found_under_its_name [];
    }

    fn sh(world: &Fixture, folder: &Path, line: &str) -> String {
        world.bare("/bin/sh").cwd(folder).args(["-c", line]).output().ok()
    }

    fn settings(world: &Fixture, text: &str) {
        world.write(world.home().join(".gitconfig"), text);
    }

    const USER: &str = "[user]\n\tname = Ann \\\"X\\\" Example\n\temail = ann@example.org\n";

    fn plain_settings_of_the_user_do_inside_what_they_do_outside(world: &Fixture) {
        let work = world.workspace();
        settings(
            world,
            &format!(
                "{USER}[init]\n\tdefaultBranch = trunk\n[core]\n\texcludesFile = ~/ignored\n[pretty]\n\tx = \"%h; # %s\"\n\
                 [include]\n\tpath = more\n[includeIf \"gitdir:{}/\"]\n\tpath = ~/work\n[includeIf \"gitdir:~/else/\"]\n\tpath = other\n\
                 [filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\trequired = true\n",
                work.display()
            ),
        );
        world.write(world.home().join("ignored"), "*.log\n");
        world.write(
            world.home().join("more"),
            "[pull]\r\n\trebase = true\r\n[commit]\n\tgpgSign = false\n",
        );
        world.write(
            world.home().join("work"),
            "[user]\n\temail = ann@work\n[include]\n\tpath = deeper\n",
        );
        world.write(world.home().join("deeper"), "[log]\n\tdate = format:%c\n");
        world.write(world.home().join("other"), "[user]\n\temail = ann@else\n");
        world.write(world.home().join(".config/git/attributes"), "*.x diff=y\n");
        let line = "rm -rf .git && git init -q . && touch a.log b.tmp c.x && git status --porcelain && git branch --show-current \
                    && git check-attr diff c.x; for key in user.name user.email pull.rebase commit.gpgsign log.date pretty.x \
                    filter.lfs.clean; do git config $key; done";
        let inside = world.shell(line).output().ok();
        assert_eq!(inside, sh(world, &work, line));
        for word in [
            "trunk",
            "ann@work",
            "Ann \"X\" Example",
            "?? b.tmp",
            "diff: y",
            "format:%c",
        ] {
            assert!(inside.contains(word), "{word}: {inside}");
        }
        assert!(!inside.contains("a.log"), "{inside}");
    }

    fn nothing_that_names_a_program_a_credential_or_another_url_is_in_the_sandbox(world: &Fixture) {
        let hostile = [
            "[alias]\n\tx = !TOKEN",
            "[credential]\n\thelper = TOKEN",
            "[credential \"https://TOKEN@host\"]\n\tusername = x",
            "[core]\n\tsshCommand = TOKEN\n\teditor = TOKEN\n\thooksPath = /TOKEN\n\tpager = TOKEN\n\tfsmonitor = TOKEN",
            "[http]\n\textraHeader = TOKEN\n\tproxy = http://TOKEN@host",
            "[url \"https://TOKEN@host/\"]\n\tinsteadOf = x:",
            "[remote \"origin\"]\n\turl = https://TOKEN@host/",
            "[filter \"lfs\"]\n\tsmudge = TOKEN",
            "[diff]\n\texternal = TOKEN",
            "[color]\n\tui = TOKEN\u{1}",
        ];
        // A file with control characters is not understood, and nothing of it is carried.
        let (odd, plain) = hostile.split_last().unwrap();
        settings(world, &format!("{USER}{}\n", plain.join("\n")));
        let look = "git config user.email; cat \"$HOME/.gitconfig\"; find \"$HOME\" -type f -exec cat {} +";
        let inside = world.shell(look).output().ok();
        assert!(
            inside.starts_with("ann@example.org\n") && !inside.contains("TOKEN"),
            "{inside}"
        );
        settings(world, &format!("{USER}{odd}\n"));
        let inside = world
            .shell("git config user.email || find \"$HOME\" -type f -exec cat {} +")
            .output();
        assert!(!inside.out().contains("ann@"), "{}", inside.out());
        let long = format!("{USER}[pretty]\n\tx = {}\n", "y".repeat(100_000));
        settings(world, &long);
        assert_eq!(
            world.shell("git config pretty.x; git config user.email").output().ok(),
            "ann@example.org\n"
        );
    }

    fn a_setting_leads_to_no_file_that_a_command_could_have_named(world: &Fixture) {
        let (work, key) = (world.workspace(), world.home().join(".ssh/id_ed25519"));
        let look = "find \"$HOME\" -type f -exec cat {} +";
        let leads = |text: String| {
            settings(world, &format!("{USER}{text}"));
            let run = world.shell(look).output().exits(0);
            assert!(run.out().contains("ann@example.org"), "{}", run.out());
            run.out().contains(SECRET)
        };
        world.write("settings", format!("[core]\n\texcludesFile = {}\n", key.display()));
        symlink(&key, work.join("link")).unwrap();
        assert!(!leads(format!(
            "[include]\n\tpath = {}\n",
            work.join("settings").display()
        )));
        assert!(!leads(format!(
            "[core]\n\texcludesFile = {}\n",
            work.join("link").display()
        )));
        // No other file is given away than what is called as such a file, by its only name, and lies behind no link: a command
        // of an earlier session may have written where settings lead.
        assert!(!leads(format!("[core]\n\texcludesFile = {}\n", key.display())));
        let home = world.home();
        symlink(&key, home.join("ignore-link")).unwrap();
        fs::create_dir_all(home.join("dot")).unwrap();
        symlink(home.join(".ssh"), home.join("dot/ssh")).unwrap();
        fs::copy(&key, home.join(".ssh/gitignore")).unwrap();
        fs::hard_link(&key, home.join("ignore-too")).unwrap();
        for name in ["ignore-link", "dot/ssh/gitignore", "ignore-too"] {
            assert!(!leads(format!("[core]\n\texcludesFile = ~/{name}\n")), "{name}");
        }
        for name in ["ignore", "attributes"] {
            fs::create_dir_all(home.join(".config/git")).unwrap();
            symlink(&key, home.join(".config/git").join(name)).unwrap();
            assert!(!leads(String::new()), "{name}");
            fs::remove_file(home.join(".config/git").join(name)).unwrap();
        }
        fs::remove_file(home.join("ignore-too")).unwrap();
        assert!(leads("[core]\n\texcludesFile = ~/.ssh/gitignore\n".to_owned()));
        // Another user chooses nothing.
        if nix::unistd::geteuid().is_root() {
            let file = world.home().join(".gitconfig");
            let other = fs::metadata(world.workspace()).unwrap().uid() + 1;
            chown(&file, Some(other), Some(other)).unwrap();
            let inside = world.shell(look).output().ok();
            assert!(
                inside.contains("ann@example.org") && !inside.contains(SECRET),
                "{inside}"
            );
        }
        // Their own settings may lie where commands write; then they lead nowhere.
        fs::remove_file(world.home().join(".gitconfig")).unwrap();
        world.write(
            "dotfiles",
            format!("{USER}[core]\n\texcludesFile = {}\n", key.display()),
        );
        symlink(work.join("dotfiles"), world.home().join(".gitconfig")).unwrap();
        let inside = world.shell(look).output().ok();
        assert!(
            inside.contains("ann@example.org") && !inside.contains(SECRET),
            "{inside}"
        );
    }

    fn a_file_that_the_config_denies_is_not_carried_in_by_a_setting(world: &Fixture) {
        settings(world, &format!("{USER}[core]\n\texcludesFile = ~/lists/ignored\n"));
        world.write(world.home().join("lists/ignored"), "a-word\n");
        let config = |deny: &str| {
            let text = format!(
                "extends: [system, git]\nsandbox:\n  deny_fallback: decompose\n  protect: none\n  paths:\n    w: {{root: {}, mode: rw, write_approval: false}}\n    \
                 l: {{root: {}, deny: [{deny}]}}\nshell: {{default: {{allowed: true, approval: none}}}}\n",
                world.workspace().display(),
                world.home().join("lists").display()
            );
            let file = world.write(world.outside().join("denies.yaml"), text);
            let run = world.stockade(&["run", "--config", file.to_str().unwrap(), "-c"]);
            run.args(["find \"$HOME\" -type f -exec cat {} +"]).output().ok()
        };
        assert!(!config("ignored").contains("a-word"));
        assert!(config("other").contains("a-word"));
        // A ceiling that gives less keeps it away, too.
        let run = |ceiling: &str| {
            let text =
                format!("extends: [system]\nsandbox: {{paths: {{c: {{root: {ceiling}, mode: rw, execute: true}}}}}}\n");
            let ceiling = world.write(world.outside().join("ceiling.yaml"), text);
            let run = world.stockade(&["run", "--ceiling", ceiling.to_str().unwrap(), "-c"]);
            run.args(["find \"$HOME\" -type f -exec cat {} +"]).output().ok()
        };
        assert!(run(&world.base().display().to_string()).contains("a-word"));
        let less = run(&world.workspace().display().to_string());
        assert!(less.contains("ann@") && !less.contains("a-word"), "{less}");
    }

    fn settings_that_are_missed_are_told_to_the_commands_that_miss_them(world: &Fixture) {
        settings(
            world,
            &format!("{USER}[commit]\n\tgpgSign\n[core]\n\thooksPath = ~/hooks\n"),
        );
        let commit = "git init -q . && git commit -q --allow-empty -m x";
        let said = world.shell(commit).output().exits(0).err();
        assert!(
            said.contains("`commit.gpgsign` does not hold in the sandbox, so commits are not signed"),
            "{said}"
        );
        assert!(said.contains("`core.hookspath`"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        for line in ["git status", "true", "echo git commit"] {
            let said = world.shell(line).output().exits(0).err();
            assert!(!said.contains("git settings"), "{line}: {said}");
        }
        let run = world.stockade(&[
            "run",
            "--json",
            "--",
            "git",
            "-C",
            ".",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "y",
        ]);
        let outcome: Value = serde_json::from_str(&run.output().exits(0).out()).unwrap();
        assert!(outcome["git"].as_str().unwrap().contains("commit.gpgsign"), "{outcome}");
        // The last one counts.
        world.write(
            world.home().join("later"),
            "[commit]\n\tgpgSign = false\n[core]\n\thooksPath = x\n",
        );
        settings(
            world,
            &format!("{USER}[commit]\n\tgpgSign\n[include]\n\tpath = later\n"),
        );
        let said = world.shell(commit).output().exits(0).err();
        assert!(!said.contains("gpgsign") && said.contains("hookspath"), "{said}");
    }

    fn a_directory_that_the_user_declared_safe_is_safe_inside(world: &Fixture) {
        let work = world.workspace();
        sh(world, &work, "git init -q .");
        let other = match world.actor {
            Actor::Root => 1000,
            Actor::User => 0,
        };
        // Only root gives files away.
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        for path in [work.clone(), work.join(".git")] {
            chown(path, Some(other), Some(other)).unwrap();
        }
        let status = || world.shell("git status --porcelain").output();
        assert!(status().err().contains("dubious ownership"), "{}", status().err());
        settings(world, &format!("[safe]\n\tdirectory = {}\n", work.display()));
        status().exits(0);
    }

    /// A repository in `main`, with a submodule in `main/sub`, and a linked work tree in `tree`.
    fn repository(world: &Fixture) {
        settings(world, &format!("{USER}[protocol \"file\"]\n\tallow = always\n"));
        let line = "git init -q -b main lib && git -C lib commit -q --allow-empty -m l && git init -q -b main main && cd main \
                    && echo x > f && git add f && git commit -qm one && git submodule --quiet add ../lib sub && git commit -qm sub \
                    && git worktree add -q ../tree";
        sh(world, &world.outside(), line);
    }

    fn planting(hooks: &Path) -> String {
        let hooks = hooks.display();
        format!(
            "printf '#!/bin/sh\\ntouch pwned\\n' > '{hooks}/pre-commit'; chmod +x '{hooks}/pre-commit'; git config core.sshCommand x; \
             git config user.name Else"
        )
    }

    fn a_linked_work_tree_works_and_hooks_and_settings_of_its_repository_stay(world: &Fixture) {
        repository(world);
        let (main, tree) = (world.outside().join("main"), world.outside().join("tree"));
        let line = "echo y > f && git commit -qam two && git branch x && git pack-refs --all && git branch -qd x && git stash list \
                    && git gc -q && git status --porcelain && git log --format=%s";
        let run = world.shell(line).cwd(&tree).output().exits(0);
        assert_eq!(run.out(), "two\nsub\none\n");
        assert_eq!(sh(world, &main, "git log --format=%s tree; git fsck"), run.out());
        assert!(!run.err().contains("protected"), "{}", run.err());
        let (config, hooks) = (main.join(".git/config"), main.join(".git/hooks"));
        let before = fs::read(&config).unwrap();
        let run = world.shell(&planting(&hooks)).cwd(&tree).output();
        assert!(!hooks.join("pre-commit").exists(), "{}", run.err());
        assert!(
            !String::from_utf8(fs::read(&config).unwrap())
                .unwrap()
                .contains("sshCommand"),
            "{}",
            run.err()
        );
        assert!(fs::read(&config).unwrap().starts_with(&before), "{}", run.err());
        // What lies beside the git directory is not the work tree's.
        let write = format!("echo z > '{}'", main.join("f").display());
        world.shell(&write).cwd(&tree).output();
        assert_eq!(fs::read_to_string(main.join("f")).unwrap(), "x\n");
        // Without Stockade it is done.
        sh(world, &tree, &planting(&hooks));
        assert!(hooks.join("pre-commit").exists());
    }

    fn a_submodule_works_and_its_settings_stay(world: &Fixture) {
        repository(world);
        let (main, sub) = (world.outside().join("main"), world.outside().join("main/sub"));
        let run = world
            .shell("echo y > y && git add y && git commit -qm two && git log --format=%s")
            .cwd(&sub)
            .output();
        assert_eq!(run.ok(), "two\nl\n");
        let module = main.join(".git/modules/sub");
        let run = world.shell(&planting(&module.join("hooks"))).cwd(&sub).output();
        assert!(!module.join("hooks/pre-commit").exists(), "{}", run.err());
        let write = format!("echo x > '{}'", main.join(".git/description").display());
        let before = fs::read(main.join(".git/description")).unwrap();
        world.shell(&write).cwd(&sub).output();
        assert_eq!(fs::read(main.join(".git/description")).unwrap(), before);
    }

    fn a_git_file_that_is_not_answered_gives_nothing(world: &Fixture) {
        repository(world);
        let (main, work) = (world.outside().join("main"), world.workspace());
        let git = main.join(".git/worktrees/tree");
        // One that names the secrets of the user for the repository that it shares.
        let fake = world.outside().join("fake/worktrees/x");
        world.write(fake.join("HEAD"), "ref: refs/heads/main\n");
        world.write(fake.join("gitdir"), format!("{}\n", work.join(".git").display()));
        world.write(
            fake.join("commondir"),
            format!("{}\n", world.home().join(".ssh").display()),
        );
        for named in [git.clone(), main.join(".git"), main.join(".git/modules/sub"), fake] {
            world.write(".git", format!("gitdir: {}\n", named.display()));
            let line = format!(
                "git status; touch '{0}/objects/x' '{1}/x'; cat '{1}/id_ed25519'",
                main.join(".git").display(),
                world.home().join(".ssh").display()
            );
            let run = world.shell(&line).output();
            assert!(run.err().contains("git finds no repository here"), "{}", run.err());
            assert!(!run.err().contains("mode: rw"), "{}", run.err());
            assert!(!run.out().contains(SECRET), "{}", run.out());
            assert!(!main.join(".git/objects/x").exists() && !world.home().join(".ssh/x").exists());
        }
        // The one that is answered gives it.
        let line = format!("touch '{}/objects/x'", main.join(".git").display());
        world.shell(&line).cwd(world.outside().join("tree")).output().exits(0);
    }

    fn a_git_directory_that_a_command_made_of_another_gives_nothing(world: &Fixture) {
        let above = world.outside().join("above");
        let (sub, beside) = (above.join("sub"), above.join("src"));
        sh(world, &world.outside(), "mkdir -p above/sub above/src");
        world.write(above.join("key"), SECRET);
        world.write(beside.join("key"), SECRET);
        let forge = |line: &str| {
            sh(world, &above, line);
            let look = format!(
                "cat '{0}/key' '{1}/key'; echo x > '{0}/new'; echo x > '{1}/new'",
                above.display(),
                beside.display()
            );
            let run = world.shell(&look).cwd(&sub).output();
            assert!(!run.out().contains(SECRET), "{line}: {}", run.out());
            assert!(!above.join("new").exists() && !beside.join("new").exists(), "{line}");
            run.err()
        };
        // The directory above becomes a repository that shares itself with a work tree in it.
        let whole = "mkdir -p objects refs worktrees/a && echo ref: refs/heads/main | tee HEAD > worktrees/a/HEAD && \
                     echo ../.. > worktrees/a/commondir && echo \"$PWD/sub/.git\" > worktrees/a/gitdir && \
                     echo 'gitdir: ../worktrees/a' > sub/.git";
        assert!(forge(whole).contains("git finds no repository here"));
        // One beside becomes the git directory of a submodule.
        let other = "cd src && mkdir -p objects refs && echo ref: refs/heads/main > HEAD && \
                     printf '[core]\\n\\tworktree = ../sub\\n' > config && echo 'gitdir: ../src' > ../sub/.git";
        assert!(forge(other).contains("git finds no repository here"));
    }

    fn with_a_config_the_root_that_is_missing_is_told(world: &Fixture) {
        repository(world);
        let (main, tree) = (world.outside().join("main"), world.outside().join("tree"));
        let config = |more: &str| {
            let text = format!(
                "extends: [system, git]\nsandbox:\n  protect_fallback: undo\n  paths:\n    w: {{root: {}, mode: rw, write_approval: false}}\n{more}\
                 shell: {{default: {{allowed: true, approval: none}}}}\n",
                tree.display()
            );
            let file = world.write("c.yaml", text);
            let run = world.stockade(&[
                "run",
                "--config",
                file.to_str().unwrap(),
                "-c",
                "git status --porcelain",
            ]);
            run.cwd(&tree).output()
        };
        let said = config("").exits(128).err();
        let root = format!("git: {{root: {}, mode: rw}}", main.join(".git").display());
        assert!(said.contains(&root), "{said}");
        // What it says helps.
        let run = config(&format!("    {root}\n")).exits(0);
        assert!(!run.err().contains("no repository"), "{}", run.err());
    }

    fn a_repository_around_the_workspace_is_told_to_git_alone(world: &Fixture) {
        repository(world);
        let main = world.outside().join("main");
        let below = main.join("below");
        sh(world, &main, "mkdir below");
        let said = world.shell("git status").cwd(&below).output().exits(128).err();
        let told = format!(
            "git finds no repository here: {} is in no root; start there",
            main.display()
        );
        assert!(said.contains(&told), "{said}");
        let said = world.shell("true").cwd(&below).output().exits(0).err();
        assert!(!said.contains("repository"), "{said}");
    }

    fn a_workspace_entered_by_a_link_is_found_under_its_name(world: &Fixture) {
        let link = world.home().join("project");
        symlink(world.workspace(), &link).unwrap();
        world.write("file", "x");
        let script = "cat \"$1/file\" && cd \"$1\" && touch new && cd \"$(pwd)\" && ls";
        let run = |pwd: &Path| {
            let argv = ["sh", "-c", script, "sh", link.to_str().unwrap()];
            world.run(&argv).cwd(&link).env("PWD", pwd).output()
        };
        assert_eq!(run(&link).ok(), "xfile\nnew\n");
        // So is a root that a config names by one.
        let text = format!(
            "extends: [system]\nsandbox: {{protect: none, paths: {{w: {{root: {}, mode: rw, write_approval: false}}}}}}\n\
             shell: {{default: {{allowed: true, approval: none}}}}\n",
            link.display()
        );
        let config = world.write(world.outside().join("linked.yaml"), text);
        for policy in [["--config", config.to_str().unwrap()], ["--rw", link.to_str().unwrap()]] {
            let read = format!("cat '{}/file'", link.display());
            let run = world.stockade(&["run"]).args(policy).args(["-c", &read]);
            assert_eq!(run.output().ok(), "x", "{policy:?}");
        }
        // A name that leads elsewhere shows nothing.
        let other = world.home().join("other");
        symlink(world.home().join(".ssh"), &other).unwrap();
        let read = format!("cat '{}/id_ed25519'", other.display());
        let run = world.run(&["sh", "-c", &read]).env("PWD", &other).output();
        assert!(run.code() != 0 && !run.out().contains(SECRET), "{}", run.out());
    }

    #[test]
    fn root_in_the_directory_of_another_is_told_why_nothing_is_written() {
        let Some(world) = crate::common::world_with(Actor::Root, crate::common::Backend::Landlock, &[]) else {
            return;
        };
        assert!(
            !world
                .shell("touch x")
                .output()
                .exits(0)
                .err()
                .contains("belongs to user")
        );
        chown(world.workspace(), Some(1000), Some(1000)).unwrap();
        let said = world.shell("touch y").output().exits(1).err();
        assert!(
            said.contains("belongs to user 1000") && said.contains("start it as that user") | said.contains("useradd"),
            "{said}"
        );
        let run = world
            .stockade(&["run", "--quiet", "--json", "-c", "touch y"])
            .output()
            .exits(1);
        let outcome: Value = serde_json::from_str(&run.out()).unwrap();
        assert!(
            outcome["hint"].as_str().unwrap().contains("belongs to user 1000"),
            "{outcome}"
        );
    }
}
