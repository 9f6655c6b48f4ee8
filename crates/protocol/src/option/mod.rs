//! The options of driver and client: one declaration each, and the layers their values come from (docs/spec/uri-and-configuration.md §2, §3).
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
//! A value is replaced by one from a stronger source, in whatever order they are applied: defaults, the profile, the
//! environment, property files, `-D` on the command line, code. The official `aeronmd` lets files win over `-D`; here the
//! nearer word counts.
//!
//! A text that cannot be read or is out of range is an error, never replaced in silence. An option for which there is
//! nothing to choose here (Java classes, functions of C libraries) takes its default and nothing else.

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
pub use names::{UnknownOption, find_option, nearest_option};
pub use profile::Profile;
pub use properties::{Define, MAX_LINE_LENGTH, PropertiesError, parse_define, parse_properties};
pub use set::{Explained, OptionSet};
pub use spec::{OptionSpec, Scope, Status, client_options, driver_options};
pub use table::OptionId;
pub use views::IdleRole;
