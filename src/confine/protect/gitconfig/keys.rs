//! Which settings of git are harmless, with which values, and which of them a command may change.
//!
//! Taken from git-config(1). A setting is on the list where none of its values makes git run anything, trust anything or
//! read another config. What is not on the list is not harmless: so is every setting that a later git may have.
//!
//! Deliberately absent although they look like data: `help.autocorrect` and `help.format` (run what was mistyped, a browser),
//! `log.showSignature` and `push.gpgSign` (run gpg), `pull.twohead` and the like (name a program), `url.*.insteadOf` (leads all
//! remotes elsewhere), `branch.*.mergeOptions` (options of a command), whatever names a file that is written.

use Change::{Fetch, Fixed, Free, Once, Section, Stays};
use Sub::{No, Remote, Some as Any, Url};
use Value::{
    Address, Bool, BoolOr, Color, Name, Number, OneOf, Only, Path, Plain, Refspec, Sort, Text, Time, TreePath,
};

/// What a value must be.
#[derive(Debug, Clone, Copy)]
enum Value {
    Bool,
    /// This and nothing else.
    Only(&'static str),
    BoolOr(&'static [&'static str]),
    OneOf(&'static [&'static str]),
    Number,
    /// A name, of a branch for instance.
    Name,
    /// A field to sort by, backwards behind a minus sign.
    Sort,
    /// Words with the signs that formats, lists of words and filters are written with.
    Plain,
    /// What people write: a name, a description.
    Text,
    Color,
    Time,
    /// A file that is only read, as text.
    Path,
    /// A URL or path of a repository.
    Address,
    /// A path in the work tree.
    TreePath,
    Refspec,
}

/// Whether the section has a subsection.
#[derive(Debug, Clone, Copy)]
enum Sub {
    No,
    Some,
    /// The name of a remote.
    Remote,
    Url,
}

/// Whether a command may change the setting in a config that was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It may.
    Free,
    /// It may, but not go: without it git would not know the repository for its own.
    Stays,
    /// Not at all: the value that stands there may be the safer one.
    Fixed,
    /// With its whole section: a remote may come and go, and not lead elsewhere.
    Section,
    /// So too, or to what `git remote set-branches` writes.
    Fetch,
    /// Where it had no value, or with its whole section.
    Once,
}

