//! Work trees of a repository that lie outside of every root.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use crate::common::{Fixture, Run, eventually, in_both_regimes};

    in_both_regimes! {
        git_does_not_take_a_work_tree_elsewhere_for_deleted ["git"];
        one_that_is_deleted_is_pruned ["git"];
        beside_a_linked_work_tree_the_others_stay ["git"];
        of_a_work_tree_elsewhere_nothing_is_read ["git"];
        what_does_not_lead_back_is_not_shown ["git"];
        a_session_in_a_work_tree_beside_one_in_its_repository_ends_well ["git"];
    }

    fn host(world: &Fixture, line: &str) -> String {
        world.bare("/bin/sh").args(["-c", line]).output().ok()
    }

    /// A repository with two work trees beside it: one with a staged file, one without a branch and with a commit.
    fn repository(world: &Fixture) -> PathBuf {
        host(
            world,
            "git init -q -b main . && git config user.name n && git config user.email e && echo 1 > file && git add file && \
             git commit -qm one && git worktree add -q ../staged && git worktree add -q --detach ../loose && \
             echo 2 > ../staged/new && git -C ../staged add new && git -C ../loose commit -q --allow-empty -m two",
        );
        world.workspace()
    }

    fn run(world: &Fixture, line: &str) -> Run {
        world.stockade(&["run", "-c", line]).output()
    }

    fn status(world: &Fixture) -> String {
        host(
            world,
            "git -C ../staged status --short && git -C ../loose log --format=%s -1",
        )
    }

    fn git_does_not_take_a_work_tree_elsewhere_for_deleted(world: &Fixture) {
        repository(world);
        let before = status(world);
        let listed = run(world, "git worktree list").ok();
        assert!(listed.contains("staged") && !listed.contains("prunable"), "{listed}");
        for line in [
            "git worktree prune -v",
            "git gc -q --prune=now",
            "git worktree remove --force ../staged",
            "git worktree remove ../loose",
            "git branch -D staged",
        ] {
            run(world, line);
            assert_eq!(status(world), before, "{line}");
        }
    }

    fn one_that_is_deleted_is_pruned(world: &Fixture) {
        let workspace = repository(world);
        fs::remove_dir_all(workspace.join("../loose")).unwrap();
        let said = run(world, "git worktree prune -v");
        assert!(said.err().contains("worktrees/loose"), "{} {}", said.out(), said.err());
        assert!(!workspace.join(".git/worktrees/loose").exists());
        assert!(workspace.join(".git/worktrees/staged").exists());
    }

    fn beside_a_linked_work_tree_the_others_stay(world: &Fixture) {
        let workspace = repository(world);
        let before = status(world);
        let args = ["run", "-c", "git worktree prune -v; git worktree list"];
        let said = world.stockade(&args).cwd(workspace.join("../loose")).output();
        assert!(
            said.out().contains("staged") && !said.out().contains("prunable"),
            "{}",
            said.out()
        );
        assert_eq!(status(world), before);
    }

    fn of_a_work_tree_elsewhere_nothing_is_read(world: &Fixture) {
        repository(world);
        let file = host(world, "cat ../staged/.git");
        for line in [
            "cat ../staged/.git",
            "cat ../staged/new",
            "echo x > ../staged/.git",
            "rm ../staged/.git",
        ] {
            let run = run(world, line);
            assert!(
                run.code() != 0 && run.out().is_empty(),
                "{line}: {} {}",
                run.out(),
                run.err()
            );
        }
        assert_eq!(host(world, "cat ../staged/.git"), file);
        assert_eq!(
            run(world, "cat .git/worktrees/staged/HEAD").ok(),
            "ref: refs/heads/staged\n"
        );
    }

    fn what_does_not_lead_back_is_not_shown(world: &Fixture) {
        let workspace = repository(world);
        let other = world.outside().join(".git");
        world.write(&other, "gitdir: /nowhere\n");
        fs::write(
            workspace.join(".git/worktrees/loose/gitdir"),
            other.as_os_str().as_encoded_bytes(),
        )
        .unwrap();
        let seen = run(world, &format!("stat {}", other.display()));
        // Landlock hides no attributes.
        if world.backend.is_in_namespaces() {
            assert_ne!(seen.code(), 0, "{}", seen.out());
        } else {
            seen.ok();
        }
    }

    fn a_session_in_a_work_tree_beside_one_in_its_repository_ends_well(world: &Fixture) {
        let workspace = repository(world);
        let tree = workspace.join("../staged");
        let config = fs::read(workspace.join(".git/config")).unwrap();
        let evil = "git config core.fsmonitor evil; echo evil > .git/hooks/post-commit";
        let here = |line: &str| world.stockade(&["run", "-c", line]).cwd(&workspace);
        let there = |line: &str| world.stockade(&["run", "-c", line]).cwd(&tree);
        for is_tree_last in [true, false] {
            let line = format!("{evil}; touch begun; while [ ! -e stop ]; do sleep 0.1; done");
            let first = if is_tree_last {
                here(&line)
            } else {
                there(&line.replace(".git/", "$(git rev-parse --git-common-dir)/"))
            };
            let folder = if is_tree_last { &workspace } else { &tree };
            let first = first.spawn();
            eventually("the command runs", || folder.join("begun").exists());
            let second = if is_tree_last { there("true") } else { here("true") };
            second.output().exits(0);
            world.write(folder.join("stop"), "");
            first.wait().exits(0);
            assert_eq!(fs::read(workspace.join(".git/config")).unwrap(), config);
            assert!(!workspace.join(".git/hooks/post-commit").exists());
            for later in [here("true"), there("true")] {
                let later = later.output().exits(0);
                assert_eq!(later.err(), "", "{is_tree_last}");
            }
            for left in ["begun", "stop"] {
                fs::remove_file(folder.join(left)).unwrap();
            }
        }
    }
}
