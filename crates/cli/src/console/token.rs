// SPDX-License-Identifier: Apache-2.0
//! The token that requests from other machines need.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::rand::{GetRandomFlags, getrandom};
use subtle::ConstantTimeEq;

use crate::failure::Failure;
use crate::input;

/// Random bytes of a generated token.
const RANDOM_BYTES: usize = 16;
/// Permissions of others than the owner of a file.
const OTHERS: u32 = 0o077;

/// A secret of 16 to 128 letters, digits, `-` and `_`. It is compared in constant time, and not printed by `Debug`.
pub(super) struct Token(String);

impl Token {
    /// Reads a token from a file that only its owner may read or write.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let file_error = |source| Failure::File {
            path: path.to_path_buf(),
            source,
        };
        let mode = fs::metadata(path).map_err(file_error)?.permissions().mode();
        if mode & OTHERS != 0 {
            return Err(Failure::Other(format!(
                "{} has mode {:04o}, so others than its owner have access to the token: 'chmod 600 {}'",
                path.display(),
                mode & 0o7777,
                path.display()
            )));
        }
        let bytes = input::read(path).map_err(file_error)?;
        let text = String::from_utf8_lossy(&bytes);
        Self::parse(text.trim()).ok_or_else(|| {
            Failure::Other(format!(
                "{} holds no token: it needs 16 to 128 letters, digits, '-' and '_' on one line, for example from \
                 'openssl rand -hex 16'",
                path.display()
            ))
        })
    }

    /// Makes a token of 128 random bits.
    pub(super) fn generate() -> Result<Self, Failure> {
        let mut bytes = [0; RANDOM_BYTES];
        let filled = getrandom(&mut bytes, GetRandomFlags::empty());
        if filled != Ok(RANDOM_BYTES) {
            return Err(Failure::Other(
                "the kernel gives no random bytes for a token; give one with --token-file"
                    .to_owned(),
            ));
        }
        Ok(Self(
            bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        ))
    }

    /// Returns a token, if the text may be one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        ((16..=128).contains(&text.len()) && text.chars().all(allowed))
            .then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the text is the token. The time that takes depends on the length of the text only.
    pub(super) fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_takes_only_what_cookies_and_queries_carry() {
        let token = Token::parse("0123456789abc-_Z").unwrap();
        assert!(token.is("0123456789abc-_Z"));
        for wrong in ["0123456789abc-_z", "0123456789abc-_", ""] {
            assert!(!token.is(wrong), "{wrong}");
        }
        for wrong in [
            "short",
            "0123456789abcdef;",
            "0123456789 abcdef",
            &"a".repeat(129),
        ] {
            assert!(Token::parse(wrong).is_none(), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "Token(..)");
    }

    #[test]
    fn generate_makes_tokens_that_differ() {
        let (one, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_eq!(one.as_str().len(), 32);
        assert!(!one.is(other.as_str()));
        assert!(Token::parse(one.as_str()).is_some());
    }
}
