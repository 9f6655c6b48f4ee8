// SPDX-License-Identifier: Apache-2.0
//! Views that combine several options: idle strategies with their arguments, and the defaults of channels.

use taran_core::idle::{IdleError, IdleSpec};

use super::choices::ThreadingMode;
use super::set::OptionSet;
use crate::event::{ArchiveEventSet, EventSet};
use crate::uri::{
    CongestionControl, FlowControlDefaults, FlowControlStrategy, Group, PublicationDefaults,
    SubscriptionDefaults, Untethered,
};

/// Thread that an idle strategy applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdleRole {
    /// Conductor.
    Conductor,
    /// Sender.
    Sender,
    /// Receiver.
    Receiver,
    /// Thread shared by sender and receiver.
    SharedNetwork,
    /// Thread shared by all agents.
    Shared,
    /// Executor of blocking work.
    AsyncExecutor,
}

impl OptionSet {
    /// Returns the threading mode.
    #[must_use]
    pub fn threading_mode(&self) -> ThreadingMode {
        // The option accepts only the texts of the modes.
        ThreadingMode::parse(self.threading_mode_name()).unwrap_or(ThreadingMode::Dedicated)
    }

    /// Returns true if a client command may terminate the driver.
    #[must_use]
    pub fn termination_allowed(&self) -> bool {
        self.termination_validator() == "allow"
    }

    /// Returns the idle strategy of a thread, with its arguments parsed.
    ///
    /// # Errors
    /// The arguments are invalid for the strategy.
    pub fn idle(&self, role: IdleRole) -> Result<IdleSpec, IdleError> {
        let (name, args) = match role {
            IdleRole::Conductor => (
                self.conductor_idle_strategy(),
                self.conductor_idle_strategy_init_args(),
            ),
            IdleRole::Sender => (
                self.sender_idle_strategy(),
                self.sender_idle_strategy_init_args(),
            ),
            IdleRole::Receiver => (
                self.receiver_idle_strategy(),
                self.receiver_idle_strategy_init_args(),
            ),
            IdleRole::SharedNetwork => (
                self.sharednetwork_idle_strategy(),
                self.sharednetwork_idle_strategy_init_args(),
            ),
            IdleRole::Shared => (
                self.shared_idle_strategy(),
                self.shared_idle_strategy_init_args(),
            ),
            IdleRole::AsyncExecutor => (
                self.async_executor_idle_strategy(),
                self.async_executor_idle_strategy_init_args(),
            ),
        };
        IdleSpec::parse(name.unwrap_or("backoff"), args)
    }

    /// Returns the set of events to log.
    #[must_use]
    pub fn events(&self) -> EventSet {
        // Both options accept only valid selections.
        let read = |text: Option<&str>| EventSet::parse(text.unwrap_or("")).unwrap_or_default();
        read(self.event_log()).without(read(self.event_log_disable()))
    }

    /// Returns the set of events of an archive to log.
    #[must_use]
    pub fn archive_events(&self) -> ArchiveEventSet {
        // Both options accept only valid selections.
        let read =
            |text: Option<&str>| ArchiveEventSet::parse(text.unwrap_or("")).unwrap_or_default();
        read(self.archive_event_log()).without(read(self.archive_event_log_disable()))
    }

    /// Returns the defaults of publication parameters that a channel does not set.
    #[must_use]
    pub fn publication_defaults(&self) -> PublicationDefaults {
        PublicationDefaults {
            term_length: self.term_buffer_length(),
            ipc_term_length: self.ipc_term_buffer_length(),
            mtu: self.mtu_length(),
            ipc_mtu: self.ipc_mtu_length(),
            window: self.publication_term_window_length(),
            ipc_window: self.ipc_publication_term_window_length(),
            linger_ns: self.publication_linger_timeout_ns(),
            sparse: self.term_buffer_sparse_file(),
            spies_simulate_connection: self.spies_simulate_connection(),
            max_resend: self.max_resend() as usize,
            untethered: self.untethered(),
            flow_control: FlowControlDefaults {
                multicast_strategy: self.multicast_strategy(),
                receiver_timeout_ns: self.flow_control_receiver_timeout_ns(),
                group_tag: self.flow_control_group_tag(),
                group_min_size: int32(self.flow_control_group_min_size()),
                unicast_window_multiple: int32(self.unicast_flow_control_rrwm()),
                multicast_window_multiple: int32(self.multicast_flow_control_rrwm()),
            },
        }
    }

    /// Returns the congestion control forced for all images, or `None` if their channels determine it.
    #[must_use]
    pub fn congestion_control(&self) -> Option<CongestionControl> {
        match self.congestion_control_supplier() {
            "static" => Some(CongestionControl::Static),
            "cubic" => Some(CongestionControl::Cubic),
            _ => None,
        }
    }

