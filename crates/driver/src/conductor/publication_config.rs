// SPDX-License-Identifier: Apache-2.0
//! Identity and parameters of a publication: compared with later add commands and written to its log metadata.

use std::sync::Arc;

use taran_protocol::log::{LogKind, LogSpec, SocketBufferLengths};
use taran_protocol::uri::{
    InitialPosition, LivePublication, PublicationParams, ResponseCorrelation, TaggedPublication,
};

/// Identity and parameters of one publication.
#[derive(Debug, Clone)]
pub(crate) struct PublicationConfig {
    pub(crate) registration_id: i64,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) exclusive: bool,
    pub(crate) channel: Arc<str>,
    pub(crate) entity_tag: Option<i64>,
    pub(crate) params: PublicationParams,
    pub(crate) position: InitialPosition,
}

impl PublicationConfig {
    /// Returns the publication window in bytes.
    pub(crate) fn window(&self) -> i64 {
        self.params.window as i64
    }

    /// Returns the term length in bytes; the parser allows 64 KiB to 1 GiB.
    pub(crate) fn term_length(&self) -> i32 {
        self.params.term_length as i32
    }

    /// Returns the start position.
    pub(crate) fn start_position(&self) -> i64 {
        start_position(&self.position, self.term_length())
    }

    /// Returns the values that an add command must match to share this publication. IPC does not compare
    /// `spies_simulate_connection`.
    pub(crate) fn live(&self, is_network: bool) -> LivePublication {
        LivePublication {
            session_id: self.session_id,
            mtu: self.params.mtu,
            term_length: self.params.term_length,
            position: self.position,
            spies_simulate_connection: is_network.then_some(self.params.spies_simulate_connection),
        }
    }

    /// Returns the values that a publication inherits when it refers to this one by tag.
    pub(crate) fn tagged(&self) -> TaggedPublication {
        TaggedPublication {
            session_id: self.session_id,
            mtu: self.params.mtu,
            term_length: self.params.term_length,
        }
    }

    /// Returns the metadata of the log.
    pub(crate) fn log_spec(
        &self,
        page_size: i32,
        buffers: LogSocketBuffers,
        is_group: bool,
    ) -> LogSpec {
        let kind = if self.exclusive {
            LogKind::Exclusive
        } else {
            LogKind::Concurrent
        };
        let params = &self.params;
        LogSpec {
            correlation_id: self.registration_id,
            page_size,
            mtu: params.mtu as i32,
            publication_window: params.window as i32,
            send_buffer: buffers.send,
            receive_buffer: buffers.receive,
            max_resend: params.max_resend as i32,
            entity_tag: self.entity_tag.unwrap_or(-1),
            response_correlation_id: response_id(params.response),
            linger_timeout_ns: params.linger_ns,
            untethered_window_limit_timeout_ns: params.untethered.window_limit_timeout_ns,
            untethered_linger_timeout_ns: params.untethered.linger_ns(),
            untethered_resting_timeout_ns: params.untethered.resting_timeout_ns,
            is_group,
            is_response: params.is_response,
            is_sparse: params.sparse,
            signals_end_of_stream: params.eos,
            spies_simulate_connection: params.spies_simulate_connection,
            ..LogSpec::new(
                kind,
                self.session_id,
                self.stream_id,
                self.position.initial_term_id,
                self.term_length(),
            )
        }
    }
}

/// Returns the start position of a stream with terms of this length.
pub(crate) fn start_position(position: &InitialPosition, term_length: i32) -> i64 {
    let count = position.term_id.wrapping_sub(position.initial_term_id);
    i64::from(count) * i64::from(term_length) + position.term_offset as i64
}

/// Lengths of socket buffers for the log metadata.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogSocketBuffers {
    pub(crate) send: SocketBufferLengths,
    pub(crate) receive: SocketBufferLengths,
}

/// Returns the metadata value of a response correlation; -1 for none.
pub(crate) fn response_id(response: ResponseCorrelation) -> i64 {
    match response {
        ResponseCorrelation::None => -1,
        ResponseCorrelation::Prototype => -2,
        ResponseCorrelation::Id(id) => id,
    }
}

/// Returns the initial position: from the channel, else the start of a random term.
pub(crate) fn initial_position(
    params: &PublicationParams,
    random: &mut fastrand::Rng,
) -> InitialPosition {
    params.position.unwrap_or_else(|| {
        let initial_term_id = random.i32(..);
        InitialPosition {
            initial_term_id,
            term_id: initial_term_id,
            term_offset: 0,
        }
    })
}