/// A section, the kind of its subsection, what its values are, how they may change, and the keys.
type Row = (&'static str, Sub, Value, Change, &'static [&'static str]);

const ON_DEMAND: &[&str] = &["on-demand", "no"];
const RENAMES: &[&str] = &["copies", "copy"];
const REBASE: &[&str] = &["merges", "interactive", "m", "i"];
const SHOWN: &[&str] = &["no", "normal", "all"];
const IGNORED: &[&str] = &["all", "dirty", "untracked", "none"];
const UPDATES: &[&str] = &["checkout", "rebase", "merge", "none"];
const DECORATE: &[&str] = &["short", "full", "auto", "no"];

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("core", No, OneOf(&["0", "1"]), Stays, &["repositoryformatversion"]),
    ("core", No, Bool, Fixed, &["bare", "symlinks", "ignorecase"]),
    ("core", No, Only("false"), Fixed, &["fsmonitor"]),
    ("core", No, Bool, Free, &["filemode", "precomposeunicode", "quotepath", "trustctime", "preloadindex", "commitgraph", "multipackindex", "sparsecheckout", "sparsecheckoutcone", "fscache", "longpaths", "splitindex", "ignorestat", "warnambiguousrefs"]),
    ("core", No, BoolOr(&["always"]), Free, &["logallrefupdates"]),
    ("core", No, BoolOr(&["input"]), Free, &["autocrlf"]),
    ("core", No, BoolOr(&["warn"]), Free, &["safecrlf"]),
    ("core", No, BoolOr(&["keep"]), Free, &["untrackedcache"]),
    ("core", No, OneOf(&["lf", "crlf", "native"]), Free, &["eol"]),
    ("core", No, OneOf(&["default", "minimal"]), Free, &["checkstat"]),
    ("core", No, Number, Free, &["abbrev", "compression", "loosecompression", "bigfilethreshold", "packedgitwindowsize", "packedgitlimit", "deltabasecachelimit", "filesreflocktimeout", "packedrefstimeout"]),
    ("core", No, OneOf(&["auto", "#", ";", "@", "!", "$", "%", "^", "&", "|", ":"]), Free, &["commentchar"]),
    ("core", No, Plain, Free, &["whitespace", "fsync", "fsyncmethod"]),
    ("extensions", No, OneOf(&["sha1", "sha256", "files", "reftable"]), Fixed, &["objectformat", "refstorage"]),
    ("extensions", No, Bool, Fixed, &["preciousobjects"]),
    ("extensions", No, Name, Fixed, &["partialclone"]),
    ("extensions", No, Bool, Free, &["relativeworktrees"]),
    // `config.worktree` is judged as `config` is.
    ("extensions", No, Bool, Free, &["worktreeconfig"]),
    ("color", No, Color, Free, &["*"]),
    ("color", Any, Color, Free, &["*"]),
    ("column", No, Plain, Free, &["*"]),
    ("advice", No, Bool, Free, &["*"]),
    ("feature", No, Bool, Free, &["manyfiles", "experimental"]),
    ("diff", No, OneOf(&["default", "myers", "minimal", "patience", "histogram"]), Free, &["algorithm"]),
    ("diff", No, Bool, Free, &["autorefreshindex", "indentheuristic", "mnemonicprefix", "noprefix", "relative", "suppressblankempty", "trustexitcode"]),
    ("diff", No, BoolOr(&["no", "default", "plain", "blocks", "zebra", "dimmed-zebra", "dimmed_zebra"]), Free, &["colormoved"]),
    ("diff", No, Plain, Free, &["colormovedws", "dirstat", "srcprefix", "dstprefix", "wserrorhighlight"]),
    ("diff", No, Number, Free, &["context", "interhunkcontext", "renamelimit", "statgraphwidth", "statnamewidth"]),
    ("diff", No, BoolOr(RENAMES), Free, &["renames"]),
    ("diff", No, OneOf(IGNORED), Free, &["ignoresubmodules"]),
    ("diff", No, OneOf(&["short", "log", "diff"]), Free, &["submodule"]),
    ("diff", Any, Bool, Free, &["binary"]),
    ("log", No, Bool, Free, &["abbrevcommit", "follow", "mailmap", "showroot"]),
    ("log", No, BoolOr(DECORATE), Free, &["decorate"]),
    ("log", No, Plain, Free, &["date", "diffmerges", "initialdecorationset"]),
    ("log", No, Color, Free, &["graphcolors"]),
    ("branch", No, BoolOr(&["always", "inherit", "simple"]), Free, &["autosetupmerge"]),
    ("branch", No, OneOf(&["never", "local", "remote", "always"]), Free, &["autosetuprebase"]),
    ("branch", No, Sort, Free, &["sort"]),
    // A branch's remote may also be a URL; only a name passes.
    ("branch", Any, Name, Free, &["remote", "vscode-merge-base", "gh-merge-base"]),
    ("branch", Any, Name, Section, &["pushremote"]),
    ("branch", Any, Refspec, Free, &["merge"]),
    ("branch", Any, BoolOr(REBASE), Free, &["rebase"]),
    ("branch", Any, Text, Free, &["description"]),
    ("remote", No, Name, Fixed, &["pushdefault"]),
    ("remote", Remote, Address, Section, &["url", "pushurl"]),
    ("remote", Remote, Refspec, Fetch, &["fetch"]),
    ("remote", Remote, Refspec, Section, &["push"]),
    ("remote", Remote, Bool, Section, &["mirror", "promisor"]),
    ("remote", Remote, Plain, Section, &["partialclonefilter"]),
    ("remote", Remote, Bool, Free, &["prune", "prunetags", "skipdefaultupdate", "skipfetchall"]),
    ("remote", Remote, OneOf(&["--tags", "--no-tags"]), Free, &["tagopt"]),
    ("remote", Remote, OneOf(&["create", "never", "warn", "always"]), Free, &["followremotehead"]),
    ("remote", Remote, Name, Free, &["gh-resolved"]),
    ("submodule", No, Bool, Fixed, &["recurse"]),
    ("submodule", No, Bool, Free, &["propagatebranches"]),
    ("submodule", No, Number, Free, &["fetchjobs"]),
    ("submodule", No, Plain, Free, &["active"]),
    ("submodule", No, OneOf(&["superproject", "no"]), Free, &["alternatelocation"]),
    ("submodule", No, OneOf(&["die", "info", "ignore"]), Free, &["alternateerrorstrategy"]),
    ("submodule", Any, Address, Once, &["url"]),
    ("submodule", Any, Bool, Free, &["active"]),
    ("submodule", Any, Name, Free, &["branch"]),
    ("submodule", Any, OneOf(IGNORED), Free, &["ignore"]),
    ("submodule", Any, BoolOr(ON_DEMAND), Free, &["fetchrecursesubmodules"]),
    ("submodule", Any, OneOf(UPDATES), Free, &["update"]),
    ("lfs", No, OneOf(&["0"]), Free, &["repositoryformatversion"]),
    ("lfs", No, Address, Fixed, &["url"]),
    ("lfs", Url, OneOf(&["none", "basic"]), Free, &["access"]),
    ("lfs", Url, Bool, Free, &["locksverify"]),
    ("user", No, Text, Free, &["name", "email", "signingkey"]),
    ("author", No, Text, Free, &["name", "email"]),
    ("committer", No, Text, Free, &["name", "email"]),
    ("user", No, Bool, Free, &["useconfigonly"]),
    ("merge", No, BoolOr(&["only"]), Free, &["ff"]),
    ("merge", No, OneOf(&["merge", "diff3", "zdiff3"]), Free, &["conflictstyle"]),
    ("merge", No, BoolOr(&["conflict"]), Free, &["directoryrenames"]),
    ("merge", No, BoolOr(RENAMES), Free, &["renames"]),
    ("merge", No, Bool, Free, &["autostash", "branchdesc", "defaulttoupstream", "renormalize", "stat"]),
    ("merge", No, Number, Free, &["log", "renamelimit", "verbosity"]),
    ("merge", Any, Text, Free, &["name"]),
    ("rebase", No, Bool, Free, &["abbreviatecommands", "autosquash", "autostash", "forkpoint", "reschedulefailedexec", "stat", "updaterefs"]),
    ("rebase", No, OneOf(&["apply", "merge"]), Free, &["backend"]),
    ("rebase", No, OneOf(&["ignore", "warn", "error"]), Free, &["missingcommitscheck"]),
    ("rebase", No, BoolOr(&["rebase-cousins", "no-rebase-cousins"]), Free, &["rebasemerges"]),
    ("push", No, OneOf(&["nothing", "current", "upstream", "tracking", "simple", "matching"]), Free, &["default"]),
    ("push", No, Bool, Free, &["autosetupremote", "followtags", "negotiate", "usebitmaps", "useforceifincludes"]),
    ("push", No, OneOf(&["check", "on-demand", "only", "no"]), Free, &["recursesubmodules"]),
    ("pull", No, BoolOr(REBASE), Free, &["rebase"]),
    ("pull", No, BoolOr(&["only"]), Free, &["ff"]),
    ("fetch", No, Bool, Free, &["all", "prune", "prunetags", "showforcedupdates", "writecommitgraph"]),
    ("fetch", No, OneOf(&["consecutive", "skipping", "noop", "default"]), Free, &["negotiationalgorithm"]),
    ("fetch", No, OneOf(&["full", "compact"]), Free, &["output"]),
    ("fetch", No, Number, Free, &["parallel", "unpacklimit"]),
    ("fetch", No, BoolOr(ON_DEMAND), Free, &["recursesubmodules"]),
    ("commit", No, OneOf(&["strip", "whitespace", "verbatim", "scissors", "default"]), Free, &["cleanup"]),
    ("commit", No, Bool, Free, &["status", "verbose"]),
    ("commit", No, Path, Free, &["template"]),
    // The other way round, each starts a program.
    ("commit", No, Only("false"), Fixed, &["gpgsign"]),
    ("tag", No, Only("false"), Fixed, &["gpgsign"]),
    ("tag", No, Sort, Free, &["sort"]),
    ("status", No, Bool, Free, &["aheadbehind", "branch", "displaycommentprefix", "relativepaths", "short", "showstash", "submodulesummary"]),
    ("status", No, BoolOr(RENAMES), Free, &["renames"]),
    ("status", No, Number, Free, &["renamelimit"]),
    ("status", No, BoolOr(SHOWN), Free, &["showuntrackedfiles"]),
    ("stash", No, Bool, Free, &["showincludeuntracked", "showpatch", "showstat"]),
    ("gc", No, Number, Free, &["auto", "aggressivedepth", "aggressivewindow", "autopacklimit", "bigpackthreshold", "maxcruftsize"]),
    ("gc", No, Bool, Free, &["autodetach", "cruftpacks", "writecommitgraph"]),
    ("gc", No, BoolOr(&["notbare"]), Free, &["packrefs"]),
    ("gc", No, Time, Free, &["logexpiry", "pruneexpire", "reflogexpire", "reflogexpireunreachable", "rerereresolved", "rerereunresolved", "worktreepruneexpire"]),
    ("maintenance", No, Bool, Free, &["auto", "autodetach"]),
    ("maintenance", No, OneOf(&["none", "incremental"]), Free, &["strategy"]),
    ("pack", No, Number, Free, &["compression", "deltacachelimit", "deltacachesize", "depth", "indexversion", "packsizelimit", "threads", "window", "windowmemory"]),
    ("pack", No, Bool, Free, &["allowpackreuse", "readreverseindex", "usebitmaps", "usesparse", "writebitmaphashcache", "writebitmaplookuptable", "writereverseindex"]),
    ("index", No, Bool, Free, &["recordendofindexentries", "recordoffsettable", "skiphash", "sparse"]),
    ("index", No, Number, Free, &["threads", "version"]),
    ("commitgraph", No, Number, Free, &["generationversion", "maxnewfilters"]),
    ("commitgraph", No, Bool, Free, &["readchangedpaths"]),
    ("checkout", No, Name, Free, &["defaultremote"]),
    ("checkout", No, Bool, Free, &["guess"]),
    ("checkout", No, Number, Free, &["workers", "thresholdforparallelism"]),
    ("worktree", No, Bool, Free, &["guessremote", "userelativepaths"]),
    ("init", No, Name, Free, &["defaultbranch"]),
    ("blame", No, Bool, Free, &["blankboundary", "markignoredlines", "markunblamablelines", "showemail", "showroot"]),
    ("blame", No, OneOf(&["none", "repeatedLines", "highlightRecent"]), Free, &["coloring"]),
    ("blame", No, Plain, Free, &["date"]),
    ("blame", No, Path, Free, &["ignorerevsfile"]),
    ("apply", No, OneOf(&["change", "no", "none", "never", "false"]), Free, &["ignorewhitespace"]),
    ("apply", No, OneOf(&["nowarn", "warn", "fix", "error", "error-all"]), Free, &["whitespace"]),
    ("am", No, Bool, Free, &["keepcr", "threeway"]),
    ("format", No, BoolOr(&["auto"]), Free, &["coverletter", "numbered"]),
    ("format", No, BoolOr(&["shallow", "deep"]), Free, &["thread"]),
    ("format", No, Bool, Free, &["encodeemailheaders", "forceinbodyfrom", "mboxrd", "noprefix", "signoff"]),
    ("format", No, Number, Free, &["filenamemaxlength"]),
    ("grep", No, Bool, Free, &["column", "extendedregexp", "fallbacktonoindex", "fullname", "linenumber"]),
    ("grep", No, OneOf(&["default", "basic", "extended", "fixed", "perl"]), Free, &["patterntype"]),
    ("grep", No, Number, Free, &["threads"]),
    ("http", No, Number, Free, &["postbuffer", "lowspeedlimit", "lowspeedtime", "maxrequests", "minsessions"]),
    ("http", No, OneOf(&["HTTP/1.1", "HTTP/2"]), Free, &["version"]),
    ("protocol", No, OneOf(&["0", "1", "2"]), Free, &["version"]),
    ("rerere", No, Bool, Free, &["enabled", "autoupdate"]),
    // What holds for a shared repository, and what is fetched; without it less does.
    ("receive", No, Only("true"), Fixed, &["denynonfastforwards", "denydeletes", "fsckobjects"]),
    ("transfer", No, Only("true"), Fixed, &["fsckobjects"]),
    ("fetch", No, Only("true"), Fixed, &["fsckobjects"]),
];

/// A setting of the list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownSetting {
    value: Value,
    /// How it may change.
    pub(crate) change: Change,
}

