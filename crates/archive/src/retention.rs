// SPDX-License-Identifier: Apache-2.0
//! Retention: rules that say how much of a recording is kept.

use taran_protocol::uri::value::{parse_duration_ns, parse_size};
use thiserror::Error;

use crate::files::RecordingLayout;

/// Property of the rules.
const OPTION: &str = "taran.archive.retention";

/// Reason why rules of retention are malformed.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RetentionError {
    /// A word of a rule is not understood.
    #[error(
        "{OPTION}: `{word}` in the rule `{rule}` is neither a channel pattern nor recording=ID, stream=ID, bytes=SIZE, \
         age=DURATION or consumers=NAME+NAME with a valid value"
    )]
    Word {
        /// The rule.
        rule: String,
        /// The word.
        word: String,
    },
    /// A rule keeps everything.
    #[error(
        "{OPTION}: the rule `{rule}` has neither bytes=SIZE nor age=DURATION: add one, or remove the rule"
    )]
    Unlimited {
        /// The rule.
        rule: String,
    },
}

taran_core::debug_is_display!(RetentionError);

/// A rule of retention: the recordings that it is for, and how much of them is kept.
///
/// Rules are separated by `;`, their words by spaces: `aeron:udp?endpoint=10.* stream=7 bytes=10g age=7d consumers=risk;
/// * bytes=100g`. The first rule that matches a recording is in force for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionRule {
    /// Pattern of the original channel, in which `*` stands for any text. Without one, every channel matches.
    channel: Option<String>,
    recording_id: Option<i64>,
    stream_id: Option<i32>,
    bytes: Option<u64>,
    age_ms: Option<i64>,
    consumers: Vec<String>,
}

impl RetentionRule {
    /// Parses rules.
    ///
    /// # Errors
    /// A word is not understood, or a rule has no limit.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, RetentionError> {
        let rules = text.split(';').map(str::trim);
        rules
            .filter(|rule| !rule.is_empty())
            .map(Self::parse)
            .collect()
    }

    fn parse(text: &str) -> Result<Self, RetentionError> {
        let mut rule = Self::default();
        for word in text.split_whitespace() {
            rule.add(word).ok_or_else(|| RetentionError::Word {
                rule: text.to_owned(),
                word: word.to_owned(),
            })?;
        }
        if rule.bytes.is_none() && rule.age_ms.is_none() {
            return Err(RetentionError::Unlimited {
                rule: text.to_owned(),
            });
        }
        Ok(rule)
    }

    fn add(&mut self, word: &str) -> Option<()> {
        match word.split_once('=') {
            Some(("recording", id)) => self.recording_id = Some(id.parse().ok()?),
            Some(("stream", id)) => self.stream_id = Some(id.parse().ok()?),
            Some(("bytes", size)) => self.bytes = Some(parse_size(size).ok()? as u64),
            Some(("age", age)) => self.age_ms = Some(parse_age_ms(age)?),
            Some(("consumers", names)) if !names.is_empty() => {
                self.consumers = names.split('+').map(str::to_owned).collect();
            }
            _ if self.channel.is_none() && (word.starts_with("aeron") || word.contains('*')) => {
                self.channel = Some(word.to_owned());
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns the rule in force for a recording.
    pub(crate) fn of<'a>(
        rules: &'a [Self],
        recording_id: i64,
        stream_id: i32,
        channel: &str,
    ) -> Option<&'a Self> {
        rules.iter().find(|rule| {
            rule.recording_id.is_none_or(|id| id == recording_id)
                && rule.stream_id.is_none_or(|id| id == stream_id)
                && rule
                    .channel
                    .as_deref()
                    .is_none_or(|pattern| matches(pattern, channel))
        })
    }

    /// Returns the time in milliseconds after which data need not be kept.
    pub(crate) fn age_ms(&self) -> Option<i64> {
        self.age_ms
    }

    /// Returns the names of consumers whose data must be kept.
    pub(crate) fn consumers(&self) -> &[String] {
        &self.consumers
    }

    /// Decides on the start position of a recording: the base position of the first segment that is kept, or `None` if all
    /// are.
    pub(crate) fn new_start(&self, extent: &Extent) -> Option<i64> {
        let layout = &extent.layout;
        // Whole segments, so that at least the bytes are left.
        let by_bytes = self.bytes.map(|bytes| {
            let kept = i64::try_from(bytes).unwrap_or(i64::MAX);
            layout.base_of(extent.end.saturating_sub(kept).max(layout.start_position()))
        });
        let by_age = extent.old.map(|position| layout.base_of(position));
        let wanted = by_bytes.into_iter().chain(by_age).max()?;
        let used = extent
            .used
            .map_or(i64::MAX, |position| layout.base_of(position));
        let start = wanted.min(used).min(layout.base_of(extent.end));
        (start > layout.first_base()).then_some(start)
    }
}

