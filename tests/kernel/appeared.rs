//! What a command makes that programs of the host may read or run, and that no list protects, is named after it and stays.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use serde_json::Value;

    use crate::common::{Fixture, in_both_regimes};

    in_both_regimes! {
        new_dotfiles_and_executables_are_named_and_stay [];
        what_is_neither_is_not_named [];
        what_is_changed_in_a_directory_that_is_as_it_was_is_not_named [];
        what_an_earlier_command_wrote_is_named_when_it_becomes_of_interest [];
        what_comes_with_a_directory_that_is_moved_is_named [];
        a_link_to_what_is_passed_over_is_named [];
        what_lies_in_a_directory_that_cannot_be_listed_is_named [];
        what_a_package_manager_regenerates_in_place_is_named [];
        directories_that_others_fill_are_passed_over [];
        what_a_clone_makes_of_git_is_not_named ["git"];
        of_very_many_some_are_named_and_the_rest_is_counted [];
        a_hostile_name_is_shown_escaped [];
    }

    fn outcome(world: &Fixture, line: &str) -> Value {
        let run = world.stockade(&["run", "--json", "-c", line]).output().exits(0);
        serde_json::from_str(&run.out()).unwrap()
    }

    /// What is new by an outcome, relative to the workspace, sorted.
    fn new(world: &Fixture, line: &str) -> Vec<String> {
        let outcome = outcome(world, line);
        let workspace = format!("{}/", world.workspace().to_str().unwrap());
        let files = outcome["new_files"].as_array().cloned().unwrap_or_default();
        let mut names: Vec<String> = files
            .iter()
            .map(|file| file.as_str().unwrap().strip_prefix(&workspace).unwrap().to_owned())
            .collect();
        names.sort();
        names
    }

    fn executable(world: &Fixture, name: &str) {
        let path = world.write(name, "#!/bin/sh\n");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn new_dotfiles_and_executables_are_named_and_stay(world: &Fixture) {
        let line = "echo x > .newrc; printf '#!/bin/sh\\n' > run.sh; chmod 755 run.sh; mkdir -p .tool/in sub; \
                    echo y > .tool/in/.inner; echo z > sub/.deep; echo w > sub/tool; chmod 700 sub/tool";
        assert_eq!(new(world, line), [".newrc", ".tool", "run.sh", "sub/.deep", "sub/tool"]);
        assert_eq!(fs::read_to_string(world.workspace().join(".newrc")).unwrap(), "x\n");
        assert_eq!(fs::read_to_string(world.workspace().join("sub/tool")).unwrap(), "w\n");
        // A line for a person; nothing where nothing is new.
        let run = world.stockade(&["run", "-c", "echo x > .other"]).output().exits(0);
        let other = world.workspace().join(".other");
        let said = format!(
            "stockade: new or changed dotfiles and executables: {}; look at them",
            other.display()
        );
        assert!(run.err().contains(&said), "{}", run.err());
        let run = world.stockade(&["run", "-c", "true"]).output().exits(0);
        assert!(!run.err().contains("changed dotfiles"), "{}", run.err());
    }

    fn what_is_neither_is_not_named(world: &Fixture) {
        assert_eq!(new(world, "echo x > plain; mkdir -p d/e; echo y > d/e/f"), [""; 0]);
        let fields = outcome(world, "echo x > plain2");
        assert!(
            fields.get("new_files").is_none() && fields.get("more_new_files").is_none(),
            "{fields:#}"
        );
    }

    fn what_is_changed_in_a_directory_that_is_as_it_was_is_not_named(world: &Fixture) {
        world.write("sub/.old", "1");
        executable(world, "sub/old.sh");
        assert_eq!(
            new(world, "echo 2 >> sub/.old; echo 3 >> sub/old.sh; echo beside > plain"),
            [""; 0]
        );
    }

    fn what_an_earlier_command_wrote_is_named_when_it_becomes_of_interest(world: &Fixture) {
        executable(world, "node_modules/x/run");
        world.write("sub/kept", "");
        assert_eq!(new(world, "echo x > notes.txt; echo x > tool"), [""; 0]);
        assert_eq!(new(world, "mv notes.txt .eslintrc.js"), [".eslintrc.js"]);
        assert_eq!(new(world, "chmod 755 tool; mv tool sub/tool"), ["sub/tool"]);
        world.write("other", "");
        assert_eq!(new(world, "ln other .stylelintrc.js"), [".stylelintrc.js"]);
        assert_eq!(new(world, "mv node_modules/x/run check.sh"), ["check.sh"]);
    }

    fn what_comes_with_a_directory_that_is_moved_is_named(world: &Fixture) {
        executable(world, "vendor/in/run");
        world.write("vendor/.hidden", "");
        world.write("plain/.mine", "");
        assert_eq!(
            new(world, "mv vendor pd; mkdir q; mv plain q/plain; chmod 700 q"),
            ["pd/.hidden", "pd/in/run", "q/plain/.mine"]
        );
        assert_eq!(new(world, "chmod 700 pd q; echo x > pd/plain"), [""; 0]);
    }

    fn what_lies_in_a_directory_that_cannot_be_listed_is_named(world: &Fixture) {
        let line = "mkdir bin; echo x > bin/deploy; chmod 755 bin/deploy; chmod 311 bin";
        assert_eq!(new(world, line), ["bin/deploy"]);
        let bin = world.workspace().join("bin");
        assert_eq!(fs::metadata(&bin).unwrap().permissions().mode() & 0o777, 0o311);
        fs::set_permissions(bin, fs::Permissions::from_mode(0o755)).unwrap();
        // What is called as others call their directories is none of these.
        assert_eq!(new(world, "echo x > target; chmod 755 target"), ["target"]);
    }

    fn a_link_to_what_is_passed_over_is_named(world: &Fixture) {
        executable(world, "node_modules/run");
        world.write("node_modules/evil/.npmrc", "");
        world.write("plain", "");
        let line =
            "ln -s node_modules/evil tools; ln -s node_modules/run lint.sh; ln -s plain other; ln -s nowhere dangling";
        assert_eq!(new(world, line), ["dangling", "lint.sh", "tools"]);
        assert_eq!(new(world, "ln -s node_modules vendor"), ["vendor"]);
    }

    fn what_a_package_manager_regenerates_in_place_is_named(world: &Fixture) {
        world.write(".pnp.cjs", "1");
        world.write(".pnp.loader.mjs", "1");
        assert_eq!(new(world, "echo x > beside"), [""; 0]);
        assert_eq!(new(world, "echo 2 >> .pnp.cjs"), [".pnp.cjs"]);
    }

    fn directories_that_others_fill_are_passed_over(world: &Fixture) {
        let line = "for d in node_modules/.bin target/debug .venv/bin vendor/x; do mkdir -p $d; echo x > $d/run; \
                    chmod 755 $d/run; done; echo x > own; chmod 755 own";
        assert_eq!(new(world, line), ["own"]);
    }

    fn what_a_clone_makes_of_git_is_not_named(world: &Fixture) {
        let line = "git init -q r && cd r && echo x > f && git add f && \
                    git -c user.name=n -c user.email=e commit -qm m && cd .. && git clone -q r c";
        assert_eq!(new(world, line), [""; 0]);
    }

    fn of_very_many_some_are_named_and_the_rest_is_counted(world: &Fixture) {
        let outcome = outcome(world, "i=0; while [ $i -lt 200 ]; do : > .n$i; i=$((i+1)); done");
        assert_eq!(outcome["new_files"].as_array().unwrap().len(), 50);
        assert_eq!(outcome["more_new_files"], 150);
        let run = world
            .stockade(&["run", "-c", "for i in a b c d e f g; do : > .$i; done"])
            .output()
            .exits(0);
        assert!(run.err().contains(" and 2 more; look at them"), "{}", run.err());
    }

    fn a_hostile_name_is_shown_escaped(world: &Fixture) {
        // What the tests read is escaped once more.
        let run = world
            .stockade(&["run", "-c", "n=$(printf '.a\\033[31mb'); : > \"$n\""])
            .output()
            .exits(0);
        let said = run.err();
        assert!(
            said.contains("/.a\\\\u{1b}[31mb; look at them") && !said.contains("\\x1b"),
            "{said}"
        );
    }
}
