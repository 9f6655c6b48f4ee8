// SPDX-License-Identifier: Apache-2.0
//! Credentials of clients, from a file.
//!
//! Each line is `NAME:SECRET`, without blanks around; empty lines and those that start with `#` are skipped. A client is accepted if
//! its credentials are such a line, byte for byte; its principal is the name.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use subtle::{Choice, ConstantTimeEq as _};
use thiserror::Error;

use super::{Authentication, Authenticator, AuthorisationService, StandardAuthorisation};

/// Longest line in bytes; a client cannot send longer credentials in the default MTU.
const MAX_LINE: usize = 1024;
/// Longest file in bytes.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// Permissions that the file may not have: those of all users, and of its group to change it.
const EXPOSED: u32 = 0o027;

/// Reason why a line is refused. It does not tell secrets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LineDefect {
    /// Bytes are no text.
    #[error("is not UTF-8")]
    NotUtf8,
    /// The line is too long.
    #[error("is {length} bytes long, at most {MAX_LINE}")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// Blanks at an end, which an editor does not show.
    #[error("begins or ends with a blank")]
    Blank,
    /// There is no secret.
    #[error("has no colon")]
    NoColon,
    /// There is nothing before the colon.
    #[error("has an empty name")]
    EmptyName,
    /// The name has a blank at its end, so that taran.cluster.admins cannot have it.
    #[error("has a blank before its colon")]
    BlankInName,
    /// The name has a comma, so that taran.cluster.admins cannot have it.
    #[error("has a name with a comma, which separates names in taran.cluster.admins")]
    Comma,
    /// There is nothing behind the colon.
    #[error("has an empty secret")]
    EmptySecret,
    /// A line before has the name.
    #[error("repeats the name {name}")]
    Repeated {
        /// The name.
        name: String,
    },
}

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
    /// It is a directory, a named pipe or a device.
    #[error("taran.cluster.credentials.file={} is no regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file is longer than any list of clients.
    #[error("taran.cluster.credentials.file={} is longer than {MAX_FILE} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// Any user of the machine may read or change the file, or its group may change it.
    #[error(
        "taran.cluster.credentials.file={0} has the mode {mode:o}: only its owner may change it, and other users may not read it; \
         run: chmod g-w,o-rwx {0}",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A line is no `NAME:SECRET`.
    #[error("taran.cluster.credentials.file={}: line {line} {defect}; each line is NAME:SECRET", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Reason.
        defect: LineDefect,
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
    /// The administrative requests of a client are allowed that cannot connect.
    #[error(
        "taran.cluster.admins names {name}, which taran.cluster.credentials.file={} does not have: correct the name, or add its line",
        path.display()
    )]
    UnknownAdmin {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
}

taran_core::debug_is_display!(CredentialsError);

/// Accepts the clients whose credentials are in a file.
pub struct FileAuthenticator {
    /// Name and line.
    lines: Vec<(String, String)>,
    /// Decisions about clients that are not told yet: the principal of those that are accepted. There are no more than sessions,
    /// because each is asked for, or its session is gone.
    pending: BTreeMap<i64, Option<String>>,
}

