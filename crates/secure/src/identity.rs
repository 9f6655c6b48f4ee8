// SPDX-License-Identifier: Apache-2.0
//! Identities and the texts of keys (docs/spec/transport-security.md §3.1 and §4.2).

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use zeroize::{Zeroize, Zeroizing};

use crate::derive::{Fingerprint, PublicKey, text_check};
use crate::provider::Provider;
use crate::secret::{Secret, equal};

/// Length of a key with its check value.
const CHECKED: usize = 36;
/// Length of a key with its check value as text.
const ENCODED: usize = 48;

/// Kind of a key in a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Private,
    Public,
    Psk,
}

impl Kind {
    /// Returns the word before the colon, which is also hashed into the check value.
    const fn word(self) -> &'static str {
        match self {
            Self::Private => "taran-key-1",
            Self::Public => "taran-pub-1",
            Self::Psk => "taran-psk-1",
        }
    }
}

/// Reason why a text is no key. The text itself is not repeated, because it may be secret.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct KeyTextError {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// Problem.
    pub problem: KeyTextProblem,
}

taran_core::debug_is_display!(KeyTextError);

/// Problem of a text that is no key.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyTextProblem {
    /// The line does not start as it has to.
    #[error("expected '{expected}:' and a key")]
    Kind {
        /// Word expected before the colon.
        expected: &'static str,
    },
    /// The key is not 48 characters of base64url.
    #[error("expected {ENCODED} characters of base64url")]
    Encoding,
    /// The check value does not belong to the key.
    #[error("the key is mistyped: its check value does not match")]
    Check,
    /// There is no key.
    #[error("the file has no key")]
    Missing,
    /// There is more than one key.
    #[error("the file has more than one key")]
    Several,
    /// Something follows the key.
    #[error("nothing may follow the key")]
    Trailing,
}

taran_core::debug_is_display!(KeyTextProblem);

/// Key pair of a driver.
#[derive(Clone)]
pub struct Identity {
    private: Secret,
    public: PublicKey,
    fingerprint: Fingerprint,
}

impl Identity {
    /// Returns the identity of a private key: 32 bytes of fresh entropy for a new one.
    #[must_use]
    pub fn from_private<P: Provider>(private: Secret) -> Self {
        let public = PublicKey(P::x25519_public(&private));
        Self {
            private,
            public,
            fingerprint: public.fingerprint::<P>(),
        }
    }

    /// Parses the text of a key file: comment lines that start with `#`, empty lines, and one key.
    ///
    /// # Errors
    /// The text is not that of a private key.
    pub fn parse<P: Provider>(text: &str) -> Result<Self, KeyTextError> {
        file_key::<P>(text, Kind::Private).map(Self::from_private::<P>)
    }

    /// Returns the text of a key file.
    #[must_use]
    pub fn to_text<P: Provider>(&self) -> Zeroizing<String> {
        let key = encode::<P>(Kind::Private, self.private.expose());
        let mut text = Zeroizing::new(String::with_capacity(256));
        text.push_str(
            "# Private key of a Taran driver. Keep it secret; fingerprint of the public key:\n# ",
        );
        text.push_str(&self.fingerprint.to_string());
        text.push('\n');
        text.push_str(&key);
        text.push('\n');
        text
    }

    /// Returns the public key.
    #[must_use]
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Returns the fingerprint of the public key.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    pub(crate) const fn private(&self) -> &Secret {
        &self.private
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Identity")
            .field("fingerprint", &self.fingerprint)
            .field("private", &"<secret>")
            .finish_non_exhaustive()
    }
}

/// Returns a public key as text, `taran-pub-1:` and 48 characters.
#[must_use]
pub fn public_key_text<P: Provider>(key: &PublicKey) -> String {
    encode::<P>(Kind::Public, &key.0).to_string()
}

/// Parses the text of a public key.
///
/// # Errors
/// The text is not that of a public key; line 1, and the column in the text.
pub fn parse_public_key<P: Provider>(text: &str) -> Result<PublicKey, KeyTextError> {
    decode::<P>(text, Kind::Public)
        .map(|key| PublicKey(*key.expose()))
        .map_err(|(column, problem)| KeyTextError {
            line: 1,
            column,
            problem,
        })
}

/// Returns a pre-shared key as the text of a file.
#[must_use]
pub fn psk_text<P: Provider>(psk: &Secret) -> Zeroizing<String> {
    let mut text = encode::<P>(Kind::Psk, psk.expose());
    text.push('\n');
    text
}

/// Parses the text of a file with a pre-shared key.
///
/// # Errors
/// The text is not that of a pre-shared key.
pub fn parse_psk<P: Provider>(text: &str) -> Result<Secret, KeyTextError> {
    file_key::<P>(text, Kind::Psk)
}

