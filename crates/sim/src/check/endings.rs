//! No image ends for no reason, and what it says of its end is true.
//!
//! Input: each image that went, and what the story knows of who publishes its stream. An image may say that its stream was
//! revoked, or that it has come to its end: then that must be so, and in the latter case nothing may be missing. If it says
//! neither, something must have befallen it. The weather is no reason: what is lost is sent again, and of a hundred signs of
//! life in the liveness timeout (10 s) one comes through.

use super::{Violation, violation};
use crate::traffic::EndedImage;

/// What the story knows of an image that went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Its stream was revoked.
    pub is_revoked: bool,
    /// Somebody publishes on the stream still, wherever that goes.
    pub is_published: bool,
    /// Somebody sent the image away.
    pub is_rejected: bool,
    /// Its subscription is not waited for.
    pub is_untethered: bool,
    /// What else may have ended it.
    pub befell: Option<&'static str>,
}

/// Why an image has ended.
///
/// # Errors
/// For no reason, or for another one than it says.
pub fn look(image: &EndedImage, facts: &Facts) -> Result<&'static str, Violation> {
    if image.is_revoked {
        if !facts.is_revoked {
            violation!("{image:?}: says that it was revoked, but it was not");
        }
        return Ok("revoked");
    }
    if image.at_end_of_stream {
        if facts.is_published {
            violation!("{image:?}: says that its stream has ended, but it goes on");
        }
        if !image.is_complete {
            violation!("{image:?}: says that it has come to the end, but not all was delivered");
        }
        return Ok("end of its stream");
    }
    if facts.is_rejected {
        return Ok("sent away");
    }
    if facts.is_untethered {
        return Ok("not waited for");
    }
    match facts.befell {
        Some(reason) => Ok(reason),
        None => violation!("{image:?}: ended for no reason"),
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

    fn fails(image: EndedImage, facts: Facts, text: &str) {
        let Violation(found) = look(&image, &facts).unwrap_err();
        assert!(found.ends_with(text), "{found}");
    }

    #[test]
    fn an_image_that_ends_for_no_reason_is_found() {
        let calm = Facts::default();
        fails(LOST, calm, "no reason");
        for facts in [
            Facts {
                is_rejected: true,
                ..calm
            },
            Facts {
                is_untethered: true,
                ..calm
            },
            Facts {
                befell: Some("a cut"),
                ..calm
            },
        ] {
            look(&LOST, &facts).unwrap();
        }
    }

    #[test]
    fn an_image_that_tells_a_wrong_end_is_found() {
        let befell = Facts {
            befell: Some("a cut"),
            ..Facts::default()
        };
        let revoked = EndedImage {
            is_revoked: true,
            ..LOST
        };
        fails(revoked, befell, "was not");
        let ended = EndedImage {
            at_end_of_stream: true,
            is_complete: true,
            ..LOST
        };
        look(&ended, &befell).unwrap();
        let published = Facts {
            is_published: true,
            ..befell
        };
        fails(ended, published, "it goes on");
        let incomplete = EndedImage {
            is_complete: false,
            ..ended
        };
        fails(incomplete, befell, "not all was delivered");
    }
}
