//! Real tools at work in `workspace-write`: nothing is denied to them, and nothing is told.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Actor, Backend, Fixture, in_both_regimes, world_with};
use crate::explain::tried::blocked;

in_both_regimes! {
    nothing_is_denied_to_make_and_the_compiler ["make", "cc"];
    nothing_is_denied_to_git ["git"];
    nothing_is_denied_to_a_script ["python3"];
    nothing_is_denied_to_everyday_tools ["find", "tar", "sed"];
}

#[test]
fn nothing_is_denied_to_cargo() {
    as_invoker(&["cargo"], |world| {
        world.write(
            "Cargo.toml",
            "[package]\nname = \"hello\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
        );
        world.write("build.rs", "fn main() { println!(\"cargo::rustc-env=BUILT=yes\"); }\n");
        world.write("src/main.rs", "fn main() { println!(\"{}\", env!(\"BUILT\")); }\n");
        nothing_denied(
            world,
            "cargo build -q --offline && cargo run -q --offline && cargo test -q --offline",
        );
    });
}

#[test]
fn nothing_is_denied_to_a_clean_build_of_a_project_with_all_that_it_depends_on() {
    // Derives and their parser, scripts that try the compiler, and a linker for each of them: what a real project builds.
    as_invoker(&["cargo", "cc"], |world| {
        for (file, content) in vendored(&["serde", "serde_derive", "serde_json"]) {
            world.write(Path::new("vendor").join(file), content);
        }
        world.write(
            ".cargo/config.toml",
            "[source.crates-io]\nreplace-with = \"vendored\"\n[source.vendored]\ndirectory = \"vendor\"\n",
        );
        world.write(
            "Cargo.toml",
            "[package]\nname = \"points\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nserde = { version = \"1\", features = [\"derive\"] }\nserde_json = \"1\"\n[profile.dev]\ndebug = false\n",
        );
        world.write(
            "src/main.rs",
            "#[derive(serde::Serialize)]\nstruct Point { x: u8 }\nfn main() { println!(\"{}\", serde_json::to_string(&Point { x: 1 }).unwrap()); }\n",
        );
        nothing_denied(
            world,
            "cargo build --offline && cargo run -q --offline | grep '{\"x\":1}'",
        );
    });
}

/// The files of these crates and of all that they depend on, which these tests were built from, in a directory for each.
#[expect(clippy::disallowed_methods, reason = "the cargo that builds these tests, as it is")]
fn vendored(crates: &[&str]) -> Vec<(PathBuf, Vec<u8>)> {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--locked",
            "--offline",
            "--format-version=1",
            "--filter-platform",
            &host,
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8(output.stderr).unwrap());
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let packages = metadata["packages"].as_array().unwrap();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let first = packages
        .iter()
        .filter(|package| crates.contains(&package["name"].as_str().unwrap()));
    let mut left: Vec<String> = first.map(|package| text(&package["id"])).collect();
    let mut wanted = BTreeSet::new();
    while let Some(id) = left.pop() {
        let node = nodes.iter().find(|node| node["id"] == id.as_str()).unwrap();
        if wanted.insert(id) {
            left.extend(node["dependencies"].as_array().unwrap().iter().map(text));
        }
    }
    let mut files = Vec::new();
    for package in packages.iter().filter(|package| wanted.contains(&text(&package["id"]))) {
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let name = PathBuf::from(format!("{}-{}", text(&package["name"]), text(&package["version"])));
        read(manifest.parent().unwrap(), &name, Path::new(""), &mut files);
        // No file of it is held against a sum.
        files.push((name.join(".cargo-checksum.json"), b"{\"files\":{}}".to_vec()));
    }
    files
}

/// The files below a directory, by their way from `top`, under a name.
fn read(top: &Path, name: &Path, below: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(top.join(below)).unwrap() {
        let entry = entry.unwrap();
        let path = below.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            read(top, name, &path, files);
        } else {
            files.push((name.join(path), fs::read(entry.path()).unwrap()));
        }
    }
}

#[test]
fn nothing_is_denied_to_npm() {
    as_invoker(&["npm", "node"], |world| {
        world.write(
            "package.json",
            "{\"name\": \"x\", \"version\": \"1.0.0\", \"scripts\": {\"build\": \"node build.js\"}}",
        );
        world.write("build.js", "require('fs').writeFileSync('out.js', 'built')");
        nothing_denied(world, "npm run build && cat out.js");
    });
}

fn as_invoker(programs: &[&str], test: impl Fn(&Fixture)) {
    for backend in [Backend::Landlock, Backend::Namespaces] {
        if let Some(world) = world_with(Actor::invoker(), backend, programs) {
            test(&world);
        }
    }
}

fn outcome(world: &Fixture, line: &str) -> Value {
    let run = world.stockade(&["run", "--explain", "--json", "-c", line]).output();
    serde_json::from_str(&run.out()).unwrap()
}

/// Runs it, and then something that is denied: somebody does look.
#[track_caller]
fn nothing_denied(world: &Fixture, line: &str) {
    let clean = outcome(world, line);
    assert_eq!(clean["code"], 0, "{clean:#}");
    assert_eq!(blocked(&clean), [], "{clean:#}");
    assert_eq!(clean["explained"]["unseen"], 0, "{clean:#}");
    let secret = world.outside().join("secret");
    let dirty = outcome(world, &format!("cat {}", secret.display()));
    let told = blocked(&dirty);
    assert_eq!(told.len(), 1, "{dirty:#}");
    assert_eq!(told[0].what, secret.to_str().unwrap());
}

fn nothing_is_denied_to_make_and_the_compiler(world: &Fixture) {
    world.write(
        "main.c",
        "#include <stdio.h>\nint main(void) { puts(\"x\"); return 0; }\n",
    );
    world.write(
        "Makefile",
        "all: main\n\t./main\nmain: main.o\n\tcc -o $@ $<\nmain.o: main.c\n\tcc -c $<\n",
    );
    nothing_denied(world, "make -j2");
}

fn nothing_is_denied_to_git(world: &Fixture) {
    world.write("file", "x\n");
    let identity = "-c user.name=A -c user.email=a@example.org";
    nothing_denied(
        world,
        &format!(
            "git init -q sub && cp file sub && cd sub && git add . && git {identity} commit -qm One && git log --oneline && git status"
        ),
    );
}

fn nothing_is_denied_to_a_script(world: &Fixture) {
    world.write(
        "script.py",
        "import json, os, re, subprocess, tempfile\nwith tempfile.TemporaryDirectory() as d:\n    open(os.path.join(d, 'x'), 'w').write('x')\nprint(subprocess.check_output(['/usr/bin/env', 'true']))\n",
    );
    nothing_denied(world, "python3 script.py");
}

fn nothing_is_denied_to_everyday_tools(world: &Fixture) {
    world.write("a/b", "x\n");
    nothing_denied(
        world,
        "find . -type f | xargs grep x && tar cf t.tar a && tar tf t.tar && sed -i s/x/y/ a/b && ls -la && cp -a a c && rm -r c && mkdir -p a d && touch a/b && mktemp && sort a/b && id",
    );
}
