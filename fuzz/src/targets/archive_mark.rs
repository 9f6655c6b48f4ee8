// SPDX-License-Identifier: Apache-2.0
//! The mark file of an archive.

use taran_archive::files::MarkFileInfo;

use crate::allocation;

/// Reads a mark file, also behind the header of the current version.
pub fn run(bytes: &[u8]) {
    read(bytes);
    let mut current = vec![128, 0, 200, 0, 100, 0, 2, 0];
    current.extend_from_slice(bytes);
    read(&current);
}

fn read(bytes: &[u8]) {
    allocation::within(64 * bytes.len() + 64 * 1024, || {
        let Ok(info) = MarkFileInfo::parse(bytes) else {
            return;
        };
        let texts = info.control_channel.len() + info.aeron_directory.len();
        // Each byte is shown by at most four characters.
        assert!(texts <= 4 * bytes.len());
        let errors = info.errors(bytes);
        assert!(errors.len() <= bytes.len() / 24);
    });
}
