// SPDX-License-Identifier: Apache-2.0
//! `taran keys`: identities and trust of drivers (docs/spec/transport-security.md §4.1).

mod check;

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use taran_driver::{KeyDirectory, default_directory, read_public};
use taran_secure::Secret;
use taran_secure::derive::PublicKey;
use taran_secure::identity::{FileKind, Identity, parse_public_key, public_key_text};
use taran_secure::provider::DefaultProvider;
use taran_secure::trust::{NewPeer, TrustStore, is_name, with_peer, without_peer};
use zeroize::Zeroize;

use crate::failure::Failure;
use crate::{output, printable};

const IDENTITY: &str = KeyDirectory::IDENTITY;
const NEXT: &str = KeyDirectory::NEXT;
const PUBLIC: &str = KeyDirectory::PUBLIC;
const TRUSTED: &str = KeyDirectory::TRUSTED;
/// File that changes the directory, which a driver watches.
const RELOAD: &str = "reload";

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
The directory has the driver's private key (identity.key), its public key (identity.pub), the key that follows (next.key)
and the keys of other drivers (trusted). To let two drivers talk, give each the public key of the other:

  taran keys generate                          on each host; prints the public key
  taran keys trust taran-pub-1:... alpha       with the key of the other host, after comparing fingerprints
  taran keys check

Exit status: 0 done, 1 not done or problems found, 2 incorrect usage.")]
pub(crate) struct Arguments {
    /// Directory of the keys [default: $TARAN_SECURE_KEYS_DIR, else /etc/taran/keys for root, else
    /// $XDG_CONFIG_HOME/taran/keys]
    #[arg(long, value_name = "DIR", global = true)]
    dir: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Make a key pair, and print its public key and fingerprint
    Generate {
        /// Make the key that 'promote' puts in the place of the present one
        #[arg(long)]
        next: bool,
        /// Replace a key that exists
        #[arg(long)]
        force: bool,
        /// Name of this driver, for the trust files of others [default: the host name]
        #[arg(long)]
        name: Option<String>,
    },
    /// Print the public key as a line for the trust files of others
    Show {
        /// Of the next key
        #[arg(long)]
        next: bool,
    },
    /// Print the fingerprint of the driver's key, or of a public key in a file
    Fingerprint {
        /// File with a public key
        file: Option<PathBuf>,
    },
    /// Trust the key of another driver
    Trust {
        /// Public key: taran-pub-1:...
        key: String,
        /// Name of the driver
        name: String,
        /// Streams that the driver may send to this one: ADDRESS[:PORTS][#STREAMS],...
        #[arg(long, default_value = "*")]
        publish: String,
        /// Streams of this driver that the other may have
        #[arg(long, default_value = "*")]
        subscribe: String,
        /// File with a pre-shared key, in the directory of the keys
        #[arg(long, value_name = "FILE")]
        psk: Option<String>,
        /// Do not ask to compare the fingerprint
        #[arg(long)]
        yes: bool,
    },
    /// Trust the keys of a driver no longer
    Untrust {
        /// Name of the driver
        name: String,
    },
    /// Print the trusted keys
    List,
    /// Check modes, syntax, and that keys belong together
    Check,
    /// Put the next key in the place of the present one
    Promote,
    /// Ask the driver that uses the directory to rotate its keys; it does so within a second
    Rotate,
    /// Ask the driver that uses the directory to read the files again; it does so within a second of any change by itself
    Reload,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    // The driver takes the directory from the same variable.
    let from_environment = || std::env::var_os("TARAN_SECURE_KEYS_DIR").map(PathBuf::from);
    let path = arguments.dir.clone().or_else(from_environment);
    let path = path
        .filter(|path| !path.as_os_str().is_empty())
        .or_else(default_directory);
    let path = path.ok_or_else(|| {
        Failure::Usage("neither XDG_CONFIG_HOME nor HOME is set: use --dir DIR".to_owned())
    })?;
    let directory = KeyDirectory::new(path);
    match &arguments.command {
        Command::Generate { next, force, name } => {
            generate(&directory, *next, *force, name.as_deref())?;
        }
        Command::Show { next } => {
            let identity = identity(&directory, if *next { NEXT } else { IDENTITY })?;
            output::text(&format!("{}\n", public_line(&directory, &identity)))?;
        }
        Command::Fingerprint { file } => {
            let fingerprint = match file {
                None => identity(&directory, IDENTITY)?.fingerprint(),
                Some(file) => public_key_of(file)?.fingerprint::<DefaultProvider>(),
            };
            output::text(&format!("{fingerprint}\n"))?;
        }
        Command::Trust {
            key,
            name,
            publish,
            subscribe,
            psk,
            yes,
        } => {
            let key = parse_public_key::<DefaultProvider>(key)
                .map_err(|error| Failure::Usage(format!("KEY: {error}")))?;
            if !is_name(name) {
                return Err(Failure::Usage(format!(
                    "NAME: '{}' is no name: up to 64 of A-Z a-z 0-9 . _ -, with a letter or digit first",
                    printable::one_line(name)
                )));
            }
            let peer = NewPeer {
                key,
                name,
                publish: Some(publish),
                subscribe: Some(subscribe),
                psk_file: psk.as_deref(),
            };
            trust(&directory, &peer, *yes)?;
        }
        Command::Untrust { name } => untrust(&directory, name)?,
        Command::List => list(&directory)?,
        Command::Check => return check::run(&directory),
        Command::Promote => promote(&directory)?,
        // The content is of no meaning: each is another version of the file.
        Command::Rotate => directory.write(KeyDirectory::ROTATE, "rotate\n", 0o600, true)?,
        Command::Reload => directory.write(RELOAD, "reload\n", 0o600, true)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn generate(
    directory: &KeyDirectory,
    next: bool,
    force: bool,
    name: Option<&str>,
) -> Result<(), Failure> {
    let name = name.map_or_else(host_name, str::to_owned);
    if !is_name(&name) {
        return Err(Failure::Usage(format!(
            "--name: '{}' is no name: up to 64 of A-Z a-z 0-9 . _ -, with a letter or digit first",
            printable::one_line(&name)
        )));
    }
    directory.create()?;
    let identity = Identity::from_private::<DefaultProvider>(random()?);
    let file = if next { NEXT } else { IDENTITY };
    directory.write(file, &identity.to_text::<DefaultProvider>(), 0o600, force)?;
    let line = format!(
        "{} {name}",
        public_key_text::<DefaultProvider>(identity.public())
    );
    if !next {
        directory.write(PUBLIC, &format!("{line}\n"), 0o644, true)?;
    }
    output::text(&format!("{line}\n"))?;
    output::text(&format!("{}\n", identity.fingerprint()))?;
    Ok(())
}

/// Returns 32 bytes of the system's generator.
fn random() -> Result<Secret, Failure> {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
                .map_err(|error| {
                    Failure::Other(format!("the system gives no random bytes: {error}"))
                })?;
    }
    let secret = Secret::new(bytes);
    bytes.zeroize();
    Ok(secret)
}

/// Returns the name of this host as the name of a driver.
fn host_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    name.chars()
        .map(|character| {
            if character.is_ascii_alphanumeric() || matches!(character, '.' | '-') {
                character
            } else {
                '-'
            }
        })
        .take(64)
        .collect()
}

