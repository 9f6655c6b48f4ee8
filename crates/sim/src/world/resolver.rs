//! Host names of the simulated network.

use std::collections::VecDeque;
use std::net::IpAddr;

use taran_driver::NameResolver;

use super::address;

/// Knows the hosts of a world as `host0`, `host1` and so on.
#[derive(Debug, Default)]
pub(super) struct SimResolver {
    answers: VecDeque<(u64, Result<Vec<IpAddr>, String>)>,
}

impl NameResolver for SimResolver {
    fn start(&mut self, ticket: u64, host: &str) {
        let index = host
            .strip_prefix("host")
            .and_then(|number| number.parse().ok());
        let answer = match index {
            Some(index) => Ok(vec![address(index)]),
            None => Err(format!("no host is called {host}")),
        };
        self.answers.push_back((ticket, answer));
    }

    fn poll(&mut self) -> Option<(u64, Result<Vec<IpAddr>, String>)> {
        self.answers.pop_front()
    }
}
