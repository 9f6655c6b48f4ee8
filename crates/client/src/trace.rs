// SPDX-License-Identifier: Apache-2.0
//! Events for the crate `tracing`, with the feature of that name. None is on the data path.
//!
//! The target is `taran`. Levels: `error` for what the error handler gets, `warn` for a lost or silent driver, `info` for
//! connections, `debug` for resources, images and failed commands, whose error the caller gets.

/// Emits an event: `event!(level, "text", field = value, …)`. Values implement `Display`; without the feature they are
/// not evaluated.
macro_rules! event {
    ($level:ident, $text:literal $(, $field:ident = $value:expr)* $(,)?) => {
        #[cfg(feature = "tracing")]
        tracing::$level!(target: "taran", $($field = %$value,)* $text);
        #[cfg(not(feature = "tracing"))]
        let _ = || {
            $(let _ = &$value;)*
        };
    };
}
pub(crate) use event;
