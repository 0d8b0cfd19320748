//! Which git configs are plainly harmless.
//!
//! A recogniser, not a parser: whatever it does not plainly understand is not harmless. A value that an
//! entry of the list accepts makes git run nothing and trust nothing; includes, drivers, aliases, helpers
//! and everything else that may name a program are absent from the list and so refused.
//!
//! It is asked two things. *Is this new config harmless?* All of it must be on the list. *Is this change
//! of a config harmless?* The old text is the user's and may hold anything; beyond it, a change may set
//! `user.name` and `user.email` and add remotes and branches that were not there, so that `git remote add`
//! and `git push -u` work. It may not point an existing remote or branch elsewhere.

/// One setting as it stands in the text; section and key in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting<'a> {
    section: Vec<u8>,
    subsection: Option<&'a [u8]>,
    key: Vec<u8>,
    value: &'a [u8],
}

/// Whether every setting of `text` is on the list.
pub(super) fn is_harmless(text: &[u8]) -> bool {
    settings(text).is_some_and(|all| all.iter().all(is_listed))
}

/// The first setting of `text` that is not on the list, as git names it; none where the text is not understood.
pub(super) fn offence(text: &[u8]) -> Option<Vec<u8>> {
    let all = settings(text)?;
    let setting = all.iter().find(|setting| !is_listed(setting))?;
    let parts = [
        Some(setting.section.as_slice()),
        setting.subsection,
        Some(setting.key.as_slice()),
    ];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(&b'.'))
}

/// Whether `new` differs from `old` only in what may be added or set freely.
pub(super) fn is_harmless_change(old: &[u8], new: &[u8]) -> bool {
    let (Some(old), Some(new)) = (settings(old), settings(new)) else {
        return false;
    };
    let is_user = |s: &Setting<'_>| {
        s.section == b"user" && s.subsection.is_none() && matches!(s.key.as_slice(), b"name" | b"email")
    };
    let is_new_section = |s: &Setting<'_>| {
        matches!(s.section.as_slice(), b"remote" | b"branch")
            && !old
                .iter()
                .any(|o| o.section == s.section && o.subsection == s.subsection)
    };
    let free = |s: &Setting<'_>| is_user(s) || is_new_section(s);
    new.iter().filter(|s| free(s)).all(is_listed)
        && old.iter().filter(|s| !is_user(s)).eq(new.iter().filter(|s| !free(s)))
}

fn settings(text: &[u8]) -> Option<Vec<Setting<'_>>> {
    let mut section: Option<(Vec<u8>, Option<&[u8]>)> = None;
    let mut all = Vec::new();
    for line in text.split(|&b| b == b'\n') {
        // A trailing backslash joins lines; control characters and a byte-order mark have no business here.
        if line.ends_with(b"\\") || line.iter().any(|&b| b.is_ascii_control() && b != b'\t') {
            return None;
        }
        let line = line.trim_ascii();
        match line.first() {
            None | Some(b'#' | b';') => {}
            Some(b'[') => section = Some(header(line)?),
            Some(_) => {
                let (section, subsection) = section.clone()?;
                let equals = line.iter().position(|&b| b == b'=')?;
                let key = line[..equals].trim_ascii();
                let plain =
                    key.first()?.is_ascii_alphabetic() && key.iter().all(|&b| b.is_ascii_alphanumeric() || b == b'-');
                all.push(Setting {
                    section,
                    subsection,
                    key: plain.then(|| key.to_ascii_lowercase())?,
                    value: line[equals + 1..].trim_ascii(),
                });
            }
        }
    }
    Some(all)
}

/// `[section]` or `[section "subsection"]`, alone on its line.
fn header(line: &[u8]) -> Option<(Vec<u8>, Option<&[u8]>)> {
    let inner = line.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let (section, subsection) = match inner.iter().position(|&b| b == b' ') {
        None => (inner, None),
        Some(space) => {
            let quoted = inner[space..].trim_ascii().strip_prefix(b"\"")?.strip_suffix(b"\"")?;
            let plain = !quoted.is_empty() && !quoted.iter().any(|b| matches!(b, b'"' | b'\\' | b'\t'));
            (&inner[..space], Some(plain.then_some(quoted)?))
        }
    };
    let plain = !section.is_empty() && section.iter().all(|&b| b.is_ascii_alphanumeric() || b == b'-');
    plain.then(|| (section.to_ascii_lowercase(), subsection))
}

