// SPDX-License-Identifier: Apache-2.0
//! Options of driver, client, archive and cluster, declared once, and the sources of their values (docs/spec/uri-and-configuration.md §2,
//! §3).
//!
//! ```
//! use taran_protocol::option::{OptionSet, Source};
//!
//! let mut options = OptionSet::driver();
//! options.apply(&Source::Environment, [("AERON_MTU_LENGTH", "8k")])?;
//! options.apply(&Source::CommandLine, [("aeron.threading.mode", "SHARED")])?;
//! assert_eq!(options.mtu_length(), 8192);
//! # Ok::<(), taran_protocol::option::OptionErrors>(())
//! ```
//!
//! Sources in ascending precedence are: defaults, the profile, the environment, property files, `-D` on the command
//! line, code. The order in which they are applied does not matter. In the official `aeronmd`, files override `-D`;
//! here `-D` overrides files.
//!
//! A text that is malformed or out of range is an error and never replaced silently. An option that is not configurable
//! here (Java classes, functions of C libraries) accepts only its default.

mod choices;
mod error;
mod kind;
mod layers;
mod names;
mod profile;
mod properties;
mod set;
mod spec;
mod table;
mod views;

pub use choices::ThreadingMode;
pub use error::{OptionError, OptionErrors, Problem};
pub use kind::{Affinity, Choice, Form, Kind, Value};
pub use layers::Source;
pub(crate) use names::distance;
pub use names::{UnknownOption, find_option, nearest_option, search_options};
pub use profile::Profile;
pub use properties::{Define, MAX_LINE_LENGTH, PropertiesError, parse_define, parse_properties};
pub use set::{Explained, OptionSet};
pub use spec::{OptionSpec, Scope, Status, archive_options, client_options, driver_options};
pub use table::OptionId;
pub use views::IdleRole;
