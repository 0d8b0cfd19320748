//! A default container, as far as a filter makes one: what its profile refuses is refused, and the `landlock` regime
//! works all the same. `docs/containers.md` says so.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::common::agent::{Agent, Era};
    use crate::common::{Fixture, SECRET, as_root_and_as_user, without};

    as_root_and_as_user! {
        the_profile_of_a_container_refuses_namespaces ["cc", "unshare"];
        a_default_container_confines_commands_in_the_landlock_regime ["cc", "cat"];
        doctor_finds_that_a_default_container_can_confine ["cc"];
        a_server_in_a_default_container_serves_agents ["cc"];
    }

    fn config(world: &Fixture) -> String {
        let text = format!(
            "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths: {{w: {{root: {}, mode: rw, approval: \
             {{write: none}}}}}}\nshell: {{default: {{approval: none}}}}\n",
            world.workspace().display()
        );
        let file = world.write(world.base().join("stockade-config.yaml"), text);
        file.to_str().unwrap().to_owned()
    }

    fn the_profile_of_a_container_refuses_namespaces(world: &Fixture) {
        world.bare("/usr/bin/unshare").args(["-U", "true"]).output().exits(0);
        // Puts the helper where this actor can start it.
        without(world, "container", &["--version"]).output().exits(0);
        let helper = || world.bare(world.base().join("without")).args(["container"]);
        helper().args(["/usr/bin/true"]).output().exits(0);
        let refused = helper().args(["/usr/bin/unshare", "-U", "true"]).output();
        assert_ne!(refused.code(), 0);
        assert!(refused.err().contains("Operation not permitted"), "{}", refused.err());
    }

    fn a_default_container_confines_commands_in_the_landlock_regime(world: &Fixture) {
        let secret = world.outside().join("secret");
        let secret = secret.to_str().unwrap();
        let config = config(world);
        let inside = [
            "run",
            "--json",
            "--config",
            &config,
            "--",
            "sh",
            "-c",
            "echo kept > kept; cat kept",
        ];
        let run = without(world, "container", &inside).output().exits(0);
        let outcome: Value = serde_json::from_str(&run.out()).unwrap();
        assert!(
            outcome["regime"].as_str().unwrap().starts_with("landlock ("),
            "{outcome}"
        );
        assert_eq!(outcome["stdout"], "kept\n");
        let outside = ["run", "-q", "--config", &config, "--", "cat", secret];
        let run = without(world, "container", &outside).output().exits(1);
        assert!(!run.out().contains(SECRET), "{}", run.out());
    }

    fn doctor_finds_that_a_default_container_can_confine(world: &Fixture) {
        let run = without(world, "container", &["doctor"]).output().exits(0);
        assert!(run.out().contains("regime landlock: ready"), "{}", run.out());
        assert!(
            run.out().contains("regime namespaces: not available here"),
            "{}",
            run.out()
        );
    }

    fn a_server_in_a_default_container_serves_agents(world: &Fixture) {
        let config = config(world);
        let mut agent = Agent::start(
            without(world, "container", &["mcp", "--config", &config]),
            Era::Stateless,
            json!({}),
        );
        let made = agent.call("write_file", &json!({"path": "made.txt", "content": "made\n"}));
        assert_eq!(made["isError"], false, "{made}");
        let read = agent.call("shell", &json!({"command": "cat made.txt"}));
        assert_eq!(read["structuredContent"]["stdout"], "made\n", "{read}");
        let secret = world.outside().join("secret");
        let denied = agent.call("shell", &json!({"argv": ["cat", secret]}));
        assert_eq!(denied["isError"], true, "{denied}");
        assert!(!denied.to_string().contains(SECRET), "{denied}");
    }
}
