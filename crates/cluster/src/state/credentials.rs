// SPDX-License-Identifier: Apache-2.0
//! Credentials of clients, from a file.
//!
//! Each line is `NAME:SECRET`, without blanks around; empty lines and those that start with `#` are skipped. A client is accepted if
//! its credentials are such a line, byte for byte; its principal is the name.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use subtle::{Choice, ConstantTimeEq as _};
use thiserror::Error;

use super::{Authentication, Authenticator, AuthorisationService, StandardAuthorisation};

/// Longest line in bytes; a client cannot send longer credentials in the default MTU.
const MAX_LINE: usize = 1024;
/// Most clients whose decision is kept until it is asked for.
const MAX_PENDING: usize = 4096;
/// Permissions of others than the owner and the group.
const OTHERS: u32 = 0o007;

/// Reason why a file has no credentials.
#[derive(Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// The file cannot be read.
    #[error("taran.cluster.credentials.file={}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// Any user of the machine may read or change the file.
    #[error(
        "taran.cluster.credentials.file={} has the mode {mode:o}, so that all users may read or change it: chmod 600 it",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A line has no name or no secret, or is too long.
    #[error(
        "taran.cluster.credentials.file={} has in line {line} no NAME:SECRET of at most {MAX_LINE} bytes",
        path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
    /// A name comes twice.
    #[error("taran.cluster.credentials.file={} has the name {name} twice, in line {line} again", path.display())]
    Duplicate {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
        /// Number of the second line, from 1.
        line: usize,
    },
    /// There is no line: no client could connect.
    #[error(
        "taran.cluster.credentials.file={} has no line NAME:SECRET, so that no client could connect",
        path.display()
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

taran_core::debug_is_display!(CredentialsError);

/// Accepts the clients whose credentials are in a file.
pub struct FileAuthenticator {
    /// Name and line.
    lines: Vec<(String, String)>,
    /// Decisions about clients that are not told yet: the principal of those that are accepted.
    pending: BTreeMap<i64, Option<String>>,
}

impl FileAuthenticator {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, all users may read or change it, or a line is malformed.
    pub fn read(path: &Path) -> Result<Self, CredentialsError> {
        let io = |source| CredentialsError::Io {
            path: path.to_path_buf(),
            source,
        };
        let mode = std::fs::metadata(path).map_err(io)?.permissions().mode();
        if mode & OTHERS != 0 {
            return Err(CredentialsError::Exposed {
                path: path.to_path_buf(),
                mode: mode & 0o777,
            });
        }
        let text = std::fs::read_to_string(path).map_err(io)?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, CredentialsError> {
        let path = path.to_path_buf();
        let mut lines: Vec<(String, String)> = Vec::new();
        for (index, content) in text.lines().enumerate() {
            let line = index + 1;
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let name = match content.split_once(':') {
                Some((name, secret))
                    if content.len() <= MAX_LINE
                        && content.trim() == content
                        && !name.is_empty()
                        && !secret.is_empty() =>
                {
                    name.to_owned()
                }
                _ => return Err(CredentialsError::Malformed { path, line }),
            };
            if lines.iter().any(|(known, _)| *known == name) {
                return Err(CredentialsError::Duplicate { path, name, line });
            }
            lines.push((name, content.to_owned()));
        }
        if lines.is_empty() {
            return Err(CredentialsError::Empty { path });
        }
        Ok(Self {
            lines,
            pending: BTreeMap::new(),
        })
    }

    /// Returns the name of the line that the credentials are. The time does not depend on which bytes differ.
    fn principal(&self, credentials: &[u8]) -> Option<String> {
        let mut found = None;
        for (name, line) in &self.lines {
            let is_equal: Choice = line.as_bytes().ct_eq(credentials);
            if is_equal.into() {
                found = Some(name.clone());
            }
        }
        found
    }
}

impl Authenticator for FileAuthenticator {
    fn on_connect_request(&mut self, session_id: i64, credentials: &[u8], _: i64) {
        let principal = self.principal(credentials);
        self.pending.insert(session_id, principal);
        if self.pending.len() > MAX_PENDING {
            // The client of the lowest id went away before it could be answered.
            self.pending.pop_first();
        }
    }

    fn on_challenge_response(&mut self, _: i64, _: &[u8], _: i64) {}