fn identity(directory: &KeyDirectory, file: &'static str) -> Result<Identity, Failure> {
    Ok(directory.identity(file)?)
}

/// Returns the public key of an identity with the name that `identity.pub` has.
fn public_line(directory: &KeyDirectory, identity: &Identity) -> String {
    let named = read_public(&directory.path(PUBLIC)).ok();
    let name = named
        .as_deref()
        .and_then(|text| text.split_ascii_whitespace().nth(1))
        .filter(|name| is_name(name))
        .map_or_else(host_name, str::to_owned);
    format!(
        "{} {name}",
        public_key_text::<DefaultProvider>(identity.public())
    )
}

fn public_key_of(file: &std::path::Path) -> Result<PublicKey, Failure> {
    let text = read_public(file)?;
    let key = text.split_ascii_whitespace().next().unwrap_or_default();
    parse_public_key::<DefaultProvider>(key)
        .map_err(|error| Failure::Other(format!("{}: {error}", file.display())))
}

/// Returns the trust file; empty if there is none.
fn trusted(directory: &KeyDirectory) -> Result<String, Failure> {
    let text = directory.read_if_there(TRUSTED, FileKind::Trust)?;
    Ok(text.map_or_else(String::new, |text| (*text).clone()))
}

fn trust(directory: &KeyDirectory, peer: &NewPeer<'_>, yes: bool) -> Result<(), Failure> {
    directory.create()?;
    let path = directory.path(TRUSTED);
    let edited = with_peer::<DefaultProvider>(&trusted(directory)?, peer)
        .map_err(|error| Failure::Other(format!("{}: {error}", path.display())))?;
    let fingerprint = peer.key.fingerprint::<DefaultProvider>();
    output::text(&format!("{fingerprint}\n"))?;
    if !yes && !confirmed(peer.name)? {
        return Err(Failure::Other(
            "not confirmed; nothing is changed".to_owned(),
        ));
    }
    directory.write(TRUSTED, &edited, 0o644, true)?;
    Ok(())
}

/// Asks to compare the fingerprint that was printed.
fn confirmed(name: &str) -> Result<bool, Failure> {
    eprint!("Does 'taran keys fingerprint' on {name} print the same? Type yes to trust it: ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::Other(format!("cannot read the answer: {error}")))?;
    Ok(answer.trim() == "yes")
}

fn untrust(directory: &KeyDirectory, name: &str) -> Result<(), Failure> {
    let path = directory.path(TRUSTED);
    let (edited, removed) = without_peer::<DefaultProvider>(&trusted(directory)?, name)
        .map_err(|error| Failure::Other(format!("{}: {error}", path.display())))?;
    if removed == 0 {
        return Err(Failure::Other(format!(
            "{} has no '{}'",
            path.display(),
            printable::one_line(name)
        )));
    }
    directory.write(TRUSTED, &edited, 0o644, true)?;
    Ok(())
}

fn list(directory: &KeyDirectory) -> Result<(), Failure> {
    let store = TrustStore::parse::<DefaultProvider>(&trusted(directory)?).map_err(|error| {
        Failure::Other(format!("{}: {error}", directory.path(TRUSTED).display()))
    })?;
    for peer in store.peers() {
        let fields = [
            ("publish", peer.publish().to_string()),
            ("subscribe", peer.subscribe().to_string()),
            ("psk", peer.psk_file().unwrap_or_default().to_owned()),
        ];
        let fields: String = fields
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(field, value)| format!(" {field}={value}"))
            .collect();
        output::text(&format!(
            "{}  {}{}\n",
            peer.fingerprint(),
            peer.name(),
            printable::one_line(&fields)
        ))?;
    }
    Ok(())
}

fn promote(directory: &KeyDirectory) -> Result<(), Failure> {
    let next = identity(directory, NEXT)?;
    let line = public_line(directory, &next);
    directory.rename(NEXT, IDENTITY)?;
    directory.write(PUBLIC, &format!("{line}\n"), 0o644, true)?;
    output::text(&format!("{line}\n"))?;
    output::text(&format!("{}\n", next.fingerprint()))?;
    Ok(())
}