    /// Returns the default multicast strategy. The supplier option takes precedence over the strategy class option.
    fn multicast_strategy(&self) -> FlowControlStrategy {
        let supplier = self.multicast_flow_control_supplier();
        match (supplier, self.multicast_flow_control_strategy()) {
            ("multicast_min", _) | ("multicast_max", "io.aeron.driver.MinMulticastFlowControl") => {
                FlowControlStrategy::Min
            }
            ("multicast_tagged", _)
            | ("multicast_max", "io.aeron.driver.TaggedMulticastFlowControl") => {
                FlowControlStrategy::Tagged
            }
            _ => FlowControlStrategy::Max,
        }
    }

    /// Returns the defaults of subscription parameters that a channel does not set.
    #[must_use]
    pub fn subscription_defaults(&self) -> SubscriptionDefaults {
        SubscriptionDefaults {
            reliable: self.reliable_stream(),
            rejoin: self.rejoin_stream(),
            tether: self.tether_subscriptions(),
            group: Group::parse(self.receiver_group_consideration()),
            group_tag: self.receiver_group_tag(),
            sparse: self.term_buffer_sparse_file(),
            receiver_window: self.rcv_initial_window_length(),
            congestion_control: self
                .congestion_control()
                .unwrap_or(CongestionControl::Static),
            nak_delay_ns: self.nak_unicast_delay_ns(),
            untethered: self.untethered(),
        }
    }

    fn untethered(&self) -> Untethered {
        Untethered {
            window_limit_timeout_ns: self.untethered_window_limit_timeout_ns(),
            linger_timeout_ns: self.untethered_linger_timeout_ns(),
            resting_timeout_ns: self.untethered_resting_timeout_ns(),
        }
    }
}

/// Converts a value of an option whose range fits 32 bits.
fn int32(n: i64) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::option::{OptionId, Profile, Source};

    const ROLES: [IdleRole; 6] = [
        IdleRole::Conductor,
        IdleRole::Sender,
        IdleRole::Receiver,
        IdleRole::SharedNetwork,
        IdleRole::Shared,
        IdleRole::AsyncExecutor,
    ];

    #[test]
    fn idle_strategies_of_every_profile_are_valid() {
        for profile in Profile::ALL {
            let mut options = OptionSet::driver();
            options
                .set(OptionId::Profile, profile.as_str(), &Source::Code)
                .unwrap();
            for role in ROLES {
                assert!(options.idle(role).is_ok(), "{profile} {role:?}");
            }
        }
    }

    #[test]
    fn multicast_flow_control_is_chosen_by_supplier_or_class() {
        for (option, value, expected) in [
            (
                OptionId::MulticastFlowControlSupplier,
                "io.aeron.driver.MinMulticastFlowControlSupplier",
                FlowControlStrategy::Min,
            ),
            (
                OptionId::MulticastFlowControlSupplier,
                "aeron_tagged_flow_control_strategy_supplier",
                FlowControlStrategy::Tagged,
            ),
            (
                OptionId::MulticastFlowControlStrategy,
                "io.aeron.driver.MinMulticastFlowControl",
                FlowControlStrategy::Min,
            ),
            (
                OptionId::MulticastFlowControlStrategy,
                "io.aeron.driver.TaggedMulticastFlowControl",
                FlowControlStrategy::Tagged,
            ),
        ] {
            let mut options = OptionSet::driver();
            assert_eq!(options.multicast_strategy(), FlowControlStrategy::Max);
            options.set(option, value, &Source::Code).unwrap();
            assert_eq!(options.multicast_strategy(), expected, "{value}");
        }
    }

    #[test]
    fn defaults_match_specification() {
        let options = OptionSet::driver();
        let publication = options.publication_defaults();
        assert_eq!(
            (publication.term_length, publication.ipc_term_length),
            (16 << 20, 64 << 20)
        );
        assert_eq!(
            (publication.mtu, publication.ipc_mtu, publication.max_resend),
            (1408, 1408, 16)
        );
        assert_eq!(
            (publication.window, publication.linger_ns),
            (0, 5_000_000_000)
        );
        assert_eq!(publication.flow_control.group_tag, -1);
        let subscription = options.subscription_defaults();
        assert!(
            subscription.reliable
                && subscription.rejoin
                && subscription.tether
                && subscription.sparse
        );
        assert_eq!(
            (subscription.receiver_window, subscription.nak_delay_ns),
            (128 << 10, 1_000)
        );
        assert_eq!(
            (subscription.group, subscription.group_tag),
            (Group::Infer, None)
        );
        assert_eq!(options.threading_mode(), ThreadingMode::Dedicated);
        assert!(!options.termination_allowed());
    }
}
