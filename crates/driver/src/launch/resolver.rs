//! Host names looked up by the system, each on a thread of its own, so that a slow one delays nobody.

use std::collections::VecDeque;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::conductor::NameResolver;

type Answer = (u64, Result<Vec<IpAddr>, String>);

/// Lookups that may be under way at once; the others queue.
const LOOKUPS_AT_ONCE: usize = 16;

/// The system's resolver (files, DNS and whatever else the machine is set up for).
///
/// The system gives no way to end a lookup, so a slow one keeps its thread until the system gives up; whoever asked has
/// stopped waiting long before.
#[derive(Debug)]
pub(crate) struct SystemResolver {
    queue: VecDeque<(u64, String)>,
    under_way: usize,
    answers: (Sender<Answer>, Receiver<Answer>),
}

impl SystemResolver {
    pub(crate) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            under_way: 0,
            answers: channel(),
        }
    }

    fn begin_queued(&mut self) {
        while self.under_way < LOOKUPS_AT_ONCE {
            let Some((ticket, host)) = self.queue.pop_front() else {
                return;
            };
            let answers = self.answers.0.clone();
            let spawned = thread::Builder::new()
                .name("name-lookup".to_owned())
                .spawn(move || {
                    // Nobody listens any more when the driver has been closed meanwhile.
                    let _ = answers.send((ticket, look_up(&host)));
                });
            match spawned {
                Ok(_) => self.under_way += 1,
                Err(error) => {
                    let text = format!("no thread for the lookup: {error}");
                    let _ = self.answers.0.send((ticket, Err(text)));
                    self.under_way += 1;
                }
            }
        }
    }
}

impl NameResolver for SystemResolver {
    fn start(&mut self, ticket: u64, host: &str) {
        self.queue.push_back((ticket, host.to_owned()));
        self.begin_queued();
    }

    fn poll(&mut self) -> Option<Answer> {
        let answer = self.answers.1.try_recv().ok()?;
        self.under_way -= 1;
        self.begin_queued();
        Some(answer)
    }
}

fn look_up(host: &str) -> Result<Vec<IpAddr>, String> {
    // The port is of no interest, but the standard library wants one.
    match (host, 0).to_socket_addrs() {
        Ok(found) => Ok(found.map(|address| address.ip()).collect()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn wait_for(resolver: &mut SystemResolver) -> Answer {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(answer) = resolver.poll() {
                return answer;
            }
            assert!(Instant::now() < deadline, "no answer");
            thread::yield_now();
        }
    }

    #[test]
    fn answers_carry_the_ticket_of_their_question() {
        let mut resolver = SystemResolver::new();
        resolver.start(7, "127.0.0.1");
        resolver.start(8, "not a host name");
        let mut answers = [wait_for(&mut resolver), wait_for(&mut resolver)];
        answers.sort_by_key(|(ticket, _)| *ticket);
        assert_eq!(answers[0], (7, Ok(vec![IpAddr::from([127, 0, 0, 1])])));
        assert_eq!(answers[1].0, 8);
        assert!(answers[1].1.is_err());
        assert!(resolver.poll().is_none());
    }
}
