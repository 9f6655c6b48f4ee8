// SPDX-License-Identifier: Apache-2.0
//! Factors by which agents without sources of work prolong their parks (`Agent::park_multiplier`).

/// Multiplier of a sender or receiver without endpoints: the conductor ends the park when it sends a command.
pub(crate) const NO_ENDPOINTS_MULTIPLIER: u32 = 100;
/// Multiplier of a conductor without clients: the first client's command cannot end the park.
pub(crate) const NO_CLIENTS_MULTIPLIER: u32 = 8;
