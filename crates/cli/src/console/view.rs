// SPDX-License-Identifier: Apache-2.0
//! Contents of a sample, as the page gets them.

use serde::Serialize;

use super::archives::Archive;
use super::attention::Attention;
use super::members::Member;
use super::state::State;
use crate::error_log::DistinctError;
use crate::live::StreamRow;

/// All drivers at one time.
#[derive(Debug, Serialize)]
pub(super) struct View {
    pub(super) time_ms: i64,
    /// Troubles, worst first.
    pub(super) attention: Vec<Attention>,
    pub(super) drivers: Vec<Driver>,
}

/// A driver. Of one that has ended, the last values.
#[derive(Debug, Serialize)]
pub(super) struct Driver {
    pub(super) directory: String,
    pub(super) state: State,
    /// `None` if there is nothing to read.
    pub(super) info: Option<Info>,
    pub(super) totals: Totals,
    pub(super) clients: Vec<Client>,
    pub(super) streams: Vec<Stream>,
    /// Streams above the number that is sent.
    pub(super) streams_omitted: usize,
    /// Most recent errors, newest first.
    pub(super) errors: Vec<DistinctError>,
    pub(super) errors_omitted: usize,
    pub(super) channels: Vec<FailedChannel>,
    pub(super) archives: Vec<Archive>,
    pub(super) members: Vec<Member>,
}

/// Identity of a driver.
#[derive(Debug, Serialize)]
pub(super) struct Info {
    pub(super) pid: i64,
    pub(super) software: String,
    pub(super) cnc_version: String,
    pub(super) start_ms: i64,
    pub(super) heartbeat_age_ms: Option<i64>,
}

/// Sums of a driver.
#[derive(Debug, Default, Serialize)]
pub(super) struct Totals {
    pub(super) sent: Option<f64>,
    pub(super) received: Option<f64>,
    pub(super) naks: Option<f64>,
    pub(super) retransmits: Option<f64>,
    pub(super) errors: i64,
}

/// A client of a driver.
#[derive(Debug, Serialize)]
pub(super) struct Client {
    pub(super) client_id: i64,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) heartbeat_ms: i64,
}

/// A stream with an id for the time that the console has seen it.
#[derive(Debug, Serialize)]
pub(super) struct Stream {
    pub(super) id: u64,
    #[serde(flatten)]
    pub(super) row: StreamRow,
}

/// A channel whose socket could not be opened, or failed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct FailedChannel {
    /// `snd-channel` or `rcv-channel`.
    pub(super) name: String,
    pub(super) channel: String,
}
