// SPDX-License-Identifier: Apache-2.0
//! Sets of enabled events.

use std::fmt;

use super::table::{EventCode, EventSpec, Group};

/// Set of events.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct EventSet(u64);

/// Unknown event name or number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown event code: {0}")]
pub struct UnknownEvent(pub String);

type EventFilter = fn(&EventSpec) -> bool;

/// Bits of the numeric masks that earlier C drivers accepted, and the events they select.
const LEGACY_MASKS: &[(u64, EventFilter)] = &[
    (0x1, |spec| spec.group == Group::CommandsIn),
    (0x2, |spec| spec.group == Group::CommandsOut),
    (0x4, |spec| spec.code == EventCode::FrameIn),
    (0x18, |spec| spec.code == EventCode::FrameOut),
    (0x80, |spec| {
        spec.code == EventCode::UntetheredSubscriptionStateChange
    }),
];
/// Legacy masks from this value on select all events.
const LEGACY_MASK_ALL: u64 = 0xFFFF;

impl EventSet {
    /// The empty set.
    pub const NONE: EventSet = EventSet(0);

    /// Parses a comma-separated list of names, numbers, `all`, `admin` (all except frames), or a legacy mask (`0x` and
    /// hexadecimal digits).
    ///
    /// # Errors
    /// A part is not a known event.
    pub fn parse(text: &str) -> Result<Self, UnknownEvent> {
        let parts = text.split(',').map(str::trim);
        parts
            .filter(|part| !part.is_empty())
            .try_fold(Self::NONE, |set, part| Ok(set.with(Self::parse_one(part)?)))
    }

    fn parse_one(text: &str) -> Result<Self, UnknownEvent> {
        let unknown = || UnknownEvent(text.to_owned());
        if let Some(digits) = text.strip_prefix("0x") {
            let mask = u64::from_str_radix(digits, 16).map_err(|_| unknown())?;
            return Ok(Self::of(|spec| {
                mask >= LEGACY_MASK_ALL
                    || LEGACY_MASKS
                        .iter()
                        .any(|(bits, matches)| mask & bits != 0 && matches(spec))
            }));
        }
        match text {
            "all" => return Ok(Self::of(|_| true)),
            "admin" => return Ok(Self::of(|spec| spec.group != Group::Frames)),
            // Alternative names in the official drivers.
            "SEND_NAK_MESSAGE" => return Ok(EventCode::NakSent.into()),
            "GENERIC_MESSAGE" => return Ok(EventCode::TextData.into()),
            // Events of loadable extensions of the C driver, which are not supported.
            "ADD_DYNAMIC_DISSECTOR" | "DYNAMIC_DISSECTOR_EVENT" | "61" | "62" => {
                return Ok(Self::NONE);
            }
            _ => {}
        }
        let by_name = EventCode::ALL.iter().find(|spec| spec.name == text);
        by_name
            .map(|spec| spec.code)
            .or_else(|| EventCode::from_number(text.parse().ok()?))
            .map(Self::from)
            .ok_or_else(unknown)
    }

    fn of(wanted: impl Fn(&EventSpec) -> bool) -> Self {
        let specs = EventCode::ALL.iter().filter(|spec| wanted(spec));
        specs.fold(Self::NONE, |set, spec| set.with(spec.code.into()))
    }

    /// Returns true if the set contains the event.
    #[inline]
    #[must_use]
    pub fn contains(self, code: EventCode) -> bool {
        self.0 & (1 << code.number()) != 0
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the union with `others`.
    #[must_use]
    pub fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns the set without `others`.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}

impl From<EventCode> for EventSet {
    fn from(code: EventCode) -> Self {
        Self(1 << code.number())
    }
}

impl fmt::Debug for EventSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = EventCode::ALL
            .iter()
            .filter(|spec| self.contains(spec.code));
        f.debug_set()
            .entries(present.map(|spec| spec.name))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parse_random_list_returns_set_or_names_unknown_part(
            parts in prop::collection::vec("[A-Z_]{1,12}|0x[0-9a-f]{0,20}|[0-9]{1,3}|\\PC{0,6}|all|admin|CMD_IN_ADD_COUNTER", 0..5)
        ) {
            let text = parts.join(",");
            match EventSet::parse(&text) {
                Ok(set) => {
                    let numbers: Vec<String> = EventCode::ALL
                        .iter()
                        .filter(|spec| set.contains(spec.code))
                        .map(|spec| spec.code.number().to_string())
                        .collect();
                    prop_assert_eq!(EventSet::parse(&numbers.join(",")), Ok(set));
                }
                Err(UnknownEvent(part)) => prop_assert!(text.contains(&part) && !part.is_empty()),
            }
        }
    }

    fn names(text: &str) -> Vec<&'static str> {
        let set = EventSet::parse(text).unwrap();
        let present = EventCode::ALL.iter().filter(|spec| set.contains(spec.code));
        present.map(|spec| spec.name).collect()
    }

    #[test]
    fn parse_accepts_names_numbers_and_keywords() {
        assert_eq!(names("FRAME_IN"), ["FRAME_IN"]);
        assert_eq!(
            names(" 2, CMD_IN_ADD_PUBLICATION ,,2"),
            ["FRAME_OUT", "CMD_IN_ADD_PUBLICATION"]
        );
        assert_eq!(names("SEND_NAK_MESSAGE"), ["NAK_SENT"]);
        assert_eq!(names("all").len(), EventCode::ALL.len());
        assert_eq!(names("admin").len(), EventCode::ALL.len() - 2);
        assert_eq!(names(""), [""; 0]);
    }

    #[test]
    fn parse_accepts_legacy_masks() {
        assert_eq!(names("0x4"), ["FRAME_IN"]);
        assert_eq!(names("0x18"), ["FRAME_OUT"]);
        assert_eq!(names("0x80"), ["UNTETHERED_SUBSCRIPTION_STATE_CHANGE"]);
        assert_eq!(names("0xffff").len(), EventCode::ALL.len());
        assert!(names("0x1").iter().all(|name| name.starts_with("CMD_IN_")));
        assert!(names("0x2").iter().all(|name| name.starts_with("CMD_OUT_")));
        assert_eq!(names("0x0"), [""; 0]);
    }

    #[test]
    fn parse_unknown_event_is_named_in_error() {
        for text in ["frame_in", "0xyz", "9", "-1", "FRAME_IN,NOPE"] {
            let unknown = EventSet::parse(text).unwrap_err();
            assert!(text.contains(&unknown.0), "{unknown}");
        }
    }

    #[test]
    fn without_removes_one_event() {
        let set = EventSet::parse("admin").unwrap();
        let less = set.without(EventCode::CmdInKeepaliveClient.into());
        assert!(set.contains(EventCode::CmdInKeepaliveClient));
        assert!(!less.contains(EventCode::CmdInKeepaliveClient));
        assert!(less.contains(EventCode::CmdOutError) && !less.is_empty());
    }
}
