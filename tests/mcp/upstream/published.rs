//! Published servers, as their authors ship them: what they may touch is what the config says, and nothing else.
//!
//! They lie where `scripts/upstream-servers.sh` puts them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::agent::{Agent, Forgets};
use crate::common::{Fixture, SECRET, as_root_and_as_user, in_namespaces, required};

as_root_and_as_user! {
    the_file_system_server_of_npm_reaches_what_the_config_grants ["node"];
    the_git_server_of_pypi_reaches_what_the_config_grants ["git", "python3"];
    a_write_of_the_file_system_server_is_asked_about ["node"];
}

in_namespaces! {
    the_file_system_server_of_npm_reaches_what_the_config_grants ["node"];
    the_git_server_of_pypi_reaches_what_the_config_grants ["git", "python3"];
}

/// Where the servers are; `None` where they are not and need not be.
fn servers() -> Option<PathBuf> {
    let servers = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/upstream");
    if servers.join("node_modules").exists() && servers.join("venv").exists() {
        return Some(servers);
    }
    assert!(
        !required("mcp-servers"),
        "the servers are not installed; see scripts/upstream-servers.sh"
    );
    None
}

/// The workspace written unasked, the servers read, and nothing else.
fn config(servers: &Path, approval: &str) -> String {
    format!(
        "
extends: [node]
sandbox:
  protect_fallback: undo
  paths:
    work: {{root: ./workspace, mode: rw, write_approval: false}}
    servers: {{root: {}, mode: ro, execute: true}}
shell: {{limits: {{memory: 4GiB}}}}
custom_tools: {{list_allowed_directories: {{}}, read_text_file: {{}}}}
tools: {{read_text_file: {{approval: none}}, list_allowed_directories: {{approval: none}}}}
{approval}
",
        servers.display()
    )
}

/// The server as it is told that everything is its to serve: what holds it is the sandbox alone.
fn file_system(world: &Fixture, servers: &Path, approval: &str) -> Agent {
    let script = servers.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    let node = crate::common::find_program(world.actor, "node").unwrap();
    // It looks through the nearest of these for the name of a new file.
    let work = world.workspace();
    let command = [
        node.to_str().unwrap(),
        script.to_str().unwrap(),
        "/",
        work.to_str().unwrap(),
    ];
    Agent::serving(world, &config(servers, approval), &[], &command).greeted()
}

fn the_file_system_server_of_npm_reaches_what_the_config_grants(world: &Fixture) {
    let Some(servers) = servers() else { return };
    let _forgets = Forgets::after(world);
    let inside = world.write("notes.txt", "some notes");
    let mut agent = file_system(world, &servers, "approval: {mode: approve_all}");
    assert!(agent.call("list_allowed_directories", json!({})).ok().contains('/'));
    assert_eq!(agent.call("read_text_file", json!({"path": inside})).ok(), "some notes");
    let new = world.workspace().join("new.txt");
    agent
        .call("write_file", json!({"path": new, "content": "written by it"}))
        .ok();
    assert_eq!(fs::read_to_string(&new).unwrap(), "written by it");
    let edit = json!([{"oldText": "some", "newText": "many"}]);
    agent.call("edit_file", json!({"path": inside, "edits": edit})).ok();
    assert_eq!(fs::read_to_string(&inside).unwrap(), "many notes");
    assert!(
        agent
            .call("list_directory", json!({"path": world.workspace()}))
            .ok()
            .contains("new.txt")
    );
    let outside = world.outside();
    for secret in [outside.join("secret"), world.home().join(".ssh/id_ed25519")] {
        assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET);
        let called = agent.call("read_text_file", json!({"path": secret}));
        assert!(!called.whole.to_string().contains(SECRET), "{}", called.whole);
        called.refused();
    }
    agent.call("list_directory", json!({"path": outside})).refused();
    agent
        .call("write_file", json!({"path": outside.join("planted"), "content": "x"}))
        .refused();
    agent
        .call("write_file", json!({"path": outside.join("secret"), "content": "x"}))
        .refused();
    agent
        .call("create_directory", json!({"path": outside.join("folder")}))
        .refused();
    agent
        .call(
            "move_file",
            json!({"source": new, "destination": outside.join("moved")}),
        )
        .refused();
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), SECRET);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    agent
        .call(
            "move_file",
            json!({"source": new, "destination": world.workspace().join("moved")}),
        )
        .ok();
    assert_eq!(agent.end().0, 0);
}

fn a_write_of_the_file_system_server_is_asked_about(world: &Fixture) {
    let Some(servers) = servers() else { return };
    let _forgets = Forgets::after(world);
    let inside = world.write("notes.txt", "some notes");
    let mut agent = file_system(world, &servers, "");
    assert_eq!(agent.call("read_text_file", json!({"path": inside})).ok(), "some notes");
    assert_eq!(agent.questions(), 0);
    let write = json!({"path": inside, "content": "others"});
    agent.call("write_file", write.clone()).fails("permission denied");
    assert_eq!(fs::read_to_string(&inside).unwrap(), "some notes");
    agent.decides = Some("once");
    agent.call("write_file", write).ok();
    assert_eq!(fs::read_to_string(&inside).unwrap(), "others");
    assert_eq!(agent.questions(), 2);
    assert_eq!(agent.end().0, 0);
}

fn the_git_server_of_pypi_reaches_what_the_config_grants(world: &Fixture) {
    let Some(servers) = servers() else { return };
    let _forgets = Forgets::after(world);
    let (inside, outside) = (world.workspace(), world.outside());
    world.write("first", "first");
    for repository in [&inside, &outside] {
        for words in [
            &["init", "-q", "-b", "main"][..],
            &["add", "."],
            &["commit", "-qm", "before"],
        ] {
            let named = ["-c", "user.name=T", "-c", "user.email=t@example.org"];
            let git = world.bare("/usr/bin/git").cwd(repository);
            git.args(named).args(words).output().ok();
        }
    }
    let python = servers.join("venv/bin/python");
    let command = [python.to_str().unwrap(), "-m", "mcp_server_git"];
    let config = config(&servers, "approval: {mode: approve_all}");
    let mut agent = Agent::serving(world, &config, &[], &command).greeted();
    let status = agent.call("git_status", json!({"repo_path": inside})).ok();
    assert!(status.contains("On branch main"), "{status}");
    world.write("file", "new");
    agent
        .call("git_add", json!({"repo_path": inside, "files": ["file"]}))
        .ok();
    let staged = world
        .bare("/usr/bin/git")
        .args(["diff", "--cached", "--name-only"])
        .output()
        .ok();
    assert_eq!(staged, "file\n");
    for tool in ["git_status", "git_log"] {
        let elsewhere = agent.call(tool, json!({"repo_path": outside}));
        assert!(elsewhere.failed, "{}", elsewhere.whole);
        assert!(!elsewhere.text.contains("On branch") && !elsewhere.text.contains("before"));
    }
    assert_eq!(agent.end().0, 0);
}
