//! What the config gives and the plan does not is told with the line that it is held back for.

use std::path::Path;

use crate::common::{Fixture, in_both_regimes};
use crate::explain::roots::{CONFIG, explained, files};
use crate::explain::tried::{Told, Trial};

in_both_regimes! {
    a_denied_name_is_said_to_keep_others_from_coming [];
    a_protected_name_is_told_with_the_line_that_protects_it ["cc"];
}

const NOTHING: &str = "";

fn a_denied_name_is_said_to_keep_others_from_coming(world: &Fixture) {
    let config = files(world);
    world.write("tools/kept", "");
    let outcome = |config: &Path| {
        let words = ["--config", config.to_str().unwrap(), "--cwd", "src"];
        explained(world, &words, "mkdir new")
    };
    let denied = outcome(&config);
    let change = denied["explained"]["blocked"][0]["change"].to_string();
    assert!(change.contains("without `deny"), "{denied:#}");
    let notes = denied["explained"]["blocked"][0]["notes"].to_string();
    assert!(notes.contains("ruled entry by entry"), "{denied:#}");
    // What is said to stand in the way does.
    let without = world.write("agent.yaml", CONFIG.replace(", deny: [.env, \"*.pem\"]", ""));
    let permitted = outcome(&without);
    assert_eq!(permitted["code"], 0, "{permitted:#}");
}

fn a_protected_name_is_told_with_the_line_that_protects_it(world: &Fixture) {
    world.write("i/.envrc", "\x7fx");
    world.write("i/.vscode/tasks.json", "\x7fx");
    let prevents = world.preventing();
    let flags: &[&str] = if world.backend.is_in_namespaces() {
        &["--config", &prevents]
    } else {
        &[]
    };
    let mut trial = Trial::new(world);
    let at = |path: &str| world.workspace().join(path);
    for (letter, path, wanted) in [
        ('w', "i/.envrc", "write"),
        ('u', "i/.envrc", "remove"),
        ('w', "i/.vscode/tasks.json", "write"),
    ] {
        if trial.is_in_namespaces() {
            let told = Told {
                clause: "protect /".to_owned(),
                origin: format!("{prevents}:"),
                ..trial.told(wanted, at(path))
            };
            trial.denied(letter, at(path), NOTHING, &[told]);
        } else {
            // There it is put back.
            trial.permitted(letter, at(path), NOTHING);
            world.write(path, "\x7fx");
        }
    }
    trial.try_all(flags);
    if world.backend.is_in_namespaces() {
        let outcome = explained(world, flags, "echo x > i/.envrc");
        let change = outcome["explained"]["blocked"][0]["change"].to_string();
        assert!(change.contains("protect: none"), "{outcome:#}");
        let text = "extends: [workspace-write]\nsandbox: {protect: none}\n";
        let config = world.write("agent.yaml", text);
        let outcome = explained(world, &["--config", config.to_str().unwrap()], "echo x > i/.envrc");
        assert_eq!(outcome["code"], 0, "{outcome:#}");
    }
}
