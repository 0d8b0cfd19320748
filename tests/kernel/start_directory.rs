//! `$CWD` and `workspace-write` in a config that lies elsewhere: commands write where Stockade was started, and not there.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use crate::common::{Fixture, Run, in_both_regimes};

    in_both_regimes! {
        the_preset_in_a_config_elsewhere_means_the_start_directory [];
        a_root_at_the_start_is_written_and_the_config_beside_is_not [];
        a_start_through_a_link_is_a_start_in_what_it_leads_to [];
        nothing_starts_in_a_home_whose_config_would_make_it_writable [];
        only_what_is_named_below_the_start_is_reached [];
    }

    /// A config in a directory that is neither the start nor above it.
    fn elsewhere(world: &Fixture, text: &str) -> String {
        let file = world.write(world.outside().join("conf/agent.yaml"), text);
        file.to_str().unwrap().to_owned()
    }

    fn run_in(world: &Fixture, directory: &Path, config: &str, line: &str) -> Run {
        world
            .stockade(&["run", "--config", config, "-c", line])
            .cwd(directory)
            .output()
    }

    const FREE: &str = "shell: {default: {allowed: true, approval: none}}\n";

    fn the_preset_in_a_config_elsewhere_means_the_start_directory(world: &Fixture) {
        let config = elsewhere(world, "extends: [workspace-write]\n");
        for name in ["one", "two"] {
            let directory = world.workspace().join(name);
            world.write(directory.join("there"), "there\n");
            run_in(world, &directory, &config, "cat there && echo x > made").exits(0);
            assert!(directory.join("made").exists());
            run_in(world, &directory, &config, &format!("echo x >> {config}")).assert_denied();
            let beside = world.outside().join("conf/made");
            run_in(world, &directory, &config, &format!("echo x > {}", beside.display())).assert_denied();
            assert!(!beside.exists());
            // In namespaces the directory above may be one of the sandbox's own.
            run_in(world, &directory, &config, "echo x > ../made").code();
            assert!(!world.workspace().join("made").exists());
        }
        assert_eq!(fs::read_to_string(&config).unwrap(), "extends: [workspace-write]\n");
    }

    fn a_root_at_the_start_is_written_and_the_config_beside_is_not(world: &Fixture) {
        for written in ["$CWD", "'${CWD}'"] {
            let roots = format!("here: {{root: {written}, mode: rw, write_approval: false}}, own: {{root: .}}");
            let config = elsewhere(world, &format!("sandbox: {{paths: {{{roots}}}}}\n{FREE}"));
            run_in(
                world,
                &world.workspace(),
                &config,
                &format!("echo x > made && cat {config}"),
            )
            .exits(0);
            run_in(world, &world.workspace(), &config, &format!("echo x >> {config}")).assert_denied();
            fs::remove_file(world.workspace().join("made")).unwrap();
        }
    }

    fn a_start_through_a_link_is_a_start_in_what_it_leads_to(world: &Fixture) {
        world.write("real/there", "there\n");
        symlink(world.workspace().join("real"), world.outside().join("door")).unwrap();
        let config = elsewhere(world, "extends: [workspace-write]\n");
        run_in(
            world,
            &world.outside().join("door"),
            &config,
            "cat there && echo x > made",
        )
        .exits(0);
        assert!(world.workspace().join("real/made").exists());
    }

    fn nothing_starts_in_a_home_whose_config_would_make_it_writable(world: &Fixture) {
        for text in [
            "extends: [workspace-write]\n".to_owned(),
            format!("sandbox: {{paths: {{here: {{root: $CWD, mode: rw, write_approval: false}}}}}}\n{FREE}"),
        ] {
            let config = elsewhere(world, &text);
            let refused = run_in(world, &world.home(), &config, "echo x > made").exits(125);
            for word in [
                "cannot be the workspace",
                "home directory",
                "start in a project directory",
            ] {
                assert!(refused.err().contains(word), "{}", refused.err());
            }
        }
        assert!(!world.home().join("made").exists());
    }

    fn only_what_is_named_below_the_start_is_reached(world: &Fixture) {
        world.write("out/there", "there\n");
        world.write("beside", "beside\n");
        let root = "{root: $CWD/out, mode: rw, write_approval: false}";
        let config = elsewhere(world, &format!("sandbox: {{paths: {{out: {root}}}}}\n{FREE}"));
        run_in(world, &world.workspace(), &config, "cat out/there && echo x > out/made").exits(0);
        run_in(world, &world.workspace(), &config, "cat beside").assert_denied();
        run_in(world, &world.workspace(), &config, "echo x > made").assert_denied();
    }
}
