//! Ceilings: which there are, who may write them, what they may say, and what is left under them.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use insta::assert_snapshot;

use super::Fixture;
use crate::config::trust::{load_discovered, record, review};
use crate::config::{ConfigError, FlagPolicy, Loaded, examine, from_flags, load, preset};
use crate::policy::{
    AbsPath, Access, AuditLog, DenyFallback, Mode, Network, Operation, OsSandbox, Protect, ProtectFallback, Residuals,
};

/// What a project wants that may do everything below itself.
const WANTS: &str = "sandbox:\n  paths:\n    work: {root: ., mode: rw, write_approval: false}\n";

/// Writes a ceiling that nobody else can write.
fn written(place: &Path, text: impl AsRef<[u8]>) -> PathBuf {
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(place, text).unwrap();
    std::fs::set_permissions(place, Permissions::from_mode(0o644)).unwrap();
    place.to_owned()
}

impl Fixture {
    pub(super) fn system(&self, text: impl AsRef<[u8]>) -> PathBuf {
        written(&self.context.system_ceiling.path.clone(), text)
    }

    fn users(&self, text: impl AsRef<[u8]>) -> PathBuf {
        written(&self.home().join(".config/stockade/ceiling.yaml"), text)
    }

    fn gives(&self, loaded: &Loaded, operation: Operation, below_project: &str) -> bool {
        let path = AbsPath::new(self.project().join(below_project)).unwrap();
        loaded.policy.access(operation, &path) != Access::Denied
    }

    /// The settings that were cut, a line each.
    pub(super) fn cuts(&self, loaded: &Loaded) -> String {
        let lines: Vec<String> = loaded.policy.ceilings.cuts.iter().map(ToString::to_string).collect();
        self.shown(&lines.join("\n"))
    }

    fn refused(&self, text: &str) -> String {
        match self.load(text) {
            Err(ConfigError::Ceiling { path, why }) => self.shown(&format!("{}: {why}", path.display())),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("started"),
        }
    }
}

#[test]
fn without_a_ceiling_a_config_gets_what_it_says() {
    let world = Fixture::new();
    let loaded = world.ok(WANTS);
    assert!(world.gives(&loaded, Operation::Write, "a") && loaded.policy.ceilings.all.is_empty());
}

#[test]
fn an_empty_ceiling_gives_nothing() {
    let world = Fixture::new();
    world.system("sandbox: {}\n");
    let loaded = world.ok(WANTS);
    for operation in Operation::ALL {
        assert!(!world.gives(&loaded, operation, "a"), "{operation}");
    }
    assert_eq!(loaded.policy.network, Network::Off);
}

#[test]
fn each_ceiling_there_is_takes_away() {
    for place in ["system", "user", "variable", "named", "os_profile"] {
        let mut world = Fixture::new();
        let text = format!("sandbox: {{paths: {{p: {{root: {}}}}}}}\n", world.project().display());
        let mut config = WANTS.to_owned();
        match place {
            "system" => drop(world.system(text)),
            "user" => drop(world.users(text)),
            "variable" => {
                let elsewhere = world.home().join("elsewhere");
                written(&elsewhere.join("stockade/ceiling.yaml"), text);
                world
                    .context
                    .variables
                    .insert("XDG_CONFIG_HOME".into(), elsewhere.into());
            }
            "named" => {
                let file = written(&world.home().join("named.yaml"), text);
                world.context.ceilings.push(file);
            }
            _ => {
                written(&world.project().join("most \"'.yaml"), text);
                config.push_str("  os_profile: \"./most \\\"'.yaml\"\n");
            }
        }
        let loaded = world.ok(&config);
        assert_eq!(loaded.policy.ceilings.all.len(), 1, "{place}");
        assert!(world.gives(&loaded, Operation::Read, "a"), "{place}");
        assert!(!world.gives(&loaded, Operation::Write, "a"), "{place}");
    }
}

