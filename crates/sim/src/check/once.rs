//! No message comes twice to one subscription, also where one image of a stream follows on another.
//!
//! Input: each image that comes, with the images of the same stream that the subscription has, and has had. Within one image
//! that is for [`delivery`](super::delivery). Nothing excuses it: senders do not go back, what they have sent before an image
//! ended lies before what they say of a stream after that, and a subscription has one image of a stream at a time, however
//! many ways lead to it.

use super::{Violation, violation};
use crate::traffic::StreamKey;

/// Holds where an image joins its stream against where those before it were left.
///
/// # Errors
/// It brings something again, or comes beside another one.
pub fn look(
    key: &StreamKey,
    join: i64,
    present: impl IntoIterator<Item = StreamKey>,
    left: impl IntoIterator<Item = (StreamKey, i64)>,
) -> Result<(), Violation> {
    if present.into_iter().any(|other| other == *key) {
        violation!("{key:?}: a second image comes beside the one that is there");
    }
    let of_stream = left.into_iter().filter(|(other, _)| other == key);
    match of_stream.map(|(_, position)| position).max() {
        Some(left) if join < left => violation!(
            "{key:?}: an image joins at {join}, but the one before it was left at {left}: what lies between comes twice"
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
    fn what_comes_twice_is_found() {
        let other = StreamKey {
            initial_term_id: 4,
            ..KEY
        };
        look(&KEY, 64, [other], [(KEY, 32), (KEY, 64), (other, 96)]).unwrap();
        let Violation(found) = look(&KEY, 64, [], [(KEY, 96), (KEY, 32)]).unwrap_err();
        assert!(found.contains("was left at 96"), "{found}");
        let Violation(found) = look(&KEY, 64, [KEY], []).unwrap_err();
        assert!(found.contains("beside"), "{found}");
    }
}
