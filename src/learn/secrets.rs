//! Names under which people and programs keep what nobody else may have.
//!
//! A name that says it wrongly costs a question, one that is missed costs what lies there. So names are taken apart at
//! whatever is no letter or digit, and where small letters meet large ones, and are looked at word by word: what is put before or behind
//! (`old`, `.bak`, `-prod`, `2`) changes nothing. Text of programs is another thing: it speaks of secrets all the time
//! (`passwords_test.py`, `token.rs`), and a project that holds such a file would never be of low risk. There it is said only by a
//! name that speaks of nothing else (`secrets.py`, `api_key.js`).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use icu_normalizer::ComposingNormalizerBorrowed;

use crate::policy::private_names::{IN_HOME, OF_STOCKADE};

mod names;

use names::{
    ACCESS_OBJECTS, ACCESS_WORDS, COPY_MARKS, DATA, ENDINGS, NAMES, NEUTRAL_WORDS, SECRET_IN_DATA, SECRET_WORDS, SOURCE,
};

/// Words that are said in so many others that only a whole one counts (`sacred`).
const MIN_SUFFIX_LENGTH: usize = 6;
/// Beginnings of words that are written as one (`passwordlist`), in a file of data.
const JOINED: &[&str] = &["secret", "password", "passwd", "credential"];

/// What is behind one of these may have any ending, also one of a program's text.
const BEGINNINGS: &[&str] = &[
    ".env.",
    "secrets.",
    "id_rsa.",
    "id_ed25519.",
    "id_ecdsa.",
    "appsettings.",
    "application-prod",
];

/// Whether a name says that something secret lies there; of keys what ends in `.pub` is public.
///
/// Letters have other forms (wide ones, those in circles), which look alike to people and are another name to the system. Where
/// either the name or what it is in plain letters (NFKC) says so, it is one.
pub(super) fn is_secret(name: &OsStr) -> bool {
    let name = String::from_utf8_lossy(name.as_bytes());
    is_secret_name(&name) || is_secret_name(&ComposingNormalizerBorrowed::new_nfkc().normalize(&name))
}

fn is_secret_name(name: &str) -> bool {
    let small = name.to_lowercase();
    if small == ".env.example" || small.strip_suffix(".pub").is_some_and(is_public_key_name) {
        return false;
    }
    let begins = BEGINNINGS.iter().any(|beginning| small.starts_with(beginning));
    begins
        || is_known(&small)
        || NameParts::of(&small).is_secret()
        || NameParts::of(&split_camel_case(name)).is_secret()
}

/// Whether nothing but a key could be meant: of everything else no part is for everybody.
fn is_public_key_name(name: &str) -> bool {
    let parts = NameParts::of(name);
    let mut all = parts.all.iter();
    !parts.hidden && !parts.is_environment() && all.all(|(word, _)| !is_secret_word(word) || word.starts_with("id"))
}

/// Whether it is one of the names, or a copy of what bears it.
fn is_known(name: &str) -> bool {
    let name = name.trim_start_matches('#');
    let in_home = IN_HOME.iter().filter(|known| !known.contains('/'));
    NAMES.iter().chain(in_home).any(|known| {
        // An editor hides the name of its own copy.
        let rest = [Some(name), name.strip_prefix('.')]
            .into_iter()
            .flatten()
            .find_map(|name| suffix_after(name, known));
        rest.is_some_and(|rest| {
            rest.is_empty()
                || (!rest.starts_with(char::is_alphanumeric)
                    && (known.starts_with('.')
                        || is_copy_suffix(rest)
                        || (known.len() >= MIN_SUFFIX_LENGTH && is_data_copy_suffix(rest))))
        })
    })
}

/// What a name has behind another one, whose letters may be large.
fn suffix_after<'a>(name: &'a str, known: &str) -> Option<&'a str> {
    let (begins, rest) = name.split_at_checked(known.len())?;
    begins.eq_ignore_ascii_case(known).then_some(rest)
}

/// Whether this is what stands behind the name of a file that is kept.
fn is_copy_suffix(rest: &str) -> bool {
    let number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = rest.split(|c: char| !c.is_alphanumeric());
    parts.all(|word| number(word) || COPY_MARKS.contains(&word))
}

/// Whether this is that, with an ending of data behind it.
fn is_data_copy_suffix(rest: &str) -> bool {
    rest.rsplit_once('.')
        .is_some_and(|(rest, ending)| DATA.contains(&ending) && is_copy_suffix(rest))
}

