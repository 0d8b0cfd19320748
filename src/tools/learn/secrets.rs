//! Names under which people and programs keep what nobody else may have.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

/// Names of files and directories, in small letters.
const NAMES: &[&str] = &[
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".gpg",
    ".kube",
    ".docker",
    ".podman",
    ".password-store",
    ".pki",
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".vault-token",
    ".env",
    ".envrc",
    ".htpasswd",
    ".terraform.d",
    ".terraformrc",
    ".boto",
    ".s3cfg",
    ".mozilla",
    ".thunderbird",
    ".chromium",
    ".bitcoin",
    ".ethereum",
    ".electrum",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".lesshst",
    ".viminfo",
    ".xauthority",
    ".iceauthority",
    ".authinfo",
    ".authinfo.gpg",
    ".config.gpg",
    ".claude",
    ".codex",
    ".gemini",
    ".cursor",
    "shadow",
    "shadow-",
    "gshadow",
    "gshadow-",
    "sudoers",
    "sudoers.d",
    "credentials",
    "credentials.toml",
    "credentials.json",
    "credentials.db",
    "application_default_credentials.json",
    "keyrings",
    "keychains",
    "kwalletd",
    "google-chrome",
    "chromium",
    "bravesoftware",
    "microsoft-edge",
    "gcloud",
    "gh",
    "hub",
    "glab-cli",
    "op",
    "1password",
    "bitwarden",
    "keepassxc",
    "rclone",
    "doctl",
    "heroku",
    "filezilla",
    "secrets",
    "secret",
    "private",
    "token",
    "tokens",
    "passwd-",
    "auth.json",
    "wallet.dat",
    "master.key",
    "cookies.sqlite",
    "login data",
    "key4.db",
    "logins.json",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
    "docker.sock",
    "containerd.sock",
    "podman.sock",
    "crio.sock",
    ".secrets",
    "kubeconfig",
    ".dockercfg",
];

/// How names of keys and stores of them end, in small letters.
const ENDINGS: &[&str] = &[
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".p8",
    ".jks",
    ".keystore",
    ".kdb",
    ".kdbx",
    ".keytab",
    ".ppk",
    ".asc",
    ".gpg",
    ".age",
    ".ovpn",
    ".sock",
    ".env",
    ".tfstate",
    ".tfvars",
];

/// Beginnings of names, in small letters.
const BEGINNINGS: &[&str] = &[".env.", "secrets.", "id_rsa.", "id_ed25519.", "id_ecdsa."];

/// Whether a name says that something secret lies there; what ends in `.pub` is public.
pub(super) fn is_secret(name: &OsStr) -> bool {
    let name = name.as_bytes().to_ascii_lowercase();
    if name.ends_with(b".pub") || name == b".env.example" {
        return false;
    }
    NAMES.iter().any(|known| name == known.as_bytes())
        || ENDINGS.iter().any(|end| name.ends_with(end.as_bytes()))
        || BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning.as_bytes()))
}

/// The first name on the way that says so.
pub(super) fn on_the_way(path: &Path) -> Option<&OsStr> {
    path.components().find_map(|component| match component {
        Component::Normal(name) if is_secret(name) => Some(name),
        Component::Normal(_) | Component::RootDir | Component::CurDir | Component::ParentDir | Component::Prefix(_) => {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_name_in_any_case_and_what_is_public_is_none() {
        for secret in [
            ".ssh",
            "ID_RSA",
            "server.PEM",
            ".env",
            ".env.local",
            "docker.sock",
            "Credentials",
            "prod.env",
            "secrets.yaml",
            "prod.tfstate",
            "kubeconfig",
        ] {
            assert!(is_secret(OsStr::new(secret)), "{secret}");
        }
        for open in [
            "id_rsa.pub",
            "src",
            "environment",
            "keys.rs",
            ".env.example",
            "privateer",
        ] {
            assert!(!is_secret(OsStr::new(open)), "{open}");
        }
        assert_eq!(on_the_way(Path::new("/home/a/.aws/x")), Some(OsStr::new(".aws")));
        assert_eq!(on_the_way(Path::new("/usr/share/x")), None);
    }
}
