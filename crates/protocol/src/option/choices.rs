//! Options whose value is one of a few words.

use super::kind::Choice;

const fn is(name: &'static str) -> Choice {
    Choice { name, aliases: &[] }
}

const fn also(name: &'static str, aliases: &'static [&'static str]) -> Choice {
    Choice { name, aliases }
}

pub(super) const PROFILE: &[Choice] = &[is("balanced"), is("low-latency"), is("low-footprint")];

pub(super) const THREADING_MODE: &[Choice] = &[
    is("DEDICATED"),
    is("SHARED_NETWORK"),
    is("SHARED"),
    is("INVOKER"),
];

pub(super) const GROUP: &[Choice] = &[is("infer"), is("true"), is("false")];

pub(super) const TERMINATION_VALIDATOR: &[Choice] = &[
    also(
        "deny",
        &[
            "io.aeron.driver.DefaultDenyTerminationValidator",
            "aeron_driver_termination_validator_default_deny",
        ],
    ),
    also(
        "allow",
        &[
            "io.aeron.driver.DefaultAllowTerminationValidator",
            "aeron_driver_termination_validator_default_allow",
        ],
    ),
];

pub(super) const NAME_RESOLVER: &[Choice] = &[
    also("default", &["aeron_default_name_resolver_supplier"]),
    also("driver", &["aeron_driver_name_resolver_supplier"]),
    also("csv_table", &["aeron_csv_table_name_resolver_supplier"]),
];

pub(super) const CONGESTION_CONTROL: &[Choice] = &[
    also(
        "default",
        &[
            "io.aeron.driver.DefaultCongestionControlSupplier",
            "aeron_congestion_control_default_strategy_supplier",
        ],
    ),
    also(
        "static",
        &["aeron_static_window_congestion_control_strategy_supplier"],
    ),
    also(
        "cubic",
        &[
            "io.aeron.driver.ext.CubicCongestionControlSupplier",
            "aeron_cubic_congestion_control_strategy_supplier",
        ],
    ),
];

pub(super) const UNICAST_FLOW_CONTROL: &[Choice] = &[also(
    "unicast_max",
    &[
        "aeron_unicast_flow_control_strategy_supplier",
        "io.aeron.driver.DefaultUnicastFlowControlSupplier",
    ],
)];

/// The class of the official Java driver, by its name alone.
pub(super) const UNICAST_STRATEGY: &[Choice] = &[is("io.aeron.driver.UnicastFlowControl")];

/// The same for groups.
pub(super) const MULTICAST_STRATEGY: &[Choice] = &[
    is("io.aeron.driver.MaxMulticastFlowControl"),
    is("io.aeron.driver.MinMulticastFlowControl"),
    is("io.aeron.driver.TaggedMulticastFlowControl"),
];

pub(super) const MULTICAST_FLOW_CONTROL: &[Choice] = &[
    also(
        "multicast_max",
        &[
            "aeron_max_multicast_flow_control_strategy_supplier",
            "io.aeron.driver.DefaultMulticastFlowControlSupplier",
            "io.aeron.driver.MaxMulticastFlowControlSupplier",
        ],
    ),
    also(
        "multicast_min",
        &[
            "aeron_min_flow_control_strategy_supplier",
            "io.aeron.driver.MinMulticastFlowControlSupplier",
        ],
    ),
    also(
        "multicast_tagged",
        &[
            "aeron_tagged_flow_control_strategy_supplier",
            "io.aeron.driver.TaggedMulticastFlowControlSupplier",
        ],
    ),
];

pub(super) const FALLBACK_LOGGER: &[Choice] = &[is("stderr"), is("stdout"), is("no_op")];

/// Names of Java's generators.
pub(super) const RANDOM: &[Choice] = &[also(
    "NativePRNGNonBlocking",
    &[
        "NativePRNG",
        "NativePRNGBlocking",
        "Windows-PRNG",
        "SHA1PRNG",
        "DRBG",
    ],
)];

/// How the agents of a driver share threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadingMode {
    /// Conductor, sender and receiver each on their own.
    Dedicated,
    /// The conductor on its own; sender and receiver together.
    SharedNetwork,
    /// All on one.
    Shared,
    /// On none: the program that embeds the driver runs them.
    Invoker,
}

impl ThreadingMode {
    /// The text of the option and of counter labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ThreadingMode::Dedicated => "DEDICATED",
            ThreadingMode::SharedNetwork => "SHARED_NETWORK",
            ThreadingMode::Shared => "SHARED",
            ThreadingMode::Invoker => "INVOKER",
        }
    }

    /// The mode with this text.
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
