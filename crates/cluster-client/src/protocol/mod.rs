// SPDX-License-Identifier: Apache-2.0
//! Messages of the cluster as plain values, with encoding and checked decoding (`docs/spec/cluster.md` §2 to §7).
//!
//! Each stream has an enum of its messages: [`IngressMessage`] and [`EgressMessage`] between clients and the leader, [`LogMessage`]
//! in the log, [`ServiceRequest`] and [`ServiceCommand`] between consensus module and containers, [`SnapshotMessage`] in snapshots.
//! The payload of an application message follows its header: [`split`] separates them. Crate `taran-cluster` has those between
//! members.

mod client;
#[doc(hidden)]
pub mod declare;
#[cfg(test)]
mod golden;
mod log;
mod members;
mod service;
mod snapshot;
mod wire;

pub use client::*;
pub use declare::MessageError;
pub use log::*;
pub use members::*;
pub use service::*;
pub use snapshot::*;

use crate::codecs::cluster;

/// Value of ids, positions and terms that are not set.
pub const NULL_VALUE: i64 = -1;

/// Version of the protocol between clients and the cluster, 0.3.0: `major << 16 | minor << 8 | patch`.
pub const PROTOCOL_VERSION: i32 = 0x00_0300;

/// Length of an SBE header.
const HEADER_LENGTH: usize = 8;

/// Length of the header of an application message.
pub const SESSION_HEADER_LENGTH: usize = HEADER_LENGTH + 24;

/// Major version of a version number.
#[must_use]
pub const fn major(version: i32) -> i32 {
    version >> 16 & 0xff
}

/// Returns the text `major.minor.patch` of a version number.
#[must_use]
pub fn version_text(version: i32) -> String {
    let [_, major, minor, patch] = version.to_be_bytes();
    format!("{major}.{minor}.{patch}")
}

/// Separates the payload of an application message from its header.
///
/// # Errors
/// The bytes are another message, or end too early.
pub fn split(bytes: &[u8]) -> Result<(SessionMessageHeader, &[u8]), MessageError> {
    let (header, body) = cluster::header(bytes)?;
    taran_sbe::runtime::schema_is(cluster::SCHEMA_ID, &header)?;
    if header.template_id != SessionMessageHeader::TEMPLATE_ID {
        let template_id = header.template_id;
        return Err(MessageError::UnexpectedTemplate { template_id });
    }
    let message = SessionMessageHeader::read(body, header.block_length, header.version)?;
    // The block is within the bytes: reading it has checked that.
    let block = usize::try_from(header.block_length).unwrap_or(usize::MAX);
    Ok((message, body.get(block..).unwrap_or_default()))
}
