// SPDX-License-Identifier: Apache-2.0
//! Error codes, and the error of the last call of each thread.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

use taran::{
    ClientError, CloseReason, CommandError, ConnectError, ErrorCode, Lost, OfferError, PollError,
};

/// Reasons why a call fails. The values are part of the binary interface: they do not change. Those from -1 to -5 are the results
/// of an offer in Aeron's C client.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum taran_error_t {
    /// No subscriber is connected. Offer again later.
    TARAN_ERROR_NOT_CONNECTED = -1,
    /// A subscriber, flow control or the driver has to catch up first. Offer again later.
    TARAN_ERROR_BACK_PRESSURED = -2,
    /// The log was rotated to its next term. Offer again at once.
    TARAN_ERROR_ADMIN_ACTION = -3,
    /// The application closed the object, or its client.
    TARAN_ERROR_CLOSED = -4,
    /// The stream has used up its position space. Add a new publication.
    TARAN_ERROR_MAX_POSITION_EXCEEDED = -5,
    /// An argument is NULL, not UTF-8, or out of its range.
    TARAN_ERROR_INVALID_ARGUMENT = -10,
    /// Another call uses the object: of another thread, or the poll that runs the calling handler; or a claim is open.
    TARAN_ERROR_IN_USE = -11,
    /// A message, claim, channel, key or label exceeds its maximum length.
    TARAN_ERROR_TOO_LONG = -12,
    /// No driver runs in the directory, or it has ended. Connect again when one has started.
    TARAN_ERROR_NO_DRIVER = -13,
    /// Connecting failed for a reason that does not pass by itself, such as an invalid option or a missing permission.
    TARAN_ERROR_CONNECT = -14,
    /// The client has lost its driver: the driver has ended, or has timed the client out. Free the client and connect again.
    TARAN_ERROR_DRIVER_LOST = -15,
    /// The driver rejected the command.
    TARAN_ERROR_REJECTED = -16,
    /// The driver did not answer within its timeout. It may have executed the command.
    TARAN_ERROR_TIMEOUT = -17,
    /// The driver has too much to do at present. Repeat the command.
    TARAN_ERROR_OVERLOADED = -18,
    /// A log or a response of the driver is damaged or does not match.
    TARAN_ERROR_DAMAGED = -19,
    /// A handler called a function that waits for the driver.
    TARAN_ERROR_CALLED_FROM_HANDLER = -20,
    /// The embedded driver cannot be started or closed.
    TARAN_ERROR_DRIVER = -21,
    /// There is no counter with this id.
    TARAN_ERROR_NO_SUCH_COUNTER = -22,
    /// The library has a defect. Report it.
    TARAN_ERROR_BUG = -23,
    /// Another error; taran_last_error() says which.
    TARAN_ERROR_OTHER = -24,
}

use taran_error_t as Code;

/// All codes with their names.
const NAMES: &[(Code, &CStr)] = &[
    (Code::TARAN_ERROR_NOT_CONNECTED, c"NOT_CONNECTED"),
    (Code::TARAN_ERROR_BACK_PRESSURED, c"BACK_PRESSURED"),
    (Code::TARAN_ERROR_ADMIN_ACTION, c"ADMIN_ACTION"),
    (Code::TARAN_ERROR_CLOSED, c"CLOSED"),
    (
        Code::TARAN_ERROR_MAX_POSITION_EXCEEDED,
        c"MAX_POSITION_EXCEEDED",
    ),
    (Code::TARAN_ERROR_INVALID_ARGUMENT, c"INVALID_ARGUMENT"),
    (Code::TARAN_ERROR_IN_USE, c"IN_USE"),
    (Code::TARAN_ERROR_TOO_LONG, c"TOO_LONG"),
    (Code::TARAN_ERROR_NO_DRIVER, c"NO_DRIVER"),
    (Code::TARAN_ERROR_CONNECT, c"CONNECT"),
    (Code::TARAN_ERROR_DRIVER_LOST, c"DRIVER_LOST"),
    (Code::TARAN_ERROR_REJECTED, c"REJECTED"),
    (Code::TARAN_ERROR_TIMEOUT, c"TIMEOUT"),
    (Code::TARAN_ERROR_OVERLOADED, c"OVERLOADED"),
    (Code::TARAN_ERROR_DAMAGED, c"DAMAGED"),
    (
        Code::TARAN_ERROR_CALLED_FROM_HANDLER,
        c"CALLED_FROM_HANDLER",
    ),
    (Code::TARAN_ERROR_DRIVER, c"DRIVER"),
    (Code::TARAN_ERROR_NO_SUCH_COUNTER, c"NO_SUCH_COUNTER"),
    (Code::TARAN_ERROR_BUG, c"BUG"),
    (Code::TARAN_ERROR_OTHER, c"OTHER"),
];

/// Reason why a call fails. Errors of offers and polls are kept as values, and become text only on request: these calls are on the
/// hot path.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Offer(OfferError),
    Poll(PollError),
    Fixed(&'static str),
    Text(String),
}