/// With a separator where a small letter meets a large one, in small letters.
fn split_camel_case(name: &str) -> String {
    let mut separated = String::with_capacity(name.len());
    let mut small = false;
    for c in name.chars() {
        if small && c.is_ascii_uppercase() {
            separated.push('_');
        }
        small = c.is_ascii_lowercase() || c.is_ascii_digit();
        separated.push(c.to_ascii_lowercase());
    }
    separated
}

/// A name, word by word.
struct NameParts<'a> {
    /// Each, and whether a dot stands before it.
    all: Vec<(&'a str, bool)>,
    hidden: bool,
    /// What stands behind the last dot, if that is not the first.
    ending: Option<&'a str>,
}

impl<'a> NameParts<'a> {
    fn of(name: &'a str) -> Self {
        let mut parts = Vec::new();
        let mut dot = false;
        for part in name.split_inclusive(|c: char| !c.is_alphanumeric()) {
            let word = part.trim_end_matches(|c: char| !c.is_alphanumeric());
            if !word.is_empty() {
                parts.push((word, dot));
            }
            dot = part.ends_with('.');
        }
        Self {
            all: parts,
            hidden: name.starts_with('.'),
            ending: name
                .rsplit_once('.')
                .filter(|(stem, _)| !stem.is_empty())
                .map(|(_, ending)| ending),
        }
    }

    fn is_secret(&self) -> bool {
        if self.ending.is_some_and(|ending| SOURCE.contains(&ending)) && !self.hidden {
            return self.names_only_secrets() || self.covers_data();
        }
        let data = self.ending.is_some() || self.hidden;
        self.all
            .iter()
            .any(|(word, dot)| names_secret(word) || (*dot && is_one_of(word, ENDINGS)))
            || self.pairs().any(|pair| names_secret(&pair))
            || (data
                && self
                    .all
                    .iter()
                    .any(|(word, _)| is_one_of(word, SECRET_IN_DATA) || is_joined(word)))
            || self.is_environment()
            || self.is_history()
    }

    /// What was typed, passwords among it (`.fish_history`).
    fn is_history(&self) -> bool {
        let last = self.all.last().map(|(word, _)| *word);
        self.hidden && last.is_some_and(|word| word.ends_with("history"))
    }

    /// Variables of one environment (`.env-prod`, `env.local`, `prod_env`): not `env` alone, where Python keeps its packages.
    fn is_environment(&self) -> bool {
        (self.hidden || self.all.len() > 1)
            && self
                .all
                .iter()
                .any(|(word, _)| is_one_of(word, &["env", "envrc", "dotenv"]))
    }

    /// Whether every word before the ending says it, or of what it is, or means nothing here.
    fn names_only_secrets(&self) -> bool {
        let stem = self.all.split_last().map_or(&[][..], |(_, stem)| stem);
        let all = stem.iter().all(|(word, _)| {
            names_secret(word)
                || is_one_of(word, ACCESS_WORDS)
                || is_one_of(word, ACCESS_OBJECTS)
                || COPY_MARKS.contains(word)
                || is_one_of(word, NEUTRAL_WORDS)
        });
        all && (stem.iter().any(|(word, _)| names_secret(word)) || self.pairs().any(|pair| names_secret(&pair)))
    }

    /// Whether the ending stands behind that of data (`key.pem.md`), which is what it was.
    fn covers_data(&self) -> bool {
        let Some(((_, true), stem)) = self.all.split_last() else {
            return false;
        };
        let Some(((ending, true), stem)) = stem.split_last() else {
            return false;
        };
        let is_key = ENDINGS.contains(ending) && *ending != "env";
        is_key
            || (DATA.contains(ending)
                && stem
                    .iter()
                    .any(|(word, _)| names_secret(word) || is_one_of(word, SECRET_IN_DATA)))
    }

    /// Words that stand together, as one.
    fn pairs(&self) -> impl Iterator<Item = String> {
        self.all
            .windows(2)
            .filter_map(|pair| Some([pair.first()?.0, pair.last()?.0].concat()))
    }
}

/// Whether a word says it.
fn names_secret(word: &str) -> bool {
    let word = without_copy_number(word, SECRET_WORDS);
    is_secret_word(word)
        || ACCESS_WORDS.iter().any(|opening| {
            word.strip_suffix(opening)
                .is_some_and(|of| ACCESS_OBJECTS.contains(&of))
        })
}

fn is_secret_word(word: &str) -> bool {
    let word = without_copy_number(word, SECRET_WORDS);
    SECRET_WORDS
        .iter()
        .any(|known| word == *known || (known.len() >= MIN_SUFFIX_LENGTH && word.ends_with(known)))
}

