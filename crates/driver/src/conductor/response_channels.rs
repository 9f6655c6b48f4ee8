//! Response channels (docs/spec/wire.md §2.10).
//!
//! ```text
//! requester                                              server
//! 1. subscription (control-mode=response)
//! 2. publication, names 1.  ──SETUP, asks for response──► image
//!                           ◄──RESPONSE_SETUP, repeated── 3. publication, names the image
//! 4. 1. gets the session    ──setup-eliciting SM────────► 3. learns its destination
//!                           ◄──────────data──────────────
//! ```
//!
//! Over IPC no frames are needed: the subscription gets its session when the response publication is added.

use taran_protocol::uri::ResponseCorrelation;

use super::failure::Failure;
use super::network::NetworkPublication;
use super::state::ConductorState;
use super::subscriptions::Source;
use crate::boundary::{EndpointId, ImageId, PublicationId, ReceiverCommand};

/// A response publication whose session the image sends to the requester until the requester receives it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseSetup {
    publication: PublicationId,
    image: ImageId,
    endpoint: EndpointId,
}

impl ConductorState {
    /// Checks the response correlation of a network publication: the image that requested a response, or the
    /// subscription that waits for it, must exist.
    pub(crate) fn check_response(
        &self,
        is_response: bool,
        response: ResponseCorrelation,
    ) -> Result<(), Failure> {
        match (is_response, response) {
            (_, ResponseCorrelation::None) | (true, ResponseCorrelation::Prototype) => Ok(()),
            (true, ResponseCorrelation::Id(id)) => match self.networking.images.get(ImageId(id)) {
                Some(image) if image.wants_response => Ok(()),
                Some(_) => Err(Failure::generic(format!(
                    "image.correlationId={id} did not request a response channel: its publication needs \
                     response-correlation-id=<registration id of the subscription for the answers>"
                ))),
                None => Err(Failure::generic(format!(
                    "image.correlationId={id} not found: response-correlation-id must be the correlation id of an \
                     image of the requests"
                ))),
            },
            (false, ResponseCorrelation::Id(id)) if self.subscriptions.find(id).is_some() => Ok(()),
            (false, _) => Err(Failure::generic(format!(
                "unable to find response subscription for response-correlation-id={}: it must be the registration id \
                 of a subscription with control-mode=response",
                super::publication_config::response_id(response)
            ))),
        }
    }

    /// Makes the image of the requests send RESPONSE_SETUP frames for a new response publication.
    pub(crate) fn start_response_setup(&mut self, id: PublicationId) {
        let Some(publication) = self.networking.publications.get(id) else {
            return;
        };
        let params = &publication.config.params;
        let (true, ResponseCorrelation::Id(image)) = (params.is_response, params.response) else {
            return;
        };
        let session_id = publication.config.session_id;
        let Some(image) = self.networking.images.get(ImageId(image)) else {
            return;
        };
        let response_setup = ResponseSetup {
            publication: id,
            image: image.id,
            endpoint: image.endpoint,
        };
        let networking = &mut self.networking;
        networking
            .response_setups
            .retain(|other| other.image != response_setup.image);
        networking.response_setups.push(response_setup);
        networking
            .receiver
            .send(ReceiverCommand::SetResponseSession {
                endpoint: response_setup.endpoint,
                image: response_setup.image,
                session_id: Some(session_id),
            });
    }

    /// Stops the RESPONSE_SETUP frames of publications that are received or have ended. Called in every duty cycle.
    pub(crate) fn stop_completed_response_setups(&mut self) {
        let networking = &mut self.networking;
        if networking.response_setups.is_empty() {
            return;
        }
        let (publications, receiver) = (&networking.publications, &mut networking.receiver);
        networking.response_setups.retain(|setup| {
            let is_waiting = publications
                .get(setup.publication)
                .is_some_and(NetworkPublication::awaits_receiver);
            if !is_waiting {
                receiver.send(ReceiverCommand::SetResponseSession {
                    endpoint: setup.endpoint,
                    image: setup.image,
                    session_id: None,
                });
            }
            is_waiting
        });
    }

    /// Handles the session of the response to the requests of a publication.
    pub(crate) fn on_response_setup(&mut self, publication: PublicationId, session_id: i32) {
        let publication = self.networking.publications.get(publication);
        let Some(ResponseCorrelation::Id(id)) = publication.map(|p| p.config.params.response)
        else {
            return;
        };
        let Some(subscription) = self.subscriptions.find(id) else {
            return;
        };
        let Source::Network(endpoint) = subscription.source else {
            return;
        };
        let stream_id = subscription.stream_id;
        if !subscription.params.is_response {
            return;
        }
        match subscription.response_session() {
            Some(current) if current == session_id => {
                self.networking
                    .receiver
                    .send(ReceiverCommand::RequestSetup {
                        endpoint,
                        stream_id,
                        session_id,
                    });
            }
            // The previous response stream is still received.
            Some(current)
                if self
                    .networking
                    .images
                    .has_receiving_image(endpoint, current, stream_id) => {}
            current => self.assign_response_session(id, endpoint, stream_id, current, session_id),
        }
    }

    /// Assigns a session to a response subscription. The server may have replaced its response publication.
    fn assign_response_session(
        &mut self,
        id: i64,
        endpoint: EndpointId,
        stream_id: i32,
        from: Option<i32>,
        session_id: i32,
    ) {
        let is_first = self
            .subscriptions
            .count(endpoint, stream_id, Some(session_id))
            == 0;
        self.subscriptions.set_response_session(id, session_id);
        let receiver = &mut self.networking.receiver;
        if from.is_some() && self.subscriptions.count(endpoint, stream_id, from) == 0 {
            receiver.send(ReceiverCommand::RemoveSubscription {
                endpoint,
                stream_id,
                session_id: from,
            });
        }
        if is_first {
            receiver.send(ReceiverCommand::AddSubscription {
                endpoint,
                stream_id,
                session_id: Some(session_id),
            });
        } else {
            self.join_response_images(id, endpoint);
        }
    }

    /// Assigns the session of an IPC response publication to the response subscription.
    pub(crate) fn link_ipc_response(&mut self, response: ResponseCorrelation, session_id: i32) {
        let ResponseCorrelation::Id(request) = response else {
            return;
        };
        let response = self.ipc.get(request).map(|p| p.config.params.response);
        let Some(ResponseCorrelation::Id(id)) = response else {
            return;
        };
        let is_waiting = self.subscriptions.find(id).is_some_and(|subscription| {
            subscription.source == Source::Ipc && subscription.params.is_response
        });
        if is_waiting {
            self.subscriptions.set_response_session(id, session_id);
        }
    }
}