/// What the list says of a setting; section and key in lower case.
pub(crate) fn known(section: &[u8], subsection: Option<&[u8]>, key: &[u8]) -> Option<KnownSetting> {
    let fits = |sub: Sub| match (sub, subsection) {
        (No, None) | (Any, Some(_)) => true,
        (Remote, Some(name)) => is_name(name),
        (Url, Some(url)) => is_url(url),
        (No, Some(_)) | (Any | Remote | Url, None) => false,
    };
    let is_key = |name: &&str| *name == "*" || name.as_bytes() == key;
    let row = ROWS
        .iter()
        .find(|(of, sub, _, _, keys)| of.as_bytes() == section && fits(*sub) && keys.iter().any(is_key));
    row.map(|(_, _, value, change, _)| KnownSetting {
        value: *value,
        change: *change,
    })
}

/// What the list of `.gitmodules` says of a setting. Git takes no more than this from there, and no command from `update`.
pub(crate) fn known_of_modules(section: &[u8], subsection: Option<&[u8]>, key: &[u8]) -> Option<KnownSetting> {
    let is_name =
        |name: &[u8]| !name.is_empty() && !name.split(|&b| matches!(b, b'/' | b'\\')).any(|part| part == b"..");
    if section != b"submodule" || !subsection.is_some_and(is_name) {
        return None;
    }
    let value = match key {
        b"path" => TreePath,
        b"url" => Address,
        b"shallow" => Bool,
        b"branch" => Name,
        b"ignore" => OneOf(IGNORED),
        b"fetchrecursesubmodules" => BoolOr(ON_DEMAND),
        b"update" => OneOf(UPDATES),
        _ => return None,
    };
    Some(KnownSetting { value, change: Free })
}

