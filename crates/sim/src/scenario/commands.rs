// SPDX-License-Identifier: Apache-2.0
//! Commands of live clients are answered in time, and fail only for expected reasons.

use std::time::Duration;

use taran::CommandError;

use super::runner::Runner;
use crate::check::{Violation, violation};
use crate::{ClientId, ClientState, World};

/// Expected errors of drivers in random scenarios, as responses and in error logs, by parts of their texts.
pub(super) const EXPECTED_ERRORS: &[&str] = &[
    "unknown publication",
    "unknown subscription",
    // Exclusive publications of one host with the same session id.
    "is already in exclusive use",
    // A shared publication on a stream that another channel also uses, with different parameters.
    "existing publication has different",
    // The same for subscriptions.
    "option conflicts with existing subscription",
    // Two subscriptions of one host with the same sources.
    "another socket has it",
    // Removal of a source that does not exist or is already being removed.
    "unknown destination of",
    // A source whose predecessor is still closing; the request is not repeated and no check relies on it.
    "destination found in CLOSING state",
    // Responses to requesters that are gone, or that requested no response channel.
    "Unable to resolve image",
    "did not request a response channel",
    // A requester has given up its subscription to responses, because the host was paused for longer than the command
    // timeout.
    "unable to find response subscription",
    // Reason text of rejections.
    "by request",
];

/// A command and its outcome.
struct IssuedCommand<'t> {
    kind: &'static str,
    channel: &'t str,
    client: ClientId,
    issued_at: Duration,
    failure: Option<&'t CommandError>,
    is_pending: bool,
}

impl Runner<'_> {
    /// Records that a host is disturbed until this time.
    pub(super) fn disturb_host(&mut self, host: usize, until: Duration) {
        let stable_since = self.hosts_stable_since.entry(host).or_default();
        *stable_since = until.max(*stable_since);
    }

    /// Records that a client is disturbed until this time.
    pub(super) fn disturb_client(&mut self, client: ClientId, until: Duration) {
        let stable_since = self.clients_stable_since.entry(client).or_default();
        *stable_since = until.max(*stable_since);
    }

    /// Checks each failed command against the expected errors.
    ///
    /// # Errors
    /// An unexpected failure.
    pub(super) fn check_command_outcomes(&self) -> Result<(), Violation> {
        for command in self.issued_commands() {
            let Some(failure) = command.failure else {
                continue;
            };
            let is_expected = match failure {
                CommandError::Closed | CommandError::DriverLost(_) => true,
                CommandError::Registration(refused) => {
                    let text = refused.to_string();
                    EXPECTED_ERRORS
                        .iter()
                        .any(|expected| text.contains(expected))
                }
                // A timeout is a failure only if client and driver were undisturbed.
                _ => !self.was_stable(&command),
            };
            if !is_expected {
                violation!(
                    "client {:?}: its {} on {}, issued at {:?}, failed: {failure}",
                    command.client,
                    command.kind,
                    command.channel,
                    command.issued_at
                );
            }
        }
        Ok(())
    }

    /// Checks that all commands of live clients were answered. Call it when the last disturbance is longer ago than a
    /// response may take.
    ///
    /// # Errors
    /// A command is still pending.
    pub(super) fn check_all_answered(&self) -> Result<(), Violation> {
        for client in self.clients.values() {
            if let ClientState::Connecting(_) = self.world.client_state(*client) {
                violation!("client {client:?} never finishes connecting");
            }
        }
        for command in self.issued_commands() {
            if command.is_pending && self.is_live(command.client) {
                violation!(
                    "client {:?}: its {} on {}, issued at {:?}, was never answered",
                    command.client,
                    command.kind,
                    command.channel,
                    command.issued_at
                );
            }
        }
        Ok(())
    }

    fn issued_commands(&self) -> impl Iterator<Item = IssuedCommand<'_>> {
        let publications = self.publishers.values().map(|it| {
            let publisher = self.world.publisher(it.id);
            IssuedCommand {
                kind: "publication",
                channel: &it.channel,
                client: it.client,
                issued_at: it.requested_at,
                failure: publisher.failure(),
                is_pending: publisher.is_pending(),
            }
        });
        let subscriptions = self.subscribers.values().map(|it| {
            let subscriber = self.world.subscriber(it.id);
            IssuedCommand {
                kind: "subscription",
                channel: &it.channel,
                client: it.client,
                issued_at: it.requested_at,
                failure: subscriber.failure(),
                is_pending: subscriber.is_pending(),
            }
        });
        publications
            .chain(subscriptions)
            .chain(self.issued_requests())
    }

    /// Destination and rejection requests.
    fn issued_requests(&self) -> impl Iterator<Item = IssuedCommand<'_>> {
        let publishers = self.publishers.values();
        let publishers = publishers.map(|it| (it.client, self.world.publisher(it.id).requests()));
        let subscribers = self.subscribers.values();
        let subscribers =
            subscribers.map(|it| (it.client, self.world.subscriber(it.id).requests()));
        let all = publishers.chain(subscribers);
        all.flat_map(move |(client, requests)| {
            requests.iter().map(move |request| IssuedCommand {
                kind: request.kind.name(),
                channel: &request.channel,
                client,
                issued_at: World::elapsed_at(request.at_ns),
                failure: request.failure.as_ref(),
                is_pending: request.is_pending(),
            })
        })
    }

    fn was_stable(&self, command: &IssuedCommand<'_>) -> bool {
        let host = self.world.host_of(command.client);
        let stable_since = [
            self.hosts_stable_since.get(&host.number()),
            self.clients_stable_since.get(&command.client),
        ];
        let mut stable_since = stable_since.into_iter().flatten();
        self.world.has_driver(host) && stable_since.all(|since| *since <= command.issued_at)
    }
}
