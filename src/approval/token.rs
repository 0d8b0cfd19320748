//! Words that whoever wants to be listened to must know.

use std::io;

use super::random;
use crate::policy::hex::hex;

/// The words.
#[derive(Clone)]
pub struct Token(String);

/// Never told, not even by mistake.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// Words that nobody guesses.
    pub fn made() -> io::Result<Self> {
        Ok(Self(hex(&random::<32>()?)))
    }

    /// These words.
    pub const fn of(words: String) -> Self {
        Self(words)
    }

    /// The words, for the one who is to know them.
    pub fn words(&self) -> &str {
        &self.0
    }

    /// Whether this is it, in a time that does not tell how much of it is.
    pub fn is(&self, said: &str) -> bool {
        let (own, said) = (self.0.as_bytes(), said.as_bytes());
        let differences = own.iter().zip(said).fold(0_u8, |all, (a, b)| all | (a ^ b));
        own.len() == said.len() && std::hint::black_box(differences) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_the_token() {
        let token = Token::of("0123".to_owned());
        assert!(token.is("0123"));
        for wrong in ["", "012", "01234", "0124", "1123"] {
            assert!(!token.is(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_made_anew_each_time_and_not_told() {
        let (one, other) = (Token::made().unwrap(), Token::made().unwrap());
        assert_eq!(one.words().len(), 64);
        assert!(!one.is(other.words()));
        assert_eq!(format!("{one:?}"), "Token");
    }
}