/// Whether the setting is one of the list, with a value of the kind it should have.
fn is_listed(setting: &Setting<'_>) -> bool {
    let value = setting.value;
    if value.is_empty() || value.iter().any(|b| matches!(b, b'"' | b'\\' | b'#' | b';')) {
        return false;
    }
    match (setting.section.as_slice(), setting.subsection, setting.key.as_slice()) {
        (b"core", None, b"repositoryformatversion") => matches!(value, b"0" | b"1"),
        (
            b"core",
            None,
            b"filemode"
            | b"bare"
            | b"logallrefupdates"
            | b"ignorecase"
            | b"precomposeunicode"
            | b"symlinks"
            | b"quotepath"
            | b"trustctime"
            | b"preloadindex"
            | b"commitgraph"
            | b"multipackindex"
            | b"sparsecheckout"
            | b"sparsecheckoutcone",
        )
        | (b"extensions", None, b"relativeworktrees")
        | (b"index", None, b"sparse")
        | (b"feature", None, b"manyfiles")
        | (b"advice", None, _)
        | (b"color", None, b"ui")
        | (b"fetch", None, b"prune" | b"prunetags")
        | (b"gc", None, b"autodetach")
        | (b"maintenance", None, b"auto")
        | (b"merge", None, b"ff")
        | (b"pull", None, b"rebase" | b"ff")
        | (b"push", None, b"autosetupremote" | b"followtags")
        | (b"rebase", None, b"autostash" | b"autosquash" | b"updaterefs")
        | (b"rerere", None, b"enabled" | b"autoupdate")
        | (b"user", None, b"useconfigonly")
        | (b"remote", Some(_), b"prune")
        | (b"branch", Some(_), b"rebase") => matches!(value, b"true" | b"false"),
        (b"core", None, b"autocrlf") => matches!(value, b"true" | b"false" | b"input"),
        (b"core", None, b"safecrlf") => matches!(value, b"true" | b"false" | b"warn"),
        (b"core", None, b"eol") => matches!(value, b"lf" | b"crlf" | b"native"),
        (b"core", None, b"untrackedcache") => matches!(value, b"true" | b"false" | b"keep"),
        (b"merge", None, b"conflictstyle") => matches!(value, b"merge" | b"diff3" | b"zdiff3"),
        (b"gc", None, b"auto") | (b"index", None, b"version") => value.iter().all(u8::is_ascii_digit),
        // The other way round, each names or starts a program.
        (b"commit" | b"tag", None, b"gpgsign") | (b"core", None, b"fsmonitor") => value == b"false",
        // What holds for a shared repository; without it less does.
        (b"receive", None, b"denynonfastforwards" | b"denydeletes") => value == b"true",
        (b"extensions", None, b"objectformat" | b"refstorage") => {
            matches!(value, b"sha1" | b"sha256" | b"files" | b"reftable")
        }
        (b"user", None, b"name" | b"email") => true,
        // A branch's remote may also be a URL; only a name passes.
        (b"init", None, b"defaultbranch") | (b"push", None, b"default") | (b"branch", Some(_), b"remote") => {
            is_name(value)
        }
        (b"remote", Some(name), b"url" | b"pushurl") => is_name(name) && is_url(value),
        (b"remote", Some(name), b"fetch") => is_name(name) && is_refspec(value),
        (b"branch", Some(_), b"merge") => value.starts_with(b"refs/") && is_name(value),
        _ => false,
    }
}

/// A name as people give them: nothing that git or ssh could take for an option, a URL or a helper.
fn is_name(name: &[u8]) -> bool {
    !name.starts_with(b"-")
        && name
            .iter()
            .all(|&b| b.is_ascii_alphanumeric() || b >= 0x80 || b"-_./@+".contains(&b))
}

/// A URL or path; `::` would name the helper program that git runs.
fn is_url(url: &[u8]) -> bool {
    !url.starts_with(b"-")
        && !url.starts_with(b"ext:")
        && !url.windows(2).any(|pair| pair == b"::")
        && !url.windows(4).any(|part| part == b"://-")
        && !url.windows(2).any(|pair| pair == b"@-")
        && url.iter().all(|&b| b.is_ascii_graphic() || b >= 0x80)
}