impl FileAuthenticator {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, others may read or change it, or a line is malformed.
    pub fn read(path: &Path) -> Result<Self, CredentialsError> {
        let io = |source| CredentialsError::Io {
            path: path.to_path_buf(),
            source,
        };
        // What is checked is what is read. The start of a member does not wait for a writer of a named pipe.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path)
            .map_err(io)?;
        Self::check_file(path, &file)?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(io)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(CredentialsError::TooLong {
                path: path.to_path_buf(),
            });
        }
        Self::parse(path, &bytes)
    }

    fn check_file(path: &Path, file: &File) -> Result<(), CredentialsError> {
        let path = path.to_path_buf();
        let metadata = match file.metadata() {
            Ok(metadata) => metadata,
            Err(source) => return Err(CredentialsError::Io { path, source }),
        };
        let mode = metadata.permissions().mode() & 0o777;
        if !metadata.is_file() {
            Err(CredentialsError::NotAFile { path })
        } else if mode & EXPOSED != 0 {
            Err(CredentialsError::Exposed { path, mode })
        } else if metadata.len() > MAX_FILE {
            Err(CredentialsError::TooLong { path })
        } else {
            Ok(())
        }
    }

    fn parse(path: &Path, bytes: &[u8]) -> Result<Self, CredentialsError> {
        let path = path.to_path_buf();
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let before = &bytes[..error.valid_up_to()];
                let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
                let defect = LineDefect::NotUtf8;
                return Err(CredentialsError::Malformed { path, line, defect });
            }
        };
        let mut lines: Vec<(String, String)> = Vec::new();
        let mut names = HashSet::new();
        for (index, content) in text.lines().enumerate() {
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let checked = name_of(content).and_then(|name| {
                let is_new = names.insert(name);
                let name = name.to_owned();
                match is_new {
                    true => Ok(name),
                    false => Err(LineDefect::Repeated { name }),
                }
            });
            match checked {
                Ok(name) => lines.push((name, content.to_owned())),
                Err(defect) => {
                    let line = index + 1;
                    return Err(CredentialsError::Malformed { path, line, defect });
                }
            }
        }
        if lines.is_empty() {
            return Err(CredentialsError::Empty { path });
        }
        Ok(Self {
            lines,
            pending: BTreeMap::new(),
        })
    }

    /// Checks that the file, which was read from `path`, has the clients whose administrative requests are allowed.
    ///
    /// # Errors
    /// It does not have one.
    pub fn check_admins(&self, path: &Path, admins: &[String]) -> Result<(), CredentialsError> {
        let unknown = admins
            .iter()
            .find(|admin| !self.lines.iter().any(|(name, _)| name == *admin));
        match unknown {
            None => Ok(()),
            Some(name) => Err(CredentialsError::UnknownAdmin {
                path: path.to_path_buf(),
                name: name.clone(),
            }),
        }
    }

    /// Returns the name of the line that the credentials are. All lines are compared, name and secret together: for credentials
    /// that are no line, the time depends on the lengths of lines and credentials only, and so neither on which bytes differ nor on
    /// whether the file has the name. It does not hide whether lines of that length exist.
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

/// Returns the name of a line.
fn name_of(line: &str) -> Result<&str, LineDefect> {
    if line.len() > MAX_LINE {
        let length = line.len();
        return Err(LineDefect::TooLong { length });
    }
    if line.trim() != line {
        return Err(LineDefect::Blank);
    }
    match line.split_once(':') {
        None => Err(LineDefect::NoColon),
        Some(("", _)) => Err(LineDefect::EmptyName),
        Some((_, "")) => Err(LineDefect::EmptySecret),
        Some((name, _)) if name.trim() != name => Err(LineDefect::BlankInName),
        Some((name, _)) if name.contains(',') => Err(LineDefect::Comma),
        Some((name, _)) => Ok(name),
    }
}

impl Authenticator for FileAuthenticator {
    fn on_connect_request(&mut self, session_id: i64, credentials: &[u8], _: i64) {
        let principal = self.principal(credentials);
        self.pending.insert(session_id, principal);
    }

    fn on_challenge_response(&mut self, _: i64, _: &[u8], _: i64) {}

    fn decide(&mut self, session_id: i64, _: bool, _: i64) -> Authentication {
        match self.pending.remove(&session_id) {
            Some(Some(principal)) => Authentication::Accept(principal.into_bytes()),
            _ => Authentication::Reject,
        }
    }

