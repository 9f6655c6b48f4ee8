//! Commands of clients that live are answered in time, and refused only for a reason.

use std::time::Duration;

use taran::AddError;

use super::teller::Teller;
use crate::check::{Violation, violation};
use crate::{ClientId, ClientState, World};

/// Errors that drivers are right to answer with, and to record, in these stories, by parts of their texts.
pub(super) const EXPECTED: &[&str] = &[
    "unknown publication",
    "unknown subscription",
    // Exclusive publications of one host that say the same session.
    "is already in exclusive use",
    // A shared publication on a stream that another road has as well, with parameters of its own.
    "existing publication has different",
    // The same among subscriptions.
    "option conflicts with existing subscription",
    // Two subscriptions of one host with the same sources.
    "another socket has it",
    // A source is given up that was never asked for, or is about to go already.
    "unknown destination of",
    // A source where the one before is still about to go: nobody asks again, and nobody counts on it.
    "destination found in CLOSING state",
    // Answers to requesters that are gone by then, or that were none.
    "Unable to resolve image",
    "did not request a response channel",
    // Requests of who has given the subscription for answers up, as the machine stood still for longer than commands wait.
    "unable to find response subscription",
    // What subscribers say when they reject.
    "told to",
];

/// What has been asked for, and what came of it.
struct Asked<'t> {
    what: &'static str,
    channel: &'t str,
    client: ClientId,
    at: Duration,
    failure: Option<&'t AddError>,
    is_pending: bool,
}

impl Teller {
    /// Something keeps a host from working until then.
    pub(super) fn disturb_host(&mut self, host: usize, until: Duration) {
        let calm = self.calm_hosts.entry(host).or_default();
        *calm = until.max(*calm);
    }

    /// Something keeps a client from working until then.
    pub(super) fn disturb_client(&mut self, client: ClientId, until: Duration) {
        let calm = self.calm_clients.entry(client).or_default();
        *calm = until.max(*calm);
    }

    /// Holds every failure against what it may be.
    ///
    /// # Errors
    /// One that must not be.
    pub(super) fn look_at_answers(&self) -> Result<(), Violation> {
        for asked in self.all_asked() {
            let Some(failure) = asked.failure else {
                continue;
            };
            let is_expected = match failure {
                AddError::Closed | AddError::DriverLost(_) => true,
                AddError::Registration(refused) => {
                    let text = refused.to_string();
                    EXPECTED.iter().any(|expected| text.contains(expected))
                }
                // In time, if both were there all the time.
                _ => !self.was_calm(&asked),
            };
            if !is_expected {
                violation!(
                    "client {:?}: its {} on {}, asked for at {:?}, failed: {failure}",
                    asked.client,
                    asked.what,
                    asked.channel,
                    asked.at
                );
            }
        }
        Ok(())
    }

    /// Whoever lives has been answered: to be called longer after the last disturbance than an answer may take.
    ///
    /// # Errors
    /// Somebody waits still.
    pub(super) fn look_for_unanswered(&self) -> Result<(), Violation> {
        for client in self.clients.values() {
            if let ClientState::Connecting(_) = self.world.client_state(*client) {
                violation!("client {client:?} connects for ever");
            }
        }
        for asked in self.all_asked() {
            if asked.is_pending && self.is_live(asked.client) {
                violation!(
                    "client {:?}: its {} on {}, asked for at {:?}, was never answered",
                    asked.client,
                    asked.what,
                    asked.channel,
                    asked.at
                );
            }
        }
        Ok(())
    }

    fn all_asked(&self) -> impl Iterator<Item = Asked<'_>> {
        let publications = self.publishers.values().map(|it| {
            let publisher = self.world.publisher(it.id);
            Asked {
                what: "publication",
                channel: &it.channel,
                client: it.client,
                at: it.at,
                failure: publisher.failure(),
                is_pending: publisher.is_pending(),
            }
        });
        let subscriptions = self.subscribers.values().map(|it| {
            let subscriber = self.world.subscriber(it.id);
            Asked {
                what: "subscription",
                channel: &it.channel,
                client: it.client,
                at: it.at,
                failure: subscriber.failure(),
                is_pending: subscriber.is_pending(),
            }
        });
        publications
            .chain(subscriptions)
            .chain(self.all_requested())
    }

    /// Destinations, sources and rejections.
    fn all_requested(&self) -> impl Iterator<Item = Asked<'_>> {
        let publishers = self.publishers.values();
        let publishers = publishers.map(|it| (it.client, self.world.publisher(it.id).requests()));
        let subscribers = self.subscribers.values();
        let subscribers =
            subscribers.map(|it| (it.client, self.world.subscriber(it.id).requests()));
        let all = publishers.chain(subscribers);
        all.flat_map(move |(client, requests)| {
            requests.iter().map(move |request| Asked {
                what: request.what.name(),
                channel: &request.channel,
                client,
                at: World::elapsed_at(request.at_ns),
                failure: request.failure.as_ref(),
                is_pending: request.is_pending(),
            })
        })
    }

    fn was_calm(&self, asked: &Asked<'_>) -> bool {
        let host = self.world.host_of(asked.client);
        let calm = [
            self.calm_hosts.get(&host.number()),
            self.calm_clients.get(&asked.client),
        ];
        let mut calm = calm.into_iter().flatten();
        self.world.has_driver(host) && calm.all(|since| *since <= asked.at)
    }
}
