// SPDX-License-Identifier: Apache-2.0
//! Prints the public items of a crate, one per line, from its documentation in JSON; see `cargo xtask api`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Auto traits, and derived markers, that applications do not name. `Send` and `Sync` stay: applications rely on these.
const OMITTED_TRAITS: &[&str] = &[
    "core::marker::Freeze",
    "core::marker::StructuralPartialEq",
    "core::marker::Unpin",
    "core::marker::UnsafeUnpin",
    "core::panic::unwind_safe::RefUnwindSafe",
    "core::panic::unwind_safe::UnwindSafe",
];

fn main() -> ExitCode {
    let Some(json) = std::env::args().nth(1) else {
        eprintln!("usage: taran-api FILE.json");
        return ExitCode::from(2);
    };
    let api = public_api::Builder::from_rustdoc_json(&json)
        .omit_blanket_impls(true)
        .build();
    match api {
        Ok(api) => {
            let items = api.items().map(ToString::to_string);
            for item in items.filter(|item| !is_omitted(item)) {
                println!("{item}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{json}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns true for an implementation of one of the omitted traits.
fn is_omitted(item: &str) -> bool {
    item.starts_with("impl")
        && OMITTED_TRAITS.iter().any(|name| {
            item.contains(&format!(" {name} for ")) || item.contains(&format!(" !{name} for "))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_omitted_keeps_send_and_sync() {
        assert!(is_omitted("impl core::marker::Freeze for taran::Client"));
        assert!(is_omitted(
            "impl<T> !core::marker::Unpin for taran::Guard<T>"
        ));
        assert!(!is_omitted("impl core::marker::Send for taran::Client"));
        assert!(!is_omitted("impl !core::marker::Sync for taran::Client"));
        assert!(!is_omitted(
            "pub fn taran::unpin(core::marker::Unpin for u8)"
        ));
    }
}
