//! Toolchains outside the roots are of use: their programs are found, and what they downloaded is.
//!
//! Where a tool is not to be had, a script stands for it that takes what it needs from where the tool would.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use crate::common::{Actor, Backend, Fixture, in_both_regimes, world_with};

    in_both_regimes! {
        a_directory_of_path_stays_where_one_file_in_it_is_granted [];
        a_root_that_is_one_file_is_found_by_its_name [];
        what_lies_beside_a_granted_file_is_not_run_and_hides_nothing [];
        a_file_that_the_session_may_write_keeps_no_directory_on_path [];
        cargo_is_led_to_crates_that_commands_may_read [];
        cargo_finds_no_credentials_with_its_crates [];
        a_config_that_cargo_may_not_read_is_not_in_its_way [];
        cargo_that_may_download_has_a_home_that_it_may_write [];
        go_takes_modules_from_what_commands_may_read [];
        uv_finds_packages_in_a_cache_that_it_may_write [];
        maven_and_gradle_are_told_of_a_second_repository [];
        nothing_is_told_of_a_cache_that_commands_may_not_read [];
        what_the_config_sets_itself_stays [];
        the_shims_of_mise_start_what_it_installed [];
        the_shims_of_asdf_start_what_it_installed [];
        a_version_manager_finds_its_versions_where_they_lie [];
        versions_that_somebody_chose_are_known [];
    }

    #[test]
    fn a_crate_that_was_downloaded_before_is_built_offline() {
        for backend in [Backend::Landlock, Backend::Namespaces] {
            let Some(world) = world_with(Actor::invoker(), backend, &["cargo"]) else {
                continue;
            };
            // This program itself is built with it.
            world.write(
                "Cargo.toml",
                "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\ncfg-if = \"1\"\n",
            );
            world.write(
                "src/main.rs",
                "cfg_if::cfg_if! { if #[cfg(unix)] { fn main() { println!(\"built\") } } }\n",
            );
            assert_eq!(world.run(&["cargo", "run", "-q"]).output().ok(), "built\n");
            // What was built is of the same crate for the next session: another path would make it another one.
            let again = world.run(&["cargo", "build", "-v"]).output();
            assert!(again.err().contains("Fresh cfg-if"), "{}", again.err());
            again.ok();
        }
    }

    /// A config with the workspace, these presets and base paths, and more.
    fn config(world: &Fixture, presets: &str, (read, execute): (&[&Path], &[&Path]), more: &str) -> String {
        let list = |paths: &[&Path]| {
            let paths: Vec<_> = paths.iter().map(|path| path.to_str().unwrap()).collect();
            paths.join(", ")
        };
        let text = format!(
            "extends: [{presets}]\nsandbox:\n  protect_fallback: undo\n  base: {{read: [{}], read_execute: [{}]}}\n  paths:\n    \
             w: {{root: {}, mode: rw, execute: true, write_approval: false}}\n{more}",
            list(read),
            list(execute),
            world.workspace().display()
        );
        let file = world.write(world.base().join("agent.yaml"), text);
        file.to_str().unwrap().to_owned()
    }

    const FREE: &str = "shell: {default: {allowed: true, approval: none}}\n";

    fn tools(world: &Fixture) -> PathBuf {
        world.program(world.outside().join("bin/tool"), "#!/bin/sh\necho granted\n");
        world.program(world.outside().join("bin/other"), "#!/bin/sh\necho not granted\n");
        world.program(world.outside().join("bin/ls"), "#!/bin/sh\necho not granted\n");
        world.outside().join("bin")
    }

    fn line(world: &Fixture, config: &str, line: &str) -> crate::common::Run {
        let path = format!("{}:/usr/bin:/bin", world.outside().join("bin").display());
        world
            .stockade(&["run", "-q", "--config", config, "-c", line])
            .env("PATH", path)
            .output()
    }

    fn a_directory_of_path_stays_where_one_file_in_it_is_granted(world: &Fixture) {
        let tool = tools(world).join("tool");
        let config = config(world, "system", (&[], &[&tool]), FREE);
        assert_eq!(line(world, &config, "tool").ok(), "granted\n");
        assert_eq!(line(world, &config, "env tool").ok(), "granted\n");
    }

    fn a_root_that_is_one_file_is_found_by_its_name(world: &Fixture) {
        let tool = tools(world).join("tool");
        let root = format!("    t: {{root: {}, mode: ro, execute: true}}\n{FREE}", tool.display());
        let config = config(world, "system", (&[], &[]), &root);
        assert_eq!(line(world, &config, "tool").ok(), "granted\n");
    }

    fn what_lies_beside_a_granted_file_is_not_run_and_hides_nothing(world: &Fixture) {
        let tool = tools(world).join("tool");
        let config = config(world, "system", (&[], &[&tool]), FREE);
        let run = line(world, &config, "ls /usr; other; tool");
        assert!(
            run.out().contains("bin\n") && run.out().ends_with("granted\n"),
            "{}",
            run.out()
        );
        assert!(!run.out().contains("not granted"), "{}", run.out());
    }

    fn a_file_that_the_session_may_write_keeps_no_directory_on_path(world: &Fixture) {
        let tool = tools(world).join("tool");
        let asked =
            "shell:\n  default: {allowed: true, approval: required}\n  rules: [{pattern: tool, approval: none}]\n";
        let strict = |config: &str| {
            let path = format!("{}:/usr/bin:/bin", world.outside().join("bin").display());
            let args = ["run", "-q", "--mode", "strict", "--config", config, "--", "tool"];
            world.stockade(&args).env("PATH", path).output()
        };
        let root = |rights: &str| {
            let more = format!("    t: {{root: {}, execute: true, {rights}}}\n{asked}", tool.display());
            config(world, "system", (&[], &[]), &more)
        };
        strict(&root("mode: rw, write_approval: false")).exits(126);
        // The twin: the same file where nobody may write it.
        assert_eq!(strict(&root("mode: ro")).ok(), "granted\n");
    }

    /// The directory of a cargo with one crate, and what belongs to its owner.
    fn cargo_home(world: &Fixture) -> PathBuf {
        let home = world.outside().join("cargo");
        world.write(home.join("registry/crate"), "downloaded\n");
        world.write(home.join("credentials.toml"), "[registry]\ntoken = \"secret\"\n");
        home
    }

    fn cargo(world: &Fixture, home: &Path, more: &str, line: &str) -> crate::common::Run {
        let config = config(world, "system", (&[&home.join("registry")], &[]), more);
        let line = format!("at=${{CARGO_HOME:-$HOME/.cargo}}; {line}");
        world
            .stockade(&["run", "-q", "--config", &config, "-c", &line])
            .env("CARGO_HOME", home)
            .output()
    }

    fn cargo_is_led_to_crates_that_commands_may_read(world: &Fixture) {
        let home = cargo_home(world);
        let run = cargo(
            world,
            &home,
            FREE,
            "cat $at/registry/crate; echo $at $CARGO_NET_OFFLINE",
        );
        assert_eq!(run.ok(), format!("downloaded\n{} true\n", home.display()));
    }

    fn cargo_finds_no_credentials_with_its_crates(world: &Fixture) {
        let home = cargo_home(world);
        let run = cargo(world, &home, FREE, "cat $at/registry/crate && cat $at/credentials.toml");
        assert_eq!(run.exits(1).out(), "downloaded\n");
    }

    fn a_config_that_cargo_may_not_read_is_not_in_its_way(world: &Fixture) {
        let home = cargo_home(world);
        world.write(home.join("config.toml"), "[build]\n");
        let run = cargo(
            world,
            &home,
            FREE,
            "cat $at/registry/crate && test ! -e $at/config.toml && echo clear",
        );
        assert_eq!(run.ok(), "downloaded\nclear\n");
    }

    fn cargo_that_may_download_has_a_home_that_it_may_write(world: &Fixture) {
        let home = cargo_home(world);
        let open = "shell: {network: true, default: {allowed: true, approval: none}}\n";
        let run = cargo(
            world,
            &home,
            open,
            "mkdir -p $at/registry && echo mine > $at/registry/crate && cat $at/registry/crate",
        );
        assert_eq!(run.ok(), "mine\n");
    }

    fn go_takes_modules_from_what_commands_may_read(world: &Fixture) {
        let cache = world.outside().join("mod/cache/download");
        world.write(cache.join("example.org/m/@v/list"), "v1.0.0\n");
        let config = config(world, "system", (&[&cache], &[]), FREE);
        let line = "at=${GOPROXY#file://}; cat ${at%%,*}/example.org/m/@v/list; echo ${at#*,} $GOSUMDB";
        let run = world
            .stockade(&["run", "-q", "--config", &config, "-c", line])
            .env("GOMODCACHE", world.outside().join("mod"));
        assert_eq!(run.output().ok(), "v1.0.0\noff off\n");
    }

    fn uv_finds_packages_in_a_cache_that_it_may_write(world: &Fixture) {
        let cache = world.outside().join("uv");
        for bucket in ["archive-v0", "simple-v9", "wheels-v5", "sdists-v9"] {
            world.write(cache.join(bucket).join("file"), format!("{bucket}\n"));
        }
        let config = config(world, "system", (&[&cache], &[]), FREE);
        let line = "cd $HOME/.cache/uv; cat */file; echo > .lock && mkdir sdists-v9 && echo written; echo > archive-v0/new || echo kept";
        let run = world
            .stockade(&["run", "-q", "--config", &config, "-c", line])
            .env("UV_CACHE_DIR", &cache)
            .output();
        assert_eq!(run.ok(), "archive-v0\nsimple-v9\nwheels-v5\nwritten\nkept\n");
    }

    fn maven_and_gradle_are_told_of_a_second_repository(world: &Fixture) {
        let repository = world.home().join(".m2/repository");
        let modules = world.outside().join("gradle/caches/modules-2");
        for cache in [&repository, &modules] {
            world.write(cache.join("file"), "");
        }
        let config = config(world, "system", (&[&repository, &modules], &[]), FREE);
        let line = "echo $MAVEN_ARGS; ls $GRADLE_RO_DEP_CACHE/modules-2";
        let run = world
            .stockade(&["run", "-q", "--config", &config, "-c", line])
            .env("GRADLE_USER_HOME", world.outside().join("gradle"));
        let told = format!("-Dmaven.repo.local.tail={} --offline\nfile\n", repository.display());
        assert_eq!(run.output().ok(), told);
    }

    fn nothing_is_told_of_a_cache_that_commands_may_not_read(world: &Fixture) {
        let home = cargo_home(world);
        let config = config(world, "system", (&[], &[]), FREE);
        let run = world
            .stockade(&["run", "-q", "--config", &config, "-c", "env; ls -A $HOME"])
            .env("CARGO_HOME", home)
            .env("GOMODCACHE", world.outside())
            .env("UV_CACHE_DIR", world.outside())
            .output();
        let names = ["CARGO", "GOPROXY", "UV_", "MAVEN", "GRADLE", ".cargo"];
        let out = run.ok();
        assert!(names.iter().all(|name| !out.contains(name)), "{out}");
    }

    fn what_the_config_sets_itself_stays(world: &Fixture) {
        let home = cargo_home(world);
        let own = "shell: {default: {allowed: true, approval: none}, env: {set: {CARGO_HOME: /own}}}\n";
        assert_eq!(cargo(world, &home, own, "echo $CARGO_HOME").ok(), "/own\n");
    }

    /// Runs `tool` in a session with the shipped managers, one of which is at `place` by a variable.
    fn managed(world: &Fixture, (variable, place): (&str, &Path)) -> String {
        let config = config(world, "system, managers", (&[], &[]), FREE);
        let path = format!("{}:/usr/bin:/bin", place.join("shims").display());
        let run = world.stockade(&["run", "-q", "--config", &config, "-c", "tool"]);
        run.env("PATH", path).env(variable, place).output().ok()
    }

    fn the_shims_of_mise_start_what_it_installed(world: &Fixture) {
        let mise = world.outside().join("mise");
        world.program(mise.join("installs/tool/1/bin/tool"), "#!/bin/sh\necho version 1\n");
        world.program(
            mise.join("shims/tool"),
            "#!/bin/sh\nexec \"$MISE_DATA_DIR/installs/tool/1/bin/tool\"\n",
        );
        assert_eq!(managed(world, ("MISE_DATA_DIR", &mise)), "version 1\n");
    }

    fn the_shims_of_asdf_start_what_it_installed(world: &Fixture) {
        let asdf = world.outside().join("asdf");
        world.program(asdf.join("installs/tool/1/bin/tool"), "#!/bin/sh\necho version 1\n");
        world.program(asdf.join("plugins/tool/bin/exec-path"), "#!/bin/sh\necho bin/tool\n");
        let shim = "#!/bin/sh\nat=$ASDF_DATA_DIR/installs/tool/1\nexec \"$at/$(\"$ASDF_DATA_DIR/plugins/tool/bin/exec-path\")\"\n";
        world.program(asdf.join("shims/tool"), shim);
        assert_eq!(managed(world, ("ASDF_DATA_DIR", &asdf)), "version 1\n");
    }

    fn a_version_manager_finds_its_versions_where_they_lie(world: &Fixture) {
        for variable in ["RBENV_ROOT", "NODENV_ROOT", "GOENV_ROOT", "JENV_ROOT"] {
            let root = world.outside().join(variable);
            world.write(root.join("version"), "1\n");
            world.program(root.join("versions/1/bin/tool"), "#!/bin/sh\necho version 1\n");
            let shim = format!("#!/bin/sh\nexec \"${variable}/versions/$(cat \"${variable}/version\")/bin/tool\"\n");
            world.program(root.join("shims/tool"), shim);
            assert_eq!(managed(world, (variable, &root)), "version 1\n", "{variable}");
        }
    }

    fn versions_that_somebody_chose_are_known(world: &Fixture) {
        let chosen = world.write(world.home().join(".tool-versions"), "tool 1\n");
        let trusted = world.home().join(".local/state/mise/trusted-configs");
        world.write(trusted.join("first"), "");
        symlink(world.workspace(), trusted.join("project")).unwrap();
        let config = config(world, "system", (&[&chosen, &trusted], &[]), FREE);
        let line = "cat $HOME/.tool-versions; ls $HOME/.local/state/mise/trusted-configs";
        let run = world.stockade(&["run", "-q", "--config", &config, "-c", line]).output();
        assert_eq!(run.ok(), "tool 1\nfirst\nproject\n");
    }
}
