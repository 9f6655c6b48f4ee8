// SPDX-License-Identifier: Apache-2.0
//! Commands about session ids and image rejection.

use std::net::{Ipv4Addr, SocketAddr};

use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::response::Response;

use super::super::failure::Failure;
use super::super::state::ConductorState;
use crate::boundary::{ImageId, PublicationError, PublicationId};

/// Maximum length of a rejection reason, in bytes (docs/spec/shared-memory.md §9.4).
const REASON_MAX: usize = 1023;

impl ConductorState {
    pub(super) fn send_next_session_id(&mut self, correlation_id: i64, stream_id: i32) {
        let session_id = self.next_session_id(stream_id);
        self.responses.send(&Response::NextAvailableSessionId {
            correlation_id,
            session_id,
        });
    }

    /// Rejects an image: its publisher gets the reason, and subscribers cannot read the image until its liveness
    /// timeout.
    pub(super) fn reject_image(
        &mut self,
        correlation_id: i64,
        image_id: i64,
        reason: &[u8],
    ) -> Result<(), Failure> {
        if reason.len() > REASON_MAX {
            return Err(Failure::generic(format!(
                "Invalidation reason_text must be {REASON_MAX} bytes or less: it has {}",
                reason.len()
            )));
        }
        if self.ipc.contains(image_id) {
            self.reject_ipc(image_id, reason);
        } else if self.networking.images.contains(ImageId(image_id)) {
            let text = String::from_utf8_lossy(reason);
            self.networking.reject_image(ImageId(image_id), &text);
        } else {
            return Err(Failure::generic(format!(
                "Unable to resolve image for correlationId={image_id}: it was removed or never existed"
            )));
        }
        self.count(SystemCounter::ImagesRejected);
        self.respond_success(correlation_id);
        Ok(())
    }

    fn reject_ipc(&mut self, image_id: i64, reason: &[u8]) {
        let Some(publication) = self.ipc.find(image_id) else {
            return;
        };
        let error = PublicationError {
            publication: PublicationId(image_id),
            destination_id: -1,
            session_id: publication.config.session_id,
            stream_id: publication.config.stream_id,
            receiver_id: -1,
            group_tag: None,
            source: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            code: ErrorCode::ImageRejected.code(),
            text: String::from_utf8_lossy(reason).into(),
        };
        self.on_publication_error(&error);
        let Self {
            ipc,
            subscriptions,
            responses,
            settings,
            now,
            ..
        } = self;
        let Some(publication) = ipc.find(image_id) else {
            return;
        };
        let until_ns = now
            .nanos
            .saturating_add(settings.receiver.image_liveness_ns);
        if publication.reject_until(until_ns) {
            for subscription_id in publication.subscribers.with_image() {
                if let Some(subscription) = subscriptions.find(subscription_id) {
                    responses.send_unavailable_image(image_id, subscription);
                }
            }
            publication.detach_subscribers();
        }
    }
}
