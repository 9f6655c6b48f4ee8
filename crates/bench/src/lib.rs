// SPDX-License-Identifier: Apache-2.0
//! Load generator: scheduled load, histograms, reports.

#![forbid(unsafe_code)]

pub mod client_api;
pub mod client_idle;
pub mod echo;
pub mod hgrm;
pub mod payload;
pub mod ping;
pub mod report;
pub mod ring;
pub mod schedule;
pub mod side;
pub mod stream;
