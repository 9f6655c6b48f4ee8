//! Load-test rig: scheduled load, histograms, reports.

#![forbid(unsafe_code)]

pub mod hgrm;
pub mod payload;
pub mod report;
pub mod schedule;
