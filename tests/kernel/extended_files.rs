//! A config that extends a file: what the file grants holds, and a command cannot change the file for the next start.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::common::{Fixture, Run, in_both_regimes};

    in_both_regimes! {
        roots_of_the_file_and_of_the_config_are_reached [];
        a_command_cannot_change_the_file_for_the_next_start [];
    }

    fn run(world: &Fixture, line: &str) -> Run {
        world.stockade(&["run", "--config", "agent.yaml", "-c", line]).output()
    }

    fn roots_of_the_file_and_of_the_config_are_reached(world: &Fixture) {
        world.write("shared/data/there", "data\n");
        world.write("own/there", "own\n");
        world.write("beside", "beside\n");
        let base = "sandbox: {paths: {data: {root: ./data, mode: rw, write_approval: false}}}\nshell: {default: {approval: none}}\n";
        world.write("shared/base.yaml", base);
        world.write(
            "agent.yaml",
            "extends: [./shared/base.yaml]\nsandbox: {paths: {own: {root: ./own}}}\n",
        );
        run(world, "cat shared/data/there own/there && echo x > shared/data/made").exits(0);
        run(world, "echo x > own/made").assert_denied();
        run(world, "cat beside").assert_denied();
        run(world, "cat shared/base.yaml").assert_denied();
    }

    fn a_command_cannot_change_the_file_for_the_next_start(world: &Fixture) {
        let base = "shell: {default: {approval: none}}\n";
        world.write("shared/base.yaml", base);
        let root = "{root: ., mode: rw, write_approval: false}";
        world.write(
            "agent.yaml",
            format!("extends: [./shared/base.yaml]\nsandbox: {{paths: {{w: {root}}}}}\n"),
        );
        let file = world.workspace().join("shared/base.yaml");
        for line in [
            "echo 'shell: {network: true}' > shared/base.yaml",
            "rm -f shared/base.yaml",
            "mv shared/base.yaml shared/other.yaml; echo 'shell: {network: true}' > shared/base.yaml",
            "mv shared moved; mkdir shared; echo 'shell: {network: true}' > shared/base.yaml",
        ] {
            run(world, &format!("{line}; echo x > beside")).code();
            assert_eq!(fs::read_to_string(&file).unwrap_or_default(), base, "{line}");
        }
        run(world, "true").exits(0);
    }
}
