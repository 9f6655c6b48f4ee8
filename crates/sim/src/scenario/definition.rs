// SPDX-License-Identifier: Apache-2.0
//! A scenario: hosts and timed operations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Op;

/// A complete scenario. The same scenario gives the same history bit for bit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Seed of all randomness outside the operations: order of duty cycles, time steps, faults of single datagrams,
    /// messages.
    pub seed: u64,
    /// Name of the suite that the operations belong to.
    #[serde(default = "streams", skip_serializing_if = "is_streams")]
    pub suite: String,
    /// Longest time step while there is no work.
    pub idle_ms: u64,
    /// Share of the time, per mille, in which steps are smaller while there is work.
    pub fine_per_mille: u32,
    /// Datagrams get bit flips in this scenario: contents are not checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub corrupts: bool,
    /// Hosts.
    pub hosts: Vec<HostConfig>,
    /// Operations in order of time.
    #[serde(skip)]
    pub ops: Vec<TimedOp>,
}

/// A host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostConfig {
    /// It has only an IPv6 address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ipv6: bool,
    /// It has no driver.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_driver: bool,
    /// Its disk has sectors of 4 KiB instead of 512 bytes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub large_sectors: bool,
    /// Offset of its clocks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock_offset_ms: u64,
    /// Options of its driver.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

/// An operation at a time after the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedOp {
    /// Time.
    pub at_ms: u64,
    /// Operation.
    #[serde(flatten)]
    pub op: Op,
}

/// An operation that a suite adds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CustomOp {
    /// Name of the kind of operation.
    pub kind: String,
    /// The operation, as its kind encodes it.
    pub operation: serde_json::Value,
}

/// Name of the suite of drivers and clients with streams.
pub(super) const STREAMS: &str = "streams";

fn streams() -> String {
    STREAMS.to_owned()
}

fn is_streams(suite: &str) -> bool {
    suite == STREAMS
}

/// Error of a scenario text that cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}: {text}")]
pub struct ScenarioError {
    /// Line number, from 1.
    pub line: usize,
    /// Content of the line.
    pub text: String,
    /// Error of the line.
    #[source]
    pub reason: serde_json::Error,
}

impl Scenario {
    /// Returns the scenario as text: the hosts in the first line, then one operation per line.
    ///
    /// # Panics
    /// Never: every scenario can be serialised.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = line(self);
        for op in &self.ops {
            text.push_str(&line(op));
        }
        text
    }

    /// Parses the output of [`to_text`](Self::to_text). Empty lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// A line that cannot be parsed.
    pub fn from_text(text: &str) -> Result<Self, ScenarioError> {
        let mut scenario: Option<Self> = None;
        for (index, text) in text.lines().enumerate() {
            if text.trim().is_empty() || text.starts_with('#') {
                continue;
            }
            let error_at = |reason| ScenarioError {
                line: index + 1,
                text: text.to_owned(),
                reason,
            };
            match &mut scenario {
                None => scenario = Some(serde_json::from_str(text).map_err(error_at)?),
                Some(scenario) => scenario
                    .ops
                    .push(serde_json::from_str(text).map_err(error_at)?),
            }
        }
        scenario.ok_or_else(|| ScenarioError {
            line: 0,
            text: String::new(),
            reason: serde::de::Error::custom("the scenario is empty"),
        })
    }
}

fn line(value: &impl Serialize) -> String {
    match serde_json::to_string(value) {
        Ok(text) => text + "\n",
        Err(error) => panic!("a scenario cannot be serialised: {error}"),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
pub(super) fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_text_round_trips() {
        for seed in 0..50 {
            let scenario = Scenario::random(seed);
            assert_eq!(Scenario::from_text(&scenario.to_text()).unwrap(), scenario);
        }
    }

    #[test]
    fn parse_error_contains_the_line() {
        let text = format!(
            "# a scenario\n\n{}{{\"at_ms\":1,\"fly\":{{}}}}\n",
            line(&Scenario::random(1))
        );
        let error = Scenario::from_text(&text).unwrap_err().to_string();
        assert!(
            error.starts_with("line 4: ") && error.contains("fly"),
            "{error}"
        );
        Scenario::from_text("").unwrap_err();
    }
}
