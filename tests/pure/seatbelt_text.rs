//! The Seatbelt text of each shipped preset, as on a machine that has all of its paths, and of a config by hand.

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fmt::Write;
    use std::path::Path;

    use insta::assert_snapshot;
    use serde::Deserialize;
    use stockade::backend::seatbelt::{Lowered, Options, base, lower, validate};
    use stockade::backend::survey::Survey;
    use stockade::config::{preset_names, preset_text};
    use stockade::policy::{
        AbsPath, Deny, Environment, Grant, Limits, Network, Origin, Pattern, Residuals, Rights, Scope, Suffix, Target,
        UnixSockets,
    };
    use stockade::profile::Profile;

    #[derive(Deserialize, Default)]
    struct Preset {
        #[serde(default)]
        extends: Vec<String>,
        #[serde(default)]
        sandbox: Sandbox,
    }

    #[derive(Deserialize, Default)]
    struct Sandbox {
        #[serde(default)]
        base: BTreeMap<String, Vec<String>>,
        #[serde(default)]
        paths: BTreeMap<String, Root>,
    }

    #[derive(Deserialize)]
    struct Root {
        root: String,
    }

    fn at(path: &str) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    fn origin() -> Origin {
        Origin::Builtin("test")
    }

    fn profile(grants: Vec<Grant>, denies: Vec<Deny>) -> Profile {
        Profile {
            grants,
            denies,
            identities: BTreeMap::default(),
            network: Network::Off,
            unix_sockets: UnixSockets::None,
            limits: Limits::default(),
            environment: Environment::default(),
        }
    }

    /// What a preset grants where every path is there; paths that begin with a variable are left out.
    fn grants_of(name: &str, grants: &mut BTreeSet<Grant>) {
        let preset: Preset = serde_yaml::from_str(preset_text(name).unwrap()).unwrap();
        preset.extends.iter().for_each(|name| grants_of(name, grants));
        for (mode, paths) in &preset.sandbox.base {
            let (rights, scope) = match mode.as_str() {
                "read" => (Rights::READ, Scope::Tree),
                "read_execute" => (Rights::READ | Rights::EXECUTE, Scope::Tree),
                "read_write" => (Rights::READ | Rights::WRITE, Scope::File),
                "list" => (Rights::READ, Scope::Names),
                other => panic!("{other}"),
            };
            for path in paths.iter().filter(|path| !path.starts_with('$')) {
                let path = at(&path.replacen('~', "/Users/me", 1));
                grants.insert(Grant {
                    scope,
                    ..Grant::tree(path, rights, origin())
                });
            }
        }
        for root in preset.sandbox.paths.values() {
            let path = at(Path::new("/Users/me/project")
                .join(root.root.replace("$CWD", "."))
                .to_str()
                .unwrap());
            grants.insert(Grant::tree(path, Rights::ALL, origin()));
        }
    }

    /// The rules that the profile alone makes, what the parameters stand for, and what becomes of each clause.
    fn shown(profile: &Profile) -> String {
        let Lowered { plan, statuses } = lower(
            profile,
            &Survey::default(),
            &Options {
                residuals: Residuals::Report,
            },
        )
        .unwrap();
        assert_eq!(validate(&plan, profile), Ok(()));
        let shipped = base::rules(&profile.network).unwrap();
        let last = shipped.last().unwrap().to_string();
        let (before, rules) = plan.text.split_once(&format!("{last}\n")).unwrap();
        assert!(before.starts_with("(version 1)\n(deny default)\n"));
        let mut shown = rules.to_owned();
        for parameter in &plan.parameters {
            writeln!(shown, "{} = {:?}", parameter.name, parameter.value).unwrap();
        }
        for status in statuses {
            writeln!(shown, "{}: {}", status.clause, status.status).unwrap();
        }
        shown
    }

    #[test]
    fn the_text_of_each_preset() {
        for name in preset_names() {
            let mut grants = BTreeSet::new();
            grants_of(name, &mut grants);
            assert_snapshot!(
                format!("preset_{name}"),
                shown(&profile(grants.into_iter().collect(), Vec::new()))
            );
        }
    }

    #[test]
    fn the_text_of_a_config_by_hand() {
        let suffixes = [Suffix::new(".md").unwrap(), Suffix::new(".t+t").unwrap()];
        let grants = vec![
            Grant::tree(at("/Users/me/w"), Rights::ALL, origin()),
            Grant {
                suffixes: Some(suffixes.into_iter().collect()),
                ..Grant::tree(at("/Users/me/notes"), Rights::READ | Rights::WRITE, origin())
            },
            Grant {
                max_file_bytes: Some(1024),
                ..Grant::tree(at("/tmp/out \"x\""), Rights::READ | Rights::WRITE, origin())
            },
        ];
        let pattern = Target::Pattern {
            root: at("/Users/me/w"),
            pattern: Pattern::Suffix(".pem".into()),
        };
        let denies = vec![
            Deny::tree(at("/Users/me/w/.git/hooks"), Rights::WRITE, origin()),
            Deny {
                target: pattern,
                ..Deny::tree(at("/"), Rights::READ | Rights::WRITE, origin())
            },
        ];
        let profile = Profile {
            network: Network::Full,
            unix_sockets: UnixSockets::WithinRoots,
            ..profile(grants, denies)
        };
        assert_snapshot!(shown(&profile));
    }

    #[test]
    fn the_base_comes_first_and_whole() {
        let text = base::rules(&Network::Off).unwrap();
        let text: Vec<String> = text.iter().map(ToString::to_string).collect();
        let lowered = lower(
            &profile(Vec::new(), Vec::new()),
            &Survey::default(),
            &Options {
                residuals: Residuals::Report,
            },
        )
        .unwrap();
        assert_eq!(
            lowered.plan.text,
            format!("(version 1)\n(deny default)\n{}\n", text.join("\n"))
        );
    }
}
