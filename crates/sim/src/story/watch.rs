//! No client, no connection and no image is lost for no reason: what there is to look at, and what may have befallen it.
//!
//! Looked at are clients that nobody closed, publications that were connected, and images of live subscribers, at each beat.
//! What may befall a stream, within the last [`WINDOW`]: a driver or one of the two clients was stopped, killed or stood
//! still, be it for a moment; the way between the hosts was cut, or led elsewhere; of images also that somebody reads slowly
//! from them, so that it is long ago that they came to their end. The weather is no reason, nor are clocks that are set.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::flows::{Candidate, has_several, required};
use super::place::parameter;
use super::teller::{Publishing, Subscribing, Teller};
use crate::check::{Violation, clients, connections, image_termination};
use crate::traffic::{EndedImage, StreamKey};
use crate::{ClientId, ClientState, PublisherId, SubscriberId};

/// What is longer ago has shown its effect: the liveness timeout of images (10 s), turns of timers, and the way.
const WINDOW: Duration = Duration::from_secs(15);

/// Who is slower than this (turns without work, per mille) leaves images open long after their end.
const SLOW: u64 = 500;

/// What was looked at.
#[derive(Default)]
pub(super) struct Watch {
    clients: BTreeMap<ClientId, Begun>,
    connected: BTreeSet<PublisherId>,
    /// How many images of a subscriber have ended.
    ended: BTreeMap<SubscriberId, usize>,
    /// Images that were sent away: host, life of its driver, image.
    rejected: BTreeSet<(usize, u64, i64)>,
}

/// How a client began.
struct Begun {
    had_driver: bool,
    life: u64,
    is_over: bool,
}

impl Teller {
    // --- keeping in mind ---

    /// A client begins to look for its driver.
    pub(super) fn watch_client(&mut self, client: ClientId) {
        let host = self.world.host_of(client);
        let begun = Begun {
            had_driver: self.world.has_driver(host),
            life: self.world.lives(host),
            is_over: false,
        };
        self.watch.clients.insert(client, begun);
    }

    /// A subscriber has sent all its images away.
    pub(super) fn watch_rejection(&mut self, subscriber: SubscriberId) {
        let known = self.subscribers.values().find(|it| it.id == subscriber);
        let Some(known) = known else { return };
        let host = self.world.host_of(known.client).number();
        let images = self.world.subscriber(subscriber).image_ids();
        self.watch
            .rejected
            .extend(images.map(|image| (host, known.life, image)));
    }

    /// Since when somebody who is as lazy as this reads quickly.
    pub(super) fn attentive(&self, laziness: u64) -> Duration {
        if laziness >= SLOW {
            Duration::MAX
        } else {
            self.world.elapsed()
        }
    }

    /// A link is not cut any more.
    pub(super) fn calm_link(&mut self, from: usize, to: usize) {
        let now = self.world.elapsed();
        if let Some(since) = self.calm_links.get_mut(&(from, to)) {
            *since = now.min(*since);
        }
    }

    /// No link is cut any more.
    pub(super) fn heal_all(&mut self) {
        let now = self.world.elapsed();
        for since in self.calm_links.values_mut() {
            *since = now.min(*since);
        }
        self.world.network().heal_all();
    }

    // --- looking ---

    /// Looks for what was lost since the last look.
    ///
    /// # Errors
    /// Something was, for no reason.
    pub(super) fn look_for_lost(&mut self) -> Result<(), Violation> {
        self.look_at_clients()?;
        self.look_at_connections()?;
        self.look_at_endings()
    }

    fn look_at_clients(&mut self) -> Result<(), Violation> {
        for (id, begun) in &mut self.watch.clients {
            if begun.is_over {
                continue;
            }
            let host = self.world.host_of(*id);
            let lot = clients::ClientHistory {
                driver_gone: !begun.had_driver
                    || self.world.lives(host) != begun.life
                    || !self.world.has_driver(host),
                longest_driver_stall: self.world.driver_rested(host),
                longest_client_stall: self.world.client_rested(*id),
            };
            let reason = match self.world.client_state(*id) {
                ClientState::Connecting(_) => continue,
                ClientState::Connected(_) => match self.world.client_end(*id) {
                    None => continue,
                    Some(end) => clients::explain_end(end, &lot),
                },
                ClientState::Failed(error) => clients::explain_connect_failure(error, &lot),
                ClientState::Closed | ClientState::Dead => Ok("closed or killed"),
            };
            begun.is_over = true;
            let reason = reason
                .map_err(|Violation(what)| Violation(format!("a client is {what} ({id:?})")))?;
            self.coverage.count(format!("clients that ended: {reason}"));
        }
        Ok(())
    }

