// SPDX-License-Identifier: Apache-2.0
//! Members of clusters with driver, archive and service in this process, and our client.

#![allow(clippy::unwrap_used)] // a test fails by panicking, also in its helpers

mod node;
mod one;
mod three;
