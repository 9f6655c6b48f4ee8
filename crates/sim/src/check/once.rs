// SPDX-License-Identifier: Apache-2.0
//! No message is delivered twice to one subscription across two images of a stream.
//!
//! Input: each new image, with the current and former images of the subscription. Duplicates within one image are found
//! by [`delivery`](super::delivery). There is no exception: senders do not go back, what they sent before an image
//! ended lies before any later SETUP position, and a subscription has one image of a stream at a time, whatever the
//! number of paths.

use super::{Violation, violation};
use crate::traffic::StreamKey;

/// Compares the join position of an image with the end positions of former images of the stream.
///
/// # Errors
/// It delivers something again, or exists beside another image.
pub fn check(
    key: &StreamKey,
    join: i64,
    present: impl IntoIterator<Item = StreamKey>,
    ended: impl IntoIterator<Item = (StreamKey, i64)>,
) -> Result<(), Violation> {
    if present.into_iter().any(|other| other == *key) {
        violation!("{key:?}: a second image exists beside the current one");
    }
    let of_stream = ended.into_iter().filter(|(other, _)| other == key);
    match of_stream.map(|(_, position)| position).max() {
        Some(ended) if join < ended => violation!(
            "{key:?}: an image joins at {join}, but the one before it ended at {ended}: the data in between is delivered twice"
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: StreamKey = StreamKey {
        session_id: 1,
        stream_id: 2,
        initial_term_id: 3,
    };

    #[test]
    fn repeated_data_or_second_image_is_a_violation() {
        let other = StreamKey {
            initial_term_id: 4,
            ..KEY
        };
        check(&KEY, 64, [other], [(KEY, 32), (KEY, 64), (other, 96)]).unwrap();
        let Violation(found) = check(&KEY, 64, [], [(KEY, 96), (KEY, 32)]).unwrap_err();
        assert!(found.contains("ended at 96"), "{found}");
        let Violation(found) = check(&KEY, 64, [KEY], []).unwrap_err();
        assert!(found.contains("beside"), "{found}");
    }
}