impl Failure {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Self {
        Self {
            code,
            cause: Cause::Text(text.into()),
        }
    }

    pub(crate) const fn fixed(code: Code, text: &'static str) -> Self {
        Self {
            code,
            cause: Cause::Fixed(text),
        }
    }

    pub(crate) const fn invalid(text: &'static str) -> Self {
        Self::fixed(Code::TARAN_ERROR_INVALID_ARGUMENT, text)
    }

    pub(crate) const fn closed() -> Self {
        Self::fixed(
            Code::TARAN_ERROR_CLOSED,
            "the object is closed: the application closed it before",
        )
    }

    pub(crate) const fn in_use() -> Self {
        Self::fixed(
            Code::TARAN_ERROR_IN_USE,
            "another call uses this object: a call of another thread, or the poll that runs this handler; only a shared \
             publication, a counter and a client may be used by several threads at once",
        )
    }

    fn text(&self) -> String {
        match &self.cause {
            Cause::Offer(error) => error.to_string(),
            Cause::Poll(error) => error.to_string(),
            Cause::Fixed(text) => (*text).to_owned(),
            Cause::Text(text) => text.clone(),
        }
    }
}

impl From<OfferError> for Failure {
    fn from(error: OfferError) -> Self {
        let code = match error {
            OfferError::NotConnected => Code::TARAN_ERROR_NOT_CONNECTED,
            OfferError::BackPressured => Code::TARAN_ERROR_BACK_PRESSURED,
            OfferError::AdminAction => Code::TARAN_ERROR_ADMIN_ACTION,
            OfferError::Closed => Code::TARAN_ERROR_CLOSED,
            OfferError::DriverLost(_) => Code::TARAN_ERROR_DRIVER_LOST,
            OfferError::MaxPositionExceeded { .. } => Code::TARAN_ERROR_MAX_POSITION_EXCEEDED,
            OfferError::TooLong { .. } => Code::TARAN_ERROR_TOO_LONG,
            OfferError::Damaged => Code::TARAN_ERROR_DAMAGED,
            _ => Code::TARAN_ERROR_OTHER,
        };
        Self {
            code,
            cause: Cause::Offer(error),
        }
    }
}

impl From<PollError> for Failure {
    fn from(error: PollError) -> Self {
        let code = match error {
            PollError::Closed => Code::TARAN_ERROR_CLOSED,
            PollError::DriverLost(_) => Code::TARAN_ERROR_DRIVER_LOST,
            _ => Code::TARAN_ERROR_OTHER,
        };
        Self {
            code,
            cause: Cause::Poll(error),
        }
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        let code = match &error {
            CommandError::Registration(rejected)
                if rejected.code == ErrorCode::ResourceTemporarilyUnavailable =>
            {
                Code::TARAN_ERROR_OVERLOADED
            }
            CommandError::Registration(_) => Code::TARAN_ERROR_REJECTED,
            CommandError::Timeout { .. } => Code::TARAN_ERROR_TIMEOUT,
            CommandError::ResponseOverwritten | CommandError::DriverBufferFull { .. } => {
                Code::TARAN_ERROR_OVERLOADED
            }
            CommandError::TooLong { .. } => Code::TARAN_ERROR_TOO_LONG,
            CommandError::Log { .. }
            | CommandError::Damaged { .. }
            | CommandError::NoSuchCounter { .. }
            | CommandError::UnexpectedResponse { .. } => Code::TARAN_ERROR_DAMAGED,
            CommandError::CalledFromCallback => Code::TARAN_ERROR_CALLED_FROM_HANDLER,
            CommandError::Closed => Code::TARAN_ERROR_CLOSED,
            CommandError::DriverLost(_) => Code::TARAN_ERROR_DRIVER_LOST,
            _ => Code::TARAN_ERROR_OTHER,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let code = if error.is_retryable() {
            Code::TARAN_ERROR_NO_DRIVER
        } else {
            Code::TARAN_ERROR_CONNECT
        };
        Self::new(code, error.to_string())
    }
}

/// Returns the code of an error that a client reports to its error handler.
pub(crate) fn code_of_client_error(error: &ClientError) -> Code {
    match error {
        ClientError::Lost(_) => Code::TARAN_ERROR_DRIVER_LOST,
        ClientError::ResponsesOverwritten { .. } => Code::TARAN_ERROR_OVERLOADED,
        ClientError::Image { .. } | ClientError::BadResponse { .. } => Code::TARAN_ERROR_DAMAGED,
        ClientError::ChannelEndpoint { .. } => Code::TARAN_ERROR_REJECTED,
        ClientError::UnknownOption(_) => Code::TARAN_ERROR_INVALID_ARGUMENT,
        ClientError::CallbackPanicked { .. } => Code::TARAN_ERROR_BUG,
        _ => Code::TARAN_ERROR_OTHER,
    }
}

/// Returns the code and the text of the reason why a client is closed.
pub(crate) fn code_of_close(reason: CloseReason) -> (Code, Option<Lost>) {
    match reason.lost() {
        Some(lost) => (Code::TARAN_ERROR_DRIVER_LOST, Some(lost)),
        None => (Code::TARAN_ERROR_CLOSED, None),
    }
}

/// The error of the last failed call of a thread, and its text once it was asked for.
struct LastError {
    failure: Failure,
    text: Option<CString>,
}

thread_local! {
    static LAST: RefCell<Option<LastError>> = const { RefCell::new(None) };
}

/// Keeps the error for the calling thread, and returns its code.
pub(crate) fn remember(failure: Failure) -> i32 {
    let code = failure.code as i32;
    // The thread may be ending. Then nothing asks for the text.
    let _ = LAST.try_with(|last| {
        let previous = last.borrow_mut().replace(LastError {
            failure,
            text: None,
        });
        drop(previous);
    });
    code
}

/// Returns a C string of the text; bytes that are 0 become spaces.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Returns the text of the last failed call of this thread: what is wrong, and what to do. An empty text if no call has failed.
/// Valid until the next call of this library on this thread that fails.
#[unsafe(no_mangle)]
pub extern "C" fn taran_last_error() -> *const c_char {
    LAST.try_with(|last| match &mut *last.borrow_mut() {
        Some(LastError { failure, text }) => text
            .get_or_insert_with(|| c_string(&failure.text()))
            .as_ptr(),
        None => c"".as_ptr(),
    })
    .unwrap_or(c"".as_ptr())
}

/// Returns the name of an error code, such as "BACK_PRESSURED"; "OK" for 0 and more. Valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn taran_error_name(code: i64) -> *const c_char {
    if code >= 0 {
        return c"OK".as_ptr();
    }
    NAMES
        .iter()
        .find(|(known, _)| i64::from(*known as i32) == code)
        .map_or(c"UNKNOWN".as_ptr(), |(_, name)| name.as_ptr())
}