    fn on_session_gone(&mut self, session_id: i64) {
        self.pending.remove(&session_id);
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
        FileAuthenticator::parse(Path::new("clients"), text.as_bytes())
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
    fn clients_wait_in_any_number_until_they_are_asked_for_or_gone() {
        let mut clients = parse("bob:b").unwrap();
        for id in 0..10_000 {
            clients.on_connect_request(id, b"bob:b", 0);
        }
        for id in 1..10_000 {
            clients.on_session_gone(id);
        }
        assert_eq!(clients.pending.len(), 1);
        let accepted = Authentication::Accept(b"bob".to_vec());
        assert_eq!(clients.decide(0, false, 0), accepted);
        assert!(clients.pending.is_empty());
    }

    #[test]
    fn file_without_credentials_is_an_error_that_names_line_and_defect() {
        let long = format!("bob:{}", "x".repeat(MAX_LINE));
        for (bytes, expected) in [
            (&b"bob:b\nalice"[..], "line 2 has no colon"),
            (b":b", "line 1 has an empty name"),
            (b"bob:", "line 1 has an empty secret"),
            (b"bob:b ", "line 1 begins or ends with a blank"),
            (b"\tbob:b", "line 1 begins or ends with a blank"),
            (b"bob :b", "line 1 has a blank before its colon"),
            (b"a,b:c", "line 1 has a name with a comma"),
            (b"bob:b\nbob:c", "line 2 repeats the name bob"),
            (b"bob:b\n# \xfc\n", "line 2 is not UTF-8"),
            (b"bob:b\r\nal\xff:b", "line 2 is not UTF-8"),
            (long.as_bytes(), "line 1 is 1028 bytes long, at most 1024"),
            (b"# none\n", "no client could connect"),
            (b"", "no client could connect"),
        ] {
            let parsed = FileAuthenticator::parse(Path::new("clients"), bytes);
            let error = parsed.map(drop).unwrap_err().to_string();
            assert!(
                error.contains(expected) && error.contains("=clients"),
                "{error}"
            );
            assert!(!error.contains("b\n") && !error.contains(":c"), "{error}");
        }
        let absent = FileAuthenticator::read(Path::new("/nonexistent/clients")).map(drop);
        let text = absent.unwrap_err().to_string();
        assert!(text.contains("/nonexistent/clients"), "{text}");
    }

    #[test]
    fn admins_are_clients_of_the_file() {
        let path = Path::new("clients");
        let clients = parse("bob:b\nops:o").unwrap();
        let check = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            clients.check_admins(path, &names)
        };
        assert!(check(&[]).is_ok() && check(&["ops", "bob"]).is_ok());
        let text = check(&["ops", "bobb"]).unwrap_err().to_string();
        assert!(
            text.starts_with(
                "taran.cluster.admins names bobb, which taran.cluster.credentials.file=clients does not have"
            ),
            "{text}"
        );
    }

    fn temporary(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("taran-credentials-{name}-{}", std::process::id()))
    }

    #[test]
    fn file_that_others_may_read_or_change_is_refused() {
        let path = temporary("mode");
        std::fs::write(&path, "bob:b").unwrap();
        let read = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            FileAuthenticator::read(&path).map(drop)
        };
        let private = [0o600, 0o400, 0o640].map(read);
        let exposed = [0o644, 0o660, 0o602, 0o601].map(|mode| (mode, read(mode)));
        std::fs::remove_file(&path).unwrap();
        assert!(private.iter().all(Result::is_ok), "{private:?}");
        for (mode, result) in exposed {
            let text = result.unwrap_err().to_string();
            let remedy = format!("run: chmod g-w,o-rwx {}", path.display());
            assert!(
                text.contains(&format!("mode {mode:o}")) && text.ends_with(&remedy),
                "{text}"
            );
        }
    }

    #[test]
    fn only_a_regular_file_of_bounded_length_is_read() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};

        let path = temporary("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        // There is no writer: an open that waits for one would not return.
        let of_pipe = FileAuthenticator::read(&path).map(drop);
        std::fs::remove_file(&path).unwrap();
        let of_directory = FileAuthenticator::read(&std::env::temp_dir()).map(drop);
        for result in [of_pipe, of_directory] {
            let text = result.unwrap_err().to_string();
            assert!(text.ends_with("is no regular file"), "{text}");
        }
        let file = File::create(&path).unwrap();
        file.set_permissions(std::fs::Permissions::from_mode(0o600))
            .unwrap();
        file.set_len(MAX_FILE + 1).unwrap();
        let long = FileAuthenticator::read(&path).map(drop);
        std::fs::remove_file(&path).unwrap();
        let text = long.unwrap_err().to_string();
        assert!(text.ends_with("is longer than 16777216 bytes"), "{text}");
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
