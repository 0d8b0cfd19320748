//! What `core.hooksPath` and `include.path` lead to, where the table of names protects it too: nothing of a command is run.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use crate::common::{Fixture, eventually, in_both_regimes};

    /// Only mounts keep a command's own from the host while it runs.
    mod beside {
        use super::{
            a_hook_or_an_included_file_with_a_listed_name_is_the_hosts_while_a_command_runs,
            a_listed_name_that_a_persons_own_config_leads_to_is_the_hosts_while_a_command_runs,
            a_persons_own_config_in_the_workspace_is_the_hosts_while_a_command_runs,
        };

        crate::common::in_all_namespaces! {
            a_hook_or_an_included_file_with_a_listed_name_is_the_hosts_while_a_command_runs ["git"];
            a_listed_name_that_a_persons_own_config_leads_to_is_the_hosts_while_a_command_runs ["git"];
            a_persons_own_config_in_the_workspace_is_the_hosts_while_a_command_runs ["git"];
        }
    }

    in_both_regimes! {
        a_strangers_hook_does_not_stay_because_it_was_fetched ["git"];
        what_husky_would_run_does_not_stay_before_husky_has_run ["git"];
    }

    const NEW: &str = "git init -q -b main . && git config user.name n && git config user.email e";
    /// A place of hooks, what leads git there, and the file that a command writes.
    const HOOKS: [(&str, &str, &str); 8] = [
        (".husky", "git config core.hooksPath .husky", ".husky/pre-commit"),
        (
            ".githooks",
            "git config core.hooksPath .githooks",
            ".githooks/pre-commit",
        ),
        (".husky/_", "git config core.hooksPath .husky/_", ".husky/_/pre-commit"),
        // What husky makes runs what lies beside it.
        (
            ".husky/_",
            "git config core.hooksPath .husky/_ && printf '#!/bin/sh\n. .husky/pre-commit\n' > .husky/_/pre-commit && \
             echo : > .husky/pre-commit",
            ".husky/pre-commit",
        ),
        (
            ".cargo-husky/hooks",
            "git config core.hooksPath .cargo-husky/hooks",
            ".cargo-husky/hooks/pre-commit",
        ),
        (
            ".config/git/hooks",
            "git config core.hooksPath .config/git/hooks",
            ".config/git/hooks/pre-commit",
        ),
        (
            ".husky",
            "rm -r .git/hooks && ln -s ../.husky .git/hooks",
            ".husky/pre-commit",
        ),
        // The twin that was covered before.
        ("hk", "git config core.hooksPath hk", "hk/pre-commit"),
    ];

    fn sh(world: &Fixture, folder: &Path, line: &str) -> String {
        world.bare("/bin/sh").cwd(folder).args(["-c", line]).output().ok()
    }

    fn hook(place: &str) -> String {
        format!(
            "mkdir -p {place} && printf '#!/bin/sh\\nexit 0\\n' > {place}/pre-commit && chmod 755 {place}/pre-commit"
        )
    }

    /// Whether the host's git runs, in each of these repositories, what the line has put there; asked while the line runs.
    fn ran_beside(world: &Fixture, repositories: &[String], line: &str, traces: &Path) -> Vec<bool> {
        let line = format!("{line}; touch begun; while [ ! -e stop ]; do sleep 0.1; done");
        let run = world.stockade(&["run", "-c", &line]).spawn();
        let (begun, stop) = (world.workspace().join("begun"), world.workspace().join("stop"));
        eventually("the command runs", || begun.exists());
        let ran = ran(world, repositories, traces);
        world.write(stop, "");
        let _ended = run.wait();
        ran
    }

    fn ran(world: &Fixture, repositories: &[String], traces: &Path) -> Vec<bool> {
        let ran = |name: &String| {
            let trace = traces.join(name);
            let _removed = fs::remove_file(&trace);
            let line = "git commit --allow-empty -qm x; git status -s; true";
            sh(world, &world.workspace().join(name), line);
            trace.exists()
        };
        repositories.iter().map(ran).collect()
    }

    /// Writes a program that leaves a trace to each of the files.
    fn evil(files: &[(String, String)], traces: &Path) -> String {
        let one = |(name, file): &(String, String)| {
            let trace = traces.join(name);
            let text = if file.ends_with(".gitconfig") {
                format!("[core]\\n\\tfsmonitor = touch {}; false\\n", trace.display())
            } else {
                format!("#!/bin/sh\\ntouch {}\\n", trace.display())
            };
            format!("(cd {name} && printf '{text}' > {file}; chmod 755 {file})")
        };
        let all: Vec<String> = files.iter().map(one).collect();
        all.join("; ")
    }

    fn a_hook_or_an_included_file_with_a_listed_name_is_the_hosts_while_a_command_runs(world: &Fixture) {
        let traces = world.outside();
        let mut files = Vec::new();
        for (number, (place, leads, file)) in HOOKS.into_iter().enumerate() {
            let name = format!("r{number}");
            let folder = world.write(format!("{name}/f"), "").parent().unwrap().to_owned();
            let line = format!(
                "{NEW} && {} && {leads} && git add -A && git commit -qm one",
                hook(place)
            );
            sh(world, &folder, &line);
            files.push((name, file.to_owned()));
        }
        let folder = world.write("inc/f", "").parent().unwrap().to_owned();
        let line = format!(
            "{NEW} && touch .gitconfig && git add -A && git commit -qm one && git config include.path ../.gitconfig"
        );
        sh(world, &folder, &line);
        files.push(("inc".to_owned(), ".gitconfig".to_owned()));
        let names: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
        let none = vec![false; names.len()];
        let line = evil(&files, &traces);
        assert_eq!(ran_beside(world, &names, &line, &traces), none);
        assert_eq!(ran(world, &names, &traces), none, "afterwards");
        // Without Stockade each is run.
        sh(world, &world.workspace(), &line);
        assert_eq!(ran(world, &names, &traces), vec![true; names.len()]);
    }

    fn a_listed_name_that_a_persons_own_config_leads_to_is_the_hosts_while_a_command_runs(world: &Fixture) {
        let traces = world.outside();
        let folder = world.write("r/f", "").parent().unwrap().to_owned();
        world.write(world.home().join(".gitconfig"), "[core]\n\thooksPath = .husky\n");
        let line = format!("{NEW} && {} && git add -A && git commit -qm one", hook(".husky"));
        sh(world, &folder, &line);
        let names = ["r".to_owned()];
        let line = evil(&[("r".to_owned(), ".husky/pre-commit".to_owned())], &traces);
        assert_eq!(ran_beside(world, &names, &line, &traces), [false]);
        sh(world, &world.workspace(), &line);
        assert_eq!(ran(world, &names, &traces), [true]);
    }

    fn a_persons_own_config_in_the_workspace_is_the_hosts_while_a_command_runs(world: &Fixture) {
        let trace = world.outside().join("trace");
        sh(world, &world.workspace(), NEW);
        for name in ["mine.inc", ".gitconfig"] {
            let config = world.write(name, "[core]\n\tabbrev = 7\n");
            let status = || {
                let git = world.bare("/bin/sh").env("GIT_CONFIG_GLOBAL", &config);
                git.args(["-c", "git status -s; true"]).output().ok();
                trace.exists()
            };
            let evil = format!(
                "printf '[core]\\n\\tfsmonitor = touch {}; false\\n' > {name}",
                trace.display()
            );
            let line = format!("{evil}; touch begun; while [ ! -e stop ]; do sleep 0.1; done");
            let run = world
                .stockade(&["run", "-c", &line])
                .env("GIT_CONFIG_GLOBAL", &config)
                .spawn();
            let (begun, stop) = (world.workspace().join("begun"), world.workspace().join("stop"));
            eventually("the command runs", || begun.exists());
            let is_run = status();
            world.write(&stop, "");
            let _ended = run.wait();
            assert!(!is_run && !status(), "{name}");
            sh(world, &world.workspace(), &evil);
            assert!(status(), "{name}: the test proves nothing");
            for left in [trace.clone(), begun, stop] {
                fs::remove_file(left).unwrap();
            }
        }
    }

    fn a_strangers_hook_does_not_stay_because_it_was_fetched(world: &Fixture) {
        let mut names = Vec::new();
        // The last is led nowhere: what was fetched may stay there.
        let cases = [
            (".husky", "git config core.hooksPath .husky"),
            (".githooks", "git config core.hooksPath .githooks"),
            (".gitconfig", "git config include.path ../.gitconfig"),
            (".husky", "true"),
        ];
        let mut lines = Vec::new();
        for (number, (place, leads)) in cases.into_iter().enumerate() {
            let name = format!("r{number}");
            let folder = world.write(format!("{name}/f"), "").parent().unwrap().to_owned();
            let file = if place == ".gitconfig" {
                place.to_owned()
            } else {
                format!("{place}/pre-commit")
            };
            let write = |text: &str| {
                format!(
                    "mkdir -p $(dirname {file}) && printf '{text}' > {file} && chmod 755 {file} && git add -A && git commit -qm x"
                )
            };
            let line = format!(
                "{NEW} && {} && git clone -q . ../str{number} && (cd ../str{number} && git config user.name n && git config user.email e && \
                 git checkout -qb stranger && {}) && git fetch -q ../str{number} stranger:refs/remotes/fork/stranger && {leads}",
                write("# mine\\n"),
                write("# theirs\\n")
            );
            sh(world, &folder, &line);
            // A single file is a mount in namespaces: git cannot replace it there, but anybody can write it.
            let take = if place == ".gitconfig" {
                format!("git show fork/stranger:{file} > {file}")
            } else {
                format!("git checkout -q fork/stranger -- {file}; git reset -q")
            };
            lines.push(format!("(cd {name}; {take}; cat {file})"));
            names.push((name, file));
        }
        let run = world.stockade(&["run", "-c", &lines.join("; ")]).output().exits(0);
        assert_eq!(run.out(), "# theirs\n".repeat(4), "{}", run.err());
        for (number, (name, file)) in names.iter().enumerate() {
            let now = fs::read_to_string(world.workspace().join(name).join(file)).unwrap();
            let is_told = run.err().contains(&format!("{name}/{file}"));
            let expected = if number == 3 {
                ("# theirs\n", false)
            } else {
                ("# mine\n", true)
            };
            assert_eq!((now.as_str(), is_told), expected, "{name}: {}", run.err());
        }
    }

    fn what_husky_would_run_does_not_stay_before_husky_has_run(world: &Fixture) {
        for place in [".config/husky", "tools/.husky", "husky"] {
            let name = place.replace('/', "-");
            let folder = world.write(format!("{name}/f"), "").parent().unwrap().to_owned();
            let write =
                |file: &str| format!("mkdir -p $(dirname {file}) && echo '#!/bin/sh' > {file} && chmod 755 {file}");
            let line = format!(
                "{NEW} && git add -A && git commit -qm one && git checkout -qb hooks && {} && {} && {} && git add -A && git commit -qm two && \
                 git checkout -q main && git config core.hooksPath {place}/_",
                write(&format!("{place}/pre-commit")),
                write(&format!("{place}/_/pre-commit")),
                write("other/pre-commit")
            );
            sh(world, &folder, &line);
            assert!(!folder.join(place).exists());
            let run = world.stockade(&["run", "-c", &format!("cd {name} && git checkout -q hooks")]);
            let run = run.output().exits(0);
            for file in ["_/pre-commit", "pre-commit"] {
                assert!(!folder.join(place).join(file).exists(), "{place} {file}: {}", run.err());
            }
            assert!(folder.join("other/pre-commit").exists(), "{place}: {}", run.err());
        }
    }
}
