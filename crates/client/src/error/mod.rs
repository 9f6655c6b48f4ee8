//! One type per way to fail. Texts say what was expected, what was found and what to do.

mod add;
mod connect;
mod event;
mod lost;
mod offer;

pub use add::{AddError, RegistrationError};
pub use connect::ConnectError;
pub use event::ClientError;
pub use lost::Lost;
pub use offer::{OfferError, PollError, RawPollError};
