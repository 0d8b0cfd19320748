//! Real tools at work in `workspace-write`: nothing is denied to them, and nothing is told.

use serde_json::Value;

use crate::common::{Actor, Backend, Fixture, in_both_regimes, world_with};
use crate::tried::blocked;

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
