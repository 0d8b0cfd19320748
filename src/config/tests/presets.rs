//! What ships in `profiles/`, and policies without a file.

use std::path::Path;

use super::Fixture;
use crate::config::{FlagPolicy, SourceName, TEMPLATE, from_flags, preset, preset_names, preset_text, presets, yaml};
use crate::policy::{AbsPath, Access, Demand, HomeChoice, Network, Operation, ProtectFallback, Rights, Scope};

fn at(path: impl AsRef<Path>) -> AbsPath {
    AbsPath::new(path).unwrap()
}

#[test]
fn every_preset_loads_on_its_own() {
    let world = Fixture::new();
    for name in preset_names() {
        let loaded = preset(name, &world.project(), &world.context).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(loaded.warnings, [], "{name}");
        assert!(!loaded.policy.base.is_empty(), "{name}");
    }
}

#[test]
fn every_preset_is_built_in_as_its_text_reads() {
    for name in preset_names() {
        let preset = presets::preset(name).unwrap();
        let (source, read) = yaml::parse(SourceName::Preset(name.into()), preset.text.as_bytes()).unwrap();
        let built_in = preset.mirror().unwrap().unwrap();
        assert_eq!(format!("{built_in:#?}"), format!("{read:#?}"), "{name}");
        assert_eq!(
            source.shown(),
            preset.text,
            "{name} holds a character that does not show as itself"
        );
    }
}

#[test]
fn every_line_of_a_preset_that_grants_gives_its_reason() {
    for name in preset_names() {
        let text = preset_text(name).unwrap();
        assert!(text.starts_with("# "), "{name} does not say what it is for");
        let mut explained = false;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let entry = line.trim_start().starts_with("- ");
            // A list of versions or of one family is explained by its first line.
            assert!(!entry || explained || line.contains('#'), "{name}: {line}");
            explained = line.contains('#') || (entry && explained);
        }
    }
}

#[test]
fn the_template_loads_and_warns_of_nothing() {
    let world = Fixture::new();
    let loaded = world.ok(TEMPLATE);
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.policy.rules.len(), 3);
}

#[test]
fn workspace_write_asks_nothing_and_reaches_nothing_else() {
    let world = Fixture::new();
    std::fs::create_dir(world.home().join(".ssh")).unwrap();
    let policy = preset("workspace-write", &world.project(), &world.context)
        .unwrap()
        .policy;
    let project = at(world.project());
    for operation in Operation::ALL {
        assert_eq!(policy.access(operation, &project.child("f").unwrap()), Access::Full);
        assert_eq!(
            policy.access(operation, &at(world.home().join(".ssh/id"))),
            Access::Denied
        );
        assert_eq!(policy.access(operation, &at("/etc/shadow")), Access::Denied);
        assert_eq!(policy.access(operation, &at("/tmp/x")), Access::Denied);
    }
    assert_eq!(policy.access(Operation::Execute, &at("/usr/bin/env")), Access::Full);
    assert_eq!(policy.access(Operation::Write, &at("/usr/bin/env")), Access::Denied);
    assert_eq!(policy.access(Operation::Write, &at("/dev/null")), Access::Full);
    assert_eq!(policy.access(Operation::List, &at("/proc/1")), Access::Full);
    assert_eq!(policy.access(Operation::Read, &at("/proc/1/environ")), Access::Denied);
    assert_eq!((policy.network, policy.home), (Network::Off, HomeChoice::Private));
    assert_eq!(policy.protect_fallback, ProtectFallback::Undo);
    assert_eq!(
        (policy.default_rule.allowed, policy.default_rule.approval),
        (true, Demand::None)
    );
    assert_eq!(policy.roots[0].write_approval, Demand::None);
}

