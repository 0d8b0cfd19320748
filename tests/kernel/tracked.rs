//! Tracked files with protected names, end to end: git does in the sandbox what it does outside, for branches that the host knows.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::{Value, json};

    use crate::common::{Fixture, as_root_and_as_user};

    as_root_and_as_user! {
        ordinary_work_over_a_tracked_file_comes_to_the_same_as_outside ["git"];
        what_a_command_committed_is_taken_away_in_each_session_and_the_commit_is_told_of ["git"];
    }

    const SETTINGS: &str = ".vscode/settings.json";

    /// `main`, a branch `b` with other settings and tasks, and a branch `c` with neither.
    const REPOSITORY: &str = "git init -q -b main . && git config user.name n && git config user.email e && mkdir .vscode \
        && echo 1 > .vscode/settings.json && echo x > f && git add -A && git commit -qm one \
        && git checkout -qb c && echo g > g && git add -A && git commit -qm c \
        && git checkout -q main && git checkout -qb b && echo 2 > .vscode/settings.json && echo t > .vscode/tasks.json \
        && git add -A && git commit -qm two && git checkout -q main";

    fn sh(world: &Fixture, folder: &Path, line: &str) -> String {
        world.bare("/bin/sh").cwd(folder).args(["-c", line]).output().ok()
    }

    /// Runs the line in the sandbox; what was put back.
    fn run(world: &Fixture, line: &str) -> Vec<Value> {
        let run = world.stockade(&["run", "--json", "-c", line]).output().exits(0);
        let outcome: Value = serde_json::from_str(&run.out()).unwrap();
        assert_eq!(outcome["unsettled"], Value::Null, "{outcome}");
        let restored = outcome["restored"].as_array().unwrap().iter();
        // What a session elsewhere left at its death may be put back, and told, by any start.
        let mine = |one: &&Value| Path::new(one["path"].as_str().unwrap()).starts_with(world.base());
        restored.filter(mine).cloned().collect()
    }

    fn ordinary_work_over_a_tracked_file_comes_to_the_same_as_outside(world: &Fixture) {
        let here = world.workspace();
        sh(world, &here, REPOSITORY);
        let twin = world.outside().join("twin");
        sh(world, &here, &format!("cp -a . '{}'", twin.display()));
        for line in [
            "git checkout -q b; echo x >> f; git commit -qam more",
            "git checkout -q main; git merge -q --no-ff -m merge b",
            "git checkout -q c; git rebase -q main",
            "git checkout -q main~1; git cherry-pick b~1 >&2",
            "git checkout -q main; echo y > n; git add n; git stash -q; git checkout -q main~1; git stash pop -q",
            "git rm -qf n; git checkout -q b",
        ] {
            assert_eq!(run(world, line), Vec::<Value>::new(), "{line}");
            sh(world, &twin, line);
            let look = "git rev-parse HEAD^{tree}; git status --porcelain; cat .vscode/*";
            assert_eq!(sh(world, &here, look), sh(world, &twin, look), "{line}");
        }
    }

    fn what_a_command_committed_is_taken_away_in_each_session_and_the_commit_is_told_of(world: &Fixture) {
        let here = world.workspace();
        sh(world, &here, REPOSITORY);
        let evil = "git checkout -qb evil; echo evil > .vscode/settings.json; git commit -qam evil";
        let restored = run(world, evil);
        assert_eq!(restored.len(), 1, "{restored:?}");
        assert_eq!(restored[0]["path"], json!(here.join(SETTINGS)));
        assert_eq!(restored[0]["is_other_in_head"], json!(true));
        // Each is a session of its own.
        for _ in 0..2 {
            let said = world
                .shell("git checkout -qf main; git checkout -qf evil")
                .output()
                .exits(0)
                .err();
            assert!(
                said.contains(
                    "HEAD has another version of it: what is there now is the old one; do not commit it by accident"
                ),
                "{said}"
            );
            assert_eq!(fs::read_to_string(here.join(SETTINGS)).unwrap(), "1\n");
        }
        // A person has looked at it.
        sh(
            world,
            &here,
            "git checkout -qf main; git merge -q evil; git checkout -q b",
        );
        assert_eq!(run(world, "git checkout -q main"), Vec::<Value>::new());
        assert_eq!(fs::read_to_string(here.join(SETTINGS)).unwrap(), "evil\n");
    }
}
