//! Flags without a config: what only changes the preset keeps its workspace, and what grants replaces it.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::common::{Fixture, Run, in_both_regimes};

    in_both_regimes! {
        net_alone_keeps_the_workspace [];
        env_and_timeout_alone_keep_the_workspace [];
        a_deny_alone_keeps_the_rest_of_the_workspace [];
        a_deny_of_the_system_keeps_the_workspace [];
        rw_and_ro_replace_the_workspace_and_keep_the_system [];
        call_keeps_the_workspace_with_the_same_flags [];
    }

    fn run(world: &Fixture, flags: &[&str], line: &str) -> Run {
        world.stockade(&[&["run"], flags, &["-c", line]].concat()).output()
    }

    fn net_alone_keeps_the_workspace(world: &Fixture) {
        for net in ["on", "off"] {
            let secret = world.outside().join("secret");
            run(world, &["--net", net], "pwd && echo made > made && cat made").exits(0);
            run(world, &["--net", net], &format!("cat {}", secret.display())).assert_denied();
            fs::remove_file(world.workspace().join("made")).unwrap();
        }
    }

    fn env_and_timeout_alone_keep_the_workspace(world: &Fixture) {
        let flags = ["--env", "GREETING=hello", "--timeout", "60s", "--strict"];
        run(world, &flags, "echo $GREETING > made").exits(0);
        assert_eq!(fs::read_to_string(world.workspace().join("made")).unwrap(), "hello\n");
    }

    fn a_deny_alone_keeps_the_rest_of_the_workspace(world: &Fixture) {
        world.write("closed/file", "closed\n");
        world.write("open/file", "open\n");
        // Landlock alone rules what lies beside a deny one by one.
        let deny = ["--deny", "closed", "--deny", "./closed", "--deny-fallback", "decompose"];
        run(world, &deny, "cat closed/file").assert_denied();
        run(world, &deny, "cat open/file && echo more >> open/file").exits(0);
    }

    fn a_deny_of_the_system_keeps_the_workspace(world: &Fixture) {
        let deny = ["--deny", "/etc/passwd", "--deny-fallback", "decompose"];
        run(world, &deny, "cat /etc/passwd").assert_denied();
        run(world, &deny, "echo x > made").exits(0);
        run(world, &[], "cat /etc/passwd").exits(0);
    }

    fn rw_and_ro_replace_the_workspace_and_keep_the_system(world: &Fixture) {
        world.write("in/file", "in\n");
        world.write("out/file", "out\n");
        world.write("beside/file", "beside\n");
        run(world, &["--rw", "out"], "cat /etc/passwd out/file && echo x > out/x").exits(0);
        run(world, &["--rw", "out"], "cat beside/file").assert_denied();
        run(world, &["--ro", "in"], "cat in/file").exits(0);
        run(world, &["--ro", "in"], "echo x > in/x").assert_denied();
        run(world, &["--ro", "in"], "cat beside/file").assert_denied();
        run(
            world,
            &["--ro", ".", "--rw", "out"],
            "cat beside/file && echo x > out/y",
        )
        .exits(0);
        run(world, &["--ro", ".", "--rw", "out"], "echo x > beside/y").assert_denied();
    }

    fn call_keeps_the_workspace_with_the_same_flags(world: &Fixture) {
        world.write("closed/file", "closed\n");
        world.write("open/file", "open\n");
        let call = |flags: &[&str], tool: &str, arguments: &str| {
            let args = [&["call"], flags, &[tool, arguments]].concat();
            world.stockade(&args).output()
        };
        let flags = ["--net", "on", "--deny", "closed", "--deny-fallback", "decompose"];
        call(&flags, "write_file", r#"{"path": "open/new", "content": "x"}"#).exits(0);
        call(&flags, "read_file", r#"{"path": "open/file"}"#).exits(0);
        let denied = call(&flags, "read_file", r#"{"path": "closed/file"}"#);
        assert!(
            denied.code() != 0 && !denied.out().contains("closed\n"),
            "{}",
            denied.out()
        );
        call(&flags, "shell", r#"{"command": "echo x > open/by-shell"}"#).exits(0);
    }
}