#[test]
fn a_home_its_ancestors_and_the_root_are_no_workspace() {
    let world = Fixture::new();
    let parent = world.home().parent().unwrap().to_owned();
    for place in [world.home(), parent, "/".into()] {
        let error = preset("workspace-write", &place, &world.context)
            .unwrap_err()
            .to_string();
        assert!(error.contains("cannot be the workspace"), "{error}");
    }
    let project = world.home().join("project");
    std::fs::create_dir(&project).unwrap();
    assert!(preset("workspace-write", &project, &world.context).is_ok());
}

#[test]
fn the_home_variable_counts_as_a_home_too() {
    let mut world = Fixture::new();
    let project = world.project();
    world.context.variables.insert("HOME".into(), project.clone().into());
    assert!(preset("workspace-write", &project, &world.context).is_err());
    world.context.variables.remove(std::ffi::OsStr::new("HOME"));
    assert!(preset("workspace-write", &project, &world.context).is_ok());
}

#[test]
fn a_symlink_to_home_is_no_workspace_either() {
    let world = Fixture::new();
    world.link(world.home(), "door");
    assert!(preset("workspace-write", &world.project().join("door"), &world.context).is_err());
}

#[test]
fn the_real_toolchain_is_named_where_it_exists() {
    let mut world = Fixture::new();
    let name = |n| crate::policy::VarName::new(n).unwrap();
    let none = preset("rust", &world.project(), &world.context).unwrap().policy;
    assert_eq!(none.environment.get(&name("RUSTUP_HOME")), None);
    let rustup = world.home().join(".rustup");
    std::fs::create_dir(&rustup).unwrap();
    let usual = preset("rust", &world.project(), &world.context).unwrap().policy;
    assert_eq!(
        usual.environment.get(&name("RUSTUP_HOME")),
        Some(&crate::policy::EnvRule::Set(rustup.clone().into()))
    );
    assert_eq!(usual.access(Operation::Execute, &at(rustup.join("x"))), Access::Full);
    world
        .context
        .variables
        .insert("RUSTUP_HOME".into(), "/elsewhere".into());
    let moved = preset("rust", &world.project(), &world.context).unwrap().policy;
    assert_eq!(
        moved.environment.get(&name("RUSTUP_HOME")),
        Some(&crate::policy::EnvRule::Set("/elsewhere".into()))
    );
}

#[test]
fn cargo_credentials_and_config_stay_out_of_reach() {
    let world = Fixture::new();
    std::fs::create_dir_all(world.home().join(".cargo/registry")).unwrap();
    for file in ["credentials.toml", "config.toml", "registry/x"] {
        std::fs::write(world.home().join(".cargo").join(file), "").unwrap();
    }
    let policy = preset("rust", &world.project(), &world.context).unwrap().policy;
    let cargo = at(world.home().join(".cargo"));
    let read = |name: &str| policy.access(Operation::Read, &at(cargo.as_path().join(name)));
    assert_eq!(read("credentials.toml"), Access::Denied);
    assert_eq!(read("config.toml"), Access::Denied);
    assert_eq!(read("registry/x"), Access::Full);
}

#[test]
fn a_relative_variable_names_nothing() {
    let mut world = Fixture::new();
    world.context.variables.insert("JAVA_HOME".into(), "usr".into());
    world.mkdir("usr");
    let policy = preset("java", &world.project(), &world.context).unwrap().policy;
    assert_eq!(
        policy.access(Operation::Read, &at(world.project().join("usr/x"))),
        Access::Denied
    );
}

#[test]
fn a_base_path_is_what_its_link_leads_to_and_no_more() {
    let world = Fixture::new();
    let policy = preset("system", &world.project(), &world.context).unwrap().policy;
    for base in &policy.base {
        let found = std::fs::symlink_metadata(&base.grant.path).unwrap();
        assert!(!found.is_symlink(), "{}", base.grant.path);
        assert_eq!(base.grant.scope == Scope::File, !found.is_dir(), "{}", base.grant.path);
    }
    let paths: std::collections::BTreeSet<_> = policy.base.iter().map(|b| (&b.grant.path, b.grant.scope)).collect();
    assert_eq!(paths.len(), policy.base.len());
}

