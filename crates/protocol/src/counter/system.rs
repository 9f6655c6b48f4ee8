// SPDX-License-Identifier: Apache-2.0
//! System counters, declared once: id, label and label suffix (docs/spec/shared-memory.md §5.6).

use crate::uri::value::format_duration_ns;

/// Suffix that the driver appends to the label of a system counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelSuffix {
    /// No suffix.
    None,
    /// `: version=<x.y.z> commit=<sha>`
    Version,
    /// `: driverName=<resolver name>`
    DriverName,
    /// `: <THREADING_MODE>`
    ThreadingMode,
    /// `: threshold=<duration> <THREADING_MODE>`, with the duty cycle threshold of the agent.
    CycleThreshold(CycleAgent),
    /// `: threshold=<duration>`, with the name resolver threshold.
    ResolverThreshold,
}

/// Agent whose duty cycle a counter measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CycleAgent {
    /// Conductor.
    Conductor,
    /// Sender.
    Sender,
    /// Receiver.
    Receiver,
}

/// Values used in label suffixes.
#[derive(Clone, Copy, Debug)]
pub struct SystemLabels<'a> {
    /// Version of the driver, `x.y.z`.
    pub version: &'a str,
    /// Commit that the driver was built from.
    pub commit: &'a str,
    /// Name of the driver in the name resolver, if set.
    pub driver_name: Option<&'a str>,
    /// `DEDICATED`, `SHARED`, `SHARED_NETWORK` or `INVOKER`.
    pub threading_mode: &'a str,
    /// Duration in nanoseconds above which duty cycles of the conductor are counted.
    pub conductor_threshold_ns: i64,
    /// As above, for the sender.
    pub sender_threshold_ns: i64,
    /// As above, for the receiver.
    pub receiver_threshold_ns: i64,
    /// Duration in nanoseconds above which name resolutions are counted.
    pub resolver_threshold_ns: i64,
}

macro_rules! system_counters {
    ($($variant:ident = $id:literal, $label:literal, $suffix:expr;)*) => {
        /// Counter with a fixed id, present in every driver. Its type id is 0; its key is the counter id.
        #[doc(alias = "SystemCounterDescriptor")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i32)]
        pub enum SystemCounter {
            $(#[doc = $label] $variant = $id,)*
        }

        impl SystemCounter {
            /// All system counters, ordered by id, which is their allocation order.
            pub const ALL: [SystemCounter; 46] = [$(SystemCounter::$variant,)*];

            /// Returns the label without its suffix.
            #[must_use]
            pub fn base_label(self) -> &'static str {
                match self { $(SystemCounter::$variant => $label,)* }
            }

            /// Returns the label suffix.
            #[must_use]
            pub fn suffix(self) -> LabelSuffix {
                match self { $(SystemCounter::$variant => $suffix,)* }
            }
        }
    };
}

use CycleAgent::{Conductor, Receiver, Sender};
use LabelSuffix::{
    CycleThreshold, DriverName, None as Plain, ResolverThreshold, ThreadingMode, Version,
};

system_counters! {
    BytesSent = 0, "Bytes sent", Plain;
    BytesReceived = 1, "Bytes received", Plain;
    ReceiverProxyFails = 2, "Failed offers to ReceiverProxy", Plain;
    SenderProxyFails = 3, "Failed offers to SenderProxy", Plain;
    ConductorProxyFails = 4, "Failed offers to DriverConductorProxy", Plain;
    NaksSent = 5, "NAKs sent", Plain;
    NaksReceived = 6, "NAKs received", Plain;
    StatusMessagesSent = 7, "Status Messages sent", Plain;
    StatusMessagesReceived = 8, "Status Messages received", Plain;
    HeartbeatsSent = 9, "Heartbeats sent", Plain;
    HeartbeatsReceived = 10, "Heartbeats received", Plain;
    RetransmitsSent = 11, "Retransmits sent", Plain;
    FlowControlUnderRuns = 12, "Flow control under runs", Plain;
    FlowControlOverRuns = 13, "Flow control over runs", Plain;
    InvalidPackets = 14, "Invalid packets", Plain;
    Errors = 15, "Errors", Version;
    ShortSends = 16, "Short sends", Plain;
    FreeFails = 17, "Failed attempts to free log buffers", Plain;
    SenderFlowControlLimits = 18, "Sender flow control limits, i.e. back-pressure events", Plain;
    UnblockedPublications = 19, "Unblocked Publications", Plain;
    UnblockedCommands = 20, "Unblocked Control Commands", Plain;
    PossibleTtlAsymmetry = 21, "Possible TTL Asymmetry", Plain;
    ControllableIdleStrategy = 22, "ControllableIdleStrategy status", Plain;
    LossGapFills = 23, "Loss gap fills", Plain;
    ClientTimeouts = 24, "Client liveness timeouts", Plain;
    ResolutionChanges = 25, "Resolution changes", DriverName;
    ConductorMaxCycleTime = 26, "Conductor max cycle time doing its work in ns", ThreadingMode;
    ConductorCycleTimeThresholdExceeded = 27, "Conductor work cycle exceeded threshold count", CycleThreshold(Conductor);
    SenderMaxCycleTime = 28, "Sender max cycle time doing its work in ns", ThreadingMode;
    SenderCycleTimeThresholdExceeded = 29, "Sender work cycle exceeded threshold count", CycleThreshold(Sender);
    ReceiverMaxCycleTime = 30, "Receiver max cycle time doing its work in ns", ThreadingMode;
    ReceiverCycleTimeThresholdExceeded = 31, "Receiver work cycle exceeded threshold count", CycleThreshold(Receiver);
    NameResolverMaxTime = 32, "NameResolver max time in ns", Plain;
    NameResolverTimeThresholdExceeded = 33, "NameResolver exceeded threshold count", ResolverThreshold;
    AeronVersion = 34, "Aeron software", Version;
    BytesCurrentlyMapped = 35, "Bytes currently mapped", Plain;
    RetransmittedBytes = 36, "Retransmitted bytes", Plain;
    RetransmitOverflow = 37, "Retransmit Pool Overflow count", Plain;
    ErrorFramesReceived = 38, "Error Frames received", Plain;
    ErrorFramesSent = 39, "Error Frames sent", Plain;
    PublicationsRevoked = 40, "Publications Revoked", Plain;
    PublicationImagesRevoked = 41, "Publication Images Revoked", Plain;
    ImagesRejected = 42, "Images rejected", Plain;
    ControlProtocolVersion = 43, "Control protocol version", Plain;
    StatusMessagesRejected = 44, "Status Messages rejected", Plain;
    AsyncExecutorProxyFails = 45, "Failed offers to AsyncExecutorProxy", Plain;
}

