// SPDX-License-Identifier: Apache-2.0
//! Events of an archive's event log, one row each (docs/spec/archive.md §8.3).
//!
//! Numbers and names are those of the official archive.

use std::fmt;

use super::UnknownEvent;

macro_rules! archive_events {
    ($($variant:ident = $number:literal $name:literal;)*) => {
        /// Event of an archive.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum ArchiveEventCode {
            $(#[doc = concat!("`", $name, "`")] $variant = $number,)*
        }

        impl ArchiveEventCode {
            /// All events, ordered by number.
            pub const ALL: &'static [ArchiveEventCode] = &[$(ArchiveEventCode::$variant,)*];

            /// Returns the name in options and log lines.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

archive_events! {
    CmdInConnect = 1 "CMD_IN_CONNECT";
    CmdInCloseSession = 2 "CMD_IN_CLOSE_SESSION";
    CmdInStartRecording = 3 "CMD_IN_START_RECORDING";
    CmdInStopRecording = 4 "CMD_IN_STOP_RECORDING";
    CmdInReplay = 5 "CMD_IN_REPLAY";
    CmdInStopReplay = 6 "CMD_IN_STOP_REPLAY";
    CmdInListRecordings = 7 "CMD_IN_LIST_RECORDINGS";
    CmdInListRecordingsForUri = 8 "CMD_IN_LIST_RECORDINGS_FOR_URI";
    CmdInListRecording = 9 "CMD_IN_LIST_RECORDING";
    CmdInExtendRecording = 10 "CMD_IN_EXTEND_RECORDING";
    CmdInRecordingPosition = 11 "CMD_IN_RECORDING_POSITION";
    CmdInTruncateRecording = 12 "CMD_IN_TRUNCATE_RECORDING";
    CmdInStopRecordingSubscription = 13 "CMD_IN_STOP_RECORDING_SUBSCRIPTION";
    CmdInStopPosition = 14 "CMD_IN_STOP_POSITION";
    CmdInFindLastMatchingRecord = 15 "CMD_IN_FIND_LAST_MATCHING_RECORD";
    CmdInListRecordingSubscriptions = 16 "CMD_IN_LIST_RECORDING_SUBSCRIPTIONS";
    CmdInStartBoundedReplay = 17 "CMD_IN_START_BOUNDED_REPLAY";
    CmdInStopAllReplays = 18 "CMD_IN_STOP_ALL_REPLAYS";
    CmdInReplicate = 19 "CMD_IN_REPLICATE";
    CmdInStopReplication = 20 "CMD_IN_STOP_REPLICATION";
    CmdInStartPosition = 21 "CMD_IN_START_POSITION";
    CmdInDetachSegments = 22 "CMD_IN_DETACH_SEGMENTS";
    CmdInDeleteDetachedSegments = 23 "CMD_IN_DELETE_DETACHED_SEGMENTS";
    CmdInPurgeSegments = 24 "CMD_IN_PURGE_SEGMENTS";
    CmdInAttachSegments = 25 "CMD_IN_ATTACH_SEGMENTS";
    CmdInMigrateSegments = 26 "CMD_IN_MIGRATE_SEGMENTS";
    CmdInAuthConnect = 27 "CMD_IN_AUTH_CONNECT";
    CmdInKeepAlive = 28 "CMD_IN_KEEP_ALIVE";
    CmdInTaggedReplicate = 29 "CMD_IN_TAGGED_REPLICATE";
    CmdOutResponse = 30 "CMD_OUT_RESPONSE";
    CmdInStartRecording2 = 31 "CMD_IN_START_RECORDING2";
    CmdInExtendRecording2 = 32 "CMD_IN_EXTEND_RECORDING2";
    CmdInStopRecordingByIdentity = 33 "CMD_IN_STOP_RECORDING_BY_IDENTITY";
    ReplicationSessionStateChange = 34 "REPLICATION_SESSION_STATE_CHANGE";
    ControlSessionStateChange = 35 "CONTROL_SESSION_STATE_CHANGE";
    ReplaySessionError = 36 "REPLAY_SESSION_ERROR";
    CatalogResize = 37 "CATALOG_RESIZE";
    CmdInPurgeRecording = 38 "CMD_IN_PURGE_RECORDING";
    CmdInReplicate2 = 39 "CMD_IN_REPLICATE2";
    RecordingSignal = 40 "RECORDING_SIGNAL";
    ReplicationSessionDone = 41 "REPLICATION_SESSION_DONE";
    CmdInRequestReplayToken = 42 "CMD_IN_REQUEST_REPLAY_TOKEN";
    ReplaySessionStateChange = 43 "REPLAY_SESSION_STATE_CHANGE";
    RecordingSessionStateChange = 44 "RECORDING_SESSION_STATE_CHANGE";
    CmdInMaxRecordedPosition = 45 "CMD_IN_MAX_RECORDED_POSITION";
    // Of the client library: accepted, and logged by no archive.
    PersistentSubscriptionStateChange = 46 "PERSISTENT_SUBSCRIPTION_STATE_CHANGE";
    PersistentSubscriptionJoinedLive = 47 "PERSISTENT_SUBSCRIPTION_JOINED_LIVE";
    PersistentSubscriptionLeftLive = 48 "PERSISTENT_SUBSCRIPTION_LEFT_LIVE";
}

impl ArchiveEventCode {
    /// Returns the number of the official archive, below 64.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Returns the event with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.number() == number)
    }

    /// Returns the event of a request of the control protocol by its template id. Others have none.
    #[must_use]
    pub fn of_request(template_id: u16) -> Option<Self> {
        Some(match template_id {
            2 => Self::CmdInConnect,
            3 => Self::CmdInCloseSession,
            4 => Self::CmdInStartRecording,
            5 => Self::CmdInStopRecording,
            6 => Self::CmdInReplay,
            7 => Self::CmdInStopReplay,
            8 => Self::CmdInListRecordings,
            9 => Self::CmdInListRecordingsForUri,
            10 => Self::CmdInListRecording,
            11 => Self::CmdInExtendRecording,
            12 => Self::CmdInRecordingPosition,
            13 => Self::CmdInTruncateRecording,
            14 => Self::CmdInStopRecordingSubscription,
            15 => Self::CmdInStopPosition,
            16 => Self::CmdInFindLastMatchingRecord,
            17 => Self::CmdInListRecordingSubscriptions,
            18 => Self::CmdInStartBoundedReplay,
            19 => Self::CmdInStopAllReplays,
            50 => Self::CmdInReplicate,
            51 => Self::CmdInStopReplication,
            52 => Self::CmdInStartPosition,
            53 => Self::CmdInDetachSegments,
            54 => Self::CmdInDeleteDetachedSegments,
            55 => Self::CmdInPurgeSegments,
            56 => Self::CmdInAttachSegments,
            57 => Self::CmdInMigrateSegments,
            58 => Self::CmdInAuthConnect,
            61 => Self::CmdInKeepAlive,
            62 => Self::CmdInTaggedReplicate,
            63 => Self::CmdInStartRecording2,
            64 => Self::CmdInExtendRecording2,
            65 => Self::CmdInStopRecordingByIdentity,
            66 => Self::CmdInReplicate2,
            67 => Self::CmdInMaxRecordedPosition,
            104 => Self::CmdInPurgeRecording,
            105 => Self::CmdInRequestReplayToken,
            _ => return None,
        })
    }
}

/// Set of events of an archive.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ArchiveEventSet(u64);

impl ArchiveEventSet {
    /// The empty set.
    pub const NONE: ArchiveEventSet = ArchiveEventSet(0);

    /// Parses a comma-separated list of names, numbers, or `all`.
    ///
    /// # Errors
    /// A part is not a known event.
    pub fn parse(text: &str) -> Result<Self, UnknownEvent> {
        let parts = text.split(',').map(str::trim);
        parts
            .filter(|part| !part.is_empty())
            .try_fold(Self::NONE, |set, part| {
                Ok(Self(set.0 | Self::parse_one(part)?.0))
            })
    }

    fn parse_one(text: &str) -> Result<Self, UnknownEvent> {
        if text == "all" {
            let all = ArchiveEventCode::ALL.iter();
            return Ok(all.fold(Self::NONE, |set, code| set.with(*code)));
        }
        let by_name = ArchiveEventCode::ALL
            .iter()
            .copied()
            .find(|code| code.name() == text);
        by_name
            .or_else(|| ArchiveEventCode::from_number(text.parse().ok()?))
            .map(|code| Self::NONE.with(code))
            .ok_or_else(|| UnknownEvent(text.to_owned()))
    }

    /// Returns true if the set contains the event.
    #[inline]
    #[must_use]
    pub fn contains(self, code: ArchiveEventCode) -> bool {
        self.0 & (1 << code.number()) != 0
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the set with the event.
    #[must_use]
    pub fn with(self, code: ArchiveEventCode) -> Self {
        Self(self.0 | 1 << code.number())
    }

    /// Returns the set without `others`.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}

impl fmt::Debug for ArchiveEventSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = ArchiveEventCode::ALL
            .iter()
            .filter(|code| self.contains(**code));
        f.debug_set()
            .entries(present.map(|code| code.name()))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_events_are_sorted_by_number_and_fit_the_set() {
        assert!(ArchiveEventCode::ALL.is_sorted_by(|a, b| a < b));
        for (index, code) in ArchiveEventCode::ALL.iter().enumerate() {
            assert_eq!(usize::from(code.number()), index + 1);
            assert_eq!(ArchiveEventCode::from_number(code.number()), Some(*code));
        }
        assert_eq!(ArchiveEventCode::from_number(0), None);
        assert_eq!(ArchiveEventCode::from_number(49), None);
    }

    #[test]
    fn parse_accepts_names_numbers_and_all() {
        let set = ArchiveEventSet::parse(" CMD_IN_REPLAY ,, 37,RECORDING_SIGNAL").unwrap();
        assert_eq!(
            format!("{set:?}"),
            r#"{"CMD_IN_REPLAY", "CATALOG_RESIZE", "RECORDING_SIGNAL"}"#
        );
        let all = ArchiveEventSet::parse("all").unwrap();
        assert!(ArchiveEventCode::ALL.iter().all(|code| all.contains(*code)));
        let less = all.without(ArchiveEventSet::parse("CMD_IN_KEEP_ALIVE").unwrap());
        assert!(!less.contains(ArchiveEventCode::CmdInKeepAlive) && !less.is_empty());
        assert!(ArchiveEventSet::parse("").unwrap().is_empty());
    }

    #[test]
    fn parse_unknown_archive_event_is_named_in_error() {
        for text in ["cmd_in_replay", "admin", "0", "49", "-1", "300", "all,NOPE"] {
            let unknown = ArchiveEventSet::parse(text).unwrap_err();
            assert!(text.contains(&unknown.0), "{unknown}");
        }
    }
}