/// A recording as retention sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) layout: RecordingLayout,
    /// Recorded or stop position.
    pub(crate) end: i64,
    /// Position before which all is older than the rule's age.
    pub(crate) old: Option<i64>,
    /// Lowest position that a replay or a consumer needs.
    pub(crate) used: Option<i64>,
}

/// Parses a duration; beside the units of other options, `m`, `h` and `d` stand for minutes, hours and days.
fn parse_age_ms(text: &str) -> Option<i64> {
    let of_unit = |unit: char, ms: i64| {
        let number = text.strip_suffix(unit)?.parse::<i64>().ok()?;
        (number >= 0).then(|| number.checked_mul(ms)).flatten()
    };
    of_unit('d', 86_400_000)
        .or_else(|| of_unit('h', 3_600_000))
        .or_else(|| of_unit('m', 60_000))
        .or_else(|| Some(parse_duration_ns(text).ok()? / 1_000_000))
}

/// Returns true if a text matches a pattern in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: i32 = 64 << 10;
    const SEGMENT: i64 = 128 << 10;

    fn rules(text: &str) -> Vec<RetentionRule> {
        RetentionRule::parse_all(text).unwrap()
    }

    #[test]
    fn rules_match_by_recording_stream_and_pattern_in_order() {
        let rules = rules(
            "recording=7 bytes=1g; aeron:udp?endpoint=10.* stream=3 age=2d; aeron:ipc age=90m consumers=a+b; *:9* bytes=1m;",
        );
        let bytes_of = |id, stream, channel: &str| {
            let rule = RetentionRule::of(&rules, id, stream, channel)?;
            Some(rules.iter().position(|other| other == rule).unwrap())
        };
        assert_eq!(bytes_of(7, 1, "aeron:ipc"), Some(0));
        assert_eq!(bytes_of(1, 3, "aeron:udp?endpoint=10.0.0.1:5"), Some(1));
        assert_eq!(bytes_of(1, 4, "aeron:udp?endpoint=10.0.0.1:5"), None);
        assert_eq!(bytes_of(1, 4, "aeron:udp?endpoint=11.0.0.1:95"), Some(3));
        assert_eq!(bytes_of(1, 3, "aeron:ipc"), Some(2));
        assert_eq!(bytes_of(1, 3, "aeron:ipc?alias=x"), None);
        assert_eq!(rules[1].age_ms(), Some(2 * 86_400_000));
        assert_eq!(rules[2].age_ms(), Some(90 * 60_000));
        assert_eq!(rules[2].consumers(), ["a", "b"]);
    }

    #[test]
    fn malformed_rules_are_refused_with_their_words() {
        for (text, word) in [
            ("* bytes=x", "bytes=x"),
            ("* age=-1d", "age=-1d"),
            ("* size=5", "size=5"),
            ("aeron:ipc aeron:udp bytes=1", "aeron:udp"),
            ("* bytes=1 consumers=", "consumers="),
        ] {
            let error = RetentionRule::parse_all(text).unwrap_err();
            assert!(error.to_string().contains(&format!("`{word}`")), "{error}");
        }
        let error = RetentionRule::parse_all("aeron:ipc stream=3").unwrap_err();
        assert!(matches!(error, RetentionError::Unlimited { .. }));
    }

    fn extent(end: i64, old: Option<i64>, used: Option<i64>) -> Extent {
        Extent {
            layout: RecordingLayout::new(64, 0, TERM, SEGMENT as i32).unwrap(),
            end,
            old,
            used,
        }
    }

    #[test]
    fn rule_by_bytes_keeps_at_least_these_bytes_in_whole_segments() {
        let rule = &rules("* bytes=200000")[0];
        assert_eq!(rule.new_start(&extent(200_000, None, None)), None);
        assert_eq!(rule.new_start(&extent(SEGMENT + 199_999, None, None)), None);
        assert_eq!(
            rule.new_start(&extent(SEGMENT + 200_000, None, None)),
            Some(SEGMENT)
        );
        let far = extent(10 * SEGMENT, None, None);
        let start = rule.new_start(&far).unwrap();
        assert!(far.end - start >= 200_000 && far.end - start < 200_000 + SEGMENT);
    }

    #[test]
    fn rule_by_age_purges_what_is_old_and_stops_before_what_is_used() {
        let rule = &rules("* age=1h")[0];
        let old = Some(5 * SEGMENT + 100);
        assert_eq!(
            rule.new_start(&extent(9 * SEGMENT, old, None)),
            Some(5 * SEGMENT)
        );
        assert_eq!(rule.new_start(&extent(9 * SEGMENT, None, None)), None);
        let used = Some(2 * SEGMENT + 32);
        assert_eq!(
            rule.new_start(&extent(9 * SEGMENT, old, used)),
            Some(2 * SEGMENT)
        );
        assert_eq!(rule.new_start(&extent(9 * SEGMENT, old, Some(100))), None);
        // The last segment stays.
        let all = Some(9 * SEGMENT + 500);
        assert_eq!(
            rule.new_start(&extent(9 * SEGMENT + 500, all, None)),
            Some(9 * SEGMENT)
        );
    }
}