    fn look_at_connections(&mut self) -> Result<(), Violation> {
        let mut connected = BTreeSet::new();
        for from in self.publishers.values() {
            let publisher = self.world.publisher(from.id);
            if !publisher.is_open() || !self.is_live(from.client) {
                continue;
            }
            let (was, is) = (
                self.watch.connected.contains(&from.id),
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
        self.watch.connected = connected;
        Ok(())
    }

    /// Those who have an image of a publication, and nothing has befallen it.
    fn readers_of(&self, from: &Publishing) -> Vec<String> {
        let Some(key) = self.world.publisher(from.id).key() else {
            return Vec::new();
        };
        if self.corrupts || self.revoked.contains(&key) {
            return Vec::new();
        }
        // Of those that it needs, one that was more than a window behind when it was first heard does not count until it
        // has read.
        let needs_some = required(&from.channel) > 0;
        let reads = |to: &&Subscribing| {
            let subscriber = self.world.subscriber(to.id);
            let mut images = subscriber.image_ids();
            let image = images.find(|id| subscriber.stream_of(*id) == Some(key));
            image.is_some_and(|image| !self.is_rejected(to, image))
                && !is_untethered(to)
                && !to.channel.starts_with("aeron-spy:")
                && self.befell(from, to, false).is_none()
                && (!needs_some || self.is_calm(Some(&to.attentive)))
        };
        let readers = self.subscribers.values().filter(reads);
        let readers: Vec<_> = readers.filter_map(|to| self.meet(from, to)).collect();
        if !self.is_connected_by(from, &readers) {
            return Vec::new();
        }
        let readers = readers.iter().map(|Candidate { to, .. }| to);
        readers
            .map(|to| format!("{:?} on {}", to.id, to.channel))
            .collect()
    }

    fn look_at_endings(&mut self) -> Result<(), Violation> {
        let mut reasons = Vec::new();
        for to in self.subscribers.values() {
            let all = self.world.subscriber(to.id).ended();
            let seen = self.watch.ended.insert(to.id, all.len()).unwrap_or(0);
            if self.corrupts || !self.is_live(to.client) {
                continue;
            }
            for image in &all[seen..] {
                let facts = self.facts_of(to, image);
                reasons.push(image_termination::check(image, &facts).map_err(
                    |Violation(what)| Violation(format!("{what} ({:?} on {})", to.id, to.channel)),
                )?);
            }
        }
        for reason in reasons {
            self.coverage.count(format!("images that ended: {reason}"));
        }
        Ok(())
    }

    fn facts_of(&self, to: &Subscribing, image: &EndedImage) -> image_termination::ImageContext {
        let publishers: Vec<_> = self.publishers_of(&image.key).collect();
        let is_published = publishers.iter().any(|from| {
            self.is_live(from.client)
                && self.world.publisher(from.id).is_open()
                && self.is_calm_client(from.client)
        });
        let befell = publishers.iter().map(|from| self.befell(from, to, true));
        image_termination::ImageContext {
            is_revoked: self.revoked.contains(&image.key),
            is_published,
            is_rejected: self.is_rejected(to, image.correlation_id),
            is_untethered: is_untethered(to),
            // Whoever publishes undisturbed on a stream that is shared keeps it going.
            disturbance: befell
                .reduce(Option::and)
                .unwrap_or(Some("nobody is known to publish on it")),
        }
    }

    fn publishers_of(&self, key: &StreamKey) -> impl Iterator<Item = &Publishing> {
        let publishers = self.publishers.values();
        publishers.filter(|from| self.world.publisher(from.id).key() == Some(*key))
    }

    fn is_rejected(&self, to: &Subscribing, image: i64) -> bool {
        let host = self.world.host_of(to.client).number();
        self.watch.rejected.contains(&(host, to.life, image))
    }

    // --- what may have befallen a stream ---

    fn is_calm(&self, since: Option<&Duration>) -> bool {
        let now = self.world.elapsed();
        since.is_none_or(|since| since.saturating_add(WINDOW) <= now)
    }

    fn is_calm_client(&self, client: ClientId) -> bool {
        self.is_calm(self.calm_clients.get(&client))
    }

    /// What keeps a subscriber from reading what a publisher sends, or did within the last while.
    fn befell(
        &self,
        from: &Publishing,
        to: &Subscribing,
        is_about_image: bool,
    ) -> Option<&'static str> {
        if !self.is_live(from.client) || !self.world.publisher(from.id).is_open() {
            return Some("nobody publishes on it any more");
        }
        if !self.is_live(to.client) || !self.world.subscriber(to.id).is_open() {
            return Some("nobody reads it any more");
        }
        let Some(place) = self.leads(from, to) else {
            return Some("it leads nowhere any more, or brings answers");
        };
        if !self.is_calm(Some(&from.settled)) || !self.is_calm(Some(&to.settled)) {
            return Some("a destination or source came or went, or it is new");
        }
        let [here, there] = [from.client, to.client].map(|it| self.world.host_of(it));
        for host in [here, there] {
            let since = self.calm_hosts.get(&host.number());
            if !self.world.has_driver(host) || !self.is_calm(since) {
                return Some("a driver died or stood still");
            }
        }
        if !self.is_calm_client(from.client) || !self.is_calm_client(to.client) {
            return Some("a client stood still");
        }
        let links = [
            (here.number(), there.number()),
            (there.number(), here.number()),
        ];
        if links
            .iter()
            .any(|link| !self.is_calm(self.calm_links.get(link)))
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
                && self.leads(from, it).as_ref() == Some(&place)
        });
        readers
            .any(|it| {
                let reads = self.is_live(it.client) && self.world.subscriber(it.id).is_open();
                !self.is_calm_client(it.client) || reads && !self.is_calm(Some(&it.attentive))
            })
            .then_some("somebody reads slowly, or is dead")
    }

    /// Whether a publisher waits for a subscriber that is late: for the only one, and for all with `fc=min`. Of those with a
    /// tag it waits for some: which tag a receiver wears the first subscription to its socket says.
    fn is_waited_for(&self, from: &Publishing, to: &Subscribing) -> bool {
        let control = parameter(&from.channel, "fc").and_then(|said| said.split(',').next());
        let host = self.world.host_of(to.client);
        let mut others = self
            .subscribers
            .values()
            .filter(|it| it.stream == to.stream && self.world.host_of(it.client) != host);
        control == Some("min")
            || !has_several(&from.channel)
            || !others.any(|it| self.leads(from, it).is_some())
    }
}

fn is_untethered(to: &Subscribing) -> bool {
    parameter(&to.channel, "tether") == Some("false")
}