fn flags(rw: &[&Path], ro: &[&Path], deny: &[&Path]) -> FlagPolicy {
    let own = |list: &[&Path]| list.iter().map(|p| p.to_path_buf()).collect();
    FlagPolicy {
        rw: own(rw),
        ro: own(ro),
        deny: own(deny),
        net: Network::Off,
    }
}

#[test]
fn flags_stand_on_the_system_alone() {
    let world = Fixture::new();
    world.mkdir("a/secret");
    let flags = flags(&[Path::new("a")], &[], &[Path::new("a/secret")]);
    let policy = from_flags(&flags, &world.project(), &world.context).unwrap().policy;
    let project = at(world.project());
    let access = |operation, below: &str| policy.access(operation, &at(project.as_path().join(below)));
    assert_eq!(access(Operation::Write, "a/f"), Access::Full);
    assert_eq!(access(Operation::Read, "a/secret/f"), Access::Denied);
    assert_eq!(access(Operation::Read, "b"), Access::Denied);
    assert_eq!(policy.roots[0].rights, Rights::ALL);
    assert_eq!(policy.default_rule.approval, Demand::None);
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let world = Fixture::new();
    world.mkdir("a/b");
    world.link("b", "a/door");
    let (a, b) = (Path::new("a"), Path::new("a/b"));
    let refused = |f: &FlagPolicy| from_flags(f, &world.project(), &world.context).unwrap_err().to_string();
    assert!(refused(&flags(&[a], &[a], &[])).contains("same place"));
    assert!(refused(&flags(&[a], &[b], &[b])).contains("lies under --deny"));
    assert!(refused(&flags(&[b], &[], &[Path::new("c")])).contains("--deny c: does not exist"));
    world.mkdir("c");
    assert!(refused(&flags(&[b], &[], &[Path::new("c")])).contains("nothing grants it"));
    assert!(refused(&flags(&[Path::new("gone")], &[], &[])).contains("does not exist"));
    assert!(refused(&flags(&[a], &[Path::new("a/door")], &[])).contains("symlink"));
    assert!(refused(&flags(&[&world.home()], &[], &[])).contains("stockade's own state"));
    assert!(from_flags(&flags(&[a], &[b], &[]), &world.project(), &world.context).is_ok());
}

#[test]
fn a_toolchain_variable_that_leads_to_a_home_or_the_root_grants_nothing() {
    let mut world = Fixture::new();
    std::fs::create_dir(world.home().join("bin")).unwrap();
    std::fs::write(world.home().join("bin/java"), "").unwrap();
    for far in [world.home(), "/".into()] {
        world.context.variables.insert("JAVA_HOME".into(), far.clone().into());
        let loaded = preset("java", &world.project(), &world.context).unwrap();
        assert!(
            loaded.warnings[0]
                .message
                .starts_with("`$JAVA_HOME` is not followed: /")
        );
        assert_eq!(
            loaded.policy.access(Operation::Read, &at(world.home().join("x"))),
            Access::Denied
        );
    }
}

/// The presets' variables with the thing that tells such a toolchain.
const VARIABLES: &[(&str, &str, &str)] = &[
    ("rust", "RUSTUP_HOME", "toolchains"),
    ("python", "PYENV_ROOT", "versions"),
    ("go", "GOROOT", "bin/go"),
    ("java", "JAVA_HOME", "bin/java"),
    ("node", "N_PREFIX", "bin/node"),
];

#[test]
fn a_toolchain_variable_grants_no_place_without_its_toolchain() {
    let mut world = Fixture::new();
    let elsewhere = world.project().join("elsewhere \n'");
    for (name, variable, marker) in VARIABLES {
        std::fs::create_dir_all(elsewhere.join("bin")).unwrap();
        world
            .context
            .variables
            .insert((*variable).into(), elsewhere.clone().into());
        let loaded = preset(name, &world.project(), &world.context).unwrap();
        let read = |loaded: &crate::config::Loaded| loaded.policy.access(Operation::Read, &at(elsewhere.join("bin/x")));
        assert_eq!(read(&loaded), Access::Denied, "{variable}");
        let message = &loaded.warnings[0].message;
        assert!(message.contains(variable) && message.contains("elsewhere"), "{message}");
        std::fs::create_dir_all(elsewhere.join(marker)).unwrap();
        let loaded = preset(name, &world.project(), &world.context).unwrap();
        assert_eq!(loaded.warnings, [], "{variable}");
        assert_eq!(read(&loaded), Access::Full, "{variable}");
        std::fs::remove_dir_all(&elsewhere).unwrap();
    }
}