#[test]
fn presets_and_flags_stand_under_the_same_ceilings() {
    let world = Fixture::new();
    world.system("extends: [system]\n");
    let write = |loaded: &Loaded| world.gives(loaded, Operation::Write, "a");
    assert!(!write(
        &preset("workspace-write", &world.project(), &world.context).unwrap()
    ));
    let flags = FlagPolicy {
        rw: vec![world.project()],
        ro: Vec::new(),
        deny: Vec::new(),
        net: Network::Full,
    };
    let loaded = from_flags(&flags, &world.project(), &world.context).unwrap();
    assert!(!write(&loaded));
    assert_eq!(loaded.policy.network, Network::Off);
    assert!(
        world.cuts(&loaded).contains("--net: network full"),
        "{}",
        world.cuts(&loaded)
    );
    std::fs::remove_file(&world.context.system_ceiling.path).unwrap();
    assert!(write(
        &preset("workspace-write", &world.project(), &world.context).unwrap()
    ));
}

#[test]
fn every_setting_that_asks_for_more_is_named_with_both_lines() {
    let world = Fixture::new();
    world.system(
        "sandbox:\n  protect: default\n  protect_fallback: refuse\n  deny_fallback: refuse\n  residuals: refuse\nshell:\n  \
         unix_sockets: within_roots\n  env: {set: {CI: \"1\"}}\n  limits: {timeout: 60s}\napproval: {mode: interactive}\n",
    );
    let loaded = world.ok(
        "sandbox:\n  require_os_sandbox: false\n  protect: none\n  protect_fallback: undo\n  deny_fallback: decompose\n  \
         residuals: report\nshell:\n  network: true\n  unix_sockets: all\n  home: real\n  env:\n    pass: [CI]\n    set: \
         {A: x}\n  limits: {timeout: 61s, memory: 1GiB}\napproval:\n  mode: approve_all\nextends: []\n",
    );
    assert_snapshot!(world.cuts(&loaded), @r#"
    /dir/project/stockade.yaml:2: `sandbox.require_os_sandbox: false`: not given by the ceiling /dir/etc/stockade/ceiling.yaml
    /dir/project/stockade.yaml:3: `sandbox.protect: none`: not given by the ceiling /dir/etc/stockade/ceiling.yaml:2
    /dir/project/stockade.yaml:4: `sandbox.protect_fallback: undo`: not given by the ceiling /dir/etc/stockade/ceiling.yaml:3
    /dir/project/stockade.yaml:5: `sandbox.deny_fallback: decompose`: not given by the ceiling /dir/etc/stockade/ceiling.yaml:4
    /dir/project/stockade.yaml:6: `sandbox.residuals: report`: not given by the ceiling /dir/etc/stockade/ceiling.yaml:5
    /dir/project/stockade.yaml:8: network full: not given by the ceiling /dir/etc/stockade/ceiling.yaml
    /dir/project/stockade.yaml:9: unix sockets all: not given by the ceiling /dir/etc/stockade/ceiling.yaml:7
    /dir/project/stockade.yaml:10: `shell.home: real`: not given by the ceiling /dir/etc/stockade/ceiling.yaml
    /dir/project/stockade.yaml:12: the environment variable CI: not given by the ceiling /dir/etc/stockade/ceiling.yaml:8
    /dir/project/stockade.yaml:13: the environment variable A: not given by the ceiling /dir/etc/stockade/ceiling.yaml
    /dir/project/stockade.yaml:14: going beyond the limit `shell.limits.timeout`: not given by the ceiling /dir/etc/stockade/ceiling.yaml:9
    /dir/project/stockade.yaml:16: `approval.mode: approve_all`: not given by the ceiling /dir/etc/stockade/ceiling.yaml:10
    "#);
    let policy = &loaded.policy;
    assert_eq!(
        (policy.os_sandbox, policy.residuals, policy.mode),
        (OsSandbox::RefuseTools, Residuals::Refuse, Mode::Interactive)
    );
    assert_eq!(
        (policy.protect_fallback, policy.deny_fallback),
        (ProtectFallback::Refuse, DenyFallback::Refuse)
    );
    let config = AbsPath::new(world.project().join("stockade.yaml")).unwrap();
    assert!(matches!(&policy.protect, Protect::Default(files) if files.contains(&config)));
}

#[test]
fn a_ceiling_that_says_nothing_of_a_setting_leaves_it() {
    let world = Fixture::new();
    world.system("sandbox: {require_os_sandbox: false}\n");
    let policy = world
        .ok(
            "sandbox: {require_os_sandbox: false, protect: none, protect_fallback: undo, deny_fallback: decompose}\n\
             approval: {mode: approve_all}\nextends: []\n",
        )
        .policy;
    assert_eq!(
        (policy.os_sandbox, policy.mode),
        (OsSandbox::NotRequired, Mode::ApproveAll)
    );
    assert_eq!(
        (policy.protect_fallback, policy.deny_fallback),
        (ProtectFallback::Undo, DenyFallback::Decompose)
    );
    assert_eq!(policy.protect, Protect::None);
    assert_eq!(policy.ceilings.cuts, []);
}

#[test]
fn a_stricter_config_stays_stricter() {
    let world = Fixture::new();
    world.system("shell: {network: true, limits: {timeout: 60s}}\napproval: {mode: approve_all}\n");
    let loaded = world.ok("shell: {limits: {timeout: 5s}}\napproval: {mode: strict}\nextends: []\n");
    assert_eq!(
        (loaded.policy.network, loaded.policy.mode),
        (Network::Off, Mode::Strict)
    );
    assert_eq!(loaded.policy.limits.timeout, Some(std::time::Duration::from_secs(5)));
    assert_eq!(loaded.policy.ceilings.cuts, []);
}

#[test]
fn a_key_that_means_nothing_in_a_ceiling_is_an_error_with_its_line() {
    let world = Fixture::new();
    for (text, key) in [
        ("sandbox: {backend: landlock}", "sandbox.backend"),
        ("sandbox: {os_profile: ./other.yaml}", "sandbox.os_profile"),
        ("shell: {default: {allowed: false}}", "shell.default"),
        ("shell: {rules: [{pattern: rm, allowed: false}]}", "shell.rules"),
        ("tools: {shell: {approval: required}}", "tools"),
        (
            "custom_tools: {lint: {description: x, command: [true]}}",
            "custom_tools",
        ),
        ("custom_tools: {fetch: {}}", "custom_tools"),
        (
            "sandbox: {paths: {a: {root: /srv, create: true}}}",
            "makes no directory",
        ),
        (
            "sandbox: {paths: {a: {root: /srv, optional: false}}}",
            "asks for no directory",
        ),
        ("extends: [workspace-write]", "has no workspace"),
        ("audit: {log: default}", "audit.log"),
        ("audit: {log: off}", "audit.log"),
        ("audit: {max_bytes: 1MiB}", "audit.max_bytes"),
        ("audit: {log: required, keep: 3}", "audit.keep"),
        ("sandboks: {}", "sandboks"),
        ("sandbox: {paths: {a: {root: \"$HOME\"}}}", "variables are not expanded"),
    ] {
        world.system(format!("# the machine's\n{text}\n"));
        let error = world.error(WANTS);
        assert!(error.contains(key), "{text}: {error}");
        assert!(
            error.contains("/dir/etc/stockade/ceiling.yaml:2:") || text.contains("workspace"),
            "{text}: {error}"
        );
    }
    world.system("shell:\n  rules: [{pattern: rm, allowed: false}]\n");
    assert_snapshot!(world.error(WANTS), @r#"
    error: `shell.rules` says nothing in a ceiling
     --> /dir/etc/stockade/ceiling.yaml:2:11
      |
    2 |   rules: [{pattern: rm, allowed: false}]
      |           ^ would be ignored, so it is refused
      |
      = help: commands are judged by the config; a ceiling says what any command reaches at most
    "#);
}

#[test]
fn a_ceiling_that_others_could_have_written_refuses_the_start() {
    let world = Fixture::new();
    for place in ["system", "user"] {
        let file = match place {
            "system" => world.system("sandbox: {}\n"),
            _ => world.users("sandbox: {}\n"),
        };
        let dir = file.parent().unwrap();
        assert!(world.load(WANTS).is_ok());
        for (path, open, shut) in [(file.as_path(), 0o666, 0o644), (dir, 0o777, 0o755), (dir, 0o775, 0o755)] {
            std::fs::set_permissions(path, Permissions::from_mode(open)).unwrap();
            assert!(world.refused(WANTS).contains("others can write"), "{place} {open:o}");
            std::fs::set_permissions(path, Permissions::from_mode(shut)).unwrap();
            assert!(world.load(WANTS).is_ok(), "{place}");
        }
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn a_ceiling_of_somebody_else_refuses_the_start() {
    let mut world = Fixture::new();
    let file = world.system("sandbox: {}\n");
    if nix::unistd::Uid::effective().is_root() {
        std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
    } else {
        world.context.system_ceiling.owner = 0;
    }
    assert!(world.refused(WANTS).contains("belongs to another user"));
}

#[test]
fn what_is_no_readable_file_refuses_the_start() {
    let world = Fixture::new();
    let file = world.users("sandbox: {}\n");
    std::fs::remove_file(&file).unwrap();
    symlink("/nowhere", &file).unwrap();
    assert!(world.refused(WANTS).contains("nothing is there"));
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(world.refused(WANTS).contains("not a regular file"));
    std::fs::remove_dir(&file).unwrap();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(world.refused(WANTS).contains("not a regular file"));
    std::fs::remove_file(&file).unwrap();
    world.users([0xff, 0xfe]);
    assert!(world.load(WANTS).is_err());
}

#[test]
fn a_link_of_the_users_own_is_followed_and_one_in_a_writable_root_is_not() {
    let world = Fixture::new();
    let real = world.users("extends: [system]\n");
    let kept = world.home().join("kept.yaml");
    std::fs::rename(&real, &kept).unwrap();
    symlink(&kept, &real).unwrap();
    assert_eq!(world.ok(WANTS).policy.ceilings.all.len(), 1);
    let door = world.project().join("door.yaml");
    std::fs::remove_file(&real).unwrap();
    symlink(&kept, &door).unwrap();
    symlink(&door, &real).unwrap();
    assert!(world.refused(WANTS).contains("the agent could re-point it"));
}

#[test]
fn a_named_ceiling_that_is_missing_refuses_the_start() {
    let mut world = Fixture::new();
    world.context.ceilings.push(world.home().join("mis\u{202e}sing.yaml"));
    assert!(world.refused(WANTS).contains("No such file"));
    let shown = world.load(WANTS).unwrap_err().to_string();
    assert!(!shown.contains('\u{202e}'), "{shown}");
}

#[test]
fn a_link_in_a_writable_root_that_leads_to_a_named_ceiling_is_refused() {
    let mut world = Fixture::new();
    let file = written(&world.home().join("named.yaml"), "sandbox: {}\n");
    symlink(&file, world.project().join("door.yaml")).unwrap();
    world.context.ceilings.push(world.project().join("door.yaml"));
    assert!(world.refused(WANTS).contains("the agent could re-point it"));
}

#[test]
fn an_os_profile_that_cannot_hold_refuses_the_start_at_its_line() {
    let world = Fixture::new();
    let text = |profile: &str| format!("{WANTS}  os_profile: {profile}\n");
    assert_snapshot!(world.error(text("./gone.yaml")), @r#"
    error: os_profile `./gone.yaml`: failed to read /dir/project/gone.yaml: No such file or directory (os error 2)
     --> /dir/project/stockade.yaml:4:15
      |
    4 |   os_profile: ./gone.yaml
      |               ^^^^^^^^^^^ a ceiling that cannot be read refuses the start
    "#);
    written(&world.project().join("real.yaml"), "sandbox: {}\n");
    world.ok(&text("./real.yaml"));
    world.link("real.yaml", "door.yaml");
    assert!(world.error(text("./door.yaml")).contains("goes through the symlink"));
    world.mkdir("in");
    written(&world.project().join("in/real.yaml"), "sandbox: {}\n");
    world.link("in", "way");
    assert!(
        world
            .error(text("./way/real.yaml"))
            .contains("goes through the symlink")
    );
}

#[test]
fn an_os_profile_is_part_of_what_is_trusted() {
    let world = Fixture::new();
    let file = written(&world.project().join("most.yaml"), "extends: [system]\n");
    let path = world.write(format!("{WANTS}  os_profile: most.yaml\n"));
    let (loaded, _) = review(&path, &world.context).unwrap();
    record(&loaded, &world.context).unwrap();
    assert_eq!(
        loaded.files.iter().map(|f| f.path.clone()).collect::<Vec<_>>(),
        [path.clone(), file.clone()]
    );
    assert!(load_discovered(&path, &world.context).is_ok());
    let everything = "sandbox: {paths: {all: {root: /, mode: rw, execute: true}}}\n";
    std::fs::write(&file, everything).unwrap();
    let error = load_discovered(&path, &world.context).unwrap_err().to_string();
    assert!(error.contains("a file it names has changed"), "{error}");
}

#[test]
fn a_ceiling_in_a_writable_root_is_protected_as_the_config_is() {
    let mut world = Fixture::new();
    let own = written(&world.project().join("own.yaml"), "sandbox: {}\n");
    let named = written(&world.project().join("named.yaml"), "sandbox: {}\n");
    let outside = world.users("sandbox: {}\n");
    world.context.ceilings.push(named.clone());
    let text = format!("{WANTS}  os_profile: own.yaml\n");
    let Protect::Default(files) = world.ok(&text).policy.protect else {
        panic!("protected by default")
    };
    let listed = |path: &PathBuf| files.contains(&AbsPath::new(path).unwrap());
    assert!(listed(&own) && listed(&named) && !listed(&outside), "{files:?}");
    assert!(
        world
            .refused(&format!("{text}  protect: none\n"))
            .contains("would leave it to the agent")
    );
}

#[test]
fn a_root_of_a_ceiling_that_is_missing_gives_nothing_and_takes_what_lies_around_it() {
    let world = Fixture::new();
    world.mkdir("there");
    world.system(format!(
        "sandbox: {{paths: {{around: {{root: {0}, mode: rw}}, gone: {{root: {0}/gone, mode: ro}}, away: {{root: \
         /nowhere-at-all}}}}}}\n",
        world.project().display()
    ));
    let loaded = world.ok(WANTS);
    assert!(world.gives(&loaded, Operation::Write, "there/a"));
    assert!(!world.gives(&loaded, Operation::Write, "gone/a"));
    assert!(!world.gives(&loaded, Operation::Read, "gone/a"));
}

#[test]
fn a_directory_is_made_only_where_every_ceiling_gives_it() {
    let world = Fixture::new();
    let wanted = "sandbox: {paths: {new: {root: ./new, mode: rw, create: true}, off: {root: ./off, mode: rw, create: true}}}\nextends: []\n";
    world.system(format!(
        "sandbox: {{paths: {{new: {{root: {}/new, mode: rw}}}}}}\n",
        world.project().display()
    ));
    let loaded = world.ok(wanted);
    assert_eq!(loaded.made, ["new"]);
    assert!(world.gives(&loaded, Operation::Write, "new/a"));
    assert!(!world.project().join("off").exists());
    assert_snapshot!(world.cuts(&loaded), @"/dir/project/stockade.yaml:1: read+write /dir/project/off: not given by the ceiling /dir/etc/stockade/ceiling.yaml");
    let again = world.ok(wanted);
    assert!(world.gives(&again, Operation::Write, "new/a"));
}

#[test]
fn a_ceiling_that_cannot_be_held_makes_nothing() {
    let world = Fixture::new();
    world.system("nonsense: true\n");
    assert!(
        world
            .load("sandbox: {paths: {new: {root: ./new, create: true}}}\n")
            .is_err()
    );
    assert!(!world.project().join("new").exists());
}

#[test]
fn a_ceiling_may_grant_the_whole_file_system_and_the_state_stays_closed_to_the_config() {
    let world = Fixture::new();
    world.system("sandbox: {paths: {all: {root: /, mode: rw, execute: true}}}\n");
    assert!(world.gives(&world.ok(WANTS), Operation::Write, "a"));
    assert!(
        world
            .error(format!(
                "sandbox: {{paths: {{h: {{root: {}, mode: rw}}}}}}\n",
                world.home().display()
            ))
            .contains("own state")
    );
}

#[test]
fn a_ceiling_through_a_link_that_the_agent_could_re_point_is_refused() {
    let world = Fixture::new();
    world.mkdir("real");
    world.link("real", "door");
    world.system(format!(
        "sandbox: {{paths: {{d: {{root: {}/door}}}}}}\n",
        world.project().display()
    ));
    assert!(world.error(WANTS).contains("goes through the symlink"));
    // Nobody under the config can re-point it where nothing is writable.
    world.ok("sandbox: {paths: {work: {root: .}}}\n");
}

#[test]
fn a_path_that_is_not_text_can_hold_a_ceiling() {
    use std::os::unix::ffi::OsStrExt as _;
    let mut world = Fixture::new();
    let name = std::ffi::OsStr::from_bytes(b"-c\xff\n'\".yaml");
    let file = written(&world.home().join(name), "shell: {network: false}\n");
    world.context.ceilings.push(file);
    let loaded = world.ok(&format!("{WANTS}shell: {{network: true}}\nextends: []\n"));
    assert_eq!(loaded.policy.network, Network::Off);
    let cuts = world.cuts(&loaded);
    assert_eq!(cuts.lines().count(), 1, "{cuts}");
}

#[test]
fn the_same_ceiling_twice_is_one() {
    let mut world = Fixture::new();
    let file = world.users("sandbox: {}\n");
    world.context.ceilings.push(file);
    assert_eq!(world.ok(WANTS).policy.ceilings.all.len(), 1);
}

#[test]
fn the_example_in_the_documentation_is_a_ceiling_as_it_says() {
    let world = Fixture::new();
    world.system(include_str!("../../../docs/ceiling.example.yaml"));
    let path = world.write("extends: [system]\nshell: {network: true}\nsandbox: {paths: {etc: {root: /etc}}}\n");
    let loaded = examine(&path, &world.context).unwrap();
    let may = |operation, path: &str| loaded.policy.access(operation, &AbsPath::new(path).unwrap()) != Access::Denied;
    assert!(may(Operation::Read, "/usr/share") && may(Operation::Execute, "/usr/bin/env"));
    assert!(!may(Operation::Read, "/etc/shadow"));
    assert_eq!(loaded.policy.network, Network::Off);
    assert!(load(&path, &world.context).is_ok());
}

#[test]
fn a_ceiling_that_demands_a_log_has_one_kept_where_the_config_says_or_by_default() {
    let world = Fixture::new();
    world.system("sandbox: {}\naudit: {log: required}\n");
    let log = |config: &str| world.ok(&format!("{WANTS}{config}")).policy.audit.log;
    assert_eq!(log(""), AuditLog::Default);
    assert_eq!(log("audit: {log: off}\n"), AuditLog::Default);
    assert_eq!(log("audit: {log: default}\n"), AuditLog::Default);
    assert_eq!(
        log("audit: {log: /srv/a.jsonl}\n"),
        AuditLog::At(AbsPath::new("/srv/a.jsonl").unwrap())
    );
    let cuts = |config: &str| {
        let cuts = world.ok(&format!("{WANTS}{config}")).policy.ceilings.cuts;
        cuts.iter()
            .filter(|cut| cut.to_string().contains("`audit.log: off`"))
            .count()
    };
    assert_eq!((cuts("audit: {log: off}\n"), cuts("")), (1, 0));
}
