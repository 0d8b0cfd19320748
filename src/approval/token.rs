//! A secret that a client must send to be served.

use std::io;

use super::random;
use crate::policy::hex::hex;

/// A secret text.
#[derive(Clone)]
pub struct Token(String);

/// Never prints the secret.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// A new random token.
    pub fn generate() -> io::Result<Self> {
        Ok(Self(hex(&random::<32>()?)))
    }

    /// The token with this text.
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The secret text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in constant time.
    pub fn matches(&self, other: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), other.as_bytes());
        let differences = own.iter().zip(other).fold(0_u8, |all, (a, b)| all | (a ^ b));
        own.len() == other.len() && std::hint::black_box(differences) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_the_token() {
        let token = Token::new("0123".to_owned());
        assert!(token.matches("0123"));
        for wrong in ["", "012", "01234", "0124", "1123"] {
            assert!(!token.matches(wrong), "{wrong}");
        }
    }

    #[test]
    fn each_token_is_new_and_never_printed() {
        let (one, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_eq!(one.as_str().len(), 64);
        assert!(!one.matches(other.as_str()));
        assert_eq!(format!("{one:?}"), "Token");
    }
}
