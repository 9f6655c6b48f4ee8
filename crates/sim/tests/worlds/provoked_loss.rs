// SPDX-License-Identifier: Apache-2.0
//! Loss that a driver causes itself, by the options of the C driver (docs/spec/uri-and-configuration.md §2.5).

use taran_protocol::counter::SystemCounter;
use taran_sim::{HostSpec, PublisherSpec, SubscriberSpec, link_profiles, seeded};

use super::common::{Pair, STREAM, channel};

/// A driver that drops received frames.
fn losing(interceptor: &str, option: &'static str, arguments: &str) -> HostSpec {
    HostSpec::new()
        .option("AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS", interceptor)
        .option(option, arguments)
}

const RANDOM: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS";
const FIXED: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS";
const MULTI_GAP: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS";

/// Start of the stream, with terms of 64 KiB.
const START: &str = "|init-term-id=0|term-id=0|term-offset=0|term-length=64k|mtu=1408";

seeded! {
    /// Both sides lose frames of every kind, and everything arrives.
    random_loss, 30, |seed| {
        let mut hosts = Vec::new();
        for number in 1..=2 {
            // DATA, NAK, status messages, SETUP, RTTM.
            let arguments = format!("rate=0.1|seed={seed}{number}|recv-msg-mask=0x6e");
            hosts.push(losing("loss", RANDOM, &arguments));
        }
        let [left, right] = hosts.try_into().unwrap();
        let mut pair = Pair::of(seed, left, right);
        let flow = pair.flow(400);
        pair.await_all(flow);
        assert!(pair.world.system(pair.hosts[1], SystemCounter::NaksSent) > 0);
        assert!(pair.world.system(pair.hosts[0], SystemCounter::RetransmitsSent) > 0);
        pair.end();
    }
}

seeded! {
    /// The start of a term is lost once (padding ends the loss early) and requested until it arrives.
    fixed_loss, 30, |seed| {
        let right = losing("fixed-loss", FIXED, "term-id=0|term-offset=0|length=8192");
        let mut pair = Pair::of(seed, HostSpec::new(), right);
        let faults = link_profiles::clean(pair.world.random());
        pair.world.set_faults(faults);
        let subscriber = pair.subscribe();
        let publication = PublisherSpec::new(channel(1) + START, STREAM).messages(300);
        let publisher = pair.world.publish(pair.clients[0], publication);
        pair.await_all((subscriber, publisher));
        pair.end();
    }
}

seeded! {
    /// Gaps are repaired one by one; an unreliable subscriber fills each of them.
    multi_gap_loss, 30, |seed| {
        let arguments = "term-id=0|gap-radix=4096|gap-length=64|total-gaps=10";
        let mut pair = Pair::of(seed, HostSpec::new(), losing("multi-gap-loss", MULTI_GAP, arguments));
        let is_reliable = pair.world.random().bool();
        let faults = link_profiles::clean(pair.world.random());
        pair.world.set_faults(faults);
        let listening = SubscriberSpec::new(format!("{}|reliable={is_reliable}", channel(1)), STREAM);
        let listening = if is_reliable { listening } else { listening.lossy() };
        let subscriber = pair.world.subscribe(pair.clients[1], listening);
        let publication = PublisherSpec::new(channel(1) + START, STREAM).messages(300);
        let publisher = pair.world.publish(pair.clients[0], publication);
        pair.await_all((subscriber, publisher));
        let count = |host: usize, counter| pair.world.system(pair.hosts[host], counter);
        if is_reliable {
            assert!(count(1, SystemCounter::NaksSent) > 0);
            assert!(count(0, SystemCounter::RetransmitsSent) > 0);
            assert_eq!(count(1, SystemCounter::LossGapFills), 0);
        } else {
            assert!(count(1, SystemCounter::LossGapFills) > 0);
            assert_eq!(count(1, SystemCounter::NaksSent), 0);
        }
        pair.end();
    }
}
