// SPDX-License-Identifier: Apache-2.0
//! Rejection of images.

use std::sync::Arc;

use taran_protocol::command::Command;

use super::ImageView;
use crate::client_core::ClientCore;
use crate::error::CommandError;
use crate::pending::Pending;
use crate::registry::Request;

/// Maximum length of the reason for a rejection, in bytes.
const REASON_LENGTH_MAX: usize = 1023;

impl ClientCore {
    /// Sends the command that rejects an image at its current position.
    pub(crate) fn reject(
        self: &Arc<Self>,
        image: &ImageView,
        reason: &str,
    ) -> Result<Pending<()>, CommandError> {
        let (length, max) = (reason.len(), REASON_LENGTH_MAX);
        if length > max {
            return Err(CommandError::TooLong {
                item: "reason",
                length,
                max,
            });
        }
        let (client_id, image_id) = (self.client_id, image.correlation_id());
        let (position, reason) = (image.position(), reason.as_bytes());
        self.request(
            |completer| Request::Operation { completer },
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
