//! What of a git config is harmless, and what is left of the file without the rest.
//!
//! `text` says what the text holds, `keys` which settings run nothing and trust nothing. A setting may stay where
//! both are sure of it: it is on the list, its value is of the kind it takes, and it stands as git writes it.
//!
//! It is asked two things. *What of this new config may stay?* What is on the list. *What of this change of a config may
//! stay?* The old text is a person's and may hold anything; a change may set and unset what is on the list, but for what
//! [`Change`] withholds. The rest is taken out, or is again as it was, and is named. Nothing is believed of a text that was
//! written here either: it is read and judged again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::super::violation::Keys;
use super::keys::{self, Change};
use super::scope::Scope;
use super::text::{Config, Header, Setting, line_end, written};

/// What a config was found to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All of it may stay.
    Harmless,
    /// This may, without what is named; empty where no setting is left.
    Filtered(Vec<u8>, Keys),
    /// It is not understood.
    Unclear,
}

/// Whether the config of a git directory may say that its work tree is there, or say it no longer.
pub(crate) type MaySetWorkTree<'a> = &'a dyn Fn(Option<&[u8]>) -> bool;

/// Judges a config that was not there. Of a submodule it says where the work tree is: `is_own` knows whether a path is that.
pub(crate) fn judge_new(scope: Scope, text: &[u8], is_own: &dyn Fn(&[u8]) -> bool) -> Verdict {
    let is_listed = |config: &Config<'_>, setting: &Setting| {
        let own = || setting.plain && setting.value.as_deref().is_some_and(is_own);
        is_listed_in(scope, config, setting) || (is_work_tree(scope, config, setting) && own())
    };
    let Some(config) = Config::read(text) else {
        return Verdict::Unclear;
    };
    let (kept, offences): (Vec<&Setting>, Vec<&Setting>) =
        config.settings.iter().partition(|setting| is_listed(&config, setting));
    let odd: Vec<&Header> = config.headers.iter().filter(|header| !header.plain).collect();
    if offences.is_empty() && odd.is_empty() {
        return Verdict::Harmless;
    }
    // Whatever stands below an odd header is an offence too.
    let cuts = offences.iter().map(|setting| &setting.range);
    let cuts = cuts.chain(odd.iter().map(|header| &header.range));
    let edits = cuts.map(|range| (config.lines(range), Vec::new())).collect();
    let filtered = edited(text, edits);
    let is_as_expected = Config::read(&filtered).is_some_and(|left| {
        let remaining = left
            .settings
            .iter()
            .map(|setting| (name(&left, setting), &setting.value));
        left.headers.iter().all(|header| header.plain)
            && left.settings.iter().all(|setting| is_listed(&left, setting))
            && remaining.eq(kept.iter().map(|setting| (name(&config, setting), &setting.value)))
    });
    if !is_as_expected {
        return Verdict::Unclear;
    }
    let mut named = Keys::default();
    for setting in offences {
        named.add(name(&config, setting));
    }
    // No file is left for the sake of comments.
    let left = if kept.is_empty() { Vec::new() } else { filtered };
    Verdict::Filtered(left, named)
}

/// Judges what became of a config that was there.
pub(crate) fn judge_change(scope: Scope, old: &[u8], new: &[u8], may_set_work_tree: MaySetWorkTree<'_>) -> Verdict {
    let (Some(before), Some(after)) = (Config::read(old), Config::read(new)) else {
        return Verdict::Unclear;
    };
    let change = Comparison::of(scope, &before, &after, may_set_work_tree);
    if change.is_harmless() {
        return Verdict::Harmless;
    }
    let filtered = change.applied();
    let is_as_expected = Config::read(&filtered)
        .is_some_and(|left| Comparison::of(scope, &before, &left, may_set_work_tree).is_harmless());
    if is_as_expected {
        Verdict::Filtered(filtered, change.named())
    } else {
        Verdict::Unclear
    }
}

/// Judges what became of a `.gitmodules`, or one that was not there.
pub(crate) fn judge_modules(old: Option<&[u8]>, new: &[u8]) -> Verdict {
    match old {
        None => judge_new(Scope::Modules, new, &|_| false),
        Some(old) => judge_change(Scope::Modules, old, new, &|_| false),
    }
}

