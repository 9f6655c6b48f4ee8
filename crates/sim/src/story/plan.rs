//! A story: who is there, and what happens when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Deed;

/// A whole story. The same plan gives the same history, to the last bit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// All chance of the world that is no event: order of turns, length of steps, faults of single datagrams, messages.
    pub seed: u64,
    /// Longest step while nobody has anything to do.
    pub idle_ms: u64,
    /// In which part of the time steps are smaller than that while somebody has, per mille.
    pub fine: u32,
    /// Bits turn over in this story: what is delivered is not held against what was sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub corrupts: bool,
    /// The machines.
    pub hosts: Vec<HostPlan>,
    /// What happens, in order of time.
    #[serde(skip)]
    pub events: Vec<Timed>,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostPlan {
    /// It has an address of IPv6 alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ipv6: bool,
    /// How far its clocks are ahead of the others'.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ahead_ms: u64,
    /// Options of its driver.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

/// Something that happens at a time after the beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// When.
    pub at_ms: u64,
    /// What.
    #[serde(flatten)]
    pub deed: Deed,
}

/// Why a text is no story.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}: {text}")]
pub struct PlanError {
    /// Which line, from 1.
    pub line: usize,
    /// What it says.
    pub text: String,
    /// What is wrong with it.
    #[source]
    pub reason: serde_json::Error,
}

impl Plan {
    /// The story as text: the hosts in the first line, then one event a line.
    ///
    /// # Panics
    /// Never: all of a plan can be written.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = line(self);
        for event in &self.events {
            text.push_str(&line(event));
        }
        text
    }

    /// Reads what [`to_text`](Self::to_text) writes. Empty lines and those that begin with `#` mean nothing.
    ///
    /// # Errors
    /// A line that cannot be understood.
    pub fn from_text(text: &str) -> Result<Self, PlanError> {
        let mut plan: Option<Self> = None;
        for (index, text) in text.lines().enumerate() {
            if text.trim().is_empty() || text.starts_with('#') {
                continue;
            }
            let wrong = |reason| PlanError {
                line: index + 1,
                text: text.to_owned(),
                reason,
            };
            match &mut plan {
                None => plan = Some(serde_json::from_str(text).map_err(wrong)?),
                Some(plan) => plan.events.push(serde_json::from_str(text).map_err(wrong)?),
            }
        }
        plan.ok_or_else(|| PlanError {
            line: 0,
            text: String::new(),
            reason: serde::de::Error::custom("the story is empty"),
        })
    }
}

fn line(value: &impl Serialize) -> String {
    match serde_json::to_string(value) {
        Ok(text) => text + "\n",
        Err(error) => panic!("a plan cannot be written: {error}"),
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
    fn what_is_written_is_read_again() {
        for seed in 0..50 {
            let plan = Plan::random(seed);
            assert_eq!(Plan::from_text(&plan.to_text()).unwrap(), plan);
        }
    }

    #[test]
    fn what_cannot_be_read_is_shown_with_its_line() {
        let text = format!(
            "# a story\n\n{}{{\"at_ms\":1,\"fly\":{{}}}}\n",
            line(&Plan::random(1))
        );
        let error = Plan::from_text(&text).unwrap_err().to_string();
        assert!(
            error.starts_with("line 4: ") && error.contains("fly"),
            "{error}"
        );
        Plan::from_text("").unwrap_err();
    }
}
