// SPDX-License-Identifier: Apache-2.0
//! Every kind of stream with every kind of fault: the cells of the table in `docs/testing.md`.

mod client_death;
mod driver_restart;
mod loss;
mod partition;
mod several_receivers;
