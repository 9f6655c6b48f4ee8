// SPDX-License-Identifier: Apache-2.0
//! Profiles: named sets of option values, each of which can be overridden.

use std::fmt;

use super::table::OptionId;

/// Named set of option values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Low latency under load, low CPU usage when idle.
    #[default]
    Balanced,
    /// Lowest latency: agents spin and are bound to cores.
    LowLatency,
    /// Lowest resource usage: one thread, small buffers, long parks.
    LowFootprint,
}

const LONG_PARKS: &str = "1-1-100us-10ms";

impl Profile {
    /// All profiles.
    pub const ALL: [Profile; 3] = [
        Profile::Balanced,
        Profile::LowLatency,
        Profile::LowFootprint,
    ];

    /// Returns the text of the option `taran.profile`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Profile::Balanced => "balanced",
            Profile::LowLatency => "low-latency",
            Profile::LowFootprint => "low-footprint",
        }
    }

    /// Returns the profile with this text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.as_str() == text)
    }

    /// Returns the options that the profile sets.
    #[must_use]
    pub fn options(self) -> &'static [(OptionId, &'static str)] {
        use OptionId as O;
        match self {
            Profile::Balanced => &[
                (O::ConductorIdleStrategy, "adaptive"),
                (O::SenderIdleStrategy, "adaptive"),
                (O::ReceiverIdleStrategy, "adaptive"),
                (O::SharedNetworkIdleStrategy, "adaptive"),
                (O::SharedIdleStrategy, "adaptive"),
            ],
            Profile::LowLatency => &[
                (O::ConductorIdleStrategy, "spin"),
                (O::SenderIdleStrategy, "noop"),
                (O::ReceiverIdleStrategy, "noop"),
                (O::SharedNetworkIdleStrategy, "spin"),
                (O::SharedIdleStrategy, "spin"),
                (O::ConductorCpuAffinity, "auto"),
                (O::SenderCpuAffinity, "auto"),
                (O::ReceiverCpuAffinity, "auto"),
                (O::TermBufferSparseFile, "false"),
            ],
            Profile::LowFootprint => &[
                (O::ThreadingMode, "SHARED"),
                (O::ConductorIdleStrategyInitArgs, LONG_PARKS),
                (O::SenderIdleStrategyInitArgs, LONG_PARKS),
                (O::ReceiverIdleStrategyInitArgs, LONG_PARKS),
                (O::SharedNetworkIdleStrategyInitArgs, LONG_PARKS),
                (O::SharedIdleStrategyInitArgs, LONG_PARKS),
                (O::TermBufferLength, "1m"),
                (O::IpcTermBufferLength, "1m"),
                (O::CountersBufferLength, "1m"),
            ],
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
