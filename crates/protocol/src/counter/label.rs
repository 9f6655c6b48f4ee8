// SPDX-License-Identifier: Apache-2.0
//! Labels of all counters except system counters (docs/spec/shared-memory.md §5.7 to 5.10).

use super::key::ascii;
use super::type_id;

/// Length of the label field in a counter's metadata record. Longer labels are truncated.
pub const LABEL_LENGTH: usize = 380;

/// Maximum length of a client name.
pub const CLIENT_NAME_MAX_LENGTH: usize = 100;

/// Kind of stream counter: its type id and the name that starts its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamCounter {
    /// Type id.
    pub type_id: i32,
    /// Name at the start of the label.
    pub name: &'static str,
}

/// Publisher position of a shared publication.
pub const CONCURRENT_PUBLISHER_POSITION: StreamCounter = StreamCounter {
    type_id: type_id::PUBLISHER_POSITION,
    name: "pub-pos (concurrent)",
};

/// Publisher position of an exclusive publication.
pub const EXCLUSIVE_PUBLISHER_POSITION: StreamCounter = StreamCounter {
    type_id: type_id::PUBLISHER_POSITION,
    name: "pub-pos (exclusive)",
};

macro_rules! stream_counters {
    ($($constant:ident = $type_id:ident $name:literal;)*) => {
        impl StreamCounter {
            $(
                #[doc = concat!("`", $name, "`")]
                pub const $constant: StreamCounter = StreamCounter { type_id: type_id::$type_id, name: $name };
            )*
        }
    };
}

stream_counters! {
    PUBLISHER_LIMIT = PUBLISHER_LIMIT "pub-lmt";
    SENDER_POSITION = SENDER_POSITION "snd-pos";
    SENDER_LIMIT = SENDER_LIMIT "snd-lmt";
    SENDER_BACK_PRESSURE_EVENTS = SENDER_BACK_PRESSURE_EVENTS "snd-bpe";
    SENDER_NAKS_RECEIVED = SENDER_NAKS_RECEIVED "snd-naks-received";
    RECEIVER_HIGH_WATER_MARK = RECEIVER_HIGH_WATER_MARK "rcv-hwm";
    RECEIVER_POSITION = RECEIVER_POSITION "rcv-pos";
    RECEIVER_NAKS_SENT = RECEIVER_NAKS_SENT "rcv-naks-sent";
    SUBSCRIBER_POSITION = SUBSCRIBER_POSITION "sub-pos";
    CUBIC_ROUND_TRIP = PER_IMAGE "rcv-cc-cubic-rtt";
    CUBIC_WINDOW = PER_IMAGE "rcv-cc-cubic-wnd";
    FLOW_CONTROL_RECEIVERS = FLOW_CONTROL_RECEIVERS "fc-receivers";
}

/// Returns the label of a stream counter: `<name>: <registration id> <session id> <stream id> <channel>`.
#[must_use]
pub fn stream_label(
    counter: StreamCounter,
    registration_id: i64,
    session_id: i32,
    stream_id: i32,
    channel: &str,
) -> String {
    let name = counter.name;
    truncate_label(&format!(
        "{name}: {registration_id} {session_id} {stream_id} {channel}"
    ))
}

/// Returns the label of a subscriber position: a stream label followed by ` @<join position>`.
#[must_use]
pub fn subscriber_position_label(
    registration_id: i64,
    session_id: i32,
    stream_id: i32,
    channel: &str,
    join_position: i64,
) -> String {
    let name = StreamCounter::SUBSCRIBER_POSITION.name;
    truncate_label(&format!(
        "{name}: {registration_id} {session_id} {stream_id} {channel} @{join_position}"
    ))
}

/// Returns the label of a channel counter: `<name>: <channel>`, followed by a space and the bound address once it is
/// known. The address is empty, and the space kept, for a subscription without a socket. Names: `snd-channel`,
/// `rcv-channel`, `mdc-num-dest`.
#[must_use]
pub fn channel_label(name: &str, channel: &str, bound_address: Option<&str>) -> String {
    match bound_address {
        Some(address) => truncate_label(&format!("{name}: {channel} {address}")),
        None => truncate_label(&format!("{name}: {channel}")),
    }
}

/// Returns the label of a local socket address counter: `<name>: <channel status id> <address>`. Names:
/// `snd-local-sockaddr`, `rcv-local-sockaddr`.
#[must_use]
pub fn socket_label(name: &str, channel_status_id: i32, address: &str) -> String {
    truncate_label(&format!("{name}: {channel_status_id} {address}"))
}

/// Returns the label that the driver writes for a client heartbeat: `client-heartbeat: id=<client id>`.
#[must_use]
pub fn heartbeat_label(client_id: i64) -> String {
    format!("client-heartbeat: id={client_id}")
}

/// Returns the suffix that the client appends to the label of its heartbeat:
/// ` name=<client name> version=<x.y.z> commit=<sha>`. The name is truncated to [`CLIENT_NAME_MAX_LENGTH`].
#[must_use]
pub fn heartbeat_label_suffix(client_name: &str, version: &str, commit: &str) -> String {
    let name: String = client_name.chars().take(CLIENT_NAME_MAX_LENGTH).collect();
    truncate_label(&format!(" name={name} version={version} commit={commit}"))
}

/// Returns the label as ASCII, truncated to the length of the metadata record.
fn truncate_label(label: &str) -> String {
    ascii(label).take(LABEL_LENGTH).map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_match_specification() {
        assert_eq!(
            stream_label(
                StreamCounter::SENDER_POSITION,
                5,
                -1,
                1001,
                "aeron:udp?endpoint=localhost:40123"
            ),
            "snd-pos: 5 -1 1001 aeron:udp?endpoint=localhost:40123"
        );
        assert_eq!(
            stream_label(EXCLUSIVE_PUBLISHER_POSITION, 5, 6, 7, "aeron:ipc"),
            "pub-pos (exclusive): 5 6 7 aeron:ipc"
        );
        assert_eq!(
            subscriber_position_label(1, 2, 3, "aeron:ipc", 64),
            "sub-pos: 1 2 3 aeron:ipc @64"
        );
        assert_eq!(
            channel_label("snd-channel", "aeron:udp", None),
            "snd-channel: aeron:udp"
        );
        assert_eq!(
            channel_label("rcv-channel", "aeron:udp", Some("127.0.0.1:40123")),
            "rcv-channel: aeron:udp 127.0.0.1:40123"
        );
        assert_eq!(
            channel_label("rcv-channel", "aeron:udp", Some("")),
            "rcv-channel: aeron:udp "
        );
        assert_eq!(
            socket_label("snd-local-sockaddr", 9, "[::1]:5"),
            "snd-local-sockaddr: 9 [::1]:5"
        );
        assert_eq!(heartbeat_label(-7), "client-heartbeat: id=-7");
        assert_eq!(
            heartbeat_label_suffix("me", "0.1.0", "abc"),
            " name=me version=0.1.0 commit=abc"
        );
    }

    #[test]
    fn long_label_is_truncated_to_record_length() {
        let channel = "x".repeat(1000);
        assert_eq!(
            subscriber_position_label(1, 2, 3, &channel, 64).len(),
            LABEL_LENGTH
        );
    }
}