    fn decide(&mut self, session_id: i64, _: bool, _: i64) -> Authentication {
        match self.pending.remove(&session_id) {
            Some(Some(principal)) => Authentication::Accept(principal.into_bytes()),
            _ => Authentication::Reject,
        }
    }
}

/// Authorisation that allows administrative requests of some clients, and else decides as the standard one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminAuthorisation {
    standard: StandardAuthorisation,
    admins: Vec<String>,
}

impl AdminAuthorisation {
    /// Allows the requests of clients with these principals.
    #[must_use]
    pub const fn new(standard: StandardAuthorisation, admins: Vec<String>) -> Self {
        Self { standard, admins }
    }
}

impl AuthorisationService for AdminAuthorisation {
    fn is_authorised(
        &self,
        protocol_id: i32,
        action_id: i32,
        request_type: Option<i32>,
        principal: &[u8],
    ) -> bool {
        let mut admins = self.admins.iter();
        admins.any(|admin| admin.as_bytes() == principal)
            || self
                .standard
                .is_authorised(protocol_id, action_id, request_type, principal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<FileAuthenticator, CredentialsError> {
        FileAuthenticator::parse(Path::new("clients"), text)
    }

    fn decide(authenticator: &mut FileAuthenticator, credentials: &[u8]) -> Authentication {
        authenticator.on_connect_request(7, credentials, 0);
        authenticator.decide(7, false, 0)
    }

    #[test]
    fn client_is_accepted_with_the_bytes_of_a_line_only() {
        let mut clients = parse("# clients\n\nbob:b\nalice:s:e c\n").unwrap();
        let accepted = |name: &str| Authentication::Accept(name.into());
        assert_eq!(decide(&mut clients, b"alice:s:e c"), accepted("alice"));
        assert_eq!(decide(&mut clients, b"bob:b"), accepted("bob"));
        for wrong in [
            &b""[..],
            b"bob",
            b"bob:",
            b"bob:c",
            b"bob:b\n",
            b"# clients",
            b"alice:s",
        ] {
            assert_eq!(
                decide(&mut clients, wrong),
                Authentication::Reject,
                "{wrong:?}"
            );
        }
        // Nothing is decided about a client that was not heard.
        assert_eq!(clients.decide(8, false, 0), Authentication::Reject);
    }

    #[test]
    fn clients_that_go_away_are_forgotten() {
        let mut clients = parse("bob:b").unwrap();
        for id in 0..2 * MAX_PENDING {
            clients.on_connect_request(id as i64, b"bob:b", 0);
        }
        assert_eq!(clients.pending.len(), MAX_PENDING);
    }

    #[test]
    fn file_without_credentials_is_an_error_that_names_line_and_remedy() {
        for (text, expected) in [
            ("bob:b\nalice", "line 2"),
            (":b", "line 1"),
            ("bob:", "line 1"),
            ("bob:b ", "line 1"),
            ("bob:b\nbob:c", "the name bob twice, in line 2"),
            ("# none\n", "no client could connect"),
        ] {
            let error = parse(text).map(|_| ()).unwrap_err().to_string();
            assert!(
                error.contains(expected) && error.contains("=clients"),
                "{error}"
            );
            assert!(!error.contains("b\n") && !error.contains(":c"), "{error}");
        }
        let long = format!("bob:{}", "x".repeat(MAX_LINE));
        assert!(parse(&long).is_err());
        let absent = FileAuthenticator::read(Path::new("/nonexistent/clients")).map(|_| ());
        assert!(
            absent
                .unwrap_err()
                .to_string()
                .contains("/nonexistent/clients")
        );
    }

    #[test]
    fn file_that_all_users_may_read_is_refused() {
        let path = std::env::temp_dir().join(format!("taran-credentials-{}", std::process::id()));
        std::fs::write(&path, "bob:b").unwrap();
        let read = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            FileAuthenticator::read(&path).map(|_| ())
        };
        let (private, exposed) = (read(0o600), read(0o644));
        std::fs::remove_file(&path).unwrap();
        assert!(private.is_ok());
        let text = exposed.unwrap_err().to_string();
        assert!(
            text.contains("mode 644") && text.contains("chmod 600"),
            "{text}"
        );
    }

    #[test]
    fn requests_of_admins_are_allowed_beside_those_of_the_standard() {
        let authorisation =
            AdminAuthorisation::new(StandardAuthorisation::Default, vec!["ops".to_owned()]);
        let is_allowed = |principal| authorisation.is_authorised(111, 26, Some(0), principal);
        assert!(is_allowed(b"ops"));
        assert!(!is_allowed(b"bob") && !is_allowed(b""));
        assert!(authorisation.is_authorised(111, 77, None, b""));
    }
}
