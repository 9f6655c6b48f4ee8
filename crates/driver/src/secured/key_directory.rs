// SPDX-License-Identifier: Apache-2.0
//! Files of a key directory (docs/spec/transport-security.md §4.2): protection checked before reading, changes atomic and
//! durable.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use taran_secure::identity::{FileFacts, FileKind, Identity, UnsafeFile, check_file, parse_psk};
use taran_secure::provider::DefaultProvider;
use taran_secure::trust::TrustStore;
use zeroize::Zeroizing;

/// Longest file that is read, in bytes: a full trust store with long patterns.
const LENGTH_MAX: u64 = 4 << 20;

/// Reason why a file of a key directory cannot be used.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The system refuses an operation.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Operation.
        action: &'static str,
        /// File or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Other users could read a secret or change what is trusted.
    #[error("{} {problem}", path.display())]
    Unsafe {
        /// File or directory.
        path: PathBuf,
        /// Reason.
        problem: UnsafeFile,
    },
    /// The file is too long.
    #[error("{} is longer than {LENGTH_MAX} bytes", path.display())]
    TooLong {
        /// File.
        path: PathBuf,
    },
    /// The file is no text.
    #[error("{} is no UTF-8 text", path.display())]
    NoText {
        /// File.
        path: PathBuf,
    },
    /// The file would be replaced.
    #[error("{} exists; use --force to replace it", path.display())]
    Exists {
        /// File.
        path: PathBuf,
    },
    /// There is no such key.
    #[error("there is no {}: run 'taran keys {command}'", path.display())]
    Missing {
        /// File.
        path: PathBuf,
        /// Command that makes it.
        command: &'static str,
    },
    /// The content of the file is invalid.
    #[error("{}: {problem}", path.display())]
    Invalid {
        /// File.
        path: PathBuf,
        /// Reason.
        problem: String,
    },
}

taran_core::debug_is_display!(KeyFileError);

fn failed<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> KeyFileError + 'a {
    move |source| KeyFileError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}

/// Returns the directory of a user without option: that of the system for root, else below the configuration directory.
#[must_use]
pub fn default_directory() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some("/etc/taran/keys".into());
    }
    let below = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let configuration =
        below("XDG_CONFIG_HOME").or_else(|| below("HOME").map(|home| home.join(".config")))?;
    Some(configuration.join("taran/keys"))
}

/// Directory with the keys of a driver.
#[derive(Debug)]
pub struct KeyDirectory {
    path: PathBuf,
}

impl KeyDirectory {
    /// Name of the file with the driver's private key.
    pub const IDENTITY: &str = "identity.key";
    /// Name of the file with the driver's public key.
    pub const PUBLIC: &str = "identity.pub";
    /// Name of the file with the private key that is promoted next.
    pub const NEXT: &str = "next.key";
    /// Name of the file whose change asks a driver to rotate its keys.
    pub const ROTATE: &str = "rotate";
    /// Name of the trust file.
    pub const TRUSTED: &str = "trusted";

    /// Names a directory, which need not exist.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the path of a file.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Reads a private key.
    ///
    /// # Errors
    /// The file is missing, not protected or invalid.
    pub fn identity(&self, name: &'static str) -> Result<Identity, KeyFileError> {
        let path = self.path(name);
        let text = match self.read(name, FileKind::Secret) {
            Err(KeyFileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let command = if name == Self::NEXT {
                    "generate --next"
                } else {
                    "generate"
                };
                return Err(KeyFileError::Missing { path, command });
            }
            other => other?,
        };
        Identity::parse::<DefaultProvider>(&text).map_err(|error| KeyFileError::Invalid {
            path,
            problem: error.to_string(),
        })
    }

    /// Reads the trust file with the pre-shared keys that it names; empty if there is none.
    ///
    /// # Errors
    /// A file is not protected or invalid; nothing of it is to be used then.
    pub fn trust(&self) -> Result<TrustStore, KeyFileError> {
        let text = self.read_if_there(Self::TRUSTED, FileKind::Trust)?;
        let text = text.as_ref().map_or("", |text| text.as_str());
        let mut store =
            TrustStore::parse::<DefaultProvider>(text).map_err(|error| KeyFileError::Invalid {
                path: self.path(Self::TRUSTED),
                problem: error.to_string(),
            })?;
        store.load_psks(|file| {
            let text = self.read(file, FileKind::Secret)?;
            parse_psk::<DefaultProvider>(&text).map_err(|error| KeyFileError::Invalid {
                path: self.path(file),
                problem: error.to_string(),
            })
        })?;
        Ok(store)
    }

