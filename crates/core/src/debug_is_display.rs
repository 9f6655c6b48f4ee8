// SPDX-License-Identifier: Apache-2.0
//! `Debug` of error types.

/// Implements `Debug` of error types with the text of `Display`, which names all values and the remedy: a `main` that
/// returns an error, `unwrap` and `expect` print `Debug`.
///
/// ```
/// #[derive(thiserror::Error)]
/// #[error("cannot open {0}: no permission; run as its owner")]
/// struct OpenError(&'static str);
///
/// taran_core::debug_is_display!(OpenError);
///
/// assert_eq!("cannot open /data: no permission; run as its owner", format!("{:?}", OpenError("/data")));
/// ```
#[macro_export]
macro_rules! debug_is_display {
    ($($error:ty),+ $(,)?) => {
        $(
            impl ::std::fmt::Debug for $error {
                fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    ::std::fmt::Display::fmt(self, f)
                }
            }
        )+
    };
}
