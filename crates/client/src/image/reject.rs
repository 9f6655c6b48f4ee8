//! Sending an image away.

use std::sync::Arc;

use taran_protocol::command::Command;

use super::ImageView;
use crate::error::AddError;
use crate::link::Link;
use crate::pending::Pending;
use crate::registry::Wish;

/// Longest reason for rejecting an image, in bytes.
const REASON_LENGTH_MAX: usize = 1023;

impl Link {
    pub(crate) fn reject(
        self: &Arc<Self>,
        image: &ImageView,
        reason: &str,
    ) -> Result<Pending<()>, AddError> {
        let (length, max) = (reason.len(), REASON_LENGTH_MAX);
        if length > max {
            return Err(AddError::TooLong {
                what: "reason",
                length,
                max,
            });
        }
        let (client_id, image_id) = (self.client_id, image.correlation_id());
        let (position, reason) = (image.position(), reason.as_bytes());
        self.ask(
            |promise| Wish::Operation { promise },
            |correlation_id| Command::RejectImage {
                client_id,
                correlation_id,
                image_id,
                position,
                reason,
            },
        )
    }
}