fn is_refspec(spec: &[u8]) -> bool {
    let spec = spec.strip_prefix(b"+").unwrap_or(spec);
    spec.starts_with(b"refs/")
        && spec
            .iter()
            .all(|&b| b.is_ascii_alphanumeric() || b >= 0x80 || b"-_./@+*:".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: &[u8] =
        b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";

    fn with(text: &str) -> Vec<u8> {
        [FRESH, text.as_bytes()].concat()
    }

    #[test]
    fn what_git_init_and_clone_write_is_harmless() {
        assert!(is_harmless(FRESH));
        assert!(is_harmless(&with(
            "[remote \"origin\"]\n\turl = /srv/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"
        )));
    }

    #[test]
    fn a_new_config_may_have_settings_that_run_nothing_and_lead_nowhere() {
        assert!(is_harmless(&with(
            "[core]\n\tautocrlf = input\n\tfsmonitor = false\n[commit]\n\tgpgSign = false\n[gc]\n\tauto = 0\n\
             [receive]\n\tdenyNonFastforwards = true\n[advice]\n\tdetachedHead = false\n[merge]\n\tconflictStyle = zdiff3\n"
        )));
        for text in [
            "[core]\n\tautocrlf = x\n",
            "[core]\n\tfsmonitor = true\n",
            "[commit]\n\tgpgSign = true\n",
            "[core]\n\tsharedRepository = 0666\n",
            "[advice \"x\"]\n\ty = false\n",
            "[gc]\n\tauto = -1\n",
        ] {
            assert!(!is_harmless(&with(text)), "{text}");
        }
    }

    #[test]
    fn what_may_run_a_program_or_is_not_understood_is_not_harmless() {
        for text in [
            "[core]\n\tfsmonitor = x\n",
            "[CORE]\n\tSSHCommand = x\n",
            "[core] fsmonitor = x\n",
            "[core]\n\thooksPath = x\n",
            "[core]\n\tworktree = ../x\n",
            "[core]\n\tbare = false \\\n\tfsmonitor = x\n",
            "[core]\n\tbare = x\r\tfsmonitor = x\n",
            "[core.x]\n\tbare = true\n",
            "[include]\n\tpath = x\n",
            "[includeIf \"gitdir:/\"]\n\tpath = x\n",
            "[filter \"x\"]\n\tclean = x\n",
            "[alias]\n\tst = !x\n",
            "[remote \"x\"]\n\turl = ext::sh -c x\n",
            "[remote \"x\"]\n\turl = ext::sh\n",
            "[remote \"x\"]\n\turl = -x\n",
            "[remote \"x\"]\n\turl = ssh://-oProxyCommand=x\n",
            "[remote \"x\"]\n\tuploadpack = x\n",
            "[remote \"x\"]\n\tvcs = x\n",
            "[remote \"a\\\"b\"]\n\turl = x\n",
            "[branch \"main\"]\n\tremote = ext::x\n",
            "[submodule \"x\"]\n\tupdate = !x\n",
            "[extensions]\n\tworktreeConfig = true\n",
            "\u{feff}[core]\n\tbare = true\n",
            "[user]\n\tname\n",
            "name = x\n[user",
        ] {
            assert!(!is_harmless(&with(text)), "{text}");
        }
    }

    #[test]
    fn the_setting_that_is_not_harmless_is_named_as_git_names_it() {
        let rows: [(&str, Option<&str>); 6] = [
            ("", None),
            ("[core]\n\tFSMonitor = x\n", Some("core.fsmonitor")),
            ("[Filter \"A b\"]\n\tclean = x\n", Some("filter.A b.clean")),
            (
                "[user]\n\tname = x\n[core]\n\thooksPath = x\n\tsshCommand = x\n",
                Some("core.hookspath"),
            ),
            ("[core]\n\tbare = yes\n", Some("core.bare")),
            ("[core] fsmonitor = x\n", None),
        ];
        for (text, named) in rows {
            let offence = offence(&with(text)).map(|key| String::from_utf8(key).unwrap());
            assert_eq!(offence.as_deref(), named, "{text}");
        }
    }

    #[test]
    fn a_new_remote_and_a_user_name_may_be_added_to_any_config() {
        let old = with("[alias]\n\tst = \"!f() { x; }; f\" ; mine\n[remote \"origin\"]\n\turl = a:b\n");
        let added = [
            old.as_slice(),
            b"[user]\n\tname = A B\n[remote \"fork\"]\n\turl = c:d\n",
        ]
        .concat();
        assert!(is_harmless_change(&old, &added));
    }

    #[test]
    fn nothing_that_stood_there_may_change_or_go() {
        let old = with("[remote \"origin\"]\n\turl = a:b\n[alias]\n\tst = status\n");
        for text in [
            "[remote \"origin\"]\n\turl = evil:b\n[alias]\n\tst = status\n",
            "[remote \"origin\"]\n\turl = a:b\n\tpushurl = evil:b\n[alias]\n\tst = status\n",
            "[remote \"origin\"]\n\turl = a:b\n",
            "[remote \"origin\"]\n\turl = a:b\n[alias]\n\tst = !x\n",
            "[remote \"origin\"]\n\turl = a:b\n[alias]\n\tst = status\n[core]\n\tfsmonitor = x\n",
        ] {
            assert!(!is_harmless_change(&old, &with(text)), "{text}");
        }
    }
}
