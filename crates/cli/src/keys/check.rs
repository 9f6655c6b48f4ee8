// SPDX-License-Identifier: Apache-2.0
//! `taran keys check`.

use std::process::ExitCode;

use taran_driver::{KeyDirectory, read_public};
use taran_secure::identity::{FileKind, Identity, parse_psk, parse_public_key};
use taran_secure::provider::DefaultProvider;
use taran_secure::trust::TrustStore;

use super::{IDENTITY, NEXT, PUBLIC, TRUSTED};
use crate::failure::Failure;
use crate::output;

/// Prints each problem of the directory; the exit status is 1 if there is one.
pub(super) fn run(directory: &KeyDirectory) -> Result<ExitCode, Failure> {
    let problems = problems(directory);
    for problem in &problems {
        output::text(&format!("{problem}\n"))?;
    }
    if problems.is_empty() {
        output::text(&format!("{}: no problems\n", directory.path("").display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

fn problems(directory: &KeyDirectory) -> Vec<String> {
    let mut problems = Vec::new();
    if let Err(error) = directory.check() {
        return vec![error.to_string()];
    }
    let at = |name: &str, error: &dyn std::fmt::Display| {
        format!("{}: {error}", directory.path(name).display())
    };
    let key = |name: &str| -> Result<Option<Identity>, String> {
        let text = directory
            .read_if_there(name, FileKind::Secret)
            .map_err(|error| error.to_string())?;
        text.map(|text| Identity::parse::<DefaultProvider>(&text).map_err(|error| at(name, &error)))
            .transpose()
    };
    let identity = match key(IDENTITY) {
        Ok(Some(identity)) => Some(identity),
        Ok(None) => {
            problems.push(at(IDENTITY, &"missing: run 'taran keys generate'"));
            None
        }
        Err(problem) => {
            problems.push(problem);
            None
        }
    };
    problems.extend(key(NEXT).err());
    if let Some(identity) = identity {
        problems.extend(public(directory, &identity).map(|problem| at(PUBLIC, &problem)));
    }
    problems.extend(trust(directory));
    problems
}

/// Returns the problem of the public key, which has to be that of the identity.
fn public(directory: &KeyDirectory, identity: &Identity) -> Option<String> {
    let text = match read_public(&directory.path(PUBLIC)) {
        Ok(text) => text,
        Err(error) => return Some(error.to_string()),
    };
    let key = text.split_ascii_whitespace().next().unwrap_or_default();
    match parse_public_key::<DefaultProvider>(key) {
        Err(error) => Some(error.to_string()),
        Ok(key) if key != *identity.public() => Some(format!(
            "has the fingerprint {}, but {IDENTITY} has {}",
            key.fingerprint::<DefaultProvider>(),
            identity.fingerprint()
        )),
        Ok(_) => None,
    }
}

/// Returns the problems of the trust file and of the files it names.
fn trust(directory: &KeyDirectory) -> Vec<String> {
    let text = match directory.read_if_there(TRUSTED, FileKind::Trust) {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => return vec![error.to_string()],
    };
    let path = directory.path(TRUSTED);
    let store = match TrustStore::parse::<DefaultProvider>(&text) {
        Ok(store) => store,
        Err(error) => return vec![format!("{}: {error}", path.display())],
    };
    let files = store.peers().iter().filter_map(|peer| {
        let file = peer.psk_file()?;
        let problem = match directory.read(file, FileKind::Secret) {
            Err(error) => error.to_string(),
            Ok(text) => parse_psk::<DefaultProvider>(&text).err()?.to_string(),
        };
        Some(format!(
            "{}: line {}: psk={file}: {problem}",
            path.display(),
            peer.line()
        ))
    });
    files.collect()
}
