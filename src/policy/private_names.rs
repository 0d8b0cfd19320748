//! Private names in a home directory: keys, tokens and histories. Data only.
//!
//! A root that contains a home does not grant them, and `learn` never proposes them without a warning. Toolchains and
//! caches are not listed, nor files that agents are to read (`.claude/skills`).

use super::grant::Origin;

/// The names, relative to a home directory.
pub(crate) const IN_HOME: &[&str] = &[
    // Keys and logins.
    ".ssh",
    ".gnupg",
    ".gpg",
    ".config.gpg",
    ".age",
    ".config/age",
    ".config/sops",
    ".password-store",
    ".local/share/password-store",
    ".pki",
    ".local/share/pki",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".netrc",
    "_netrc",
    ".authinfo",
    ".authinfo.gpg",
    ".rhosts",
    ".Xauthority",
    ".ICEauthority",
    ".config/op",
    ".config/1Password",
    ".config/Bitwarden",
    ".config/keepassxc",
    ".secrets",
    ".env",
    ".envrc",
    ".htpasswd",
    ".flaskenv",
    ".dev.vars",
    ".Renviron",
    // Clouds and machines.
    ".aws",
    ".azure",
    ".oci",
    ".boto",
    ".s3cfg",
    ".config/gcloud",
    ".config/doctl",
    ".config/hcloud",
    ".config/heroku",
    ".config/fly",
    ".fly",
    ".config/rclone",
    ".config/configstore",
    ".databrickscfg",
    ".snowflake",
    ".kaggle/kaggle.json",
    ".config/kaggle",
    ".kube",
    ".docker",
    ".dockercfg",
    ".podman",
    ".config/containers/auth.json",
    ".config/helm",
    ".vault-token",
    ".terraform.d",
    ".terraformrc",
    ".sentryclirc",
    // Code and packages.
    ".git-credentials",
    ".config/git/credentials",
    ".gitcookies",
    ".subversion/auth",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/github-copilot",
    ".npmrc",
    ".config/npm",
    ".yarnrc.yml",
    ".pypirc",
    ".config/pip/pip.conf",
    ".pip/pip.conf",
    ".config/pypoetry/auth.toml",
    ".local/share/uv/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".local/share/gem/credentials",
    ".bundle/config",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".nuget/NuGet",
    ".config/NuGet",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".huggingface",
    // Agents.
    ".claude.json",
    ".claude/.credentials.json",
    ".claude/history.jsonl",
    ".claude/projects",
    ".codex/auth.json",
    ".codex/history.jsonl",
    ".codex/sessions",
    ".gemini/oauth_creds.json",
    ".gemini/google_accounts.json",
    ".cursor/mcp.json",
    // Databases.
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".dbshell",
    // Mail and the web.
    ".msmtprc",
    ".config/msmtp",
    ".fetchmailrc",
    ".mbsyncrc",
    ".wgetrc",
    ".curlrc",
    ".config/filezilla",
    ".mozilla",
    ".config/mozilla",
    ".thunderbird",
    ".chromium",
    ".config/chromium",
    ".config/google-chrome",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".var/app",
    "snap/firefox",
    "snap/chromium",
    // Talk and money.
    ".config/Signal",
    ".config/Slack",
    ".config/discord",
    ".config/Element",
    ".config/weechat",
    ".weechat",
    ".irssi",
    ".purple",
    ".local/share/TelegramDesktop",
    ".bitcoin",
    ".ethereum",
    ".electrum",
    ".monero",
    // What was typed.
    ".bash_history",
    ".sh_history",
    ".zsh_history",
    ".zhistory",
    ".histfile",
    ".local/share/fish/fish_history",
    ".local/share/atuin",
    ".python_history",
    ".ipython/profile_default/history.sqlite",
    ".ipython/profile_default/security",
    ".jupyter",
    ".local/share/jupyter/runtime",
    ".node_repl_history",
    ".irb_history",
    ".local/share/irb",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".mongodb",
    ".lesshst",
    ".viminfo",
];

/// Stockade's own directories in a home. No command may reach them: they have the tokens of approval sockets and of MCP over
/// HTTP.
pub(crate) const OF_STOCKADE: [&str; 2] = [".local/state/stockade", ".config/stockade"];

/// The origin of a deny of these. Only Stockade creates files in them, so nobody searches them for hard links, nor lists a
/// quarantine.
pub(crate) const ORIGIN_OF_STOCKADE: Origin = Origin::Builtin("what belongs to Stockade");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_name_is_a_plain_way_from_a_home_and_stands_once() {
        let all: BTreeSet<&str> = IN_HOME.iter().chain(&OF_STOCKADE).copied().collect();
        assert_eq!(all.len(), IN_HOME.len() + OF_STOCKADE.len());
        for name in all {
            let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
            assert!(name.split('/').all(plain), "{name}");
        }
    }
}