#[test]
fn a_toolchain_variable_grants_nothing_that_a_person_or_the_machine_keeps() {
    let mut world = Fixture::new();
    let ssh = world.home().join(".ssh");
    let pyenv = world.home().join(".pyenv");
    let state = world.home().join(".local/state/stockade");
    for (name, variable, marker) in VARIABLES {
        for place in [&ssh, &state, &pyenv] {
            std::fs::create_dir_all(place.join(marker)).unwrap();
        }
        for place in [
            &ssh,
            &state,
            Path::new("/etc"),
            Path::new("/proc/self/root/etc"),
            Path::new("/proc"),
        ] {
            world.context.variables.insert((*variable).into(), place.into());
            let loaded = preset(name, &world.project(), &world.context).unwrap();
            for secret in [
                ssh.join("bin/id"),
                state.join("bin/trust.json"),
                "/etc/shadow".into(),
                "/proc/1/environ".into(),
            ] {
                assert_eq!(
                    loaded.policy.access(Operation::Read, &at(secret)),
                    Access::Denied,
                    "{variable}"
                );
            }
        }
        world.context.variables.insert((*variable).into(), pyenv.clone().into());
        let loaded = preset(name, &world.project(), &world.context).unwrap();
        assert_eq!(
            loaded.policy.access(Operation::Read, &at(pyenv.join("bin/x"))),
            Access::Full,
            "{variable}"
        );
    }
}

#[test]
fn a_link_in_a_toolchain_does_not_lead_out_of_it() {
    let mut world = Fixture::new();
    let cargo = world.project().join("cargo");
    std::fs::create_dir_all(cargo.join("registry/index")).unwrap();
    std::os::unix::fs::symlink("/etc", cargo.join("git")).unwrap();
    world
        .context
        .variables
        .insert("CARGO_HOME".into(), cargo.clone().into());
    let policy = preset("rust", &world.project(), &world.context).unwrap().policy;
    assert_eq!(policy.access(Operation::Read, &at("/etc/shadow")), Access::Denied);
    assert_eq!(
        policy.access(Operation::Read, &at(cargo.join("registry/x"))),
        Access::Full
    );
}

#[test]
fn the_machines_own_places_are_no_workspace() {
    let world = Fixture::new();
    for place in ["/proc/sys/kernel", "/sys", "/dev", "/etc", "/usr/bin", "/var"] {
        let error = preset("workspace-write", Path::new(place), &world.context)
            .unwrap_err()
            .to_string();
        assert!(error.contains("cannot be the workspace"), "{error}");
    }
}

#[test]
fn the_kernels_switches_are_never_writable() {
    let world = Fixture::new();
    let kernel = Path::new("/proc/sys/kernel");
    let error = from_flags(&flags(&[kernel], &[], &[]), &world.project(), &world.context).unwrap_err();
    assert!(error.to_string().contains("(proc)"), "{error}");
    assert!(from_flags(&flags(&[], &[kernel], &[]), &world.project(), &world.context).is_ok());
    for place in ["/proc/sys/kernel", "/sys/kernel", "/dev/pts"] {
        let error = world.error(format!("sandbox: {{paths: {{k: {{root: {place}, mode: rw}}}}}}\n"));
        assert!(error.contains("cannot be writable"), "{error}");
        world.ok(&format!("sandbox: {{paths: {{k: {{root: {place}, mode: ro}}}}}}\n"));
    }
}
