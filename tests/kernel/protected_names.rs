//! Names of the list, links to what they stand for, and what a config makes of the list, end to end.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use crate::common::{Fixture, in_both_regimes};

    in_both_regimes! {
        what_a_protected_link_leads_to_does_not_stay_changed [];
        a_name_in_another_spelling_does_not_stay_changed [];
        what_the_files_of_tools_name_does_not_stay_changed [];
        a_config_adds_names_and_takes_some_off [];
        a_repository_whose_hooks_are_a_link_commits ["git"];
    }

    fn what_a_protected_link_leads_to_does_not_stay_changed(world: &Fixture) {
        for (link, target, file) in [
            (".codex", "d", "d/config.toml"),
            (".bashrc", "rc", "rc"),
            (".mcp.json", "servers/all", "servers/all"),
            (".vscode", "editor", "editor/tasks.json"),
            ("stockade.yml", "conf", "conf"),
        ] {
            for there in [true, false] {
                let place = world.workspace().join(link);
                symlink(target, &place).unwrap();
                if there {
                    world.write(file, "mine\n");
                }
                let folder = file.rsplit_once('/').map_or(".", |(folder, _)| folder);
                let line = format!("mkdir -p {folder}; echo evil > {file}; echo x > beside");
                let run = world.shell(&line).output().exits(0);
                let now = fs::read_to_string(world.workspace().join(file)).ok();
                assert_eq!(now.as_deref(), there.then_some("mine\n"), "{link}: {}", run.err());
                assert!(run.err().contains(" is protected and was "), "{link}: {}", run.err());
                assert!(world.workspace().join("beside").exists());
                fs::remove_file(&place).unwrap();
                if there {
                    fs::remove_file(world.workspace().join(file)).unwrap();
                }
            }
        }
    }

    fn a_name_in_another_spelling_does_not_stay_changed(world: &Fixture) {
        let file = world.write(".VSCODE/TASKS.JSON", "mine\n");
        let run = world
            .shell("echo evil > .VSCODE/TASKS.JSON; echo evil > .BashRC; mkdir Target; echo x > Target/x")
            .output()
            .exits(0);
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine\n", "{}", run.err());
        assert!(!world.workspace().join(".BashRC").exists());
        assert!(world.workspace().join("Target/x").exists());
    }

    fn what_the_files_of_tools_name_does_not_stay_changed(world: &Fixture) {
        world.write(".yarnrc.yml", "yarnPath: tools/yarn.cjs\n");
        let yarn = world.write("tools/yarn.cjs", "mine\n");
        let run = world
            .shell("echo evil > tools/yarn.cjs; echo x > tools/other.cjs")
            .output()
            .exits(0);
        assert_eq!(fs::read_to_string(&yarn).unwrap(), "mine\n", "{}", run.err());
        assert!(world.workspace().join("tools/other.cjs").exists());
    }

    fn a_config_adds_names_and_takes_some_off(world: &Fixture) {
        let text = format!(
            "extends: [system]\nsandbox:\n  protect: {{add: [deploy.sh], except: [.idea/**]}}\n  protect_fallback: undo\n  \
             paths: {{w: {{root: {}, mode: rw, write_approval: false}}}}\nshell: {{default: {{allowed: true, approval: none}}}}\n",
            world.workspace().display(),
        );
        let config = world.write(world.base().join("names.yaml"), text);
        let deploy = world.write("deploy.sh", "mine\n");
        let line = "echo evil > deploy.sh; mkdir .idea; echo x > .idea/x; echo evil > .envrc";
        let run = world
            .stockade(&["run", "--config", config.to_str().unwrap(), "-c", line])
            .output()
            .exits(0);
        assert_eq!(fs::read_to_string(&deploy).unwrap(), "mine\n", "{}", run.err());
        assert!(world.workspace().join(".idea/x").exists(), "{}", run.err());
        assert!(!world.workspace().join(".envrc").exists());
    }

    fn a_repository_whose_hooks_are_a_link_commits(world: &Fixture) {
        let line = "git init -q . && rm -rf .git/hooks && mkdir hooks && printf '#!/bin/sh\\n' > hooks/post-commit && \
                    ln -s ../hooks .git/hooks && git add . && git -c user.name=n -c user.email=e commit -q -m one";
        world.bare("/bin/sh").args(["-c", line]).output().ok();
        let line = "echo 1 > file && git add . && git -c user.name=n -c user.email=e commit -q -m two; \
                    echo evil > hooks/pre-push";
        let run = world.shell(line).output().exits(0);
        assert!(!world.workspace().join("hooks/pre-push").exists(), "{}", run.err());
        let log = world.bare("git").args(["log", "--format=%s"]).output().ok();
        assert_eq!(log.trim_end(), "two\none", "{}", run.err());
    }
}
