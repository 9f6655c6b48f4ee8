// SPDX-License-Identifier: Apache-2.0
//! No client, connection or image is lost without a reason: detection of losses, and disturbances that may explain
//! them.
//!
//! Checked at each interval: clients that were not closed, publications that were connected, and images of live
//! subscribers. Disturbances of a stream within the last [`WINDOW`]: the driver or client of either side was stopped,
//! killed or stalled, even briefly; the path between the hosts was cut or changed; for images also a slow reader, so
//! that the end of the image may date from long ago. Link faults and clock steps are not disturbances.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::flows::{Candidate, may_have_several_receivers, required_receivers};
use super::route::parameter;
use super::runner::{KnownPublisher, KnownSubscriber, Runner};
use crate::check::{Violation, clients, connections, image_termination};
use crate::traffic::{EndedImage, StreamKey};
use crate::{ClientId, ClientState, PublisherId, SubscriberId};

/// A disturbance has shown its effects after this time: the image liveness timeout (10 s), timer intervals, and network
/// delays.
const WINDOW: Duration = Duration::from_secs(15);

/// A reader that skips more duty cycles than this (per mille) keeps images open long after their end.
const SLOW: u64 = 500;

/// State observed at the last check.
#[derive(Default)]
pub(super) struct LossTracker {
    clients: BTreeMap<ClientId, ClientStart>,
    connected: BTreeSet<PublisherId>,
    /// Number of former images by subscriber.
    ended: BTreeMap<SubscriberId, usize>,
    /// Rejected images: host, driver generation, correlation id.
    rejected: BTreeSet<(usize, u64, i64)>,
}

/// Circumstances at a client's start.
struct ClientStart {
    had_driver: bool,
    driver_generation: u64,
    is_over: bool,
}

