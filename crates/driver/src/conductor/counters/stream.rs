// SPDX-License-Identifier: Apache-2.0
//! Counters of streams, with the keys and labels by which other processes find them (docs/spec/shared-memory.md §5.8).

use taran_core::counters::Counter;
use taran_protocol::counter::{
    StreamCounter, StreamKey, stream_label, subscriber_position_label, type_id,
};

use super::super::failure::Failure;
use super::{CounterInit, Counters};

/// The stream that a counter belongs to: its key and part of its label.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamIdentity<'a> {
    pub(crate) registration_id: i64,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) channel: &'a str,
}

impl Counters {
    /// Allocates one counter per kind, all set to `start`; all or none.
    pub(crate) fn stream<const N: usize>(
        &mut self,
        kinds: [StreamCounter; N],
        identity: &StreamIdentity<'_>,
        owner_id: i64,
        start: i64,
    ) -> Result<[Counter; N], Failure> {
        let mut allocated: Vec<Counter> = Vec::with_capacity(N);
        for kind in kinds {
            let label = stream_label(
                kind,
                identity.registration_id,
                identity.session_id,
                identity.stream_id,
                identity.channel,
            );
            let init = CounterInit {
                owner_id,
                value: start,
                ..CounterInit::default()
            };
            match self.stream_counter(kind.type_id, identity, &label, init) {
                Ok(counter) => allocated.push(counter),
                Err(failure) => {
                    self.free_all(&allocated);
                    return Err(failure);
                }
            }
        }
        allocated
            .try_into()
            .map_err(|_| Failure::generic("unexpected number of counters"))
    }

    /// Allocates the position counter of a subscriber that joins a log at `join_position`.
    pub(crate) fn subscriber_position(
        &mut self,
        identity: &StreamIdentity<'_>,
        owner_id: i64,
        reference_id: i64,
        join_position: i64,
    ) -> Result<Counter, Failure> {
        let label = subscriber_position_label(
            identity.registration_id,
            identity.session_id,
            identity.stream_id,
            identity.channel,
            join_position,
        );
        let init = CounterInit {
            owner_id,
            reference_id,
            value: join_position,
        };
        self.stream_counter(type_id::SUBSCRIBER_POSITION, identity, &label, init)
    }

    fn stream_counter(
        &mut self,
        type_id: i32,
        identity: &StreamIdentity<'_>,
        label: &str,
        init: CounterInit,
    ) -> Result<Counter, Failure> {
        let key = StreamKey {
            registration_id: identity.registration_id,
            session_id: identity.session_id,
            stream_id: identity.stream_id,
            channel: identity.channel.into(),
        }
        .encode();
        self.allocate(type_id, &key, label, identity.registration_id, init)
    }
}
