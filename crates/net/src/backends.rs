// SPDX-License-Identifier: Apache-2.0
//! Several backends as one network.

use std::os::fd::RawFd;
use std::task::Waker;
use std::time::Duration;

use crate::network::unavailable;
use crate::socket::poller::SocketPoller;
use crate::{
    AgentRole, Arrivals, BufferLimits, Interface, NetError, Network, PollSource, Poller,
    SocketSpec, Transport,
};

/// Longest wait in one piece while a backend of the agent has no descriptor to wait for.
const BLIND_WAIT: Duration = Duration::from_micros(50);

/// Several backends as one network: [`SocketSpec::backend`] names the one that opens a transport, else the first one
/// does. A backend is known by the name that it has of its own ([`Network::backend`]).
///
/// A transport is that of its backend, so that sending and receiving cost nothing more. An agent gets one poller for all
/// backends.
#[derive(Debug)]
pub struct Backends {
    /// At least one.
    networks: Vec<Box<dyn Network>>,
}

impl Backends {
    /// Creates a network with one backend, which opens the transports that name none.
    #[must_use]
    pub fn new(network: impl Network + 'static) -> Self {
        Self {
            networks: vec![Box::new(network)],
        }
    }

    /// Adds a backend.
    #[must_use]
    pub fn with(mut self, network: impl Network + 'static) -> Self {
        self.networks.push(Box::new(network));
        self
    }

    fn named(&mut self, backend: &str) -> Result<&mut Box<dyn Network>, NetError> {
        let mut names = self.networks.iter().map(Network::backend);
        if let Some(index) = names.position(|name| name == backend) {
            return Ok(&mut self.networks[index]);
        }
        let present: Vec<_> = self.networks.iter().map(Network::backend).collect();
        Err(unavailable(backend, &present.join(", ")))
    }
}

impl Network for Backends {
    fn backend(&self) -> &'static str {
        self.networks[0].backend()
    }

    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError> {
        match &spec.backend {
            Some(backend) => self.named(backend)?.open(spec),
            None => self.networks[0].open(spec),
        }
    }

    fn poller(&mut self, agent: AgentRole) -> Result<Box<dyn Poller>, NetError> {
        if let [network] = &mut self.networks[..] {
            return network.poller(agent);
        }
        let members = self.networks.iter_mut().map(|network| {
            Ok(Member {
                backend: network.backend(),
                poller: network.poller(agent)?,
                indices: Vec::new(),
            })
        });
        Ok(Box::new(BackendsPoller {
            members: members.collect::<Result<_, NetError>>()?,
            waiter: SocketPoller::new()?,
            is_blind: false,
            always: Vec::new(),
            ready: Vec::new(),
        }))
    }

    fn on_timer(&mut self, now_ns: i64) {
        for network in &mut self.networks {
            network.on_timer(now_ns);
        }
    }

    /// Returns the limits of the first backend.
    fn buffer_limits(&mut self) -> Result<BufferLimits, NetError> {
        self.networks[0].buffer_limits()
    }

    fn buffer_limits_of(&mut self, backend: &str) -> Result<BufferLimits, NetError> {
        self.named(backend)?.buffer_limits()
    }

    /// Returns the interfaces of all backends, each once.
    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError> {
        let mut interfaces: Vec<Interface> = Vec::new();
        for network in &mut self.networks {
            for interface in network.interfaces()? {
                if !interfaces.contains(&interface) {
                    interfaces.push(interface);
                }
            }
        }
        Ok(interfaces)
    }
}

/// The poller of one backend.
#[derive(Debug)]
struct Member {
    backend: &'static str,
    poller: Box<dyn Poller>,
    /// Indices of its transports in the set of the agent.
    indices: Vec<usize>,
}

/// One poller for several backends. Asks each which of its transports are ready, then reports all in order; waits for
/// all descriptors at once.
#[derive(Debug)]
struct BackendsPoller {
    members: Vec<Member>,
    /// Waits for the descriptors of all members, and polls nothing.
    waiter: SocketPoller,
    /// True if a member has transports, and the wait cannot see them.
    is_blind: bool,
    /// For each transport of the set, true if no member knows it, so that it is reported by each poll.
    always: Vec<bool>,
    /// For each transport of the set, true if it is to be reported.
    ready: Vec<bool>,
}

impl Poller for BackendsPoller {
    fn start(&mut self) {
        for member in &mut self.members {
            member.poller.start();
        }
        self.waiter.start();
    }

    fn set_sources(&mut self, sources: &[PollSource]) {
        self.ready.clear();
        self.ready.resize(sources.len(), false);
        self.always.clear();
        self.always.resize(sources.len(), true);
        let mut visible: Vec<PollSource> = sources.to_vec();
        self.is_blind = false;
        for member in &mut self.members {
            let of_member = || {
                let all = sources.iter().enumerate();
                all.filter(|(_, source)| source.backend == member.backend)
            };
            member.indices.clear();
            member.indices.extend(of_member().map(|(index, _)| index));
            for &index in &member.indices {
                self.always[index] = false;
            }
            let own: Vec<_> = of_member().map(|(_, source)| *source).collect();
            member.poller.set_sources(&own);
            let has_descriptor =
                |source: &PollSource| matches!(source.arrivals, Arrivals::Descriptor(_));
            if own.iter().all(has_descriptor) {
                continue;
            }
            match member.poller.descriptor() {
                Some(fd) => visible.push(descriptor(member.backend, fd)),
                None => self.is_blind = true,
            }
        }
        self.is_blind |= self.always.contains(&true);
        self.waiter.set_sources(&visible);
    }

    fn poll(&mut self, receive: &mut dyn FnMut(usize) -> usize) -> usize {
        self.ready.copy_from_slice(&self.always);
        for member in &mut self.members {
            let (ready, indices) = (&mut self.ready, &member.indices);
            member.poller.poll(&mut |index| {
                ready[indices[index]] = true;
                0
            });
        }
        let ready = self.ready.iter().enumerate();
        ready
            .filter(|(_, is_ready)| **is_ready)
            .map(|(index, _)| receive(index))
            .sum()
    }

    fn flush(&mut self) {
        for member in &mut self.members {
            member.poller.flush();
        }
    }

    fn wait(&mut self, max: Duration) {
        self.flush();
        let max = if self.is_blind {
            max.min(BLIND_WAIT)
        } else {
            max
        };
        self.waiter.wait(max);
    }

    fn waker(&self) -> Waker {
        self.waiter.waker()
    }
}

fn descriptor(backend: &'static str, fd: RawFd) -> PollSource {
    PollSource::new(backend, Arrivals::Descriptor(fd))
}
