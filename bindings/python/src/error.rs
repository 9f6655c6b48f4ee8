// SPDX-License-Identifier: Apache-2.0
//! Exceptions: one class per reason, all derived from `taran.Error`.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use taran::{
    ClientError, CloseReason, CommandError, ConnectError, ErrorCode, OfferError, PollError,
};
use taran_driver::DriverError as LaunchError;

create_exception!(taran, Error, PyException);
create_exception!(taran, RetryableError, Error);
create_exception!(taran, NotConnected, RetryableError);
create_exception!(taran, BackPressured, RetryableError);
create_exception!(taran, AdminAction, RetryableError);
create_exception!(taran, NoDriver, RetryableError);
create_exception!(taran, CommandTimeout, RetryableError);
create_exception!(taran, Overloaded, RetryableError);
create_exception!(taran, Closed, Error);
create_exception!(taran, MaxPositionExceeded, Error);
create_exception!(taran, InUse, Error);
create_exception!(taran, TooLong, Error);
create_exception!(taran, ConnectFailed, Error);
create_exception!(taran, DriverLost, Error);
create_exception!(taran, Rejected, Error);
create_exception!(taran, Damaged, Error);
create_exception!(taran, CalledFromHandler, Error);
create_exception!(taran, DriverError, Error);
create_exception!(taran, NoSuchCounter, Error);

macro_rules! add_all {
    ($module:ident: $($name:ident),*) => {{
        $($module.add(stringify!($name), $module.py().get_type::<$name>())?;)*
    }};
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_all!(module: Error, RetryableError, NotConnected, BackPressured, AdminAction, NoDriver, CommandTimeout, Overloaded, Closed,
        MaxPositionExceeded, InUse, TooLong, ConnectFailed, DriverLost, Rejected, Damaged, CalledFromHandler, DriverError,
        NoSuchCounter);
    Ok(())
}

pub(crate) fn closed() -> PyErr {
    Closed::new_err("the object is closed: the application closed it before")
}

pub(crate) fn in_use() -> PyErr {
    InUse::new_err(
        "another call uses this object: a call of another thread, or the poll that runs this handler; only a shared publication, \
         a counter and a client may be used by several threads at once",
    )
}

pub(crate) fn claimed() -> PyErr {
    InUse::new_err("the publication has an open claim; commit or abort it first")
}

pub(crate) fn of_offer(error: OfferError) -> PyErr {
    let text = error.to_string();
    match error {
        OfferError::NotConnected => NotConnected::new_err(text),
        OfferError::BackPressured => BackPressured::new_err(text),
        OfferError::AdminAction => AdminAction::new_err(text),
        OfferError::Closed => Closed::new_err(text),
        OfferError::DriverLost(_) => DriverLost::new_err(text),
        OfferError::MaxPositionExceeded { .. } => MaxPositionExceeded::new_err(text),
        OfferError::TooLong { .. } => TooLong::new_err(text),
        OfferError::Damaged => Damaged::new_err(text),
        _ => Error::new_err(text),
    }
}

pub(crate) fn of_poll(error: PollError) -> PyErr {
    let text = error.to_string();
    match error {
        PollError::Closed => Closed::new_err(text),
        PollError::DriverLost(_) => DriverLost::new_err(text),
        _ => Error::new_err(text),
    }
}

pub(crate) fn of_command(error: CommandError) -> PyErr {
    let text = error.to_string();
    match error {
        CommandError::Registration(rejected)
            if rejected.code == ErrorCode::ResourceTemporarilyUnavailable =>
        {
            Overloaded::new_err(text)
        }
        CommandError::Registration(_) => Rejected::new_err(text),
        CommandError::Timeout { .. } => CommandTimeout::new_err(text),
        CommandError::ResponseOverwritten | CommandError::DriverBufferFull { .. } => {
            Overloaded::new_err(text)
        }
        CommandError::TooLong { .. } => TooLong::new_err(text),
        CommandError::Log { .. }
        | CommandError::Damaged { .. }
        | CommandError::NoSuchCounter { .. }
        | CommandError::UnexpectedResponse { .. } => Damaged::new_err(text),
        CommandError::CalledFromCallback => CalledFromHandler::new_err(text),
        CommandError::Closed => Closed::new_err(text),
        CommandError::DriverLost(_) => DriverLost::new_err(text),
        _ => Error::new_err(text),
    }
}

pub(crate) fn of_connect(error: ConnectError) -> PyErr {
    let text = error.to_string();
    if error.is_retryable() {
        NoDriver::new_err(text)
    } else {
        ConnectFailed::new_err(text)
    }
}

pub(crate) fn of_driver(error: LaunchError) -> PyErr {
    DriverError::new_err(error.to_string())
}

/// The exception that a client's error handler receives.
pub(crate) fn of_client(error: &ClientError) -> PyErr {
    let text = error.to_string();
    match error {
        ClientError::Lost(_) => DriverLost::new_err(text),
        ClientError::ResponsesOverwritten { .. } => Overloaded::new_err(text),
        ClientError::Image { .. } | ClientError::BadResponse { .. } => Damaged::new_err(text),
        ClientError::ChannelEndpoint { .. } => Rejected::new_err(text),
        _ => Error::new_err(text),
    }
}

/// The exception that a close handler receives; `None` if the application closed the client.
pub(crate) fn of_close(reason: CloseReason) -> Option<PyErr> {
    reason
        .lost()
        .map(|lost| DriverLost::new_err(lost.to_string()))
}
