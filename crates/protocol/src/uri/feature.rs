//! What a channel asks of a driver beyond the plain things, so that a driver can refuse what it cannot do.

use std::fmt;

use super::channel::{Channel, ChannelKind};
use super::error::UriError;
use super::param::{Param, Role};
use super::words::ControlMode;

/// Something a channel needs beyond publications and subscriptions over IPC and to one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feature {
    /// An endpoint that is a multicast group.
    Multicast,
    /// `control-mode=dynamic`
    DynamicControl,
    /// `control-mode=manual`
    ManualControl,
    /// `control-mode=response`, or a `response-correlation-id`.
    Response,
    /// `aeron-spy:`, or `ssc=true`.
    Spy,
    /// A channel that is nothing but a tag, or `session-id=tag:`.
    ByTag,
    /// One of the `*-ts-offset` parameters.
    Timestamps,
    /// `tether=false`
    Untethered,
    /// `group=true`, or a `gtag`.
    ReceiverGroup,
    /// `cc=cubic`
    Cubic,
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Feature::Multicast => "multicast endpoints",
            Feature::DynamicControl => "control-mode=dynamic",
            Feature::ManualControl => "control-mode=manual",
            Feature::Response => {
                "response channels (control-mode=response, response-correlation-id)"
            }
            Feature::Spy => "spies (aeron-spy:, ssc=true)",
            Feature::ByTag => "references by tag (tags alone, session-id=tag:)",
            Feature::Timestamps => {
                "timestamps (media-rcv-ts-offset, channel-rcv-ts-offset, channel-snd-ts-offset)"
            }
            Feature::Untethered => "untethered subscriptions (tether=false)",
            Feature::ReceiverGroup => "receiver groups (group=true, gtag)",
            Feature::Cubic => "CUBIC congestion control (cc=cubic)",
        })
    }
}

impl Channel {
    /// What this channel needs beyond the plain things when it is used in this role. A name may yet turn out to be a
    /// multicast group.
    #[must_use]
    pub fn features(&self, role: Role) -> Vec<Feature> {
        let says = |param: Param, test: fn(&str) -> bool| {
            param.spec().used_by.contains(&role) && self.uri().get(param).is_some_and(test)
        };
        let udp = self.udp().is_some();
        let asked = [
            (Feature::Spy, matches!(self, Channel::Spy(_))),
            (
                Feature::Spy,
                udp && says(Param::SpiesSimulateConnection, |v| v == "true"),
            ),
            (
                Feature::Multicast,
                self.udp()
                    .is_some_and(super::channel::UdpChannel::is_multicast),
            ),
            (Feature::DynamicControl, self.kind() == ChannelKind::Dynamic),
            (
                Feature::ManualControl,
                self.kind() == ChannelKind::Manual && is_stream(role),
            ),
            (
                Feature::Response,
                self.control_mode() == Some(ControlMode::Response),
            ),
            (
                Feature::Response,
                says(Param::ResponseCorrelationId, |v| v != "-1"),
            ),
            (Feature::ByTag, self.kind() == ChannelKind::ByTag),
            (
                Feature::ByTag,
                says(Param::SessionId, |v| v.starts_with("tag:")),
            ),
            (
                Feature::Timestamps,
                self.udp()
                    .is_some_and(super::channel::UdpChannel::has_timestamps),
            ),
            (Feature::Untethered, says(Param::Tether, |v| v == "false")),
            (
                Feature::ReceiverGroup,
                udp && says(Param::Group, |v| v == "true"),
            ),
            (
                Feature::ReceiverGroup,
                udp && says(Param::GroupTag, |_| true),
            ),
            (
                Feature::Cubic,
                udp && says(Param::CongestionControl, |v| v == "cubic"),
            ),
        ];
        let mut features: Vec<Feature> = asked
            .into_iter()
            .filter_map(|(feature, wanted)| wanted.then_some(feature))
            .collect();
        features.dedup();
        features
    }

    /// Refuses the channel when it needs a feature that is not among those built.
    ///
    /// # Errors
    /// Code 8 with the name of the feature.
    pub fn require(&self, role: Role, built: &[Feature]) -> Result<(), UriError> {
        match self.features(role).into_iter().find(|f| !built.contains(f)) {
            Some(feature) => Err(UriError::not_supported(feature).in_channel(self.uri().as_str())),
            None => Ok(()),
        }
    }
}

/// A destination says `control-mode=manual` without effect.
fn is_stream(role: Role) -> bool {
    matches!(role, Role::Publication | Role::Subscription)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(role: Role, text: &str) -> Vec<Feature> {
        Channel::read(text, role).unwrap().features(role)
    }

    #[test]
    fn features_depend_on_who_uses_the_channel() {
        use Role::{Publication as P, ReceiveDestination as R, Subscription as S};
        for (role, text, expected) in [
            (P, "aeron:ipc?ssc=true|tags=1,2", vec![]),
            (
                P,
                "aeron:udp?endpoint=a:1|linger=1s|response-correlation-id=-1",
                vec![],
            ),
            (P, "aeron:udp?endpoint=a:1|ssc=true", vec![Feature::Spy]),
            (S, "aeron:udp?endpoint=a:1|ssc=true", vec![]),
            (S, "aeron-spy:aeron:udp?endpoint=a:1", vec![Feature::Spy]),
            (
                P,
                "aeron:udp?endpoint=224.0.1.1:1",
                vec![Feature::Multicast],
            ),
            (
                P,
                "aeron:udp?control=a:1|control-mode=dynamic",
                vec![Feature::DynamicControl],
            ),
            (
                S,
                "aeron:udp?control-mode=manual",
                vec![Feature::ManualControl],
            ),
            (R, "aeron:udp?endpoint=a:1|control-mode=manual", vec![]),
            (
                P,
                "aeron:ipc?control-mode=response|response-correlation-id=7",
                vec![Feature::Response],
            ),
            (P, "aeron:udp?tags=1", vec![Feature::ByTag]),
            (P, "aeron:ipc?session-id=tag:3", vec![Feature::ByTag]),
            (
                S,
                "aeron:udp?endpoint=a:1|channel-rcv-ts-offset=0",
                vec![Feature::Timestamps],
            ),
            (
                S,
                "aeron:udp?endpoint=a:1|tether=false|gtag=1|group=true|cc=cubic",
                vec![Feature::Untethered, Feature::ReceiverGroup, Feature::Cubic],
            ),
        ] {
            assert_eq!(features(role, text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_built_is_refused_by_name() {
        let channel = Channel::for_subscription("aeron:udp?endpoint=224.0.1.1:1").unwrap();
        let role = Role::Subscription;
        assert_eq!(channel.require(role, &[Feature::Multicast]), Ok(()));
        let error = channel.require(role, &[]).unwrap_err();
        assert_eq!(error.code.code(), 8);
        assert!(error.text.contains("multicast"), "{error}");
    }
}
