// SPDX-License-Identifier: Apache-2.0
//! System counters that the network agents update.

use taran_core::counters::Counter;
use taran_protocol::counter::SystemCounter;

macro_rules! counters {
    ($(#[$meta:meta])* $name:ident { $($field:ident: $counter:ident,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $(
                #[doc = concat!("`SystemCounter::", stringify!($counter), "`.")]
                pub(crate) $field: Counter,
            )*
        }

        impl $name {
            /// Creates the set from the counters that `lookup` returns.
            pub(crate) fn new(mut lookup: impl FnMut(SystemCounter) -> Counter) -> Self {
                Self { $($field: lookup(SystemCounter::$counter),)* }
            }

        }
    };
}

counters! {
    /// System counters of the sender (docs/spec/wire.md §10).
    SenderCounters {
        bytes_sent: BytesSent,
        naks_received: NaksReceived,
        status_messages_received: StatusMessagesReceived,
        status_messages_rejected: StatusMessagesRejected,
        heartbeats_sent: HeartbeatsSent,
        retransmits_sent: RetransmitsSent,
        retransmitted_bytes: RetransmittedBytes,
        retransmit_overflow: RetransmitOverflow,
        invalid_packets: InvalidPackets,
        short_sends: ShortSends,
        flow_control_limits: SenderFlowControlLimits,
        error_frames_received: ErrorFramesReceived,
        failed_offers_to_conductor: ConductorProxyFails,
    }
}

counters! {
    /// System counters of the receiver (docs/spec/wire.md §10).
    ReceiverCounters {
        bytes_received: BytesReceived,
        naks_sent: NaksSent,
        status_messages_sent: StatusMessagesSent,
        heartbeats_received: HeartbeatsReceived,
        under_runs: FlowControlUnderRuns,
        over_runs: FlowControlOverRuns,
        invalid_packets: InvalidPackets,
        short_sends: ShortSends,
        loss_gap_fills: LossGapFills,
        error_frames_sent: ErrorFramesSent,
        images_revoked: PublicationImagesRevoked,
        failed_offers_to_conductor: ConductorProxyFails,
    }
}
