// SPDX-License-Identifier: Apache-2.0
//! Error texts for logs that do not fit into the file system.

use std::path::Path;

use taran_core::memory::InsufficientSpace;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::log::{PAGE_SIZE_MIN, file_length};
use taran_protocol::position::{TERM_LENGTH_MAX, TERM_LENGTH_MIN};

use super::failure::Failure;
use super::file_worker::RequestOrigin;

/// Returns the failure for a log that does not fit into the directory.
pub(crate) fn insufficient_storage(directory: &Path, shortage: &InsufficientSpace) -> Failure {
    let fits = match longest_term(shortage.available) {
        Some(length) => format!("term-length={length} fits"),
        None => "even the shortest term-length does not fit".to_owned(),
    };
    Failure::new(
        ErrorCode::StorageSpace,
        format!(
            "insufficient usable storage for a new log in {}: {shortage}, or use shorter terms: a log has \
             three, {fits}",
            directory.display()
        ),
    )
}

/// Returns the failure for pages of a log in use that cannot be reserved: of a publication if `origin` is a client, of an
/// image if it is a peer, which leaves `kept` of the needed bytes to publications. `stream` names the stream.
pub(crate) fn cannot_extend(
    directory: &Path,
    stream: &str,
    origin: RequestOrigin,
    shortage: &InsufficientSpace,
    kept: u64,
) -> Failure {
    let effect = match origin {
        RequestOrigin::Client => format!("the publisher of {stream} is back-pressured"),
        RequestOrigin::Peer => format!("the receive window of {stream} does not advance"),
    };
    let kept = match kept {
        0 => String::new(),
        kept => format!(
            ". {kept} bytes of it are kept for publications (an eighth of the file system, at most four times \
             aeron.low.file.store.warning.threshold)"
        ),
    };
    Failure::new(
        ErrorCode::StorageSpace,
        format!(
            "insufficient usable storage for the next pages of a log in {}, {effect} until the rest of it fits: \
             {shortage}{kept}",
            directory.display()
        ),
    )
}

/// Returns the record of the end of a shortage.
pub(crate) fn has_space_again(stream: &str) -> Failure {
    Failure::new(
        ErrorCode::StorageSpace,
        format!("the log of {stream} has space again, the stream continues"),
    )
}

/// Returns the failure for an image log that would leave less than `reserved` bytes to clients.
pub(crate) fn reserved_for_clients(
    directory: &Path,
    reserved: u64,
    shortage: &InsufficientSpace,
) -> Failure {
    Failure::new(
        ErrorCode::StorageSpace,
        format!(
            "insufficient usable storage for an image in {}: {reserved} bytes are reserved for publications, an \
             eighth of the file system, at most four times aeron.low.file.store.warning.threshold: {shortage}; use a larger file \
             system, shorter terms, or aeron.low.file.store.warning.threshold=0",
            directory.display()
        ),
    )
}

/// Returns the longest term length with which a log fits into `available` bytes.
fn longest_term(available: u64) -> Option<i32> {
    // Pages larger than the minimum are rare and add less than a term.
    let fits = |length: &i32| file_length(*length, PAGE_SIZE_MIN) as u64 <= available;
    (TERM_LENGTH_MIN.ilog2()..=TERM_LENGTH_MAX.ilog2())
        .rev()
        .map(|bits| 1 << bits)
        .find(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_term_fits_available_space() {
        assert_eq!(longest_term(200_703), None);
        assert_eq!(longest_term(200_704), Some(65_536));
        assert_eq!(longest_term(17_821_696), Some(4 << 20));
        assert_eq!(longest_term(u64::MAX), Some(1 << 30));
    }
}