    /// Creates the directory if it is missing, for its owner only, and checks its protection.
    ///
    /// # Errors
    /// The directory cannot be created, or others can write to it.
    pub fn create(&self) -> Result<(), KeyFileError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
            .map_err(failed("create", &self.path))?;
        self.check()
    }

    /// Checks the protection of the directory.
    ///
    /// # Errors
    /// The directory is missing, or others can write to it.
    pub fn check(&self) -> Result<(), KeyFileError> {
        let directory = File::open(&self.path).map_err(failed("open", &self.path))?;
        protected(&self.path, &directory, FileKind::Directory)
    }

    /// Reads a file after its protection was checked on the open file. Symbolic links are followed.
    ///
    /// # Errors
    /// The file is missing, not protected, or no text.
    pub fn read(&self, name: &str, kind: FileKind) -> Result<Zeroizing<String>, KeyFileError> {
        self.check()?;
        let path = self.path(name);
        let file = File::open(&path).map_err(failed("open", &path))?;
        protected(&path, &file, kind)?;
        read_text(&path, file)
    }

    /// As [`Self::read`]; none if there is no such file.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_if_there(
        &self,
        name: &str,
        kind: FileKind,
    ) -> Result<Option<Zeroizing<String>>, KeyFileError> {
        match self.read(name, kind) {
            Err(KeyFileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// Writes a file completely or not at all, and makes it durable.
    ///
    /// # Errors
    /// The file exists and is not to be replaced, or the system refuses.
    pub fn write(
        &self,
        name: &str,
        text: &str,
        mode: u32,
        replace: bool,
    ) -> Result<(), KeyFileError> {
        let path = self.path(name);
        let temporary = self.path(&format!(".{name}.{}", std::process::id()));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&temporary)
            .map_err(failed("create", &temporary))?;
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(failed("write", &temporary));
        let placed = written.and_then(|()| {
            if replace {
                fs::rename(&temporary, &path).map_err(failed("replace", &path))
            } else {
                place_new(&temporary, &path)
            }
        });
        if placed.is_err() {
            // The error that is reported is the first one.
            let _ = fs::remove_file(&temporary);
        }
        placed?;
        self.sync()
    }

    /// Renames a file over another.
    ///
    /// # Errors
    /// The system refuses.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), KeyFileError> {
        let path = self.path(to);
        fs::rename(self.path(from), &path).map_err(failed("replace", &path))?;
        self.sync()
    }

    fn sync(&self) -> Result<(), KeyFileError> {
        File::open(&self.path)
            .and_then(|directory| directory.sync_all())
            .map_err(failed("sync", &self.path))
    }
}

/// Gives a file its name unless the name is taken.
fn place_new(temporary: &Path, path: &Path) -> Result<(), KeyFileError> {
    fs::hard_link(temporary, path).map_err(|source| {
        if source.kind() == io::ErrorKind::AlreadyExists {
            KeyFileError::Exists {
                path: path.to_owned(),
            }
        } else {
            failed("create", path)(source)
        }
    })?;
    fs::remove_file(temporary).map_err(failed("remove", temporary))
}

fn protected(path: &Path, file: &File, kind: FileKind) -> Result<(), KeyFileError> {
    let metadata = file.metadata().map_err(failed("inspect", path))?;
    let facts = FileFacts {
        mode: metadata.mode(),
        owner: metadata.uid(),
    };
    let user = rustix::process::geteuid().as_raw();
    check_file(kind, facts, user).map_err(|problem| KeyFileError::Unsafe {
        path: path.to_owned(),
        problem,
    })
}

/// Reads any file of text, such as a public key of another driver.
///
/// # Errors
/// The file cannot be read, or is no text.
pub fn read_public(path: &Path) -> Result<Zeroizing<String>, KeyFileError> {
    let file = File::open(path).map_err(failed("open", path))?;
    read_text(path, file)
}

fn read_text(path: &Path, file: File) -> Result<Zeroizing<String>, KeyFileError> {
    let length = file.metadata().map_err(failed("inspect", path))?.len();
    if length > LENGTH_MAX {
        return Err(KeyFileError::TooLong {
            path: path.to_owned(),
        });
    }
    // The capacity suffices, so that no copy of a secret stays behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(length as usize + 64));
    file.take(LENGTH_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(failed("read", path))?;
    if bytes.len() as u64 > LENGTH_MAX {
        return Err(KeyFileError::TooLong {
            path: path.to_owned(),
        });
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| KeyFileError::NoText {
        path: path.to_owned(),
    })?;
    Ok(Zeroizing::new(text.to_owned()))
}