/// Returns the only key of a file.
fn file_key<P: Provider>(text: &str, kind: Kind) -> Result<Secret, KeyTextError> {
    let mut found = None;
    let mut last = 1;
    for (index, line) in text.lines().enumerate() {
        last = index + 1;
        let trimmed = line.trim_ascii();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let indent = line.len() - line.trim_ascii_start().len();
        let error = |(column, problem)| KeyTextError {
            line: last,
            column: indent + column,
            problem,
        };
        if found.is_some() {
            return Err(error((1, KeyTextProblem::Several)));
        }
        found = Some(decode::<P>(trimmed, kind).map_err(error)?);
    }
    found.ok_or(KeyTextError {
        line: last,
        column: 1,
        problem: KeyTextProblem::Missing,
    })
}

fn encode<P: Provider>(kind: Kind, bytes: &[u8; 32]) -> Zeroizing<String> {
    let mut checked = [0; CHECKED];
    checked[..32].copy_from_slice(bytes);
    checked[32..].copy_from_slice(&text_check::<P>(kind.word(), bytes));
    let mut encoded = [0; ENCODED];
    BASE64URL_NOPAD.encode_mut(&checked, &mut encoded);
    // The capacity is enough for all texts of this module, so that no copy stays behind.
    let mut text = Zeroizing::new(String::with_capacity(96));
    text.push_str(kind.word());
    text.push(':');
    text.extend(encoded.iter().map(|byte| char::from(*byte)));
    checked.zeroize();
    encoded.zeroize();
    text
}

/// Decodes a key; an error has the column, from 1.
fn decode<P: Provider>(text: &str, kind: Kind) -> Result<Secret, (usize, KeyTextProblem)> {
    let expected = kind.word();
    let encoded = text
        .strip_prefix(expected)
        .and_then(|rest| rest.strip_prefix(':'))
        .ok_or((1, KeyTextProblem::Kind { expected }))?;
    let at = expected.len() + 2;
    let encoded = encoded.as_bytes();
    if let Some(end) = encoded.iter().position(u8::is_ascii_whitespace) {
        let problem = if end == ENCODED {
            KeyTextProblem::Trailing
        } else {
            KeyTextProblem::Encoding
        };
        return Err((at + end, problem));
    }
    if encoded.len() != ENCODED {
        return Err((at, KeyTextProblem::Encoding));
    }
    let mut checked = [0; CHECKED];
    let decoded = BASE64URL_NOPAD.decode_mut(encoded, &mut checked);
    if let Err(partial) = decoded {
        checked.zeroize();
        return Err((at + partial.error.position, KeyTextProblem::Encoding));
    }
    let mut key = Secret::new([0; 32]);
    key.expose_mut().copy_from_slice(&checked[..32]);
    let matches = equal(&text_check::<P>(expected, key.expose()), &checked[32..]);
    checked.zeroize();
    if matches {
        Ok(key)
    } else {
        Err((at, KeyTextProblem::Check))
    }
}

/// File of a key directory, as far as its protection is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Private or pre-shared key.
    Secret,
    /// Trust file.
    Trust,
    /// Directory of the files.
    Directory,
}

/// Facts about an opened file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Mode, of which the permission bits matter.
    pub mode: u32,
    /// User id of the owner.
    pub owner: u32,
}

/// Reason why a file is refused for its protection.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnsafeFile {
    /// Others can read or write a secret.
    #[error("is accessible to others (mode {mode:04o}), needs 0600: run 'chmod 600' on it")]
    SecretMode {
        /// Permission bits.
        mode: u32,
    },
    /// Others can change what is trusted.
    #[error("is writable by group or others (mode {mode:04o}): run 'chmod go-w' on it")]
    Writable {
        /// Permission bits.
        mode: u32,
    },
    /// Another user owns the file.
    #[error("is owned by user {owner}, needs user {expected}")]
    Owner {
        /// Owner of the file.
        owner: u32,
        /// User of this process.
        expected: u32,
    },
}

taran_core::debug_is_display!(UnsafeFile);

