//! The secret in the address of the page.

use crate::error::{Error, Result};

/// 128 random bits, as hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token(…)")
    }
}

impl Token {
    /// Creates a random token.
    ///
    /// # Errors
    /// Fails if the system gives no random bytes.
    pub fn random() -> Result<Self> {
        let mut bytes = [0_u8; 16];
        let mut filled = 0;
        while filled < bytes.len() {
            let read = rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty());
            filled += read.map_err(|errno| Error::NoRandomness(errno.into()))?;
        }
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Text of the token.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a text is this token; the time does not depend on where they differ.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), text.as_bytes());
        let differing = own.iter().zip(other).fold(0, |bits, (a, b)| bits | (a ^ b));
        own.len() == other.len() && differing == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_itself_and_nothing_else() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(one.as_str().len(), 32);
        assert!(one.is(one.as_str()) && !one.is(other.as_str()));
        assert!(!one.is("") && !one.is(&one.as_str()[..31]) && !one.is(&format!("{}0", one.as_str())));
        assert_eq!(format!("{one:?}"), "Token(…)");
    }
}
