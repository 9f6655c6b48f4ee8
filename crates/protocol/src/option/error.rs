// SPDX-License-Identifier: Apache-2.0
//! Errors of option values.

use std::fmt;

use super::layers::Source;
use super::spec::OptionSpec;

/// Reason why a value is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The text is malformed.
    Malformed,
    /// The value is out of range.
    OutOfRange,
    /// The duration has no unit, so that it is a number of nanoseconds, below the minimum of the option.
    WithoutUnit,
    /// The option accepts only its default, for this reason.
    Fixed(&'static str),
}

/// Invalid value of an option. The message names the option, the value and its source, the valid values, and the
/// remedy.
#[derive(Clone)]
pub struct OptionError {
    /// Option.
    pub option: &'static OptionSpec,
    /// Invalid text.
    pub value: String,
    /// Source of the text.
    pub source: Source,
    /// Reason.
    pub problem: Problem,
}

taran_core::debug_is_display!(OptionError);

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OptionError {
            option,
            value,
            source,
            problem,
        } = self;
        let name = option.property;
        match source {
            Source::Environment => write!(
                f,
                "{name}={value} (environment variable {})",
                option.variable
            )?,
            source => write!(f, "{name}={value} ({source})")?,
        }
        let default = match option.default {
            "" => "to leave it unset".to_owned(),
            default => format!("for the default {default}"),
        };
        match problem {
            Problem::Malformed => {
                write!(f, " is not understood: needs {}", option.kind.requirement())?;
            }
            Problem::OutOfRange => {
                write!(f, " is out of range: needs {}", option.kind.requirement())?;
            }
            Problem::WithoutUnit => {
                write!(
                    f,
                    " has no unit, so it means {value} ns, which is below the minimum: needs {}",
                    option.kind.requirement()
                )?;
            }
            Problem::Fixed(reason) => {
                return write!(f, " is not supported: {reason}; remove it {default}");
            }
        }
        write!(f, "; change it, or remove it {default}")
    }
}

impl std::error::Error for OptionError {}

/// All invalid values of one source.
#[derive(Clone)]
pub struct OptionErrors(pub Vec<OptionError>);

taran_core::debug_is_display!(OptionErrors);

impl fmt::Display for OptionErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for OptionErrors {}

impl From<OptionError> for OptionErrors {
    fn from(error: OptionError) -> Self {
        OptionErrors(vec![error])
    }
}
