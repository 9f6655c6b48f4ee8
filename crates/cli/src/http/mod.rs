// SPDX-License-Identifier: Apache-2.0
//! A small HTTP server for pages, metrics and event streams, read only.
//!
//! Each connection gets one response, then it is closed. Everything is bounded: the number of connections, the bytes of a
//! request, and the time for a request, its response and each event, so that slow or hostile clients cannot block others for
//! long.

mod connection_slots;
mod request;
mod server;

pub(crate) use request::Request;
pub(crate) use server::{EventWriter, Limits, Reply, Response, listen, serve};
