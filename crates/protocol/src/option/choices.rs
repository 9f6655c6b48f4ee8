// SPDX-License-Identifier: Apache-2.0
//! Values of options that accept a fixed set of texts.

use super::kind::Choice;

const fn choice(name: &'static str) -> Choice {
    Choice { name, aliases: &[] }
}

const fn choice_with_aliases(name: &'static str, aliases: &'static [&'static str]) -> Choice {
    Choice { name, aliases }
}

pub(super) const PROFILE: &[Choice] = &[
    choice("balanced"),
    choice("low-latency"),
    choice("low-footprint"),
];

pub(super) const THREADING_MODE: &[Choice] = &[
    choice("DEDICATED"),
    choice("SHARED_NETWORK"),
    choice("SHARED"),
    choice("INVOKER"),
];

pub(super) const ARCHIVE_THREADING_MODE: &[Choice] =
    &[choice("DEDICATED"), choice("SHARED"), choice("INVOKER")];

pub(super) const SECURE_MODE: &[Choice] = &[choice("off"), choice("channels"), choice("all")];

pub(super) const EVENT_CLOCK: &[Choice] = &[choice("wall"), choice("monotonic")];

pub(super) const ARCHIVE_DISK_FULL: &[Choice] = &[choice("hold"), choice("stop")];
pub(super) const ARCHIVE_VERIFY_DAMAGE: &[Choice] = &[choice("report"), choice("invalidate")];

pub(super) const CHECKSUM: &[Choice] = &[
    choice_with_aliases(
        "CRC-32",
        &[
            "org.agrona.checksum.Crc32",
            "io.aeron.archive.checksum.Crc32",
        ],
    ),
    choice_with_aliases(
        "CRC-32C",
        &[
            "org.agrona.checksum.Crc32c",
            "io.aeron.archive.checksum.Crc32c",
        ],
    ),
];

pub(super) const AUTHENTICATOR: &[Choice] = &[choice_with_aliases(
    "default",
    &["io.aeron.security.DefaultAuthenticatorSupplier"],
)];

pub(super) const AUTHORISATION: &[Choice] = &[choice("ALLOW_ALL"), choice("DENY_ALL")];

pub(super) const CLUSTER_CLOCK: &[Choice] = &[
    choice_with_aliases("ms", &["io.aeron.cluster.MillisecondClusterClock"]),
    choice("us"),
    choice_with_aliases("ns", &["io.aeron.cluster.NanosecondClusterClock"]),
];

pub(super) const CLUSTER_TIMERS: &[Choice] = &[choice_with_aliases(
    "default",
    &[
        "io.aeron.cluster.PriorityHeapTimerServiceSupplier",
        "io.aeron.cluster.WheelTimerServiceSupplier",
    ],
)];

pub(super) const GROUP: &[Choice] = &[choice("infer"), choice("true"), choice("false")];

pub(super) const TERMINATION_VALIDATOR: &[Choice] = &[
    choice_with_aliases(
        "deny",
        &[
            "io.aeron.driver.DefaultDenyTerminationValidator",
            "aeron_driver_termination_validator_default_deny",
        ],
    ),
    choice_with_aliases(
        "allow",
        &[
            "io.aeron.driver.DefaultAllowTerminationValidator",
            "aeron_driver_termination_validator_default_allow",
        ],
    ),
];

pub(super) const NAME_RESOLVER: &[Choice] = &[
    choice_with_aliases("default", &["aeron_default_name_resolver_supplier"]),
    choice_with_aliases("driver", &["aeron_driver_name_resolver_supplier"]),
    choice_with_aliases("csv_table", &["aeron_csv_table_name_resolver_supplier"]),
];

pub(super) const CONGESTION_CONTROL: &[Choice] = &[
    choice_with_aliases(
        "default",
        &[
            "io.aeron.driver.DefaultCongestionControlSupplier",
            "aeron_congestion_control_default_strategy_supplier",
        ],
    ),
    choice_with_aliases(
        "static",
        &["aeron_static_window_congestion_control_strategy_supplier"],
    ),
    choice_with_aliases(
        "cubic",
        &[
            "io.aeron.driver.ext.CubicCongestionControlSupplier",
            "aeron_cubic_congestion_control_strategy_supplier",
        ],
    ),
];

pub(super) const UNICAST_FLOW_CONTROL: &[Choice] = &[choice_with_aliases(
    "unicast_max",
    &[
        "aeron_unicast_flow_control_strategy_supplier",
        "io.aeron.driver.DefaultUnicastFlowControlSupplier",
    ],
)];

/// Classes of the official Java driver, accepted by name only.
pub(super) const UNICAST_STRATEGY: &[Choice] = &[choice("io.aeron.driver.UnicastFlowControl")];

/// As above, for multicast and multi-destination publications.
pub(super) const MULTICAST_STRATEGY: &[Choice] = &[
    choice("io.aeron.driver.MaxMulticastFlowControl"),
    choice("io.aeron.driver.MinMulticastFlowControl"),
    choice("io.aeron.driver.TaggedMulticastFlowControl"),
];

pub(super) const MULTICAST_FLOW_CONTROL: &[Choice] = &[
    choice_with_aliases(
        "multicast_max",
        &[
            "aeron_max_multicast_flow_control_strategy_supplier",
            "io.aeron.driver.DefaultMulticastFlowControlSupplier",
            "io.aeron.driver.MaxMulticastFlowControlSupplier",
        ],
    ),
    choice_with_aliases(
        "multicast_min",
        &[
            "aeron_min_flow_control_strategy_supplier",
            "io.aeron.driver.MinMulticastFlowControlSupplier",
        ],
    ),
    choice_with_aliases(
        "multicast_tagged",
        &[
            "aeron_tagged_flow_control_strategy_supplier",
            "io.aeron.driver.TaggedMulticastFlowControlSupplier",
        ],
    ),
];

pub(super) const FALLBACK_LOGGER: &[Choice] =
    &[choice("stderr"), choice("stdout"), choice("no_op")];

/// Names of Java random number generators.
pub(super) const RANDOM: &[Choice] = &[choice_with_aliases(
    "NativePRNGNonBlocking",
    &[
        "NativePRNG",
        "NativePRNGBlocking",
        "Windows-PRNG",
        "SHA1PRNG",
        "DRBG",
    ],
)];

/// Threading mode: how the agents of a driver share threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadingMode {
    /// Conductor, sender and receiver each run on their own thread.
    Dedicated,
    /// The conductor runs on its own thread; sender and receiver share one.
    SharedNetwork,
    /// All agents share one thread.
    Shared,
    /// No threads: the program that embeds the driver invokes the agents.
    Invoker,
}

impl ThreadingMode {
    /// Returns the text used in the option and in counter labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ThreadingMode::Dedicated => "DEDICATED",
            ThreadingMode::SharedNetwork => "SHARED_NETWORK",
            ThreadingMode::Shared => "SHARED",
            ThreadingMode::Invoker => "INVOKER",
        }
    }

    /// Returns the mode with this text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [
            ThreadingMode::Dedicated,
            ThreadingMode::SharedNetwork,
            ThreadingMode::Shared,
            ThreadingMode::Invoker,
        ]
        .into_iter()
        .find(|mode| mode.as_str() == text)
    }
}