impl KnownSetting {
    /// Whether the value is of the kind that the setting takes.
    pub(crate) fn takes(self, value: &[u8]) -> bool {
        let is_one_of = |allowed: &[&str]| allowed.iter().any(|word| word.as_bytes() == value);
        let of = |signs: &[u8]| {
            let is_sign = |b: &u8| b.is_ascii_alphanumeric() || signs.contains(b);
            !value.is_empty() && !value.starts_with(b"-") && value.iter().all(is_sign)
        };
        match self.value {
            Bool => is_bool(value),
            Only(word) => value == word.as_bytes(),
            BoolOr(allowed) => is_bool(value) || is_one_of(allowed),
            OneOf(allowed) => is_one_of(allowed),
            // `log`, `threads` and others may be either.
            Number => is_number(value) || is_bool(value),
            Name => is_name(value),
            Sort => is_name(value.strip_prefix(b"-").unwrap_or(value)),
            Plain => of(b" -_./,:=+%*@"),
            Text => {
                !value.is_empty()
                    && !value
                        .iter()
                        .any(|b| b.is_ascii_control() && !matches!(b, b'\n' | b'\t'))
            }
            Color => of(b" -#,"),
            Time => of(b" -.:+"),
            Path => !value.starts_with(b"-") && is_visible(value),
            Address => is_url(value),
            TreePath => {
                let is_part = |part: &[u8]| !matches!(part, b"" | b"..");
                !value.starts_with(b"-")
                    && !value.iter().any(u8::is_ascii_control)
                    && value.split(|&b| matches!(b, b'/' | b'\\')).all(is_part)
            }
            Refspec => is_refspec(value),
        }
    }
}

