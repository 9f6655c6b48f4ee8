// SPDX-License-Identifier: Apache-2.0
//! The status of a channel, read from the driver's counters (`docs/spec/shared-memory.md §5.9`).

use std::net::SocketAddr;

use taran_core::counters::CountersReader;
use taran_protocol::counter::{SocketKey, channel_status, type_id};

/// Status of a channel, as reported by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelStatus {
    /// The driver is setting the channel up.
    Initializing,
    /// The channel has failed; the driver's error log has the reason.
    Errored,
    /// The channel is in use.
    Active,
    /// The driver is closing the channel.
    Closing,
    /// The publication or subscription is closed.
    Closed,
    /// The channel has no status indicator: IPC and spies. Such channels are always usable.
    NoIndicator,
    /// A value unknown to this client.
    Unknown(i64),
}

/// Returns the counter id of a status indicator, or `None` for a negative id.
pub(crate) fn status_id(status_counter_id: i32) -> Option<i32> {
    (status_counter_id >= 0).then_some(status_counter_id)
}

/// Reads the status of a channel from its status indicator.
pub(crate) fn read(counters: &CountersReader, status_counter_id: i32) -> ChannelStatus {
    if status_counter_id < 0 {
        return ChannelStatus::NoIndicator;
    }
    let kind = counters.type_id(status_counter_id);
    let is_status = matches!(
        kind,
        Some(type_id::SEND_CHANNEL_STATUS | type_id::RECEIVE_CHANNEL_STATUS)
    );
    match counters.value(status_counter_id).filter(|_| is_status) {
        Some(channel_status::INITIALIZING) => ChannelStatus::Initializing,
        Some(channel_status::ERRORED) => ChannelStatus::Errored,
        Some(channel_status::ACTIVE) => ChannelStatus::Active,
        // `None`: the driver has freed the indicator.
        Some(channel_status::CLOSING) | None => ChannelStatus::Closing,
        Some(other) => ChannelStatus::Unknown(other),
    }
}

/// Returns the addresses that an active channel is bound to.
pub(crate) fn local_addresses(
    counters: &CountersReader,
    status_counter_id: i32,
) -> Vec<SocketAddr> {
    let mut addresses = Vec::new();
    if read(counters, status_counter_id) == ChannelStatus::Active {
        counters.for_each(|meta| {
            let is_bound = counters.value(meta.id) == Some(channel_status::ACTIVE);
            if meta.type_id == type_id::LOCAL_SOCKET_ADDRESS && is_bound {
                addresses.extend(bound_address(&meta.key, status_counter_id));
            }
        });
    }
    addresses
}

/// Returns the address in the key of a local-address counter if it belongs to the channel.
fn bound_address(key: &[u8], status_counter_id: i32) -> Option<SocketAddr> {
    let key = SocketKey::decode(key)?;
    if key.channel_status_id == status_counter_id {
        key.address.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: i32, length: i32, text: &str) -> Vec<u8> {
        let mut key = id.to_le_bytes().to_vec();
        key.extend(length.to_le_bytes());
        key.extend(text.as_bytes());
        key.resize(112, 0xAA);
        key
    }

    #[test]
    fn bound_address_reads_the_address_by_its_length() {
        let text = "127.0.0.1:40123";
        assert_eq!(
            bound_address(&key(7, 15, text), 7),
            Some("127.0.0.1:40123".parse().unwrap())
        );
        assert_eq!(
            bound_address(&key(7, 9, "[::1]:123"), 7),
            Some("[::1]:123".parse().unwrap())
        );
        assert_eq!(
            bound_address(&key(8, 15, text), 7),
            None,
            "another channel's"
        );
        for hostile in [-1, 0, 14, 105, i32::MAX, i32::MIN] {
            let address = bound_address(&key(7, hostile, text), 7);
            assert!(
                address.is_none_or(|address| address.port() != 40123),
                "{hostile}"
            );
        }
    }
}
