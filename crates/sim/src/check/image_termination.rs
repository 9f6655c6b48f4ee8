// SPDX-License-Identifier: Apache-2.0
//! No image ends without a reason, and the flags of its end are true.
//!
//! Input: each image that became unavailable, and what the scenario knows of the publishers of its stream. An image may
//! report a revoked publication or the end of the stream; then that must be so, and at the end of the stream nothing
//! may be missing. Otherwise a disturbance must explain the end. Link faults are not one: losses are repaired, and of
//! about a hundred heartbeats in the liveness timeout (10 s) one arrives.

use super::{Violation, violation};
use crate::traffic::EndedImage;

/// Circumstances of an image that became unavailable.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImageContext {
    /// Its stream was revoked.
    pub is_revoked: bool,
    /// A live publication still exists on the stream, wherever it sends to.
    pub is_published: bool,
    /// A subscriber rejected the image.
    pub is_rejected: bool,
    /// Its subscription is untethered.
    pub is_untethered: bool,
    /// Another event that may have ended it.
    pub disturbance: Option<&'static str>,
}

/// Returns the reason for which an image has ended.
///
/// # Errors
/// There is none, or it contradicts the image's flags.
pub fn check(image: &EndedImage, context: &ImageContext) -> Result<&'static str, Violation> {
    if image.is_revoked {
        if !context.is_revoked {
            violation!("{image:?}: reports a revoked publication, but it was not");
        }
        return Ok("revoked");
    }
    if image.at_end_of_stream {
        if context.is_published {
            violation!("{image:?}: reports the end of its stream, but the stream continues");
        }
        if !image.is_complete {
            violation!("{image:?}: reports the end of its stream, but not all was delivered");
        }
        return Ok("end of its stream");
    }
    if context.is_rejected {
        return Ok("rejected");
    }
    if context.is_untethered {
        return Ok("untethered");
    }
    match context.disturbance {
        Some(reason) => Ok(reason),
        None => violation!("{image:?}: ended without a reason"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::StreamKey;

    const LOST: EndedImage = EndedImage {
        correlation_id: 9,
        key: StreamKey {
            session_id: 1,
            stream_id: 2,
            initial_term_id: 3,
        },
        join: 0,
        position: 64,
        at_end_of_stream: false,
        is_revoked: false,
        is_complete: false,
    };

    fn expect_violation(image: EndedImage, context: ImageContext, text: &str) {
        let Violation(found) = check(&image, &context).unwrap_err();
        assert!(found.ends_with(text), "{found}");
    }

    #[test]
    fn image_end_without_a_reason_is_a_violation() {
        let undisturbed = ImageContext::default();
        expect_violation(LOST, undisturbed, "without a reason");
        for context in [
            ImageContext {
                is_rejected: true,
                ..undisturbed
            },
            ImageContext {
                is_untethered: true,
                ..undisturbed
            },
            ImageContext {
                disturbance: Some("a cut"),
                ..undisturbed
            },
        ] {
            check(&LOST, &context).unwrap();
        }
    }

    #[test]
    fn image_end_with_false_flags_is_a_violation() {
        let disturbance = ImageContext {
            disturbance: Some("a cut"),
            ..ImageContext::default()
        };
        let revoked = EndedImage {
            is_revoked: true,
            ..LOST
        };
        expect_violation(revoked, disturbance, "was not");
        let ended = EndedImage {
            at_end_of_stream: true,
            is_complete: true,
            ..LOST
        };
        check(&ended, &disturbance).unwrap();
        let published = ImageContext {
            is_published: true,
            ..disturbance
        };
        expect_violation(ended, published, "the stream continues");
        let incomplete = EndedImage {
            is_complete: false,
            ..ended
        };
        expect_violation(incomplete, disturbance, "not all was delivered");
    }
}
