//! The running program of Stockade in a writable root: a command cannot leave another in its place.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::{Path, PathBuf};

    use serde_json::Value;

    use crate::common::{Actor, Backend, Fixture, in_both_regimes};

    in_both_regimes! {
        a_command_leaves_no_other_program_in_its_place [];
        a_program_that_cannot_be_kept_refuses_no_start [];
    }

    /// A copy of the program in the workspace.
    fn installed(world: &Fixture, place: &str) -> PathBuf {
        let program = world.write(place, "");
        fs::copy(world.binary(), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    fn run(world: &Fixture, program: &Path, line: &str) -> Value {
        let args = world.arguments(&["run", "--json", "-c", line]);
        let run = world.bare(program).args(args).output();
        serde_json::from_str(&run.out()).unwrap_or_else(|_| panic!("{line}: {} {}", run.out(), run.err()))
    }

    #[track_caller]
    fn assert_is_the_program(world: &Fixture, program: &Path, line: &str) {
        let found = fs::symlink_metadata(program).unwrap();
        assert!(
            found.is_file() && found.mode() & 0o7777 == 0o755,
            "{line}: {:o}",
            found.mode()
        );
        assert!(
            fs::read(program).unwrap() == fs::read(world.binary()).unwrap(),
            "{line}"
        );
    }

    fn a_command_leaves_no_other_program_in_its_place(world: &Fixture) {
        for place in ["tool/stockade", "target/debug/stockade"] {
            let program = installed(world, place);
            world.program("evil", "#!/bin/sh\necho evil\n");
            let folder = Path::new(place).parent().unwrap().display().to_string();
            // The kernel refuses to write to a program that runs.
            let outcome = run(world, &program, &format!("cat evil > {place}"));
            assert_ne!(outcome["code"], 0, "{outcome:#}");
            assert_is_the_program(world, &program, "overwritten");
            for line in [
                format!("cp --remove-destination evil {place}"),
                format!("mv evil {place}; cp {place} evil"),
                format!("rm {place}"),
                format!("mv {place} away"),
                format!("mv {folder} gone; mkdir {folder}; cp evil {place}"),
                format!("rm -r {folder}"),
                format!("ln -sf ../evil {place}"),
                format!("chmod 777 {place}"),
            ] {
                let outcome = run(world, &program, &line);
                assert_eq!(outcome["code"], 0, "{line}: {outcome:#}");
                assert_eq!(outcome["unsettled"], Value::Null, "{line}: {outcome:#}");
                let restored = outcome["restored"].as_array().unwrap();
                let is_it = |one: &Value| Path::new(one["path"].as_str().unwrap()) == program;
                assert!(restored.iter().any(is_it), "{line}: {outcome:#}");
                assert_is_the_program(world, &program, &line);
            }
            let outcome = run(world, &program, "echo still");
            assert_eq!(outcome["stdout"], "still\n", "{outcome:#}");
            fs::remove_file(&program).unwrap();
        }
    }

    fn a_program_that_cannot_be_kept_refuses_no_start(world: &Fixture) {
        if (world.actor, world.backend) == (Actor::User, Backend::Namespaces) {
            // The kernel lets no such program of a user make namespaces.
            return;
        }
        let program = installed(world, "target/stockade");
        // Nobody but root may read it, so no copy can be made.
        fs::set_permissions(&program, fs::Permissions::from_mode(0o111)).unwrap();
        let outcome = run(world, &program, "echo works");
        assert_eq!(outcome["stdout"], "works\n", "{outcome:#}");
    }
}
