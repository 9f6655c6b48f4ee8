// SPDX-License-Identifier: Apache-2.0
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
use crate::secured::policy::StreamAudience;

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

    /// Returns the receivers that a publication on a secured endpoint is for: a response is for the peer that requested it.
    pub(crate) fn audience(
        &self,
        is_response: bool,
        response: ResponseCorrelation,
    ) -> Result<StreamAudience, Failure> {
        match (is_response, response) {
            (false, _) => Ok(StreamAudience::All),
            (true, ResponseCorrelation::Prototype) => Ok(StreamAudience::Empty),
            (true, ResponseCorrelation::None) => Err(Failure::generic(
                "control-mode=response on a secured channel needs response-correlation-id=<correlation id of an image \
                 of the requests>: without it the stream is for no peer",
            )),
            (true, ResponseCorrelation::Id(id)) => {
                let image = self.networking.images.get(ImageId(id));
                let peer = image.and_then(|image| {
                    let (session_id, stream_id) = (image.session_id, image.stream_id);
                    self.security
                        .requester(image.endpoint, session_id, stream_id)
                });
                peer.map(StreamAudience::Peer).ok_or_else(|| {
                    Failure::generic(format!(
                        "the image with response-correlation-id={id} has no proved sender: a response on a secured \
                         channel needs requests on a secured channel"
                    ))
                })
            }
        }
    }

    /// Checks that the answers to the requests of a publication are bound to a peer if their subscription is secured.
    pub(crate) fn check_requests(
        &self,
        is_secured: bool,
        response: ResponseCorrelation,
    ) -> Result<(), Failure> {
        let ResponseCorrelation::Id(id) = response else {
            return Ok(());
        };
        let subscription = self.subscriptions.find(id).map(|it| &it.source);
        let endpoint = match subscription {
            Some(Source::Network(endpoint)) => self.networking.receive_endpoints.get(*endpoint),
            _ => None,
        };
        match endpoint {
            Some(endpoint) if endpoint.security.is_secured && !is_secured => {
                Err(Failure::generic(format!(
                    "the subscription with response-correlation-id={id} is secured, and the requests are not: nothing \
                     proves which peer answers. Set taran.secure=true in the channel of the requests"
                )))
            }
            _ => Ok(()),
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
        // Transport security tells of the peer that named the session before the sender tells of the session.
        self.poll_security();
        let publication = self.networking.publications.get(publication);
        let Some(publication) = publication else {
            return;
        };
        let ResponseCorrelation::Id(id) = publication.config.params.response else {
            return;
        };
        let requests = (publication.config.session_id, publication.config.stream_id);
        let responder = self
            .security
            .responder(publication.endpoint, requests, session_id);
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
        let receives = self.networking.receive_endpoints.get(endpoint);
        if receives.is_some_and(|endpoint| endpoint.security.is_secured) {
            // Only the peer that was asked may answer. A session that is not taken is named again.
            let response = (session_id, stream_id);
            let is_bound = responder.is_some_and(|responder| {
                self.security.add_response(endpoint, response, &responder)
            });
            if !is_bound {
                return;
            }
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
            self.security.remove_subscription(endpoint, from, stream_id);
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