impl SystemCounter {
    /// Returns the counter with this id.
    #[must_use]
    pub fn from_id(id: i32) -> Option<Self> {
        Self::ALL.get(usize::try_from(id).ok()?).copied()
    }

    /// Returns the counter id, which is also its key and registration id.
    #[must_use]
    pub fn id(self) -> i32 {
        self as i32
    }

    /// Returns the bytes of the key.
    #[must_use]
    pub fn key(self) -> [u8; 4] {
        self.id().to_le_bytes()
    }

    /// Returns the label including its suffix.
    #[must_use]
    pub fn label(self, from: &SystemLabels<'_>) -> String {
        let base = self.base_label();
        let mode = from.threading_mode;
        match self.suffix() {
            Plain => base.to_owned(),
            Version => format!("{base}: version={} commit={}", from.version, from.commit),
            DriverName => format!("{base}: driverName={}", from.driver_name.unwrap_or("")),
            ThreadingMode => format!("{base}: {mode}"),
            CycleThreshold(agent) => {
                let nanos = match agent {
                    Conductor => from.conductor_threshold_ns,
                    Sender => from.sender_threshold_ns,
                    Receiver => from.receiver_threshold_ns,
                };
                format!("{base}: threshold={} {mode}", format_duration_ns(nanos))
            }
            ResolverThreshold => format!(
                "{base}: threshold={}",
                format_duration_ns(from.resolver_threshold_ns)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: SystemLabels<'static> = SystemLabels {
        version: "1.51.0",
        commit: "abc",
        driver_name: None,
        threading_mode: "SHARED_NETWORK",
        conductor_threshold_ns: 100_000_000,
        sender_threshold_ns: 1_500_000,
        receiver_threshold_ns: 1,
        resolver_threshold_ns: 5_000_000_000,
    };

    #[test]
    fn ids_are_dense_and_in_order() {
        for (index, counter) in SystemCounter::ALL.into_iter().enumerate() {
            assert_eq!(counter.id(), i32::try_from(index).unwrap());
            assert_eq!(SystemCounter::from_id(counter.id()), Some(counter));
        }
        assert_eq!(SystemCounter::from_id(-1), None);
        assert_eq!(SystemCounter::from_id(46), None);
    }

    #[test]
    fn label_includes_suffix() {
        for (counter, label) in [
            (SystemCounter::BytesSent, "Bytes sent"),
            (SystemCounter::Errors, "Errors: version=1.51.0 commit=abc"),
            (
                SystemCounter::ResolutionChanges,
                "Resolution changes: driverName=",
            ),
            (
                SystemCounter::SenderMaxCycleTime,
                "Sender max cycle time doing its work in ns: SHARED_NETWORK",
            ),
            (
                SystemCounter::ConductorCycleTimeThresholdExceeded,
                "Conductor work cycle exceeded threshold count: threshold=100ms SHARED_NETWORK",
            ),
            (
                SystemCounter::SenderCycleTimeThresholdExceeded,
                "Sender work cycle exceeded threshold count: threshold=1500us SHARED_NETWORK",
            ),
            (
                SystemCounter::ReceiverCycleTimeThresholdExceeded,
                "Receiver work cycle exceeded threshold count: threshold=1ns SHARED_NETWORK",
            ),
            (
                SystemCounter::NameResolverTimeThresholdExceeded,
                "NameResolver exceeded threshold count: threshold=5s",
            ),
        ] {
            assert_eq!(counter.label(&LABELS), label);
        }
    }
}
