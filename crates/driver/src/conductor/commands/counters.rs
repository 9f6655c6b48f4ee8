// SPDX-License-Identifier: Apache-2.0
//! Commands that add and remove counters of clients.

use taran_protocol::response::Response;

use super::super::failure::Failure;
use super::super::state::ConductorState;

impl ConductorState {
    pub(super) fn add_counter(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        type_id: i32,
        key: &[u8],
        label: &str,
    ) -> Result<(), Failure> {
        self.ensure_client(client_id)?;
        let counter_id =
            self.counters
                .add_client_counter(client_id, correlation_id, type_id, key, label)?;
        self.responses.send(&Response::CounterReady {
            correlation_id,
            counter_id,
        });
        Ok(())
    }

    pub(super) fn add_static_counter(
        &mut self,
        correlation_id: i64,
        registration_id: i64,
        type_id: i32,
        key: &[u8],
        label: &str,
    ) -> Result<(), Failure> {
        let counter_id = self
            .counters
            .static_counter(registration_id, type_id, key, label)?;
        self.responses.send(&Response::StaticCounter {
            correlation_id,
            counter_id,
        });
        Ok(())
    }

    pub(super) fn remove_counter(
        &mut self,
        client_id: i64,
        correlation_id: i64,
        registration_id: i64,
    ) -> Result<(), Failure> {
        let counter_id = self
            .counters
            .remove_client_counter(client_id, registration_id)?;
        self.respond_success(correlation_id);
        self.release_client_counter(registration_id, counter_id);
        Ok(())
    }

    /// Announces that a client counter is unavailable, then frees it.
    pub(in crate::conductor) fn release_client_counter(
        &mut self,
        registration_id: i64,
        counter_id: i32,
    ) {
        self.responses.send(&Response::UnavailableCounter {
            registration_id,
            counter_id,
        });
        self.counters.free(counter_id);
    }
}
