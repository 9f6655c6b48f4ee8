// SPDX-License-Identifier: Apache-2.0
//! Host name lookups by the operating system, each on a thread of its own, so that a slow one does not delay others.

use std::collections::VecDeque;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::conductor::NameResolver;

type Found = Result<Vec<IpAddr>, String>;
type LookupResult = (u64, Found);
type HostResult = (String, Found);

/// Maximum concurrent lookups; further ones are queued. Their threads only wait.
const MAX_CONCURRENT_LOOKUPS: usize = 64;

/// Resolver of the operating system (files, DNS and whatever else is configured).
///
/// A lookup cannot be cancelled, so a slow one occupies its thread until the operating system gives up, long after the
/// requester's timeout. So that few slow names do not occupy all threads, there is at most one lookup per host at a
/// time, and none without a waiting requester.
#[derive(Debug)]
pub(crate) struct SystemResolver {
    queue: VecDeque<PendingLookup>,
    in_flight: Vec<PendingLookup>,
    results: VecDeque<LookupResult>,
    found: (Sender<HostResult>, Receiver<HostResult>),
    look_up: fn(&str) -> Found,
}

/// A host and the tickets that wait for it.
#[derive(Debug)]
struct PendingLookup {
    host: String,
    tickets: Vec<u64>,
}

impl SystemResolver {
    pub(crate) fn new() -> Self {
        Self::with(look_up)
    }

    fn with(look_up: fn(&str) -> Found) -> Self {
        Self {
            queue: VecDeque::new(),
            in_flight: Vec::new(),
            results: VecDeque::new(),
            found: channel(),
            look_up,
        }
    }

    fn start_queued(&mut self) {
        while self.in_flight.len() < MAX_CONCURRENT_LOOKUPS {
            let Some(lookup) = self.queue.pop_front() else {
                return;
            };
            let (host, found) = (lookup.host.clone(), self.found.0.clone());
            let look_up = self.look_up;
            let spawned = thread::Builder::new()
                .name("name-lookup".to_owned())
                .spawn(move || {
                    let result = look_up(&host);
                    // The receiver is gone if the driver was closed meanwhile.
                    let _ = found.send((host, result));
                });
            match spawned {
                Ok(_) => self.in_flight.push(lookup),
                Err(error) => {
                    let text = format!("no thread for the lookup: {error}");
                    self.complete(lookup.tickets, &Err(text));
                }
            }
        }
    }

    fn complete(&mut self, tickets: Vec<u64>, found: &Found) {
        let results = tickets.into_iter().map(|ticket| (ticket, found.clone()));
        self.results.extend(results);
    }
}

impl NameResolver for SystemResolver {
    fn start(&mut self, ticket: u64, host: &str) {
        let lookups = self.in_flight.iter_mut().chain(&mut self.queue);
        match lookups.into_iter().find(|lookup| lookup.host == host) {
            Some(lookup) => lookup.tickets.push(ticket),
            None => self.queue.push_back(PendingLookup {
                host: host.to_owned(),
                tickets: vec![ticket],
            }),
        }
        self.start_queued();
    }

    fn cancel(&mut self, ticket: u64) {
        let lookups = self.in_flight.iter_mut().chain(&mut self.queue);
        for lookup in lookups {
            lookup.tickets.retain(|waiting| *waiting != ticket);
        }
        self.queue.retain(|lookup| !lookup.tickets.is_empty());
    }

    fn poll(&mut self) -> Option<LookupResult> {
        while let Ok((host, found)) = self.found.1.try_recv() {
            let index = self.in_flight.iter().position(|lookup| lookup.host == host);
            if let Some(index) = index {
                let lookup = self.in_flight.swap_remove(index);
                self.complete(lookup.tickets, &found);
            }
            self.start_queued();
        }
        self.results.pop_front()
    }
}

fn look_up(host: &str) -> Found {
    // The standard library requires a port.
    match (host, 0).to_socket_addrs() {
        Ok(found) => Ok(found.map(|address| address.ip()).collect()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    fn wait_for(resolver: &mut SystemResolver) -> LookupResult {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(result) = resolver.poll() {
                return result;
            }
            assert!(Instant::now() < deadline, "no answer");
            thread::yield_now();
        }
    }

    #[test]
    fn results_carry_ticket_of_their_lookup() {
        let mut resolver = SystemResolver::new();
        resolver.start(7, "127.0.0.1");
        resolver.start(8, "not a host name");
        let mut results = [wait_for(&mut resolver), wait_for(&mut resolver)];
        results.sort_by_key(|(ticket, _)| *ticket);
        assert_eq!(results[0], (7, Ok(vec![IpAddr::from([127, 0, 0, 1])])));
        assert_eq!(results[1].0, 8);
        assert!(results[1].1.is_err());
        assert!(resolver.poll().is_none());
    }

    /// Set at the end of the test, which completes slow lookups.
    static OVER: AtomicBool = AtomicBool::new(false);
    static LOOKUPS: AtomicUsize = AtomicUsize::new(0);

    fn slow(host: &str) -> Found {
        LOOKUPS.fetch_add(1, Ordering::SeqCst);
        while host.starts_with("slow") && !OVER.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        Ok(vec![IpAddr::from([127, 0, 0, 1])])
    }

    #[test]
    fn slow_hosts_use_one_thread_each_and_cancelled_ones_none() {
        let mut resolver = SystemResolver::with(slow);
        let limit = MAX_CONCURRENT_LOOKUPS as u64;
        for ticket in 0..limit {
            resolver.start(ticket, "slow.host");
        }
        resolver.start(limit, "quick.host");
        assert_eq!(
            wait_for(&mut resolver).0,
            limit,
            "the slow lookup does not delay it"
        );

        for ticket in limit + 1..2 * limit {
            resolver.start(ticket, &format!("slow.host.{ticket}"));
        }
        resolver.start(2 * limit, "slow.host.cancelled");
        resolver.start(2 * limit + 1, "waiting.host");
        resolver.cancel(2 * limit);
        resolver.cancel(0);
        OVER.store(true, Ordering::SeqCst);
        let mut tickets: Vec<u64> = (0..2 * limit - 1)
            .map(|_| wait_for(&mut resolver).0)
            .collect();
        tickets.sort_unstable();
        let expected = (1..2 * limit + 2).filter(|ticket| ![limit, 2 * limit].contains(ticket));
        assert!(tickets.into_iter().eq(expected));
        assert!(resolver.poll().is_none());
        let lookups = LOOKUPS.load(Ordering::SeqCst);
        assert_eq!(
            lookups,
            MAX_CONCURRENT_LOOKUPS + 2,
            "one lookup per host, and none that was cancelled"
        );
    }
}