fn is_one_of(word: &str, parts: &[&str]) -> bool {
    parts.contains(&without_copy_number(word, parts))
}

fn is_joined(word: &str) -> bool {
    JOINED.iter().any(|beginning| word.starts_with(beginning)) && !word.starts_with("secretar")
}

/// A word without the number of a copy, unless the number is part of it.
fn without_copy_number<'a>(word: &'a str, parts: &[&str]) -> &'a str {
    if parts.contains(&word) {
        return word;
    }
    word.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// The first name on the way that says so, or the last of a way that a home directory has to what is private.
pub(super) fn secret_component(path: &Path) -> Option<&OsStr> {
    let names = || {
        path.components().filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            Component::RootDir | Component::CurDir | Component::ParentDir | Component::Prefix(_) => None,
        })
    };
    names()
        .find(|name| is_secret(name))
        .or_else(|| private_suffix(&names().collect::<Vec<_>>()))
}

/// The end of such a way, in whatever directory it begins: homes move and are mounted.
fn private_suffix<'a>(names: &[&'a OsStr]) -> Option<&'a OsStr> {
    let known = || IN_HOME.iter().chain(&OF_STOCKADE).filter(|known| known.contains('/'));
    (0..names.len()).find_map(|at| {
        let rest = names.get(at..)?;
        known().find_map(|known| {
            let mut ends = None;
            let mut rest = rest.iter();
            for part in known.split('/') {
                ends = rest.next().filter(|name| name.eq_ignore_ascii_case(part));
                ends?;
            }
            ends.copied()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn all_are(secret: bool, names: &str) {
        for name in names.split_whitespace() {
            assert_eq!(is_secret(OsStr::new(name)), secret, "{name}");
        }
    }

    #[test]
    fn secrets_are_known_by_name_in_any_case_and_what_is_public_is_none() {
        all_are(
            true,
            ".ssh ID_RSA server.PEM .env .env.local docker.sock Credentials prod.env secrets.yaml prod.tfstate kubeconfig",
        );
        all_are(false, "id_rsa.pub src environment keys.rs .env.example privateer");
        assert_eq!(secret_component(Path::new("/home/a/.aws/x")), Some(OsStr::new(".aws")));
        assert_eq!(secret_component(Path::new("/usr/share/x")), None);
        for (path, name) in [
            ("/home/a/.config/Slack/x", "Slack"),
            ("/home/a/.local/state/stockade/audit.log", "stockade"),
            ("/home/a/.m2/settings.xml", "settings.xml"),
        ] {
            assert_eq!(secret_component(Path::new(path)), Some(OsStr::new(name)), "{path}");
        }
        assert_eq!(secret_component(Path::new("/home/a/.config/nvim/init.lua")), None);
    }

    #[test]
    fn another_spelling_of_a_name_is_the_same_secret() {
        all_are(
            true,
            ".secret .env-prod .env_local .envrc.local env.production prod_env set-env.sh .env2 .env~ .env.js \
             credentials.csv client_secret.json clientSecret.json CLIENT-SECRET SeCrEt.json my-secrets.toml mysecret.txt \
             service-account.json serviceAccountKey.json service_account_prod app-firebase-adminsdk-1a2b.json \
             api_key.txt apikey APIKey.txt api-keys.json private_key privateKey.txt access-token github_token.txt \
             accesstoken deploy.key signing-key-2024 key.txt keys.json token.json auth.yaml \
             password.txt passwords.csv passwordlist.txt db_passwd Passwort.txt passphrase pwd.txt root-pw \
             npmrc .npmrc-old netrc.txt .netrc.bak .pypirc_work .pgpass.save htpasswd .htpasswd.old users.htpasswd \
             kube-config.yaml kubeconfig-prod prod.kubeconfig .kube-old .aws_old aws.json gcloud.json \
             cookies.txt vault.yml .vault-token.1 vault_pass recovery-codes.txt seed-phrase wallet.json \
             terraform.tfvars.json prod.auto.tfvars terraform.tfstate.backup",
        );
    }

    #[test]
    fn settings_of_services_that_hold_passwords_by_habit_are_secrets() {
        all_are(
            true,
            "appsettings.json appsettings.Production.json web.config Web.config.bak connectionStrings.config database.yml \
             application-prod.properties application-production.yml",
        );
        all_are(
            false,
            "application.rs settings.toml webconfig.ts database.rs appsettings",
        );
    }

    #[test]
    fn a_copy_of_a_key_is_a_key() {
        all_are(
            true,
            "id_rsa_old id_rsa2 id_rsa.1 id_ed25519-work old_id_ecdsa id_dsa~ key.pem.bak server.key.2024 key.pem-old \
             server.pem.gz key.pem2 #server.key# .server.pem.swp cert.p12.orig store.jks_1 store.keystore.save \
             vault.kdbx.backup home.ovpn~ secret.asc.old a.gpg.1 a.der a.jwk a.pkcs12 a.ppk.txt shadow.bak token~ \
             credentials.old .bash_history-0123.tmp secrets.tar.gz",
        );
        assert!(is_secret(OsStr::new("id_rsa (copy 2)")));
        assert!(is_secret(OsStr::new("my passwords.txt")));
        assert!(is_secret(OsStr::from_bytes(b"api_key\xff.txt")));
    }

    #[test]
    fn a_key_is_one_whatever_ending_is_put_behind_it() {
        all_are(
            true,
            "id_rsa.md id_rsa.png id_rsa.rs id_ed25519.html id_ecdsa.js secrets.json.md secrets.png .env.rs key.pem.md \
             key.pem.rs secret.txt.md token.json.html server.key.png",
        );
        all_are(
            false,
            "id_rsa.pub id_ed25519.pub .env.example deploy_key.pub cosign.pub ssh_host_ed25519_key.pub data.json.md",
        );
    }

    #[test]
    fn only_names_of_keys_can_be_public() {
        all_are(
            true,
            "secrets.pub .env.pub passwords.pub prod.env.pub credentials.pub .netrc.pub",
        );
    }

    #[test]
    fn lists_of_secrets_are_some_in_a_document_too() {
        all_are(
            true,
            "passwords-work.md my_passwords_2024.md credentials_old.rs passwords.html secrets-team.rst",
        );
    }

    #[test]
    fn what_was_typed_and_stores_of_programs_are_known() {
        all_are(
            true,
            "bash_history zsh_history.txt .fish_history .irb_history .history .Rhistory shadow.txt authinfo s3cfg \
             logins-backup.json logins.csv filezilla.xml wg1.conf wg-home.conf docker-config.json id_ed448 keyfile \
             luks.keyfile secring.gpg pubring.kbx gh_token ghp_token hf_token gitlab-pat dotenv envfile .flaskenv \
             .dev.vars .Renviron cert9.db signons.sqlite krb5cc_1000 .gitcookies .msmtprc bitwarden_export.json \
             lastpass.csv export.1pif kaggle.json .databrickscfg .sentryclirc WinSCP.ini k3s.yaml wpa_supplicant.conf \
             WiFi.nmconnection app.publishsettings prod.tfplan ntds.dit mycreds passw.txt pswd.txt",
        );
        all_are(
            false,
            "history history.rs history.md shadow.css wgpu.rs wg.c admin.rs samples tokens.rs js-tokens history.json",
        );
    }

    #[test]
    fn a_name_in_another_form_of_letters_is_the_same_secret() {
        all_are(
            true,
            "ｉｄ_rsa ＩＤ＿ＲＳＡ id＿rsa．old ．env ｐasswords.txt ⓢecrets.yaml 𝐜𝐫𝐞𝐝𝐞𝐧𝐭𝐢𝐚𝐥𝐬.json ｋｅｙ．ｐｅｍ contrasen\u{303}as.txt ﾊﾟｽﾜｰﾄﾞ.csv",
        );
        // What is said to be public in such letters is believed of nothing.
        all_are(true, "id_rsa．pub ｓecrets.pub");
        all_are(false, "ｒｅａｄｍｅ.md ｔｏｋｅｎ.rs café.txt");
    }

    #[test]
    fn passwords_are_known_in_other_languages() {
        all_are(
            true,
            "contraseñas.txt CONTRASEÑA geheim.txt пароли.txt ПАРОЛЬ 密码.txt パスワード.csv senhas.csv motdepasse.txt",
        );
    }

    #[test]
    fn text_of_programs_says_it_by_nothing_but_the_name_of_a_secret() {
        all_are(
            false,
            "tokenizer.rs tokenizer.json secretary.md secretary.txt keyboard.c keymap.json token.rs tokens.css key.png keys.go \
             passwords_test.py test_credentials.py secret_sharing.md password-reset.html auth.ts env.py vite-env.d.ts \
             js-tokens object-keys env venv environment.yml sacred.txt monkey.txt turkey.csv passenger.json \
             compass.yaml keynote.txt README.md Makefile Cargo.lock package.json private.h hub.py op.rs gh-pages pinned.txt",
        );
        all_are(
            true,
            "secrets.py secrets.rs credentials.js aws_secrets.py api_key.js PrivateKey.java my_password.md keys.js wp-config.php",
        );
    }
}
