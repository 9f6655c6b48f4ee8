//! Load-test rig: scheduled load, histograms, reports.

#![forbid(unsafe_code)]
