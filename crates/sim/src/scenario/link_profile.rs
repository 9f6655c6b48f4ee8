// SPDX-License-Identifier: Apache-2.0
//! Link faults as part of a scenario.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::definition::is_zero;
use crate::network::LinkFaults;

/// Faults of links, as [`LinkFaults`]; rates are per mille.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "as in `LinkFaults`")]
pub struct LinkProfile {
    #[serde(skip_serializing_if = "is_zero")]
    pub delay_us: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub jitter_us: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub loss: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub duplicate: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub reorder: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub reorder_delay_us: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub corrupt: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub truncate: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub refuse: u64,
}

impl LinkProfile {
    /// Returns random faults, from none to severe; with bit flips only if `corrupts`.
    pub(super) fn random(random: &mut fastrand::Rng, corrupts: bool) -> Self {
        // Sometimes a delay as over an intercontinental path.
        let max_delay_us = [500, 5_000, 150_000][random.usize(0..3)];
        let (jitter_us, reorder_delay_us) = (random.u64(0..1_000), random.u64(0..5_000));
        let mut rate = |most: u64| match random.u32(0..3) {
            0 => 0,
            1 => random.u64(0..=most / 10),
            _ => random.u64(0..=most),
        };
        Self {
            loss: rate(250),
            duplicate: rate(100),
            reorder: rate(200),
            truncate: rate(50),
            refuse: rate(100),
            corrupt: if corrupts { rate(100) } else { 0 },
            delay_us: rate(max_delay_us),
            jitter_us,
            reorder_delay_us,
        }
    }

    /// Returns the fields, which the shrinker sets to zero one by one.
    pub(super) fn fields(&mut self) -> [&mut u64; 9] {
        [
            &mut self.corrupt,
            &mut self.truncate,
            &mut self.refuse,
            &mut self.duplicate,
            &mut self.reorder,
            &mut self.reorder_delay_us,
            &mut self.jitter_us,
            &mut self.delay_us,
            &mut self.loss,
        ]
    }
}

impl From<LinkProfile> for LinkFaults {
    fn from(profile: LinkProfile) -> Self {
        let rate = |per_mille: u64| per_mille as f64 / 1_000.0;
        Self {
            delay: Duration::from_micros(profile.delay_us),
            jitter: Duration::from_micros(profile.jitter_us),
            loss: rate(profile.loss),
            duplicate: rate(profile.duplicate),
            reorder: rate(profile.reorder),
            reorder_delay: Duration::from_micros(profile.reorder_delay_us),
            corrupt: rate(profile.corrupt),
            truncate: rate(profile.truncate),
            refuse: rate(profile.refuse),
        }
    }
}
