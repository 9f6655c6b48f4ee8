// SPDX-License-Identifier: Apache-2.0
//! Tests of a whole driver through its client interface, in memory and virtual time.

#![cfg(not(loom))] // needs the modules that start drivers
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod backends;
mod clients;
mod commands;
mod congestion;
mod counters;
mod cycles;
mod damaged_ring;
mod destinations;
mod fixture;
mod flow_control;
mod groups;
mod heap;
mod hostile;
mod image_events;
mod images;
mod ipc;
mod log_preallocation;
mod memory_network;
mod names;
mod ports;
mod remote_quotas;
mod responses;
#[cfg(feature = "secure")]
mod security;
mod sending_groups;
mod sessions;
mod shortages;
mod sources;
mod spies;
mod storage;
mod timestamps;
mod uri_table;