/// Whether what is fetched stays among what is known of the remote.
pub(crate) fn is_tracking(remote: &[u8], spec: &[u8]) -> bool {
    let spec = spec.strip_prefix(b"+").unwrap_or(spec);
    let to = [b":refs/remotes/", remote, b"/"].concat();
    let Some(position) = spec.windows(to.len()).position(|part| part == to) else {
        return false;
    };
    let (from, to) = (&spec[..position], &spec[position + to.len()..]);
    from.strip_prefix(b"refs/heads/") == Some(to) && !to.contains(&b':')
}

fn is_bool(value: &[u8]) -> bool {
    matches!(
        value,
        b"true" | b"false" | b"yes" | b"no" | b"on" | b"off" | b"0" | b"1"
    )
}

fn is_number(value: &[u8]) -> bool {
    let unit = value.last().filter(|last| b"kmgKMG".contains(last));
    let digits = &value[..value.len() - usize::from(unit.is_some())];
    !digits.is_empty() && digits.len() <= 12 && digits.iter().all(u8::is_ascii_digit)
}

fn is_visible(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(|&b| b.is_ascii_graphic() || b >= 0x80)
}

/// A name as people give them: nothing that git or ssh could take for an option, a URL or a helper.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && !name.starts_with(b"-")
        && name
            .iter()
            .all(|&b| b.is_ascii_alphanumeric() || b >= 0x80 || b"-_./@+#".contains(&b))
}