/// Returns 1 if the same call can succeed later without a change: NOT_CONNECTED, BACK_PRESSURED, ADMIN_ACTION, NO_DRIVER, TIMEOUT
/// and OVERLOADED. 0 for others.
#[unsafe(no_mangle)]
pub extern "C" fn taran_error_is_retryable(code: i64) -> i32 {
    const RETRYABLE: [Code; 6] = [
        Code::TARAN_ERROR_NOT_CONNECTED,
        Code::TARAN_ERROR_BACK_PRESSURED,
        Code::TARAN_ERROR_ADMIN_ACTION,
        Code::TARAN_ERROR_NO_DRIVER,
        Code::TARAN_ERROR_TIMEOUT,
        Code::TARAN_ERROR_OVERLOADED,
    ];
    RETRYABLE
        .iter()
        .any(|retryable| i64::from(*retryable as i32) == code)
        .into()
}

/// Returns the version of the library, such as "0.1.0". Valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn taran_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pointer: *const c_char) -> String {
        // SAFETY: the functions above return terminated texts, which no other call of this thread has changed.
        let text = unsafe { CStr::from_ptr(pointer) };
        text.to_str().unwrap().to_owned()
    }

    #[test]
    fn offer_errors_have_the_values_of_the_official_client() {
        let errors = [
            OfferError::NotConnected,
            OfferError::BackPressured,
            OfferError::AdminAction,
            OfferError::Closed,
            OfferError::MaxPositionExceeded { max_position: 1 },
        ];
        let codes = errors.map(|error| Failure::from(error).code as i32);
        assert_eq!(codes, [-1, -2, -3, -4, -5]);
    }

    #[test]
    fn last_error_is_that_of_the_thread() {
        assert_eq!(text(taran_last_error()), "");
        remember(OfferError::TooLong { length: 9, max: 8 }.into());
        assert!(text(taran_last_error()).contains("9 bytes, the maximum is 8"));
        std::thread::spawn(|| assert_eq!(text(taran_last_error()), ""))
            .join()
            .unwrap();
        remember(Failure::new(Code::TARAN_ERROR_OTHER, "a\0b"));
        assert_eq!(text(taran_last_error()), "a b");
    }

    #[test]
    fn each_code_has_its_name_and_says_whether_it_is_retryable() {
        for (code, name) in NAMES {
            assert_eq!(text(taran_error_name(*code as i64)), name.to_str().unwrap());
            assert_eq!(
                format!("{code:?}"),
                format!("TARAN_ERROR_{}", name.to_str().unwrap())
            );
        }
        assert_eq!(text(taran_error_name(7)), "OK");
        assert_eq!(text(taran_error_name(-999)), "UNKNOWN");
        let offers = [OfferError::BackPressured, OfferError::Closed];
        for error in offers {
            let code = Failure::from(error).code as i64;
            assert_eq!(
                taran_error_is_retryable(code) == 1,
                error.is_retryable(),
                "{error}"
            );
        }
    }
}
