// SPDX-License-Identifier: Apache-2.0
//! Key files of secured drivers.

use std::path::Path;

use taran_bench::side::RunError;
use taran_driver::KeyDirectory;
use taran_secure::Secret;
use taran_secure::identity::{Identity, public_key_text};
use taran_secure::provider::DefaultProvider;

/// Writes a key pair, and a trust file with its public key. The key protects nothing: it is the same in each run.
pub(crate) fn write(directory: &Path) -> Result<(), RunError> {
    let identity = Identity::from_private::<DefaultProvider>(Secret::new([7; 32]));
    let trusted = format!(
        "{} itself publish=* subscribe=*\n",
        public_key_text::<DefaultProvider>(identity.public())
    );
    let files = KeyDirectory::new(directory.to_owned());
    let private = identity.to_text::<DefaultProvider>();
    files
        .create()
        .and_then(|()| files.write(KeyDirectory::IDENTITY, &private, 0o600, true))
        .and_then(|()| files.write(KeyDirectory::TRUSTED, &trusted, 0o644, true))
        .map_err(|error| RunError::Config(error.to_string()))
}