/// Checks the protection of a file that was opened, before it is read (docs/spec/transport-security.md §4.2).
///
/// # Errors
/// Other users could read a secret or change what is trusted.
pub const fn check_file(kind: FileKind, facts: FileFacts, user: u32) -> Result<(), UnsafeFile> {
    let mode = facts.mode & 0o7777;
    match kind {
        FileKind::Secret => {
            if facts.owner != user {
                return Err(UnsafeFile::Owner {
                    owner: facts.owner,
                    expected: user,
                });
            }
            if mode & !0o600 != 0 {
                return Err(UnsafeFile::SecretMode { mode });
            }
        }
        FileKind::Trust | FileKind::Directory => {
            // Its owner can change it whatever the mode is.
            if facts.owner != user && facts.owner != 0 {
                return Err(UnsafeFile::Owner {
                    owner: facts.owner,
                    expected: user,
                });
            }
            if mode & 0o022 != 0 {
                return Err(UnsafeFile::Writable { mode });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::provider::DefaultProvider;

    #[test]
    fn debug_of_an_error_is_its_text() {
        let error = UnsafeFile::SecretMode { mode: 0o644 };
        assert_eq!(error.to_string(), format!("{error:?}"));
    }

    fn identity() -> Identity {
        Identity::from_private::<DefaultProvider>(Secret::new([7; 32]))
    }

    #[test]
    fn identity_printed_parses_to_the_same_keys() {
        let text = identity().to_text::<DefaultProvider>();
        let read = Identity::parse::<DefaultProvider>(&text).unwrap();
        assert_eq!(read.private(), identity().private());
        assert_eq!(read.public(), identity().public());
        let text = public_key_text::<DefaultProvider>(read.public());
        assert_eq!(
            parse_public_key::<DefaultProvider>(&text).as_ref(),
            Ok(read.public())
        );
        let psk = Secret::new([9; 32]);
        let text = psk_text::<DefaultProvider>(&psk);
        assert_eq!(parse_psk::<DefaultProvider>(&text), Ok(psk));
    }

    #[test]
    fn key_with_any_character_changed_is_refused() {
        let text = identity().to_text::<DefaultProvider>();
        let line = text.lines().last().unwrap();
        for at in 0..line.len() {
            for replacement in ["A", "-", "z", "!", "é"] {
                let changed = format!("{}{replacement}{}", &line[..at], &line[at + 1..]);
                let parsed = Identity::parse::<DefaultProvider>(&changed);
                assert_eq!(parsed.is_ok(), changed == line, "{at} {replacement}");
            }
            assert!(Identity::parse::<DefaultProvider>(&line[..at]).is_err());
        }
    }

    #[test]
    fn key_errors_name_line_and_column() {
        let line = public_key_text::<DefaultProvider>(identity().public());
        let error = |text: &str| {
            Identity::parse::<DefaultProvider>(text)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error(&format!("# comment\n\n  {line}\n")),
            "line 3, column 3: expected 'taran-key-1:' and a key"
        );
        assert_eq!(
            error("taran-key-1:abc"),
            "line 1, column 13: expected 48 characters of base64url"
        );
        let text = identity().to_text::<DefaultProvider>();
        assert_eq!(
            error(&format!("{}{}", *text, *text)),
            "line 6, column 1: the file has more than one key"
        );
        assert_eq!(
            error("# nothing\n"),
            "line 1, column 1: the file has no key"
        );
    }

    #[test]
    fn identity_debug_shows_no_private_key() {
        let text = format!("{:?}", identity());
        assert!(
            text.contains("<secret>") && !text.contains("7, 7"),
            "{text}"
        );
    }

    #[test]
    fn secret_files_of_other_modes_or_owners_are_refused() {
        let check = |kind, mode, owner| check_file(kind, FileFacts { mode, owner }, 1_000);
        for mode in [0o100_600, 0o100_400, 0o100_000] {
            assert_eq!(check(FileKind::Secret, mode, 1_000), Ok(()));
        }
        for bit in (0..12).filter(|bit| ![7, 8].contains(bit)) {
            let mode = 0o600 | 1 << bit;
            assert_eq!(
                check(FileKind::Secret, mode, 1_000),
                Err(UnsafeFile::SecretMode { mode })
            );
        }
        assert!(check(FileKind::Secret, 0o600, 0).is_err());
        for kind in [FileKind::Trust, FileKind::Directory] {
            assert_eq!(check(kind, 0o755, 1_000), Ok(()));
            assert_eq!(check(kind, 0o755, 0), Ok(()));
            assert!(check(kind, 0o775, 1_000).is_err());
            assert!(check(kind, 0o757, 1_000).is_err());
            assert!(check(kind, 0o755, 1_001).is_err());
        }
    }

    proptest! {
        #[test]
        fn parsers_of_any_text_end_with_a_result(text in "\\PC{0,200}") {
            let _ = Identity::parse::<DefaultProvider>(&text);
            let _ = parse_public_key::<DefaultProvider>(&text);
            let _ = parse_psk::<DefaultProvider>(&format!("taran-psk-1:{text}"));
        }
    }
}