/// A setting as git names it.
fn name(config: &Config<'_>, setting: &Setting) -> Vec<u8> {
    let header = &config.headers[setting.header];
    let parts = [
        Some(header.section.as_slice()),
        header.subsection.as_deref(),
        Some(setting.key.as_slice()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(&b'.')
}

/// Whether the setting says where the work tree of a git directory is.
fn is_work_tree(scope: Scope, config: &Config<'_>, setting: &Setting) -> bool {
    scope != Scope::Modules && name(config, setting) == b"core.worktree"
}

/// Whether the setting is one of the list, with a value of the kind it should have, written as git writes it.
fn is_listed(scope: Scope, config: &Config<'_>, setting: &Setting) -> bool {
    let known = scope.known(&config.headers[setting.header], &setting.key);
    let value = setting.value.as_deref();
    setting.plain && known.is_some_and(|known| value.is_some_and(|value| known.takes(value)))
}

/// The same in one of a repository's configs.
fn is_listed_in(scope: Scope, config: &Config<'_>, setting: &Setting) -> bool {
    let header = &config.headers[setting.header];
    let known = scope.known(header, &setting.key);
    known.is_some_and(|known| scope.takes(header, known)) && is_listed(scope, config, setting)
}

/// Applies replacements to a text; of two at one position the first comes first.
fn edited(text: &[u8], mut edits: Vec<(Range<usize>, Vec<u8>)>) -> Vec<u8> {
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut out, mut at) = (Vec::with_capacity(text.len()), 0);
    for (range, replacement) in edits {
        out.extend_from_slice(text.get(at..range.start).unwrap_or_default());
        out.extend(replacement);
        at = at.max(range.end);
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    out
}

/// A section, as a number that is the same in both texts.
type Section = usize;
/// The name of a setting, by which later lines add to it or replace it.
type Name<'a> = (Section, &'a [u8]);

/// Two texts, setting by setting.
struct Comparison<'a> {
    scope: Scope,
    may_set_work_tree: MaySetWorkTree<'a>,
    before: &'a Config<'a>,
    after: &'a Config<'a>,
    /// The section of each header.
    sections: [Vec<Section>; 2],
    /// What changed and may.
    allowed: BTreeSet<Name<'a>>,
    /// What changed and may not, in the order of the texts.
    offences: Vec<Name<'a>>,
    /// Whether the new text has a header that is neither plain nor the old one's.
    is_odd: bool,
}

