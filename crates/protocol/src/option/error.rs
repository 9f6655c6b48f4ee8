//! What can be wrong with an option.

use std::fmt;

use super::layers::Source;
use super::spec::OptionSpec;

/// Why a value was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The text is no value of this kind.
    Malformed,
    /// The value lies outside its range.
    OutOfRange,
    /// The option has its default only, for this reason.
    Fixed(&'static str),
}

/// A value that an option cannot have. The text says which option, what it was set to and where, what it needs, and
/// what to do.
#[derive(Clone, Debug)]
pub struct OptionError {
    /// The option.
    pub option: &'static OptionSpec,
    /// The text it was set to.
    pub value: String,
    /// Where that text came from.
    pub source: Source,
    /// What is wrong with it.
    pub problem: Problem,
}

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
                write!(f, " is not understood: needs {}", option.kind.requirement())?
            }
            Problem::OutOfRange => {
                write!(f, " is out of range: needs {}", option.kind.requirement())?
            }
            Problem::Fixed(reason) => {
                return write!(f, " cannot be: {reason}; remove it {default}");
            }
        }
        write!(f, "; change it, or remove it {default}")
    }
}

impl std::error::Error for OptionError {}

/// Everything that is wrong with the options of one source.
#[derive(Clone, Debug)]
pub struct OptionErrors(pub Vec<OptionError>);

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
