// SPDX-License-Identifier: Apache-2.0
//! Value of `fc`: flow control of a publication to multiple receivers (docs/spec/uri-and-configuration.md §1.8).

use super::value::{Requirement, parse_duration_ns, parse_i32, parse_i64};

/// Strategy that derives the sender limit from the status messages of the receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowControlStrategy {
    /// Unicast: a single receiver.
    Unicast,
    /// The fastest receiver determines the limit.
    Max,
    /// The slowest receiver determines the limit.
    Min,
    /// The slowest receiver with the group tag determines the limit.
    Tagged,
}

/// Flow control parameters of a publication, with defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowControlParams {
    /// Strategy.
    pub strategy: FlowControlStrategy,
    /// Time in nanoseconds without status messages after which a receiver is removed.
    pub receiver_timeout_ns: i64,
    /// Group tag of the receivers considered.
    pub group_tag: i64,
    /// Minimum number of receivers for the publication to be connected.
    pub group_min_size: i32,
    /// Maximum retransmit range in receiver windows.
    pub retransmit_receiver_window_multiple: i32,
}

/// Driver options that apply to parameters not set in `fc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowControlDefaults {
    /// `aeron.multicast.FlowControl.supplier`
    pub multicast_strategy: FlowControlStrategy,
    /// `aeron.flow.control.receiver.timeout`, in nanoseconds.
    pub receiver_timeout_ns: i64,
    /// `aeron.flow.control.group.tag`
    pub group_tag: i64,
    /// `aeron.flow.control.group.min.size`
    pub group_min_size: i32,
    /// `aeron.unicast.flow.control.rrwm`
    pub unicast_window_multiple: i32,
    /// `aeron.multicast.flow.control.rrwm`
    pub multicast_window_multiple: i32,
}

impl FlowControlParams {
    /// Returns the flow control of a unicast channel, which has no parameters in the channel.
    #[must_use]
    pub fn unicast(defaults: &FlowControlDefaults) -> Self {
        FlowControlParams {
            strategy: FlowControlStrategy::Unicast,
            receiver_timeout_ns: defaults.receiver_timeout_ns,
            group_tag: defaults.group_tag,
            group_min_size: defaults.group_min_size,
            retransmit_receiver_window_multiple: defaults.unicast_window_multiple,
        }
    }

    /// Returns the flow control of a channel with multiple receivers.
    ///
    /// # Errors
    /// Description of the valid values.
    pub fn multicast(
        text: Option<&str>,
        defaults: &FlowControlDefaults,
    ) -> Result<Self, Requirement> {
        let text = match text {
            Some(text) => FlowControlValue::parse(text)?,
            None => FlowControlValue::of(defaults.multicast_strategy),
        };
        Ok(FlowControlParams {
            strategy: text.strategy,
            receiver_timeout_ns: text
                .receiver_timeout_ns
                .unwrap_or(defaults.receiver_timeout_ns),
            group_tag: text.group_tag.unwrap_or(defaults.group_tag),
            group_min_size: text.group_min_size.unwrap_or(defaults.group_min_size),
            retransmit_receiver_window_multiple: text
                .window_multiple
                .unwrap_or(defaults.multicast_window_multiple),
        })
    }
}

/// Parsed value of `fc`, without defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowControlValue {
    strategy: FlowControlStrategy,
    receiver_timeout_ns: Option<i64>,
    group_tag: Option<i64>,
    group_min_size: Option<i32>,
    window_multiple: Option<i32>,
}

