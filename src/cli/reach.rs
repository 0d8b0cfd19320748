//! What a config permits, one item per line, for a person who is to trust it.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::config::{Loaded, own_base};
use crate::inspect::answers::answers;
use crate::policy::path::{display, escape};
use crate::policy::{Demand, DemandSource, EnvRule, HomeChoice, OsSandbox, Protect, Right, Root, Scope};
use crate::tools::narrowing::Narrowing;

/// How much of an item is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// Of a long list of names their number.
    Short,
    /// All of it.
    All,
}

/// The items of [`of`] as text.
pub(super) fn text(reach: &[(&'static str, Value)], detail: Detail) -> String {
    /// The most names of variables that a short text has.
    const MOST_NAMES: usize = 6;
    let mut text = String::new();
    let mut line = |key: &str, value: &Value| {
        let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        // Writing to a String cannot fail.
        let _infallible = writeln!(text, "  {key}: {value}");
    };
    for (key, value) in reach {
        match value {
            Value::String(names) if *key == "env_passed" && detail == Detail::Short => {
                let count = names.split(' ').count();
                let short = format!("{count} variables, if they are set (`-v` lists them)");
                let short = Value::String(short);
                line(key, if count > MOST_NAMES { &short } else { value });
            }
            Value::Array(entries) => entries.iter().for_each(|entry| line(key, entry)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => line(key, value),
        }
    }
    text
}

/// The items as a JSON object.
pub(super) fn object(reach: &[(&'static str, Value)]) -> Map<String, Value> {
    reach
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect()
}

/// Everything that a config grants, switches off or asks for, the most important first.
pub(super) fn of(loaded: &Loaded) -> Vec<(&'static str, Value)> {
    let policy = &loaded.policy;
    let list = |lines: Vec<String>| Value::Array(lines.into_iter().map(Value::String).collect());
    let answered = answers(policy, &loaded.custom_tools, &Narrowing::default());
    let answered = answered
        .iter()
        .map(|answer| format!("{}: {}", answer.what, answer.effect()))
        .collect();
    let otherwise = &policy.default_rule;
    let named = loaded.files.iter().skip(1);
    vec![
        ("files", list(named.map(|file| display(&file.path)).collect())),
        ("presets", presets(loaded)),
        ("roots", list(policy.roots.iter().map(|r| root(loaded, r)).collect())),
        ("denies", list(denies(loaded))),
        ("base", list(base(loaded))),
        ("network", policy.network.to_string().into()),
        (
            "networks",
            list(
                policy
                    .own_networks()
                    .map(|(whose, own)| format!("{whose}: {}", own.network))
                    .collect(),
            ),
        ),
        ("unix_sockets", policy.unix_sockets.to_string().into()),
        (
            "home",
            match policy.home {
                HomeChoice::Private => "private",
                HomeChoice::Real => "real",
            }
            .into(),
        ),
        ("env_passed", names(loaded, |rule| matches!(rule, EnvRule::Pass)).into()),
        ("env_set", names(loaded, |rule| matches!(rule, EnvRule::Set(_))).into()),
        (
            "protect",
            match policy.protect {
                Protect::Default(_) => "default",
                Protect::Prevent(_) => "prevent",
                Protect::None => "none: what you will later trust or run may be changed",
            }
            .into(),
        ),
        (
            "protect_add",
            list(policy.names.add.iter().map(ToString::to_string).collect()),
        ),
        (
            "protect_except",
            list(policy.names.except.iter().map(ToString::to_string).collect()),
        ),
        (
            "require_os_sandbox",
            match policy.os_sandbox {
                OsSandbox::FailFast | OsSandbox::RefuseTools => "true",
                OsSandbox::NotRequired => "false: may run unconfined",
            }
            .into(),
        ),
        ("mode", policy.mode.to_string().into()),
        ("audit_log", policy.audit.log.to_string().into()),
        ("runs_unasked", list(answered)),
        (
            "other_commands",
            if otherwise.allowed {
                format!("allowed, approval {}", otherwise.approval)
            } else {
                "blocked".to_owned()
            }
            .into(),
        ),
        (
            "tools",
            list(
                policy
                    .tools
                    .iter()
                    .map(|(name, rule)| format!("{name}: approval {}", rule.approval))
                    .collect(),
            ),
        ),
        ("safe_paths", list(safe_paths(loaded))),
        (
            "dangerous_patterns",
            list(
                policy
                    .dangerous
                    .iter()
                    .map(|pattern| pattern.expression.to_string())
                    .collect(),
            ),
        ),
    ]
}

/// The presets that nobody wrote.
fn presets(loaded: &Loaded) -> Value {
    let names = &loaded.default_presets;
    let line = format!("{} (by default: the config does not say `extends`)", names.join(", "));
    Value::Array((!names.is_empty()).then(|| line.into()).into_iter().collect())
}

fn root(loaded: &Loaded, root: &Root) -> String {
    let made = if loaded.missing.iter().any(|missing| missing.name == root.name) {
        ", would be made"
    } else {
        ""
    };
    let mut at_start = loaded.at_start.iter();
    let start = at_start.find(|(name, _)| *name == root.name);
    let start = start.map_or_else(String::new, |(_, written)| {
        let from = if written.contains('/') { "told from " } else { "" };
        format!(
            " (`{}`, {from}the directory it is started in)",
            escape(written.as_bytes())
        )
    });
    let by_default = match root.write_demand_source {
        DemandSource::Default if root.write_approval != Demand::None => " (by default)",
        DemandSource::Default | DemandSource::Config => "",
    };
    let writing = if root.rights.has(Right::Write) {
        format!(", write approval {}{by_default}", root.write_approval)
    } else {
        String::new()
    };
    format!(
        "{}: {}{start} may be {}, read approval {}{writing}{made}",
        root.name, root.path, root.rights, root.read_approval
    )
}

/// Where tools change files without a question.
fn safe_paths(loaded: &Loaded) -> Vec<String> {
    let paths = loaded.policy.safe_paths.iter();
    paths
        .flat_map(|(tool, paths)| {
            paths
                .iter()
                .map(move |path| format!("{tool}: asks nobody below {}", path.path))
        })
        .collect()
}

fn denies(loaded: &Loaded) -> Vec<String> {
    let roots = loaded.policy.roots.iter();
    roots
        .flat_map(|root| root.denies.iter().map(|deny| deny.target.to_string()))
        .collect()
}

/// The config's own base paths, without those of presets.
fn base(loaded: &Loaded) -> Vec<String> {
    own_base(loaded)
        .map(|base| match base.grant.scope {
            Scope::Tree | Scope::File => format!("{} may be {}", base.grant.path, base.grant.rights),
            Scope::Names => format!("{} may be listed", base.grant.path),
        })
        .collect()
}

fn names(loaded: &Loaded, wanted: fn(&EnvRule) -> bool) -> String {
    let rules = loaded.policy.environment.iter();
    let names: Vec<String> = rules
        .filter(|(_, rule)| wanted(rule))
        .map(|(name, _)| crate::policy::path::escape(name.as_str().as_bytes()))
        .collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::policy;
    use crate::config;

    const TEXT: &str = "sandbox:
  require_os_sandbox: false
  protect: none
  paths: {w: {root: ., mode: rw, deny: [.env]}, new: {root: ./new, create: true}}
  base: {read: [/usr/share]}
shell:
  network: true
  home: real
  unix_sockets: all
  env: {pass: [TOKEN], set: {CI: '1'}}
  rules: [{pattern: ls, approval: none}, {pattern: rm, allowed: false}]
tools: {write_file: {safe_paths: [./notes]}, shell: {dangerous_patterns: [sudo]}}
approval: {mode: approve_all}
audit: {log: /srv/notes.jsonl}
extends: []
";

    fn examined(text: &str) -> (tempfile::TempDir, Loaded) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("stockade.yaml");
        std::fs::write(&file, text).unwrap();
        let loaded = config::examine(&file, &policy::context(&[])).unwrap();
        (dir, loaded)
    }

    #[test]
    fn everything_that_widens_is_a_line() {
        let (_dir, loaded) = examined(TEXT);
        let text = text(&of(&loaded), Detail::All);
        for line in [
            "  base: /usr/share may be read\n",
            "  network: full\n",
            "  home: real\n",
            "  unix_sockets: all\n",
            "  env_passed: TOKEN\n",
            "  env_set: CI\n",
            "  protect: none",
            "  require_os_sandbox: false",
            "  mode: approve_all\n",
            "  audit_log: /srv/notes.jsonl\n",
            "  runs_unasked: `ls`: writes in w\n",
            "  safe_paths: write_file: asks nobody below /",
            "  dangerous_patterns: sudo\n",
            ", would be made\n",
            ".env",
        ] {
            assert!(text.contains(line), "`{line}` is not in:\n{text}");
        }
    }

    #[test]
    fn names_that_are_protected_besides_and_not_protected_are_lines() {
        let names = "sandbox: {paths: {w: {root: .}}, protect: {add: [deploy.sh, 'ops/**'], except: [.idea/**]}}\n";
        let (_dir, loaded) = examined(names);
        let text = text(&of(&loaded), Detail::All);
        let lines = "  protect: default\n  protect_add: deploy.sh\n  protect_add: ops/**\n  protect_except: .idea/**\n";
        assert!(text.contains(lines), "{text}");
    }

    #[test]
    fn a_config_that_widens_nothing_says_so() {
        let (_dir, loaded) = examined("extends: []\nsandbox: {paths: {w: {root: .}}}\n");
        let object = object(&of(&loaded));
        assert_eq!(object["base"], Value::Array(Vec::new()));
        assert_eq!(object["runs_unasked"], Value::Array(Vec::new()));
        assert_eq!(
            (&object["env_set"], &object["home"]),
            (&"none".into(), &"private".into())
        );
        assert_eq!(object["other_commands"], "allowed, approval required");
    }
}
