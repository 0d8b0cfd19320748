//! Secrets in a project, by other spellings of their names.

use std::fmt::Write as _;

use crate::common::{Fixture, SECRET, in_both_regimes};
use crate::learn::lab::{learn, passes, proposals, text};

in_both_regimes! {
    no_spelling_of_a_secret_is_granted_without_a_question [];
    a_name_that_only_looks_like_another_is_granted_with_a_question [];
}

/// As they were found in projects, everybody's to read.
const SPELLINGS: &[&str] = &[
    ".secret",
    ".env-prod",
    ".env_local",
    ".envrc.local",
    "id_rsa_old",
    "key.pem.bak",
    "credentials.csv",
    "client_secret.json",
    "service-account.json",
    "api_key.txt",
    "npmrc~",
    "prod.TFVARS.json",
    // In wide letters.
    "ｉｄ_rsa",
    "．ｅｎｖ",
];

fn no_spelling_of_a_secret_is_granted_without_a_question(world: &Fixture) {
    // Names are known and content is not, so a command can find them and have them proposed.
    let listed = format!(
        "extends: [system]\nsandbox:\n  base: {{list: [{}]}}\nshell:\n  default: {{allowed: true, approval: none}}\n",
        world.workspace().display()
    );
    let config = world.write(world.base().join("agent.yaml"), &listed);
    let mut line = String::new();
    for (number, name) in SPELLINGS.iter().enumerate() {
        // One in a directory, so that each is proposed by itself.
        let file = format!("d{number}/{name}");
        world.write(&file, SECRET);
        write!(line, "cat '{file}'; ").unwrap();
    }
    let learned = learn(world, &config, &["--yes"], &format!("{line} exit 1"));
    let proposed = proposals(&learned);
    assert_eq!(proposed.len(), SPELLINGS.len(), "{learned:#}");
    for (path, risk, by) in proposed {
        assert_eq!((risk.as_str(), by.as_str()), ("secret", "-"), "{path}");
    }
    assert_eq!(text(&config), listed);
    assert!(!learned.to_string().contains(SECRET));
    // What speaks of them in passing is the project's.
    world.write("src/passwords_test.py", "x");
    passes(world, &config, &["--yes"], "cat src/passwords_test.py");
}

fn a_name_that_only_looks_like_another_is_granted_with_a_question(world: &Fixture) {
    // A Cyrillic letter among Latin ones, and Latin ones alone.
    let [like, plain] = [".\u{435}nv", "notes.txt"];
    let config = world.write(
        world.base().join("agent.yaml"),
        format!(
            "extends: [system]\nsandbox:\n  base: {{list: [{}]}}\nshell:\n  default: {{allowed: true, approval: none}}\n",
            world.workspace().display()
        ),
    );
    let files = [format!("d0/{like}"), format!("d1/{plain}")];
    let [like, plain] = files.each_ref().map(|file| {
        world.write(file, "x");
        world.workspace().join(file).to_str().unwrap().to_owned()
    });
    let learned = learn(world, &config, &["--yes"], &format!("cat '{plain}'; cat '{like}'"));
    let proposed = proposals(&learned);
    let by = |path: &str| {
        proposed
            .iter()
            .find(|(known, ..)| known == path)
            .map(|(_, risk, by)| (risk.as_str(), by.as_str()))
    };
    assert_eq!(by(&plain), Some(("low", "yes")), "{learned:#}");
    assert_eq!(by(&like), Some(("high", "-")), "{learned:#}");
    assert!(learned.to_string().contains("beyond ASCII"), "{learned:#}");
    passes(
        world,
        &config,
        &["--include", &format!("r:{like}")],
        &format!("cat '{like}'"),
    );
}