impl FlowControlValue {
    fn of(strategy: FlowControlStrategy) -> Self {
        FlowControlValue {
            strategy,
            receiver_timeout_ns: None,
            group_tag: None,
            group_min_size: None,
            window_multiple: None,
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, Requirement> {
        let mut items = text.split(',');
        let mut spec = Self::of(match items.next() {
            Some("max") => FlowControlStrategy::Max,
            Some("min") => FlowControlStrategy::Min,
            Some("tagged") => FlowControlStrategy::Tagged,
            _ => return Err("max, min or tagged, with options after a comma".into()),
        });
        for item in items {
            match (item.split_once(':'), spec.strategy) {
                (Some(("rrwm", n)), _) => match parse_i32(n) {
                    Ok(n) if n > 0 => spec.window_multiple = Some(n),
                    _ => return Err("rrwm: with a number of at least 1".into()),
                },
                (Some(("t", timeout)), FlowControlStrategy::Min | FlowControlStrategy::Tagged) => {
                    spec.receiver_timeout_ns = Some(
                        parse_duration_ns(timeout).map_err(|needed| format!("t: with {needed}"))?,
                    );
                }
                (Some(("g", group)), FlowControlStrategy::Min | FlowControlStrategy::Tagged) => {
                    spec.group(group)?;
                }
                (_, FlowControlStrategy::Max) => {
                    return Err("no option except rrwm:N after max".into());
                }
                _ => return Err("options of the forms t:<duration>, g:[tag][/size], rrwm:N".into()),
            }
        }
        Ok(spec)
    }

    /// Parses `<tag>`, `/<size>` or `<tag>/<size>`.
    fn group(&mut self, text: &str) -> Result<(), Requirement> {
        let (tag, size) = match text.split_once('/') {
            Some((tag, size)) => (tag, Some(size)),
            None => (text, None),
        };
        if !(tag.is_empty() && size.is_some()) {
            self.group_tag =
                Some(parse_i64(tag).map_err(|_| "g: with a tag that is an integer of 64 bits")?);
        }
        if let Some(size) = size {
            match parse_i32(size) {
                Ok(size) if size >= 0 => self.group_min_size = Some(size),
                _ => return Err("g:[tag]/size with a size of at least 0".into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DEFAULTS: FlowControlDefaults = FlowControlDefaults {
        multicast_strategy: FlowControlStrategy::Max,
        receiver_timeout_ns: 5,
        group_tag: -1,
        group_min_size: 0,
        unicast_window_multiple: 16,
        multicast_window_multiple: 4,
    };

    fn spec(
        strategy: FlowControlStrategy,
        timeout: i64,
        tag: i64,
        size: i32,
        multiple: i32,
    ) -> FlowControlParams {
        FlowControlParams {
            strategy,
            receiver_timeout_ns: timeout,
            group_tag: tag,
            group_min_size: size,
            retransmit_receiver_window_multiple: multiple,
        }
    }

    #[test]
    fn parse_valid_flow_control_succeeds() {
        assert_eq!(
            FlowControlParams::unicast(&DEFAULTS),
            spec(FlowControlStrategy::Unicast, 5, -1, 0, 16)
        );
        assert_eq!(
            FlowControlParams::multicast(None, &DEFAULTS),
            Ok(spec(FlowControlStrategy::Max, 5, -1, 0, 4))
        );
        for (text, expected) in [
            ("max", spec(FlowControlStrategy::Max, 5, -1, 0, 4)),
            ("max,rrwm:9", spec(FlowControlStrategy::Max, 5, -1, 0, 9)),
            ("min", spec(FlowControlStrategy::Min, 5, -1, 0, 4)),
            (
                "min,t:5s,g:/2",
                spec(FlowControlStrategy::Min, 5_000_000_000, -1, 2, 4),
            ),
            (
                "tagged,g:123,rrwm:8",
                spec(FlowControlStrategy::Tagged, 5, 123, 0, 8),
            ),
            (
                "tagged,g:-7/3,t:1ms",
                spec(FlowControlStrategy::Tagged, 1_000_000, -7, 3, 4),
            ),
        ] {
            assert_eq!(
                FlowControlParams::multicast(Some(text), &DEFAULTS),
                Ok(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn parse_invalid_flow_control_fails() {
        for text in [
            "",
            "bogus",
            "pref",
            "max,foo",
            "max,t:5s",
            "max,g:1",
            "min,rrwm:0",
            "min,rrwm:",
            "min,t:",
            "min,t:5x",
            "min,t:-1",
            "min,g:",
            "min,",
            "tagged,g:1/x",
            "tagged,g:1/-1",
            "tagged,g:x",
            "tagged,g:/",
            "tagged,x:1",
        ] {
            assert!(FlowControlValue::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn parse_random_text_never_panics(text in "(max|min|tagged)?,?(t|g|rrwm)?:?\\PC{0,20}") {
            let _ = FlowControlValue::parse(&text);
        }
    }
}
