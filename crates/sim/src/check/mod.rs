//! What must hold, whatever happens. Each checker stands alone, and says what is wrong as a [`Violation`].

pub mod clients;
pub mod connections;
pub mod counts;
pub mod delivery;
pub mod endings;
pub mod flow;
pub mod leaks;
pub mod liveness;
pub mod once;
pub mod positions;
pub mod streams;

/// Something that must not be, as text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// Returns a [`Violation`] with this text.
macro_rules! violation {
    ($($text:tt)+) => {
        return Err($crate::check::Violation(format!($($text)+)))
    };
}
pub(crate) use violation;
