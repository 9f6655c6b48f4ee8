// SPDX-License-Identifier: Apache-2.0
//! Archive clients on archives: that of this project on both, the official one on that of this project.

pub(crate) mod fixture;
mod joining;
mod live;
mod requests;
mod sessions;
