// SPDX-License-Identifier: Apache-2.0
//! Stand-in for transport security in a build without it: nothing is secured, and what asks for it is refused.

#![expect(clippy::unused_self, reason = "the same calls as with the feature")]

use std::net::SocketAddr;
use std::task::Waker;

use taran_core::clock::Now;
use taran_net::AgentRole;

use super::policy::{self, ChannelSecurity, End, Mode, StreamAudience};
use crate::boundary::{EndpointId, TransportId};
use crate::conductor::{Counters, Failure, ResolvedChannel};

/// Security of a driver that secures nothing.
#[derive(Debug, Default)]
pub(crate) struct Security;

impl Security {
    pub(crate) fn set_wakers(&mut self, _wakers: [Waker; 2]) {}

    pub(crate) fn on_start(&self) {}

    pub(crate) fn decide(
        &self,
        resolved: &ResolvedChannel,
        end: End,
    ) -> Result<ChannelSecurity, Failure> {
        policy::decide(Mode::Off, resolved, end, |_| false)
    }

    pub(crate) fn check_plain(&self, _: SocketAddr, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    pub(crate) fn check_moved(
        &self,
        is_secured: bool,
        moved: Option<SocketAddr>,
        channel: &str,
    ) -> Result<Option<SocketAddr>, String> {
        let _ = (is_secured, channel);
        Ok(moved)
    }

    pub(crate) fn max_datagram(_security: &ChannelSecurity, max: usize) -> usize {
        max
    }

    pub(crate) fn prepare_sender(&mut self, _: EndpointId, _: &ChannelSecurity, _: &str) {}

    pub(crate) fn prepare_receiver(&mut self, _: TransportId, _: &ChannelSecurity, _: &str) {}

    pub(crate) fn opened(&mut self, _: AgentRole, _: i64, _: bool) {}

    pub(crate) fn add_sender(
        &mut self,
        _: EndpointId,
        _: &ChannelSecurity,
        _: &ResolvedChannel,
        _: SocketAddr,
    ) {
    }

    pub(crate) fn set_destinations(
        &mut self,
        _: EndpointId,
        _: &ResolvedChannel,
        _: impl Iterator<Item = SocketAddr>,
    ) {
    }

    pub(crate) fn remove_sender(&mut self, _: Now, _: EndpointId) -> bool {
        false
    }

    pub(crate) fn prepare_resolver(&mut self, _: SocketAddr, _: &mut Counters) {}

    pub(crate) fn requester(&self, _: EndpointId, _: i32, _: i32) -> Option<String> {
        None
    }

    pub(crate) fn responder(&self, _: EndpointId, _: (i32, i32), _: i32) -> Option<String> {
        None
    }

    pub(crate) fn add_response(&mut self, _: EndpointId, _: (i32, i32), _: &str) -> bool {
        true
    }

    pub(crate) fn add_stream(&mut self, _: Now, _: EndpointId, _: (i32, i32), _: StreamAudience) {}

    pub(crate) fn remove_stream(&mut self, _: EndpointId, _: i32, _: i32) {}

    pub(crate) fn add_receiver(
        &mut self,
        _: EndpointId,
        _: TransportId,
        _: &ChannelSecurity,
        _: &ResolvedChannel,
        _: (SocketAddr, i64),
    ) {
    }

    pub(crate) fn remove_receiver(&mut self, _: Now, _: TransportId) -> bool {
        false
    }

    pub(crate) fn remove_receive_endpoint(&mut self, _: Now, _: EndpointId) -> bool {
        false
    }

    pub(crate) fn add_subscription(&mut self, _: EndpointId, _: Option<i32>, _: i32) {}

    pub(crate) fn remove_subscription(&mut self, _: EndpointId, _: Option<i32>, _: i32) {}

    pub(crate) fn on_image_begun(&mut self, _: EndpointId, _: i32, _: i32) -> bool {
        true
    }

    pub(crate) fn on_image_gone(&mut self, _: EndpointId, _: i32, _: i32) {}

    pub(crate) fn begin_cycle(&mut self, _: Now) {}

    pub(crate) fn is_idle(&self) -> bool {
        true
    }

    pub(crate) fn poll(&mut self, _: Now, _: &mut Counters) -> usize {
        0
    }

    pub(crate) fn next_deadline_ns(&self) -> i64 {
        i64::MAX
    }

    pub(crate) fn next_report(&mut self) -> Option<String> {
        None
    }
}
