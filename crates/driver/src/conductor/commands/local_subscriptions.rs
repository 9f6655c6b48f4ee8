// SPDX-License-Identifier: Apache-2.0
//! Local subscriptions: over IPC, and spies on network publications of this driver.

use taran_protocol::response::Response;
use taran_protocol::uri::UdpChannel;

use super::super::clients::PublicationRef;
use super::super::command_error::CommandError;
use super::super::deferred_commands::ResolvedPrerequisites;
use super::super::failure::Failure;
use super::super::network::ResolvedChannel;
use super::super::state::ConductorState;
use super::super::subscribers::{Subscriber, Subscribers};
use super::super::subscription_linking::{LogDescriptor, join};
use super::super::subscriptions::{Source, SpiedChannel, SpiedStream, Subscription};
use super::subscriptions::NewSubscription;
use crate::boundary::SenderCommand;

/// Status counter id for "none": local subscriptions have no channel status.
const NO_STATUS: i32 = -1;

/// A publication that a subscription joins, and its join position.
#[derive(Debug, Clone, Copy)]
struct JoinPoint {
    publication: PublicationRef,
    session_id: i32,
    position: i64,
}

impl ConductorState {
    pub(super) fn add_ipc_subscription(&mut self, new: &NewSubscription) -> Result<(), Failure> {
        self.add_local_subscription(new.entry(Source::Ipc), &ready(new))
    }

    pub(super) fn add_spy(
        &mut self,
        new: &NewSubscription,
        channel: &UdpChannel,
        prerequisites: &ResolvedPrerequisites,
    ) -> Result<(), CommandError> {
        let resolved = self.resolve_channel(channel, prerequisites)?;
        let source = self.spy_source(&resolved);
        Ok(self.add_local_subscription(new.entry(source), &ready(new))?)
    }

    /// Returns the source of a spy on this channel.
    pub(super) fn spy_source(&mut self, resolved: &ResolvedChannel) -> Source {
        let canonical = self.networking.send_endpoints.canonical(resolved);
        Source::Spy(SpiedChannel {
            canonical: canonical.into(),
            tag: resolved.channel.tags.channel,
        })
    }

    /// Adds a subscription, or a local destination of one. The response is sent before images are announced.
    pub(super) fn add_local_subscription(
        &mut self,
        subscription: Subscription,
        answer: &Response<'_>,
    ) -> Result<(), Failure> {
        self.subscriptions.check(&subscription)?;
        self.ensure_client(subscription.client_id)?;
        let positions = self.local_positions(&subscription)?;
        self.subscriptions.insert(subscription);
        self.responses.send(answer);
        for (publication, subscriber) in positions {
            self.attach_local(publication, subscriber);
        }
        Ok(())
    }

    /// Creates a position for every publication that the subscription reads; all or none.
    pub(super) fn local_positions(
        &mut self,
        subscription: &Subscription,
    ) -> Result<Vec<(PublicationRef, Subscriber)>, Failure> {
        let mut positions: Vec<(PublicationRef, Subscriber)> = Vec::new();
        for join_point in self.join_points(subscription) {
            match self.join_local(&join_point, subscription) {
                Ok(subscriber) => positions.push((join_point.publication, subscriber)),
                Err(failure) => {
                    let created = positions.iter().map(|(_, subscriber)| &subscriber.position);
                    self.counters.free_all(created);
                    return Err(failure);
                }
            }
        }
        Ok(positions)
    }

    /// Returns the publications that a subscription can join now.
    fn join_points(&mut self, subscription: &Subscription) -> Vec<JoinPoint> {
        match &subscription.source {
            Source::Ipc if subscription.awaits_session => Vec::new(),
            Source::Ipc => {
                let (stream_id, session_id) =
                    (subscription.stream_id, subscription.params.session_id);
                let joinable = self.ipc.joinable(stream_id, session_id);
                let ids: Vec<i64> = joinable.map(|found| found.registration_id).collect();
                ids.into_iter()
                    .filter_map(|id| self.join_point(PublicationRef::Ipc(id)))
                    .collect()
            }
            Source::Spy(_) => {
                let publications = &self.networking.publications;
                publications
                    .of_stream(subscription.stream_id)
                    .filter(|publication| {
                        publication.accepts_spies()
                            && self
                                .networking
                                .spied_stream(publication)
                                .is_some_and(|stream| subscription.spies_on(&stream))
                    })
                    .filter_map(|found| self.join_point(PublicationRef::Network(found.id)))
                    .collect()
            }
            Source::Network(_) => Vec::new(),
        }
    }

    fn join_point(&self, publication: PublicationRef) -> Option<JoinPoint> {
        let (session_id, position) = match publication {
            PublicationRef::Ipc(id) => {
                let found = self.ipc.get(id)?;
                (found.config.session_id, found.join_position())
            }
            PublicationRef::Network(id) => {
                let found = self.networking.publications.get(id)?;
                (found.config.session_id, found.join_position())
            }
        };
        Some(JoinPoint {
            publication,
            session_id,
            position,
        })
    }

