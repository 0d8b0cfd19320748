//! Links that lead git to settings and hooks: what takes their place while a command runs is taken away.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};

    use serde_json::Value;

    use crate::common::{Fixture, as_root_and_as_user, in_all_namespaces};
    use crate::covered::tests::{hosts_git_beside, outcome};

    as_root_and_as_user! {
        in_landlock_what_takes_the_place_of_a_link_is_undone_at_the_end ["git"];
        in_landlock_the_hosts_git_reads_a_config_behind_a_link_before_it_is_undone ["git"];
    }

    mod either {
        use super::{
            a_way_that_leaves_a_directory_of_the_workspace_again_is_refused,
            hooks_of_a_repository_around_the_root_that_lead_into_it_are_put_back,
        };

        crate::common::in_both_regimes! {
            a_way_that_leaves_a_directory_of_the_workspace_again_is_refused ["git"];
            hooks_of_a_repository_around_the_root_that_lead_into_it_are_put_back ["git"];
        }
    }

    in_all_namespaces! {
        a_command_that_replaces_a_link_that_leads_git_is_killed_and_that_is_taken_away ["git"];
        a_link_that_is_made_again_as_it_was_is_ordinary_work ["git"];
        a_script_that_a_hook_is_a_link_to_is_taken_away_while_the_command_runs ["git"];
        a_command_that_writes_such_a_script_again_and_again_is_killed ["git"];
        branches_with_other_versions_of_such_a_script_are_checked_out ["git"];
        the_hosts_git_reads_its_own_config_behind_a_link_while_a_command_runs ["git"];
    }

    /// What makes a link that leads git, ways to have it lead elsewhere, and what each changes.
    const LINKS: &[(&str, &[&str], &str)] = &[
        (
            "rm -rf .git/hooks; mkdir .githooks; ln -s ../.githooks .git/hooks",
            &[
                "rm .git/hooks; mkdir .git/hooks; echo x > .git/hooks/pre-commit",
                "mkdir o; ln -sfn ../o .git/hooks",
                "mkdir o; ln -s ../o o/l; mv -T o/l .git/hooks",
            ],
            ".git/hooks",
        ),
        (
            "mkdir .githooks; ln -s .githooks hk; git config core.hooksPath hk",
            &["rm hk; mkdir hk; echo x > hk/pre-commit", "ln -sfn o hk; mkdir o"],
            "hk",
        ),
        (
            "mkdir -p tools/on; ln -s tools way; git config core.hooksPath way/on",
            &["rm way; mkdir -p way/on; echo x > way/on/pre-commit"],
            "way",
        ),
        (
            "mkdir -p tools/on; ln -s tools first; mkdir sub; ln -s ../first/on sub/last; git config core.hooksPath sub/last",
            &["mkdir -p o/on; ln -sfn o first"],
            "first",
        ),
        (
            "mkdir -p tools/on; ln -s tools first; mkdir sub; ln -s ../first/on sub/last; git config core.hooksPath sub/last",
            &["mv sub was; mkdir -p sub/last"],
            "sub/last",
        ),
        (
            "ln -s none hk; git config core.hooksPath hk",
            &["rm hk; mkdir hk; echo x > hk/pre-commit"],
            "hk",
        ),
        (
            "touch more; ln -s more lnk; git config include.path ../lnk",
            &["echo '[user]' > c; mv c lnk", "ln more c; rm lnk; echo '[user]' > lnk"],
            "lnk",
        ),
        (
            "mv .git/config settings; ln -s ../settings .git/config",
            &[
                "cp settings c; mv c .git/config",
                "cp settings c; ln -sf ../c .git/config",
            ],
            ".git/config",
        ),
        // The way to the git directory.
        (
            "mkdir store; mv .git store/repo.git; echo /store > store/repo.git/info/exclude; ln -s store way; ln -s way/repo.git .git",
            &["cp -r store o; rm way; ln -s o way"],
            "way",
        ),
        (
            "mkdir store; mv .git store/repo.git; echo /store > store/repo.git/info/exclude; ln -s store way; echo 'gitdir: way/repo.git' > .git",
            &["cp -r store o; rm way; ln -s o way"],
            "way",
        ),
        // A way that begins outside of the workspace.
        (
            "mkdir -p tools/on d; ln -s ../tools d/first; ln -s d/first way; ln -sfn $PWD/way/on ../hk; git config core.hooksPath ../hk",
            &["mkdir -p o/on; ln -sfn ../o d/first"],
            "d/first",
        ),
    ];

    /// A hook that is a link to a script.
    const SCRIPT: &str = "mkdir scripts; printf '#!/bin/sh\\nexit 0\\n' > scripts/x; chmod 755 scripts/x; ln -s ../../scripts/x .git/hooks/pre-commit";

    fn git(world: &Fixture, line: &str) -> String {
        world.bare("/bin/sh").args(["-c", line]).output().ok()
    }

    /// A new repository in which this was done.
    fn repository(world: &Fixture, line: &str) -> PathBuf {
        git(
            world,
            &format!(
                "rm -rf ./* ./.git ./.githooks; git init -q -b main . && git config user.name n && git config user.email e && \
                 {line}; echo 1 > file; git add -A; git commit -q -m one"
            ),
        );
        world.workspace()
    }

    /// What there is of the links and of what they lead to.
    fn tree(world: &Fixture) -> String {
        git(
            world,
            "for f in .git/hooks .git/config hk way first sub sub/last lnk d/first .git scripts/x; do readlink $f || ls -ld $f 2>/dev/null | cut -c1-10; done; \
             git status -s; true",
        )
    }

    fn what_was_killed(outcome: &Value) -> &str {
        assert_eq!(outcome["status"], "failed", "{outcome:#}");
        outcome["why"].as_str().unwrap_or_default()
    }

    fn a_command_that_replaces_a_link_that_leads_git_is_killed_and_that_is_taken_away(world: &Fixture) {
        for (makes, ways, changed) in LINKS {
            for way in *ways {
                let place = repository(world, makes);
                let before = tree(world);
                // Nothing else ends it.
                let (outcome, restored) = outcome(world, &format!("{way}; sleep 600"));
                assert!(
                    what_was_killed(&outcome).contains("leads your git"),
                    "{way}: {outcome:#}"
                );
                let is_it = |one: &&Value| Path::new(one["path"].as_str().unwrap()) == place.join(changed);
                let told = restored
                    .iter()
                    .find(is_it)
                    .unwrap_or_else(|| panic!("{way}: {outcome:#}"));
                let kept = Path::new(told["quarantined"].as_str().unwrap());
                assert!(kept.symlink_metadata().is_ok(), "{way}");
                git(world, "rm -rf o c was");
                assert_eq!(tree(world), before, "{way}");
            }
        }
    }

    fn a_link_that_is_made_again_as_it_was_is_ordinary_work(world: &Fixture) {
        for (makes, _, _) in LINKS {
            repository(world, makes);
            let again = "for l in .git/hooks .git/config hk way first d/first lnk; do [ -L $l ] || continue; \
                         t=$(readlink $l); rm $l; ln -s $t $l; done; sleep 0.3; git status -s";
            let (outcome, restored) = outcome(world, again);
            assert_eq!(
                (&outcome["status"], &outcome["code"]),
                (&"exited".into(), &0.into()),
                "{makes}: {outcome:#}"
            );
            assert_eq!(restored, Vec::<Value>::new(), "{makes}");
        }
    }

    fn in_landlock_what_takes_the_place_of_a_link_is_undone_at_the_end(world: &Fixture) {
        for (makes, ways, _) in LINKS {
            repository(world, makes);
            let before = tree(world);
            let (outcome, _) = outcome(world, &format!("{}; true", ways[0]));
            assert_eq!(outcome["status"], "exited", "{makes}: {outcome:#}");
            git(world, "rm -rf o c was");
            assert_eq!(tree(world), before, "{makes}");
        }
    }

    /// To protect the directory that is left would be to protect all that is in it.
    fn a_way_that_leaves_a_directory_of_the_workspace_again_is_refused(world: &Fixture) {
        for makes in [
            "mkdir build hk; git config core.hooksPath build/../hk",
            "mkdir hk; git config core.hooksPath none/../hk",
            "mkdir build hooks; rm -r .git/hooks; ln -s ../build/../hooks .git/hooks",
            "mkdir build; touch inc; git config include.path ../build/../inc",
            "mkdir build store; mv .git store/repo.git; echo 'gitdir: build/../store/repo.git' > .git",
            "mkdir build; mv .git/config settings; ln -s ../build/../settings .git/config",
            "mkdir -p build tree/hk; echo 1 > tree/f; git config core.hooksPath hk; git config core.worktree ../build/../tree",
        ] {
            repository(world, makes);
            let run = world.shell("echo ran").output().exits(125);
            assert!(run.err().contains("write the path without"), "{makes}: {}", run.err());
        }
        // From around it.
        repository(
            world,
            "mkdir -p sub/build; mv .git sub/store; echo /sub/store > sub/store/info/exclude; ln -s sub/build/../store .git",
        );
        let run = world
            .shell("echo ran")
            .cwd(world.workspace().join("sub"))
            .output()
            .exits(125);
        assert!(run.err().contains("write the path without"), "{}", run.err());
        // The twin: what is left holds the place where that is written.
        repository(
            world,
            "mkdir hk; touch inc; git config include.path ../inc; rm -r .git/hooks; ln -s ../hk .git/hooks",
        );
        world.shell("echo ran").output().exits(0);
    }

    fn hooks_of_a_repository_around_the_root_that_lead_into_it_are_put_back(world: &Fixture) {
        for makes in [
            "rm -r .git/hooks; ln -s ../sub/tools .git/hooks",
            "ln -s ../../sub/tools/pre-commit .git/hooks/pre-commit",
            "ln -s tools sub/way; rm -r .git/hooks; ln -s ../sub/way .git/hooks",
            "ln -s tools sub/way; mkdir o; ln -s ../sub/way o/hk; git config core.hooksPath o/hk",
            "mkdir hk; ln -s ../sub/tools/pre-commit hk/pre-commit; git config core.hooksPath hk",
            "ln -s tools sub/way; mkdir hk; ln -s ../sub/way/pre-commit hk/pre-commit; git config core.hooksPath hk",
            // The git directory itself, and the one that it shares.
            "mv .git sub/store; echo /sub/store > sub/store/info/exclude; ln -s store sub/way; ln -s sub/way .git",
            "mv .git sub/store; echo /sub/store > sub/store/info/exclude; ln -s store sub/way; echo 'gitdir: sub/way' > .git",
            "mv .git sub/store; echo /sub/store > sub/store/info/exclude; ln -s store sub/way; mkdir .git; \
             cp sub/store/HEAD .git; echo ../sub/way > .git/commondir",
        ] {
            let way = if makes.contains("store") { "store" } else { "tools" };
            repository(
                world,
                &format!("mkdir -p sub/tools; printf '#!/bin/sh\\n' > sub/tools/pre-commit; {makes}"),
            );
            let run = world
                .stockade(&[
                    "run",
                    "-c",
                    "echo evil > tools/pre-commit; mkdir o; echo evil > o/pre-commit; ln -sfn o way; true",
                ])
                .cwd(world.workspace().join("sub"))
                .output();
            // In namespaces the command is killed where it replaces the link.
            assert!(run.code() == 0 || makes.contains("way"), "{makes}: {}", run.err());
            let hook = fs::read_to_string(world.workspace().join("sub/tools/pre-commit")).unwrap();
            assert!(hook == "#!/bin/sh\n" || way == "store", "{makes}: {}", run.err());
            if makes.contains("way") {
                let link = fs::read_link(world.workspace().join("sub/way")).unwrap();
                assert_eq!(link, Path::new(way), "{makes}: {}", run.err());
            }
        }
    }

    const EVIL: &str = "printf '#!/bin/sh\\ntouch evil\\n' > n; chmod 755 n; ";

    fn a_script_that_a_hook_is_a_link_to_is_taken_away_while_the_command_runs(world: &Fixture) {
        for way in [
            "cp n scripts/x",
            "mv n scripts/x",
            "rm scripts/x; ln -s ../n scripts/x",
            "ln scripts/x l; cat n > l",
            "mv scripts was; mkdir scripts; cp n scripts/x",
        ] {
            let place = repository(world, SCRIPT);
            let before = fs::read(place.join("scripts/x")).unwrap();
            let (outcome, restored) = outcome(
                world,
                &format!("{EVIL}{way}; while [ -s scripts/x ]; do sleep 0.02; done; echo gone"),
            );
            // A directory that takes the place of another is a way to lead git elsewhere.
            if outcome["status"] == "exited" {
                assert_eq!(outcome["stdout"], "gone\n", "{way}: {outcome:#}");
            }
            let script = place.join("scripts/x");
            assert_eq!(fs::read(&script).unwrap(), before, "{way}");
            assert_eq!(
                script.symlink_metadata().unwrap().permissions().mode() & 0o777,
                0o755,
                "{way}"
            );
            let is_kept = |one: &Value| {
                let kept = one["quarantined"].as_str().map(PathBuf::from);
                one["path"].as_str().unwrap().contains("scripts")
                    && kept.is_some_and(|kept| kept.symlink_metadata().is_ok())
            };
            assert!(restored.iter().any(is_kept), "{way}: {outcome:#}");
        }
    }

    fn a_command_that_writes_such_a_script_again_and_again_is_killed(world: &Fixture) {
        let place = repository(world, SCRIPT);
        let before = fs::read(place.join("scripts/x")).unwrap();
        let (outcome, _) = outcome(world, &format!("{EVIL}while :; do cp n scripts/x; sleep 0.01; done"));
        let why = what_was_killed(&outcome);
        assert!(
            why.contains("leads your git") && why.contains("scripts/x"),
            "{outcome:#}"
        );
        assert_eq!(fs::read(place.join("scripts/x")).unwrap(), before);
    }

    fn branches_with_other_versions_of_such_a_script_are_checked_out(world: &Fixture) {
        let place = repository(world, SCRIPT);
        git(
            world,
            "git checkout -q -b other && printf '#!/bin/sh\\nexit 0 # other\\n' > scripts/x && git commit -q -a -m other && \
             git checkout -q -b without && git rm -q -r scripts && git commit -q -m without && git checkout -q main",
        );
        let line = "git checkout -q other && git checkout -q main && git checkout -q without && git checkout -q main && \
                    git status -s && git log --format=%s";
        let (outcome, _) = outcome(world, line);
        assert_eq!(outcome["code"], 0, "{outcome:#}");
        assert_eq!(outcome["stdout"], "one\n", "{outcome:#}");
        assert_eq!(git(world, "git status -s"), "");
        assert_eq!(fs::read(place.join("scripts/x")).unwrap(), b"#!/bin/sh\nexit 0\n");
    }

    /// Writes the host's config by the name behind the link, beside the host's git; whether that ran anything of it.
    fn reads_beside(world: &Fixture) -> bool {
        repository(world, "mv .git/config settings; ln -s ../settings .git/config");
        let trace = world.outside().join("trace");
        let evil = world.write("evil", format!("#!/bin/sh\necho ran >> {}\n", trace.display()));
        fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
        let evil = evil.display();
        let line = format!(
            "touch begun; while [ ! -e stop ]; do git config core.fsmonitor {evil}; cp settings c; \
             printf '[core]\\n\\tfsmonitor = {evil}\\n' >> c; cat c > settings; mv -f c settings; done 2>/dev/null; true"
        );
        let ran = hosts_git_beside(world, &line, &trace);
        let _after = git(world, "git status -s; git add -A");
        let settings = git(world, "git config --local --list");
        assert!(!settings.contains("evil"), "{settings}");
        ran
    }

    fn the_hosts_git_reads_its_own_config_behind_a_link_while_a_command_runs(world: &Fixture) {
        assert!(!reads_beside(world));
    }

    /// The twin of that.
    fn in_landlock_the_hosts_git_reads_a_config_behind_a_link_before_it_is_undone(world: &Fixture) {
        assert!(reads_beside(world), "the test of namespaces proves nothing");
    }
}
