// SPDX-License-Identifier: Apache-2.0
//! `taran recordings`, on directories and on running archives.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

mod events;
mod files;
mod live;
mod running;
mod stopped;