/// A URL or path; `::` would name the helper program that git runs.
fn is_url(url: &[u8]) -> bool {
    !url.starts_with(b"-")
        && !url.starts_with(b"ext:")
        && !url.windows(2).any(|pair| pair == b"::")
        && !url.windows(4).any(|part| part == b"://-")
        && !url.windows(2).any(|pair| pair == b"@-")
        && is_visible(url)
}

fn is_refspec(spec: &[u8]) -> bool {
    let spec = spec.strip_prefix(b"+").unwrap_or(spec);
    spec.starts_with(b"refs/")
        && spec
            .iter()
            .all(|&b| b.is_ascii_alphanumeric() || b >= 0x80 || b"-_./@+*:#".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(name: &str, value: &str) -> bool {
        let (section, rest) = name.split_once('.').unwrap();
        let (sub, key) = match rest.rsplit_once('.') {
            Some((sub, key)) => (Some(sub.as_bytes()), key),
            None => (None, rest),
        };
        known(section.as_bytes(), sub, key.as_bytes()).is_some_and(|known| known.takes(value.as_bytes()))
    }

    #[test]
    fn every_row_is_of_git_or_of_a_program_that_is_named() {
        for (section, _, _, _, keys) in ROWS {
            let lower = |text: &&str| text.chars().all(|c| !c.is_ascii_uppercase());
            assert!(lower(section) && keys.iter().all(lower), "{section}: {keys:?}");
        }
        let git = names_of_git();
        for (section, _, _, _, keys) in ROWS {
            for key in keys.iter().filter(|key| **key != "*") {
                let full_name = format!("{section}.{key}");
                let like = |name: &String| {
                    let name = name.to_ascii_lowercase();
                    name == full_name
                        || (name.starts_with(&format!("{section}.<")) && name.ends_with(&format!(">.{key}")))
                };
                // Those of other programs, of other systems, and newer ones.
                let others = [
                    "lfs.",
                    "vscode-merge-base",
                    "gh-",
                    "fscache",
                    "longpaths",
                    "extensions.",
                    "followremotehead",
                    "userelativepaths",
                    "maintenance.autodetach",
                    "repositoryformatversion",
                    "ignorestat",
                    "init.defaultbranch",
                ];
                assert!(
                    git.iter().any(like) || others.iter().any(|other| full_name.contains(other)),
                    "{full_name}"
                );
            }
        }
    }

    #[test]
    fn of_all_that_git_knows_nothing_that_runs_or_leads_is_on_the_list() {
        let allowed = [
            "cmd",
            "command",
            "path",
            "program",
            "helper",
            "editor",
            "pager",
            "proxy",
            "hook",
            "textconv",
            "driver",
            "external",
            "tool",
            "askpass",
            "include",
            "insteadof",
            "alias",
            "filter",
            "allow",
            "uploadpack",
            "receivepack",
            "vcs",
            "attributes",
            "worktree",
            "browser",
            "gpg",
            "credential",
            "template",
            "sendemail",
            "cert",
            "cookie",
            "header",
            "shell",
        ];
        // What of these is harmless.
        let harmless = [
            "partialclonefilter",
            "quotepath",
            "relativepaths",
            "longpaths",
            "worktreeconfig",
            "worktree.",
            "gc.worktreepruneexpire",
            "gpgsign",
            "commit.template",
            "encodeemailheaders",
            "advice.",
            "color.",
            "column.",
            "readchangedpaths",
            "allowpackreuse",
            "relativeworktrees",
            "preciousobjects",
            "abbreviatecommands",
            "useforceifincludes",
            "showincludeuntracked",
            "maxnewfilters",
            "driver.binary",
            "driver.name",
        ];
        let mut listed = 0;
        for name in names_of_git() {
            let lower = name.to_ascii_lowercase().replace(['<', '>'], "");
            let Some((section, rest)) = lower.split_once('.') else {
                continue;
            };
            let (sub, key) = match rest.rsplit_once('.') {
                Some((sub, key)) => (Some(sub.as_bytes()), key),
                None => (None, rest),
            };
            if known(section.as_bytes(), sub, key.as_bytes()).is_none() {
                continue;
            }
            listed += 1;
            let suspect = allowed.iter().any(|word| lower.contains(word))
                && !harmless.iter().any(|harmless| lower.contains(harmless));
            assert!(!suspect, "{lower}");
        }
        assert!(listed > 150, "{listed}");
    }

    /// The names of settings that the installed git knows.
    #[expect(clippy::disallowed_methods, reason = "git is asked what it knows")]
    fn names_of_git() -> Vec<String> {
        let listed = std::process::Command::new("git").args(["help", "-c"]).output().unwrap();
        let text = String::from_utf8(listed.stdout).unwrap();
        text.lines()
            .map(str::trim)
            .filter(|line| line.contains('.') && !line.contains(' '))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn a_value_is_of_the_kind_that_is_written() {
        for (name, value) in [
            ("color.ui", "auto"),
            ("color.diff.meta", "yellow bold #ff00aa"),
            ("core.filemode", "false"),
            ("core.fsmonitor", "false"),
            ("gc.auto", "0"),
            ("http.postbuffer", "500m"),
            ("user.email", "A B <a@b>; # \"x\""),
            ("user.signingkey", "key::ssh-ed25519 AAAA= a@b"),
            ("remote.origin.url", "git@example.org:a/b.git"),
            ("remote.origin.tagopt", "--no-tags"),
            ("branch.sort", "-committerdate"),
            ("core.commentchar", ";"),
            ("branch.issue/#7.merge", "refs/heads/issue/#7"),
            ("branch.x.description", "line\n\tand another\n"),
            ("submodule.a.url", "../x"),
            ("submodule.a.update", "rebase"),
            ("lfs.https://example.org/x.git/info/lfs.access", "basic"),
            ("extensions.worktreeconfig", "true"),
            ("gc.pruneexpire", "2.weeks.ago"),
            ("log.date", "format:%Y-%m-%d"),
        ] {
            assert!(takes(name, value), "{name} = {value}");
        }
        for (name, value) in [
            ("color.ui", "!x"),
            ("color.ui", ""),
            ("core.fsmonitor", "true"),
            ("core.hookspath", "x"),
            ("core.editor", "x"),
            ("core.worktree", "x"),
            ("core.attributesfile", "x"),
            ("core.protectntfs", "false"),
            ("diff.external", "x"),
            ("diff.x.command", "x"),
            ("diff.x.textconv", "x"),
            ("gc.recentobjectshook", "x"),
            ("gc.auto", "1; x"),
            ("help.autocorrect", "1"),
            ("lfs.customtransfer.x.path", "x"),
            ("lfs.extension.x.clean", "x"),
            ("lfs.-x.access", "basic"),
            ("merge.x.driver", "x"),
            ("merge.tool", "x"),
            ("pull.twohead", "x"),
            ("remote.origin.url", "ext::sh -c x"),
            ("remote.origin.url", "--upload-pack=x"),
            ("remote.origin.proxy", "x"),
            ("remote.origin.uploadpack", "x"),
            ("remote.-x.url", "y"),
            ("submodule.a.update", "!x"),
            ("url.x.insteadof", "y"),
            ("http.proxy", "x"),
            ("http.sslverify", "false"),
            ("http.https://x.postbuffer", "1"),
            ("protocol.ext.allow", "always"),
            ("safe.directory", "*"),
            ("user.name", "a\u{1b}[2J"),
            ("unknown.key", "true"),
            ("core.unknown", "true"),
        ] {
            assert!(!takes(name, value), "{name} = {value}");
        }
    }

    #[test]
    fn a_refspec_is_followed_to_where_it_ends() {
        assert!(is_tracking(b"o", b"+refs/heads/*:refs/remotes/o/*"));
        assert!(is_tracking(b"o", b"refs/heads/a/b:refs/remotes/o/a/b"));
        for spec in [
            "+refs/heads/*:refs/heads/*",
            "+refs/heads/*:refs/remotes/p/*",
            "+refs/*:refs/remotes/o/*",
            "refs/heads/a:refs/remotes/o/b",
            "refs/heads/a",
        ] {
            assert!(!is_tracking(b"o", spec.as_bytes()), "{spec}");
        }
    }
}
