// SPDX-License-Identifier: Apache-2.0
//! Aeron protocol: memory and wire layouts, positions, channel URIs, options, counters, commands and events.

#![forbid(unsafe_code)]

pub mod cnc;
pub mod command;
pub mod counter;
pub mod error_code;
pub mod event;
pub mod frame;
pub mod log;
mod message;
pub mod option;
pub mod position;
pub mod response;
pub mod uri;