    fn join_local(
        &mut self,
        join_point: &JoinPoint,
        subscription: &Subscription,
    ) -> Result<Subscriber, Failure> {
        join(
            &mut self.counters,
            join_point.publication.registration_id(),
            join_point.session_id,
            join_point.position,
            subscription,
            self.now.nanos,
        )
    }

    /// Attaches a subscriber to a publication and announces the image to its client.
    pub(super) fn attach_local(&mut self, publication: PublicationRef, subscriber: Subscriber) {
        let Self {
            ipc,
            networking,
            subscriptions,
            responses,
            ..
        } = self;
        let Some(subscription) = subscriptions.find(subscriber.subscription_id) else {
            return;
        };
        let position = subscriber.position.clone();
        match publication {
            PublicationRef::Ipc(id) => {
                let Some(publication) = ipc.find(id) else {
                    return;
                };
                publication.add_subscriber(subscriber);
                let descriptor = LogDescriptor::ipc(publication);
                responses.send_available_image(&descriptor, subscription, position.id());
            }
            PublicationRef::Network(id) => {
                let Some(publication) = networking.publications.get_mut(id) else {
                    return;
                };
                publication.add_spy(subscriber);
                let descriptor = LogDescriptor::spy(publication);
                responses.send_available_image(&descriptor, subscription, position.id());
                networking.sender.send(SenderCommand::AddSpy {
                    endpoint: publication.endpoint,
                    publication: id,
                    position,
                });
            }
        }
    }

    /// Joins all matching local subscriptions to a publication.
    pub(in crate::conductor) fn join_subscriptions(&mut self, publication: PublicationRef) {
        for id in self.matching_local_subscriptions(publication) {
            let Some(join_point) = self.join_point(publication) else {
                return;
            };
            let Some(subscription) = self.subscriptions.find(id).cloned() else {
                continue;
            };
            match self.join_local(&join_point, &subscription) {
                Ok(subscriber) => self.attach_local(publication, subscriber),
                // The command of the subscription was answered earlier, and the publisher is not at fault.
                Err(failure) => self.record(failure.code, &failure.text),
            }
        }
    }

    /// Returns the ids of the local subscriptions that match a publication.
    fn matching_local_subscriptions(&self, publication: PublicationRef) -> Vec<i64> {
        match publication {
            PublicationRef::Ipc(id) => {
                let Some(found) = self.ipc.get(id) else {
                    return Vec::new();
                };
                let config = &found.config;
                self.subscriptions
                    .matching(&Source::Ipc, config.stream_id, config.session_id)
                    .map(|subscription| subscription.id)
                    .filter(|id| !found.subscribers.has_dropped(*id))
                    .collect()
            }
            PublicationRef::Network(id) => {
                let found = self.networking.publications.get(id);
                let stream = found.and_then(|found| self.networking.spied_stream(found));
                stream.map_or_else(Vec::new, |stream: SpiedStream<'_>| {
                    let spies = self.subscriptions.matching_spies(stream);
                    spies.map(|subscription| subscription.id).collect()
                })
            }
        }
    }

    /// Returns the ids of the local publications whose images the client of the subscription knows as available.
    pub(super) fn local_image_ids(&self, subscription: &Subscription) -> Vec<i64> {
        let stream_id = subscription.stream_id;
        let is_reader =
            |subscribers: &Subscribers| subscribers.with_image().any(|id| id == subscription.id);
        let ipc = self.ipc.of_stream(stream_id).into_iter();
        let ipc = ipc.filter(|id| {
            let publication = self.ipc.get(*id);
            publication.is_some_and(|publication| is_reader(&publication.subscribers))
        });
        let spied = self.networking.publications.of_stream(stream_id);
        let spied = spied.filter(|publication| is_reader(&publication.spies));
        ipc.chain(spied.map(|publication| publication.id.0))
            .collect()
    }

    /// Removes a subscription from the publications that it reads locally.
    pub(super) fn close_local_subscription(&mut self, subscription: &Subscription) {
        match subscription.source {
            Source::Ipc => {
                for id in self.ipc.of_stream(subscription.stream_id) {
                    let publication = self.ipc.find(id);
                    let position =
                        publication.and_then(|found| found.remove_subscriber(subscription.id));
                    if let Some(position) = position {
                        self.counters.free(position.id());
                    }
                }
            }
            Source::Spy(_) => {
                let networking = &mut self.networking;
                for id in networking
                    .publications
                    .ids_of_stream(subscription.stream_id)
                {
                    let Some(publication) = networking.publications.get_mut(id) else {
                        continue;
                    };
                    if let Some(position) = publication.remove_spy(subscription.id) {
                        networking.sender.send(SenderCommand::RemoveSpy {
                            endpoint: publication.endpoint,
                            publication: publication.id,
                            counter_id: position.id(),
                        });
                        self.counters.free_tracked(position.id());
                    }
                }
            }
            Source::Network(_) => {}
        }
    }
}

fn ready(new: &NewSubscription) -> Response<'static> {
    Response::SubscriptionReady {
        correlation_id: new.id,
        status_counter_id: NO_STATUS,
    }
}
