//! The list of git's harmless settings, for code that only reads a config.

use super::keys;
use super::text::Config;

pub use super::text::written;

/// One setting of a git config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSetting {
    /// In lower case.
    pub section: Vec<u8>,
    /// As it stands.
    pub subsection: Option<Vec<u8>>,
    /// In lower case.
    pub key: Vec<u8>,
    /// Without quotes, escapes and comment; `true` where there is no equals sign, as git has it.
    pub value: Vec<u8>,
    /// Whether the list knows it as harmless with this value.
    pub is_harmless: bool,
}

/// All settings of a config, in their order; `None` where git would refuse it, or not all of it is understood.
pub fn git_settings(text: &[u8]) -> Option<Vec<GitSetting>> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut plain = Vec::with_capacity(text.len());
    for (at, &byte) in text.iter().enumerate() {
        // A line may end as on other systems.
        if byte != b'\r' || text.get(at + 1) != Some(&b'\n') {
            plain.push(byte);
        }
    }
    let config = Config::read(&plain)?;
    let of = |setting: super::text::Setting| {
        let header = config.headers.get(setting.header)?;
        let value = setting.value.unwrap_or_else(|| b"true".to_vec());
        let known = keys::known(&header.section, header.subsection.as_deref(), &setting.key);
        // Git compares words without regard to case, and writes them in small letters.
        let takes = |known: keys::KnownSetting| known.takes(&value) || known.takes(&value.to_ascii_lowercase());
        Some(GitSetting {
            section: header.section.clone(),
            subsection: header.subsection.clone(),
            key: setting.key,
            is_harmless: known.is_some_and(takes),
            value,
        })
    };
    config.settings.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_with_what_the_list_knows_of_them() {
        let text = "\u{feff}[Core]\r\n\tAutoCRLF = Input\r\n\teditor = vi\r\n[a \"B\"] c\r\n";
        let listed: Vec<_> = git_settings(text.as_bytes())
            .unwrap()
            .into_iter()
            .map(|one| {
                (
                    String::from_utf8([one.key, one.value].join(&b'=')).unwrap(),
                    one.is_harmless,
                )
            })
            .collect();
        let expected = [("autocrlf=Input", true), ("editor=vi", false), ("c=true", false)];
        assert_eq!(listed, expected.map(|(text, is)| (text.to_owned(), is)));
        assert_eq!(git_settings(b"[a]\nb = \"c\n"), None);
    }
}