impl<'a> Comparison<'a> {
    fn of(scope: Scope, before: &'a Config<'a>, after: &'a Config<'a>, may_set_work_tree: MaySetWorkTree<'a>) -> Self {
        let mut numbers: HashMap<(&[u8], Option<&[u8]>), Section> = HashMap::new();
        let sections = [before, after].map(|config| {
            let number = |header: &'a Header| {
                let next = numbers.len();
                let key = (header.section.as_slice(), header.subsection.as_deref());
                *numbers.entry(key).or_insert(next)
            };
            config.headers.iter().map(number).collect::<Vec<_>>()
        });
        let raw = |config: &'a Config<'a>, header: &Header| &config.text[header.range.clone()];
        let odd: HashSet<&[u8]> = before.headers.iter().map(|header| raw(before, header)).collect();
        let is_odd = after
            .headers
            .iter()
            .any(|header| !header.plain && !odd.contains(raw(after, header)));
        let mut comparison = Self {
            scope,
            may_set_work_tree,
            before,
            after,
            sections,
            allowed: BTreeSet::new(),
            offences: Vec::new(),
            is_odd,
        };
        comparison.compare();
        comparison
    }

    /// Every setting of one of the texts with its name.
    fn settings(&self, side: usize) -> Vec<(Name<'a>, &'a Setting)> {
        let config = [self.before, self.after][side];
        let named = |setting: &'a Setting| ((self.sections[side][setting.header], setting.key.as_slice()), setting);
        config.settings.iter().map(named).collect()
    }

    fn compare(&mut self) {
        let settings = [self.settings(0), self.settings(1)];
        let [old, new] = settings.each_ref().map(|all| {
            let mut by_name: BTreeMap<Name<'a>, Vec<&'a Setting>> = BTreeMap::new();
            for (name, setting) in all {
                by_name.entry(*name).or_default().push(setting);
            }
            by_name
        });
        let [in_old, in_new] = [&old, &new].map(|all| all.keys().map(|name| name.0).collect::<HashSet<Section>>());
        let mut visited = BTreeSet::new();
        for name in settings.iter().flatten().map(|(name, _)| *name) {
            let [was, is] = [&old, &new].map(|all| all.get(&name).map(Vec::as_slice).unwrap_or_default());
            let is_same = was.len() == is.len() && was.iter().zip(is).all(|(was, is)| self.is_same(was, is));
            if !visited.insert(name) || is_same {
                continue;
            }
            let comes_or_goes = in_old.contains(&name.0) != in_new.contains(&name.0);
            if self.may_become(was, is, comes_or_goes) {
                self.allowed.insert(name);
            } else {
                self.offences.push(name);
            }
        }
        // Where one text may include another, the order counts as well.
        let changed: HashSet<Name<'a>> = self.allowed.iter().chain(&self.offences).copied().collect();
        let [old, new] = [(self.before, &settings[0]), (self.after, &settings[1])].map(|(config, all)| {
            let is_fixed = |(name, setting): &&(Name<'a>, &'a Setting)| {
                let known = self.scope.known(&config.headers[setting.header], &setting.key);
                let is_free =
                    known.is_some_and(|known| known.change == Change::Free) && is_listed(self.scope, config, setting);
                !changed.contains(name) && !is_free
            };
            all.iter().filter(is_fixed).map(|(name, _)| *name).collect::<Vec<_>>()
        });
        let moved = old.iter().zip(&new).find(|(was, is)| was != is);
        self.offences.extend(moved.map(|(_, is)| *is));
    }

    /// Whether a setting has the same value, written as before or as git writes it.
    fn is_same(&self, was: &Setting, is: &Setting) -> bool {
        let raw = |config: &'a Config<'a>, setting: &Setting| {
            let header = &config.headers[setting.header].range;
            (&config.text[setting.range.clone()], &config.text[header.clone()])
        };
        was.value == is.value && (is.plain || raw(self.before, was) == raw(self.after, is))
    }

    /// Whether a command may make this of all settings of one name.
    fn may_become(&self, was: &[&Setting], is: &[&Setting], comes_or_goes: bool) -> bool {
        let one = was
            .first()
            .map(|one| (self.before, *one))
            .or(is.first().map(|one| (self.after, *one)));
        let Some((config, one)) = one else { return true };
        let header = &config.headers[one.header];
        if is_work_tree(self.scope, config, one) {
            return match is {
                [] => (self.may_set_work_tree)(None),
                [one] => {
                    one.plain
                        && one
                            .value
                            .as_deref()
                            .is_some_and(|value| (self.may_set_work_tree)(Some(value)))
                }
                _ => false,
            };
        }
        let Some(known) = self.scope.known(header, &one.key) else {
            return false;
        };
        let tracks = |setting: &&Setting| {
            let remote = header.subsection.as_deref().unwrap_or_default();
            keys::is_tracking(remote, setting.value.as_deref().unwrap_or_default())
        };
        let may = match known.change {
            Change::Free => true,
            Change::Stays => !is.is_empty(),
            Change::Fixed => false,
            Change::Section => comes_or_goes,
            Change::Once => comes_or_goes || was.is_empty(),
            Change::Fetch => comes_or_goes || (!is.is_empty() && was.iter().chain(is).all(tracks)),
        };
        may && self.scope.takes(header, known) && is.iter().all(|setting| is_listed(self.scope, self.after, setting))
    }

    fn is_harmless(&self) -> bool {
        self.offences.is_empty() && !self.is_odd
    }

    fn named(&self) -> Keys {
        let mut named = Keys::default();
        let mut left: HashSet<Name<'a>> = self.offences.iter().copied().collect();
        for (side, config) in [self.before, self.after].into_iter().enumerate() {
            for (key, setting) in self.settings(side) {
                if left.remove(&key) {
                    named.add(name(config, setting));
                }
            }
        }
        named
    }

    /// The old text with the changes that may stay.
    fn applied(&self) -> Vec<u8> {
        let text = self.before.text;
        let mut edits = Vec::new();
        // Where each section of the old text ends, and whether something is left in it.
        let mut ends: HashMap<Section, usize> = HashMap::new();
        let mut filled = HashSet::new();
        for (header, section) in self.before.headers.iter().zip(&self.sections[0]) {
            if header.plain {
                ends.insert(*section, header.range.end);
            }
        }
        for (name, setting) in self.settings(0) {
            if self.before.headers[setting.header].plain {
                ends.entry(name.0).and_modify(|end| *end = setting.range.end.max(*end));
            }
            if self.allowed.contains(&name) {
                edits.push((self.before.lines(&setting.range), Vec::new()));
            } else {
                filled.insert(name.0);
            }
        }
        let named: HashSet<Section> = self.sections[1].iter().copied().collect();
        for (header, section) in self.before.headers.iter().zip(&self.sections[0]) {
            if header.plain && !filled.contains(section) && !named.contains(section) {
                edits.push((self.before.lines(&header.range), Vec::new()));
            }
        }
        let mut added: BTreeMap<Section, (usize, Vec<u8>)> = BTreeMap::new();
        for (name, setting) in self
            .settings(1)
            .into_iter()
            .filter(|(name, _)| self.allowed.contains(name))
        {
            let lines = &mut added.entry(name.0).or_insert_with(|| (setting.header, Vec::new())).1;
            let key = self
                .after
                .text
                .get(setting.range.start..)
                .and_then(|rest| rest.get(..setting.key.len()));
            lines.push(b'\t');
            lines.extend_from_slice(key.unwrap_or(&setting.key));
            lines.extend_from_slice(b" = ");
            lines.extend(written(setting.value.as_deref().unwrap_or_default()));
            lines.push(b'\n');
        }
        for (section, (header, lines)) in added {
            let (offset, replacement) = if let Some(end) = ends.get(&section) {
                ((line_end(text, *end) + 1).min(text.len()), lines)
            } else {
                let header = &self.after.text[self.after.headers[header].range.clone()];
                (text.len(), [header, b"\n", &lines].concat())
            };
            let is_cut_off = offset == text.len() && !text.is_empty() && !text.ends_with(b"\n");
            let replacement = if is_cut_off {
                [b"\n", replacement.as_slice()].concat()
            } else {
                replacement
            };
            edits.push((offset..offset, replacement));
        }
        edited(text, edits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: &[u8] =
        b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";

    fn with(text: &str) -> Vec<u8> {
        [FRESH, text.as_bytes()].concat()
    }

    fn is_harmless(text: &[u8]) -> bool {
        judge_new(text) == Verdict::Harmless
    }

    fn is_harmless_change(old: &[u8], new: &[u8]) -> bool {
        judge_change(old, new) == Verdict::Harmless
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
            "\u{feff}[core]\n\tbare = true\n",
            "[user]\n\tname\n",
            "name = x\n[user",
        ] {
            assert!(!is_harmless(&with(text)), "{text}");
        }
    }

    /// No work tree is its own.
    fn judge_change(old: &[u8], new: &[u8]) -> Verdict {
        super::judge_change(Scope::Repository, old, new, &|_| false)
    }

    fn judge_new(text: &[u8]) -> Verdict {
        super::judge_new(Scope::Repository, text, &|_| false)
    }

    #[test]
    fn a_work_tree_is_named_where_it_is_its_own() {
        let text = with("[core]\n\tworktree = ../../../sub\n");
        assert_eq!(
            super::judge_new(Scope::Repository, &text, &|path| path == b"../../../sub"),
            Verdict::Harmless
        );
        let (_, named) = filtered(super::judge_new(Scope::Repository, &text, &|path| path == b"../../sub"));
        assert_eq!(named, ["core.worktree"]);
        let odd = with("[core] worktree = ../../../sub\n");
        assert_eq!(
            filtered(super::judge_new(Scope::Repository, &odd, &|_| true)).1,
            ["core.worktree"]
        );
    }

    /// What is left of a config, and what was taken out of it.
    #[track_caller]
    fn filtered(verdict: Verdict) -> (String, Vec<String>) {
        let Verdict::Filtered(text, named) = verdict else {
            panic!("{verdict:?}")
        };
        let named = named.names.into_iter().map(|name| String::from_utf8(name).unwrap());
        (String::from_utf8(text).unwrap(), named.collect())
    }

    #[test]
    fn the_settings_that_are_not_harmless_are_named_as_git_names_them_and_taken_out() {
        let rows: [(&str, &str, &[&str]); 14] = [
            ("[core]\n\tFSMonitor = x\n", "[core]\n", &["core.fsmonitor"]),
            (
                "[Filter \"A b\"]\n\tclean = x\n",
                "[Filter \"A b\"]\n",
                &["filter.A b.clean"],
            ),
            (
                "[user]\n\tname = x\n# mine\n[core]\n\thooksPath = x\n\n\tsshCommand = x\n\teol = lf",
                "[user]\n\tname = x\n# mine\n[core]\n\n\teol = lf",
                &["core.hookspath", "core.sshcommand"],
            ),
            ("[core]\n\tbare = maybe\n", "[core]\n", &["core.bare"]),
            ("[core] fsmonitor = x\n", " \n", &["core.fsmonitor"]),
            // Nothing below an odd header may stay.
            (
                "[core] fsmonitor = x\n\teol = lf\n",
                " \n",
                &["core.fsmonitor", "core.eol"],
            ),
            (
                "[core]\n\teditor = x \\\n[user] \\\n; y\n\teol = lf\n",
                "[core]\n\teol = lf\n",
                &["core.editor"],
            ),
            ("[core]\n\teditor = \"x\ty\" ; eol = lf\n", "[core]\n", &["core.editor"]),
            ("[include]\n\tpath = x\n\tpath = y\n", "[include]\n", &["include.path"]),
            (
                "[CORE]\n\tpager = x\n[core]\n\tPAGER = y\n",
                "[CORE]\n[core]\n",
                &["core.pager"],
            ),
            ("[core \"x\"]\n\tbare = true\n", "[core \"x\"]\n", &["core.x.bare"]),
            ("[core]\n\tfsmonitor\n", "[core]\n", &["core.fsmonitor"]),
            ("[alias.x]\n\tst = !x\n", "", &["alias.x.st"]),
            ("[a] [b \"c\\\"d\"] e = f\n", "  \n", &["b.c\"d.e"]),
        ];
        for (text, left, names) in rows {
            let (found, named) = filtered(judge_new(&with(text)));
            assert_eq!(found, String::from_utf8(with(left)).unwrap(), "{text}");
            assert_eq!(named, names, "{text}");
            assert!(is_harmless(found.as_bytes()), "{text}");
        }
    }

    #[test]
    fn of_a_text_that_is_not_understood_nothing_is_kept() {
        for text in [
            "name = x\n[user",
            "[core]\n\tbare = false\r\n\tpager = x\r\n",
            "[core]\n# \\\n\tpager = x\n",
            "[core]\n\tpager = \"x\n",
        ] {
            assert_eq!(judge_new(&with(text)), Verdict::Unclear, "{text}");
            assert_eq!(judge_change(FRESH, &with(text)), Verdict::Unclear, "{text}");
            assert_eq!(judge_change(&with(text), FRESH), Verdict::Unclear, "{text}");
        }
        assert_eq!(judge_new("\u{feff}[core]\n\tpager = x\n".as_bytes()), Verdict::Unclear);
    }

    #[test]
    fn whatever_is_left_is_harmless_and_little_is_lost() {
        let pieces = [
            "[core]",
            "[include]",
            "[user]",
            "[remote \"o\"]",
            "[core.x]",
            " ",
            "\n",
            "\n\t",
            "bare = true",
            "\n\tname = A B\n",
            "path = x",
            "# x",
            "; y",
            "\\",
            "\"",
            "\n\turl = a:b\n",
            "=",
            "hooksPath = x \\\n y",
            "\n",
        ];
        let mut seed = 11_u64;
        let (mut texts, mut cut) = (vec![FRESH.to_vec()], 0);
        for _ in 0..4000 {
            let mut text = String::new();
            for _ in 0..9 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(pieces[usize::try_from(seed >> 33).unwrap() % pieces.len()]);
            }
            texts.push(with(&text));
        }
        for (number, text) in texts.iter().enumerate() {
            if let Verdict::Filtered(left, _) = judge_new(text) {
                cut += 1;
                assert!(is_harmless(&left), "{}", String::from_utf8_lossy(text));
            }
            // And of a change of one into another, what is left is one that may be.
            let old = &texts[number * 7 % texts.len()];
            if let Verdict::Filtered(left, _) = judge_change(old, text) {
                cut += 1;
                assert!(is_harmless_change(old, &left), "{}", String::from_utf8_lossy(text));
            }
        }
        assert!(cut > 1000, "{cut}");
    }

    #[test]
    fn of_very_many_names_a_few_are_told() {
        let long = "x".repeat(2000);
        let text: Vec<String> = (0..100)
            .map(|number| format!("[filter \"{long}\"]\n\tk{number} = x\n"))
            .collect();
        let text = text.concat();
        let Verdict::Filtered(_, named) = judge_new(text.as_bytes()) else {
            panic!()
        };
        assert!(
            named.names.len() < 10 && named.names.len() + named.more == 100,
            "{}",
            named.more
        );
    }

    #[test]
    fn what_git_does_every_day_passes() {
        let remote = "[remote \"origin\"]\n\turl = a:b\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n";
        let branch = "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";
        let mine = "[alias]\n\tst = \"!f() { x; }; f\" ; mine\n[include] path = x\n";
        let before = [mine, remote, branch].concat();
        for (what, after) in [
            ("config color.ui", format!("{before}[color]\n\tui = auto\n")),
            ("remote remove", mine.to_owned()),
            ("remote rename", before.replace("origin", "up")),
            ("branch -m", before.replace("main", "topic")),
            (
                "push -u",
                format!("{before}[branch \"topic\"]\n\tremote = origin\n\tmerge = refs/heads/topic\n"),
            ),
            ("branch --set-upstream-to", before.replace("heads/main", "heads/other")),
            ("branch --unset-upstream", before.replace(branch, "")),
            (
                "remote set-branches",
                before.replace("/*:", "/main:").replace("origin/*", "origin/main"),
            ),
            (
                "submodule init",
                format!("{before}[submodule \"s\"]\n\tactive = true\n\turl = ../s\n"),
            ),
            (
                "sparse-checkout",
                format!("{before}[extensions]\n\tworktreeConfig = true\n[core]\n\tsparseCheckout = true\n"),
            ),
        ] {
            assert_eq!(judge_change(&with(&before), &with(&after)), Verdict::Harmless, "{what}");
        }
    }

    #[test]
    fn of_a_change_the_harmless_part_stays_and_the_rest_is_as_it_was() {
        let mine =
            "[alias]\n\tst = \"!f() { x; \\\n }; f\" ; mine\n[remote \"origin\"]\n\turl = a:b\n[core] pager = less";
        let old = String::from_utf8(with(mine)).unwrap();
        for (new, expected, names) in [
            (
                format!("{old}\n[color]\n\tui = auto\n[core]\n\thooksPath = x\n\teol = lf\n"),
                format!(
                    "{}\n[color]\n\tui = auto\n",
                    old.replacen("true\n[alias]", "true\n\teol = lf\n[alias]", 1)
                ),
                vec!["core.hookspath"],
            ),
            (
                old.replace("a:b\n", "evil:b\n\tprune = true\n"),
                old.replace("a:b\n", "a:b\n\tprune = true\n"),
                vec!["remote.origin.url"],
            ),
            (
                old.replace("filemode = true", "filemode = false")
                    .replace("[core] pager = less", ""),
                old.replace("\tfilemode = true\n", "").replacen(
                    "= true\n[alias]",
                    "= true\n\tfilemode = false\n[alias]",
                    1,
                ),
                vec!["core.pager"],
            ),
            (
                old.replace(
                    "[core] pager = less",
                    "[core] pager = \"less\"\n[fetch]\n\tprune = true\n",
                ),
                old.clone() + "\n[fetch]\n\tprune = true\n",
                vec!["core.pager"],
            ),
            (
                old.replace("\tbare = false\n", "\tbare = true\n"),
                old.clone(),
                vec!["core.bare"],
            ),
        ] {
            let (found, named) = filtered(judge_change(old.as_bytes(), new.as_bytes()));
            assert_eq!(found, expected);
            assert_eq!(named, names);
        }
    }

    #[test]
    fn a_setting_is_not_led_past_an_include() {
        let old = with("[include]\n\tpath = x\n[core]\n\tpager = less\n");
        let new = with("[core]\n\tpager = less\n[include]\n\tpath = x\n");
        let (left, named) = filtered(judge_change(&old, &new));
        assert_eq!((left.as_bytes(), named.len()), (old.as_slice(), 1));
        let free = with("[user]\n\tname = A\n[include]\n\tpath = x\n[core]\n\tpager = less\n");
        assert_eq!(judge_change(&old, &free), Verdict::Harmless);
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

    #[test]
    fn the_config_of_a_work_tree_says_how_files_are_and_not_where_a_remote_is() {
        let harmless = b"[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n[index]\n\tsparse = false\n";
        let with = |more: &str| [harmless, more.as_bytes()].concat();
        assert_eq!(
            super::judge_new(Scope::WorkTree, harmless, &|_| false),
            Verdict::Harmless
        );
        assert_eq!(
            super::judge_change(Scope::WorkTree, b"", harmless, &|_| false),
            Verdict::Harmless
        );
        for more in [
            "[remote \"origin\"]\n\turl = https://example.org/x\n",
            "[branch \"main\"]\n\tremote = other\n",
        ] {
            let (_, named) = filtered(super::judge_new(Scope::WorkTree, &with(more), &|_| false));
            assert_eq!(named.len(), 1, "{more}");
            let (left, named) = filtered(super::judge_change(Scope::WorkTree, harmless, &with(more), &|_| false));
            assert_eq!(named.len(), 1, "{more}");
            assert_eq!(left.as_bytes(), harmless, "{more}");
        }
    }
}