impl Runner<'_> {
    // --- tracking ---

    /// Starts tracking a client that begins to connect.
    pub(super) fn track_client(&mut self, client: ClientId) {
        let host = self.world.host_of(client);
        let start = ClientStart {
            had_driver: self.world.has_driver(host),
            driver_generation: self.world.driver_generation(host),
            is_over: false,
        };
        self.loss_tracker.clients.insert(client, start);
    }

    /// Records that a subscriber has rejected all its images.
    pub(super) fn track_rejection(&mut self, subscriber: SubscriberId) {
        let known = self.subscribers.values().find(|it| it.id == subscriber);
        let Some(known) = known else { return };
        let host = self.world.host_of(known.client).number();
        let images = self.world.subscriber(subscriber).image_ids();
        self.loss_tracker
            .rejected
            .extend(images.map(|image| (host, known.driver_generation, image)));
    }

    /// Returns the time since when a subscriber with this skip rate polls quickly.
    pub(super) fn fast_since(&self, skip_per_mille: u64) -> Duration {
        if skip_per_mille >= SLOW {
            Duration::MAX
        } else {
            self.world.elapsed()
        }
    }

    /// Records that a link is restored.
    pub(super) fn mark_link_restored(&mut self, from: usize, to: usize) {
        let now = self.world.elapsed();
        if let Some(since) = self.links_stable_since.get_mut(&(from, to)) {
            *since = now.min(*since);
        }
    }

    /// Restores all links.
    pub(super) fn heal_all(&mut self) {
        let now = self.world.elapsed();
        for since in self.links_stable_since.values_mut() {
            *since = now.min(*since);
        }
        self.world.network().heal_all();
    }

    // --- checks ---

    /// Checks for losses since the last check.
    ///
    /// # Errors
    /// A loss without a reason.
    pub(super) fn check_losses(&mut self) -> Result<(), Violation> {
        self.check_clients()?;
        self.check_connections()?;
        self.check_image_ends()
    }

    fn check_clients(&mut self) -> Result<(), Violation> {
        for (id, start) in &mut self.loss_tracker.clients {
            if start.is_over {
                continue;
            }
            let host = self.world.host_of(*id);
            let history = clients::ClientHistory {
                driver_gone: !start.had_driver
                    || self.world.driver_generation(host) != start.driver_generation
                    || !self.world.has_driver(host),
                longest_driver_stall: self.world.longest_driver_stall(host),
                longest_client_stall: self.world.longest_client_stall(*id),
            };
            let reason = match self.world.client_state(*id) {
                ClientState::Connecting(_) => continue,
                ClientState::Connected(_) => match self.world.client_end(*id) {
                    None => continue,
                    Some(end) => clients::explain_end(end, &history),
                },
                ClientState::Failed(error) => clients::explain_connect_failure(error, &history),
                ClientState::Closed | ClientState::Dead => Ok("closed or killed"),
            };
            start.is_over = true;
            let reason = reason
                .map_err(|Violation(what)| Violation(format!("a client is {what} ({id:?})")))?;
            self.coverage.count(format!("clients that ended: {reason}"));
        }
        Ok(())
    }

    fn check_connections(&mut self) -> Result<(), Violation> {
        let mut connected = BTreeSet::new();
        for from in self.publishers.values() {
            let publisher = self.world.publisher(from.id);
            if !publisher.is_open() || !self.is_live(from.client) {
                continue;
            }
            let (was, is) = (
                self.loss_tracker.connected.contains(&from.id),
                publisher.is_connected(),
            );
            if is {
                connected.insert(from.id);
            }
            if was && !is {
                self.coverage.count("connections that ended");
                let readers = self.readers_of(from);
                connections::check(was, is, readers).map_err(|Violation(what)| {
                    Violation(format!("{what} of {:?} on {}", from.id, from.channel))
                })?;
            }
        }
        self.loss_tracker.connected = connected;
        Ok(())
    }

    /// Returns the undisturbed subscribers that have an image of a publication.
    fn readers_of(&self, from: &KnownPublisher) -> Vec<String> {
        let Some(key) = self.world.publisher(from.id).key() else {
            return Vec::new();
        };
        if self.corrupts || self.revoked.contains(&key) {
            return Vec::new();
        }
        // If flow control requires receivers, one that was more than a window behind when its first status message
        // arrived does not count until it has consumed.
        let needs_some = required_receivers(&from.channel) > 0;
        let reads = |to: &&KnownSubscriber| {
            let subscriber = self.world.subscriber(to.id);
            let mut images = subscriber.image_ids();
            let image = images.find(|id| subscriber.stream_of(*id) == Some(key));
            image.is_some_and(|image| !self.is_rejected(to, image))
                && !is_untethered(to)
                && !to.channel.starts_with("aeron-spy:")
                && self.disturbance(from, to, false).is_none()
                && (!needs_some || self.is_stable(Some(&to.fast_since)))
        };
        let readers = self.subscribers.values().filter(reads);
        let readers: Vec<_> = readers.filter_map(|to| self.candidate(from, to)).collect();
        if !self.is_connected_by(from, &readers) {
            return Vec::new();
        }
        let readers = readers.iter().map(|Candidate { to, .. }| to);
        readers
            .map(|to| format!("{:?} on {}", to.id, to.channel))
            .collect()
    }

    fn check_image_ends(&mut self) -> Result<(), Violation> {
        let mut reasons = Vec::new();
        for to in self.subscribers.values() {
            let all = self.world.subscriber(to.id).ended();
            let checked = self
                .loss_tracker
                .ended
                .insert(to.id, all.len())
                .unwrap_or(0);
            if self.corrupts || !self.is_live(to.client) {
                continue;
            }
            for image in &all[checked..] {
                let context = self.image_context(to, image);
                reasons.push(image_termination::check(image, &context).map_err(
                    |Violation(what)| Violation(format!("{what} ({:?} on {})", to.id, to.channel)),
                )?);
            }
        }
        for reason in reasons {
            self.coverage.count(format!("images that ended: {reason}"));
        }
        Ok(())
    }

    fn image_context(
        &self,
        to: &KnownSubscriber,
        image: &EndedImage,
    ) -> image_termination::ImageContext {
        let publishers: Vec<_> = self.publishers_of(&image.key).collect();
        let is_published = publishers.iter().any(|from| {
            self.is_live(from.client)
                && self.world.publisher(from.id).is_open()
                && self.is_stable_client(from.client)
        });
        let disturbance = publishers
            .iter()
            .map(|from| self.disturbance(from, to, true));
        image_termination::ImageContext {
            is_revoked: self.revoked.contains(&image.key),
            is_published,
            is_rejected: self.is_rejected(to, image.correlation_id),
            is_untethered: is_untethered(to),
            // An undisturbed publisher of a shared stream keeps it alive.
            disturbance: disturbance
                .reduce(Option::and)
                .unwrap_or(Some("no known publisher")),
        }
    }

    fn publishers_of(&self, key: &StreamKey) -> impl Iterator<Item = &KnownPublisher> {
        let publishers = self.publishers.values();
        publishers.filter(|from| self.world.publisher(from.id).key() == Some(*key))
    }

    fn is_rejected(&self, to: &KnownSubscriber, image: i64) -> bool {
        let host = self.world.host_of(to.client).number();
        self.loss_tracker
            .rejected
            .contains(&(host, to.driver_generation, image))
    }

    // --- disturbances ---

    fn is_stable(&self, since: Option<&Duration>) -> bool {
        let now = self.world.elapsed();
        since.is_none_or(|since| since.saturating_add(WINDOW) <= now)
    }

    fn is_stable_client(&self, client: ClientId) -> bool {
        self.is_stable(self.clients_stable_since.get(&client))
    }

    /// Returns the recent disturbance that may keep a subscriber from receiving a publisher's stream.
    fn disturbance(
        &self,
        from: &KnownPublisher,
        to: &KnownSubscriber,
        is_about_image: bool,
    ) -> Option<&'static str> {
        if !self.is_live(from.client) || !self.world.publisher(from.id).is_open() {
            return Some("the publication is closed");
        }
        if !self.is_live(to.client) || !self.world.subscriber(to.id).is_open() {
            return Some("the subscription is closed");
        }
        let Some(route) = self.shared_route(from, to) else {
            return Some("no shared route, or a response channel");
        };
        if !self.is_stable(Some(&from.routes_stable_since))
            || !self.is_stable(Some(&to.routes_stable_since))
        {
            return Some("a destination or source changed, or it is new");
        }
        let [here, there] = [from.client, to.client].map(|it| self.world.host_of(it));
        for host in [here, there] {
            let since = self.hosts_stable_since.get(&host.number());
            if !self.world.has_driver(host) || !self.is_stable(since) {
                return Some("a driver died or stalled");
            }
        }
        if !self.is_stable_client(from.client) || !self.is_stable_client(to.client) {
            return Some("a client stalled");
        }
        let links = [
            (here.number(), there.number()),
            (there.number(), here.number()),
        ];
        if links
            .iter()
            .any(|link| !self.is_stable(self.links_stable_since.get(link)))
        {
            return Some("a link was cut");
        }
        if !self.is_waited_for(from, to) {
            return Some("its publisher does not wait for it");
        }
        if !is_about_image {
            return None;
        }
        let mut readers = self.subscribers.values().filter(|it| {
            it.stream == to.stream
                && self.world.host_of(it.client) == there
                && self.shared_route(from, it).as_ref() == Some(&route)
        });
        readers
            .any(|it| {
                let reads = self.is_live(it.client) && self.world.subscriber(it.id).is_open();
                !self.is_stable_client(it.client) || reads && !self.is_stable(Some(&it.fast_since))
            })
            .then_some("a reader is slow or dead")
    }

    /// Returns true if a publisher waits for a late subscriber: for its only receiver, and for all with `fc=min`. With
    /// `fc=tagged` it waits for some; the tag of a receiver is that of the first subscription on its socket.
    fn is_waited_for(&self, from: &KnownPublisher, to: &KnownSubscriber) -> bool {
        let control = parameter(&from.channel, "fc").and_then(|said| said.split(',').next());
        let host = self.world.host_of(to.client);
        let mut others = self
            .subscribers
            .values()
            .filter(|it| it.stream == to.stream && self.world.host_of(it.client) != host);
        control == Some("min")
            || !may_have_several_receivers(&from.channel)
            || !others.any(|it| self.shared_route(from, it).is_some())
    }
}

fn is_untethered(to: &KnownSubscriber) -> bool {
    parameter(&to.channel, "tether") == Some("false")
}
