//! Git directories and work trees that are not where one looks first: what git obeys in them stays the host's.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use serde_json::Value;

    use crate::common::{Fixture, in_all_namespaces, in_both_regimes};
    use crate::covered::tests::outcome;

    in_both_regimes! {
        a_git_directory_that_others_share_is_protected_without_a_head ["git"];
        hooks_in_a_work_tree_that_a_command_makes_are_taken_away ["git"];
        hooks_of_a_git_directory_that_is_made_again_are_taken_away ["git"];
        hooks_and_settings_that_a_shared_git_directory_elsewhere_names_are_protected ["git"];
        a_git_file_that_a_link_leads_to_another_repository_gets_no_hooks_by_it ["git"];
        a_git_directory_that_comes_to_share_another_gets_no_hooks_by_it ["git"];
        a_git_directory_whose_name_ends_in_a_blank_gets_no_hooks_by_a_twin_without ["git"];
        nothing_of_a_persons_is_lost_where_a_command_makes_a_repository ["git"];
        hooks_beside_those_of_husky_are_protected_in_a_new_work_tree ["git"];
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

    fn a_git_directory_whose_name_ends_in_a_blank_gets_no_hooks_by_a_twin_without(world: &Fixture) {
        let hooks = "git config core.hooksPath tools/h";
        // Git takes line ends off what a `.git` file names, and no blanks. To add a file writes the index, whatever its times are.
        let writes_index = "cd src && git add a; git status -s; true";
        for end in [" ", "\t"] {
            let twins = format!(
                "for d in g 'g{end}'; do mkdir -p \"$d/objects\" \"$d/refs\"; echo ref: refs/heads/main >\"$d/HEAD\"; done; \
                 mkdir -p src; printf 'gitdir: ../g{end}\\n' >src/.git"
            );
            let aimed = format!(
                "{}; rm -r 'g{end}'; ln -s .git 'g{end}'",
                script(world, "src/tools/h/post-index-change")
            );
            holds(world, hooks, &[twins.clone(), aimed.clone()], writes_index);
            // The twin: with no sandbox between them the host's git obeys it.
            repository(world, hooks);
            host(world, &format!("{twins}; {aimed}; {writes_index}"));
            assert!(trace(world).exists(), "{end:?}");
            fs::remove_file(trace(world)).unwrap();
        }
        let twins = "for n in wt 'wt '; do w=\".git/worktrees/$n\"; mkdir -p \"$w/refs\" \"$w/objects\" wt; \
                     echo ref: refs/heads/main >\"$w/HEAD\"; done; echo 'gitdir: ../.git/worktrees/wt ' >wt/.git"
            .to_owned();
        let shares = format!(
            "{}; echo ../.. >'.git/worktrees/wt /commondir'",
            script(world, "wt/tools/h/pre-commit")
        );
        let uses = "cd wt && git -c user.name=n -c user.email=e commit -q --allow-empty -m x";
        holds(world, hooks, &[twins, shares], uses);
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

    /// Whatever the file led to before, and wherever the link leads.
    fn a_git_file_that_a_link_leads_to_another_repository_gets_no_hooks_by_it(world: &Fixture) {
        let relative = "git config core.hooksPath tools/h";
        let hook = script(world, "src/tools/h/post-index-change");
        let uses = "cd src && git add a; git status -s; true";
        let own = "mkdir -p g/objects g/refs; echo ref: refs/heads/main > g/HEAD; echo gitdir: ../g > src/.git";
        let empty = "echo gitdir: ../build/g > src/.git; mkdir -p build/g";
        let link = "ln -s ../.git build/g";
        let separate = "mkdir build; git init -q --separate-git-dir build/g src; rm -rf build/g; mkdir build/g";
        for (makes, commands) in [
            ("true", vec![own.to_owned(), format!("{hook}; rm -r g; ln -s .git g")]),
            (
                "true",
                vec![own.to_owned(), hook.clone(), "rm -r g; ln -s .git g".to_owned()],
            ),
            (
                "true",
                vec![own.to_owned(), format!("{hook}; mv g o; ln -s .git l; ln -s l g")],
            ),
            (
                "echo gitdir: ../com > src/.git",
                vec![format!("mkdir com; {hook}; rmdir com; ln -s .git com")],
            ),
            (
                "echo gitdir: ../com > src/.git",
                vec![
                    "mkdir com".to_owned(),
                    hook.clone(),
                    "rmdir com; ln -s .git com".to_owned(),
                ],
            ),
            (empty, vec![format!("{hook}; rmdir build/g; {link}")]),
            (empty, vec![hook.clone(), format!("rmdir build/g; {link}")]),
            (separate, vec![format!("{hook}; rmdir build/g; {link}")]),
            (separate, vec![hook.clone(), format!("mv build b; mkdir build; {link}")]),
        ] {
            holds(world, &format!("{relative}; {makes}"), &commands, uses);
            repository(world, &format!("{relative}; {makes}"));
            host(world, &format!("{}; {uses}", commands.join("; ")));
            assert!(trace(world).exists(), "{makes}: {commands:?}");
            fs::remove_file(trace(world)).unwrap();
        }
        // Where the git directory lies outside of the roots: the link goes.
        let elsewhere = world.outside().join("elsewhere");
        let other = format!(
            "rm -rf {elsewhere}; git init -q {elsewhere}; git -C {elsewhere} config core.hooksPath {{}}",
            elsewhere = elsewhere.display()
        );
        let below = world.workspace().join("src");
        for (makes, leads) in [
            (relative.to_owned(), "../.git".to_owned()),
            (
                other.replace("{}", "other/h"),
                elsewhere.join(".git").display().to_string(),
            ),
        ] {
            let hook = script(world, "w/tools/h/post-index-change").replace("w/tools", "w/{tools,other}");
            let commands = [
                "mkdir w; mkdir -p g/objects g/refs; echo ref: refs/heads/main > g/HEAD; echo gitdir: ../g > w/.git"
                    .to_owned(),
                format!(
                    "{}; {}; rm -r g; ln -s {leads} g",
                    hook.replace("{tools,other}", "tools"),
                    hook.replace("{tools,other}", "other")
                ),
            ];
            let uses = "cd w && touch a && git add -N a; git status -s";
            for is_sandboxed in [true, false] {
                repository(world, &makes);
                for line in &commands {
                    if is_sandboxed {
                        world.shell(line).cwd(&below).output().exits(0);
                    } else {
                        world.bare("/bin/sh").args(["-c", line]).cwd(&below).output().ok();
                    }
                }
                let _used = world
                    .bare("/bin/sh")
                    .args(["-c", &format!("{uses}; true")])
                    .cwd(&below)
                    .output();
                assert_eq!(trace(world).exists(), !is_sandboxed, "{makes}: {commands:?}");
            }
            fs::remove_file(trace(world)).unwrap();
        }
    }

    /// A `commondir` that git itself would write, where there was none.
    fn a_git_directory_that_comes_to_share_another_gets_no_hooks_by_it(world: &Fixture) {
        let relative = "git config core.hooksPath tools/h";
        let begins = "w=.git/worktrees/wt; mkdir -p $w/refs $w/objects wt; echo ref: refs/heads/main > $w/HEAD; \
                      git config -f $w/config core.bare false; echo gitdir: ../$w > wt/.git";
        let empty = "mkdir -p .git/worktrees/wt wt; echo gitdir: ../.git/worktrees/wt > wt/.git";
        let shares = "echo ../.. > .git/worktrees/wt/commondir; echo ref: refs/heads/main > .git/worktrees/wt/HEAD";
        let hook = script(world, "wt/tools/h/pre-commit");
        let uses = "cd wt && git commit -q --allow-empty -m x";
        let strings = |all: &[&str]| all.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        for (makes, commands) in [
            ("true", vec![begins.to_owned(), format!("{hook}; {shares}")]),
            ("true", strings(&[begins, &hook, shares])),
            (begins, vec![format!("{hook}; {shares}")]),
            (empty, vec![format!("{hook}; {shares}")]),
            (empty, strings(&[&hook, shares])),
        ] {
            let makes = format!("{relative}; {makes}");
            holds(world, &makes, &commands, uses);
            repository(world, &makes);
            host(world, &format!("{}; {uses}", commands.join("; ")));
            assert!(trace(world).exists(), "{makes}: {commands:?}");
            fs::remove_file(trace(world)).unwrap();
        }
    }

    /// Only what git could run as a hook goes, it is said what it was, and all of it is kept.
    fn nothing_of_a_persons_is_lost_where_a_command_makes_a_repository(world: &Fixture) {
        // There the quarantine lies on another file system.
        let shared = world
            .bare("/usr/bin/mktemp")
            .args(["-d", "/dev/shm/stockade-test-XXXXXX"])
            .output()
            .ok();
        let shared = PathBuf::from(shared.trim());
        // Too large to be copied; what is moved need not be large.
        for (place, large) in [(world.workspace(), 10), (shared.clone(), 70_000_000)] {
            let makes = format!(
                "rm -rf ./* ./.git; git init -q . && git config core.hooksPath scripts && mkdir -p data/scripts/d && cd data/scripts && \
                         head -c {large} /dev/zero > thesis.db && echo mine > notes && echo mine > d/notes && \
                         printf '#!/bin/sh\n' > tool.sh && chmod 755 tool.sh && head -c {large} /dev/zero > large && \
                         cp tool.sh pre-commit && chmod 755 large"
            );
            world.bare("/bin/sh").args(["-c", &makes]).cwd(&place).output().ok();
            std::thread::sleep(std::time::Duration::from_millis(20));
            let run = world
                .stockade(&["run", "--json", "-c", "git init -q data"])
                .cwd(&place)
                .output()
                .exits(0);
            let outcome: Value = serde_json::from_str(&run.out()).unwrap();
            assert_eq!(outcome["unsettled"], Value::Null, "{outcome:#}");
            let scripts = place.join("data/scripts");
            for (name, length) in [("thesis.db", large), ("notes", 5), ("d/notes", 5), ("tool.sh", 10)] {
                assert_eq!(fs::metadata(scripts.join(name)).unwrap().len(), length, "{name}");
            }
            let all = outcome["restored"].as_array().unwrap();
            for (name, length) in [("large", large), ("pre-commit", 10)] {
                let path = scripts.join(name);
                assert!(!path.exists(), "{name}");
                let one = all.iter().find(|one| one["path"] == path.to_str().unwrap()).unwrap();
                assert_eq!(one["what"], "adopted", "{one:#}");
                let kept = PathBuf::from(one["quarantined"].as_str().unwrap());
                assert_eq!(fs::metadata(&kept).unwrap().len(), length, "{kept:?}");
                let is_aside = place == shared && name == "large";
                assert_eq!(kept.starts_with(&place), is_aside, "{kept:?}");
                if is_aside {
                    assert_eq!(kept, place.join("stockade-quarantine-0-large.kept"));
                    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o755);
                }
            }
        }
        fs::remove_dir_all(shared).unwrap();
        // What a command put there is told as what it is; the twin: git would have run both.
        let before = format!(
            "git config core.hooksPath scripts; {}",
            script(world, "data/scripts/pre-commit")
        );
        let uses = "cd data && git commit -q --allow-empty -m x";
        let commands = format!("git init -q data; {}", script(world, "data/scripts/post-commit"));
        let config = "git -C data config core.hooksPath scripts; git -C data config user.name n; git -C data config user.email e";
        for is_sandboxed in [true, false] {
            repository(world, &before);
            std::thread::sleep(std::time::Duration::from_millis(20));
            if is_sandboxed {
                let run = world.shell(&commands).output().exits(0);
                let told =
                    |name: &str, what: &str| run.err().lines().any(|line| line.contains(name) && line.contains(what));
                assert!(
                    told("pre-commit", "was there before, and git would run it as a hook")
                        && told("post-commit", "was created")
                        && !run.err().contains("too many files"),
                    "{}",
                    run.err()
                );
            } else {
                host(world, &commands);
            }
            host(world, &format!("{config}; {uses}"));
            assert_eq!(trace(world).exists(), !is_sandboxed);
        }
    }

    /// Before husky has run nothing but the name `_` tells that it will.
    fn hooks_beside_those_of_husky_are_protected_in_a_new_work_tree(world: &Fixture) {
        for (value, hook) in [(".hooks/_", "wt/.hooks/pre-commit"), ("_", "wt/pre-commit")] {
            let makes = format!("git config core.hooksPath {value}; git worktree add -q wt");
            // As husky makes them.
            let husky = format!(
                "mkdir -p wt/{value}; printf '#!/bin/sh\nsh -e \"$(dirname \"$0\")/../pre-commit\"\n' > wt/{value}/pre-commit; \
                 chmod 755 wt/{value}/pre-commit; cd wt && git commit -q --allow-empty -m x"
            );
            let hook = script(world, hook);
            holds(world, &makes, std::slice::from_ref(&hook), &husky);
            // Husky runs it with a shell, so it need not be executable.
            let (config, work_tree) = makes.split_once("; ").unwrap();
            let commands = [format!(
                "{work_tree}; {hook}; chmod 644 wt/.hooks/pre-commit wt/pre-commit; true"
            )];
            holds(world, config, &commands, &husky);
            repository(world, &makes);
            host(world, &format!("{hook}; {husky}"));
            assert!(trace(world).exists(), "{value}");
            fs::remove_file(trace(world)).unwrap();
        }
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
