// SPDX-License-Identifier: Apache-2.0
//! Options of transport security (docs/spec/transport-security.md §4.4).

use taran_protocol::option::{OptionId, OptionSet};
use taran_secure::keeper::KeeperOptions;
use taran_secure::pattern::Patterns;
use taran_secure::provider::Suite;

use super::policy::Mode;
use crate::context::Conflict;

/// Longest rotation interval in nanoseconds: half of the hard age of a key.
const ROTATE_MAX_NS: i64 = 12 * 3_600 * 1_000_000_000;

/// Options as values.
#[derive(Debug)]
pub(crate) struct SecurityOptions {
    pub(crate) mode: Mode,
    pub(crate) allow_plain: Patterns,
    pub(crate) keeper: KeeperOptions,
}

/// Reads the options.
pub(crate) fn read_options(options: &OptionSet) -> Result<SecurityOptions, Conflict> {
    let conflict = |option: OptionId, needed: String| Conflict {
        option,
        value: options.text(option),
        needed,
    };
    let mode = Mode::from_name(options.secure_mode_name());
    let allow_plain = match options.secure_allow_plain() {
        None | Some("") => Patterns::default(),
        Some(text) => Patterns::parse(text).map_err(|(column, error)| {
            conflict(
                OptionId::SecureAllowPlain,
                format!(
                    "is no list of patterns, at character {}: {error}",
                    column + 1
                ),
            )
        })?,
    };
    let rotate_ns = options.secure_rotate_interval_ns();
    if rotate_ns > ROTATE_MAX_NS {
        return Err(conflict(
            OptionId::SecureRotateInterval,
            "is longer than 43200s: keys are not used for more than a day".to_owned(),
        ));
    }
    let suites = suites(options.secure_suites().unwrap_or_default())
        .map_err(|needed| conflict(OptionId::SecureSuites, needed))?;
    Ok(SecurityOptions {
        mode,
        allow_plain,
        keeper: KeeperOptions {
            suites,
            rotate_interval: rotate_ns.unsigned_abs(),
            rotate_on_leave: options.secure_rotate_on_leave(),
            link_lifetime: options.secure_link_lifetime_ns().unsigned_abs(),
            handshake_rate: options.secure_handshake_rate().unsigned_abs(),
        },
    })
}

/// Parses a list of suites. Those that the processor runs in hardware come first.
fn suites(text: &str) -> Result<Vec<Suite>, String> {
    let mut suites = Vec::new();
    for name in text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        let suite = match name {
            "aes-256-gcm" => Suite::Aes256Gcm,
            "aes-128-gcm" => Suite::Aes128Gcm,
            "chacha20-poly1305" => Suite::ChaCha20Poly1305,
            _ => {
                return Err(
                    "must be a list of aes-256-gcm, aes-128-gcm and chacha20-poly1305".to_owned(),
                );
            }
        };
        if suites.contains(&suite) {
            return Err(format!("names {name} twice"));
        }
        suites.push(suite);
    }
    if suites.is_empty() {
        return Err("names no suite".to_owned());
    }
    if !has_aes() {
        suites.sort_by_key(|suite| suite.is_gcm());
    }
    Ok(suites)
}

/// Returns true if the processor has instructions for AES.
fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    false
}

#[cfg(test)]
mod tests {
    use taran_protocol::option::Source;

    use super::*;

    fn read(values: &[(OptionId, &str)]) -> Result<SecurityOptions, String> {
        let mut options = OptionSet::driver();
        for (option, value) in values {
            options.set(*option, value, &Source::Code).unwrap();
        }
        read_options(&options).map_err(|conflict| conflict.to_string())
    }

    #[test]
    fn defaults_secure_nothing_and_allow_all_suites() {
        let options = read(&[]).unwrap();
        assert_eq!(options.mode, Mode::Off);
        assert_eq!(options.keeper.suites.len(), 3);
        assert_eq!(options.keeper.rotate_interval, 3_600_000_000_000);
    }

    #[test]
    fn invalid_values_are_refused_by_name() {
        for (option, value, words) in [
            (
                OptionId::SecureSuites,
                "aes-256-gcm,rot13",
                "rot13 must be a list",
            ),
            (OptionId::SecureSuites, "aes-256-gcm,aes-256-gcm", "twice"),
            (OptionId::SecureSuites, ",", "names no suite"),
            (OptionId::SecureRotateInterval, "13h", "longer than 43200s"),
            (OptionId::SecureAllowPlain, "10.0.0", "no list of patterns"),
        ] {
            let value = if value == "13h" { "46800s" } else { value };
            let error = read(&[(option, value)]).unwrap_err();
            assert!(error.contains(option.spec().property), "{error}");
            assert!(error.contains(words), "{error}");
        }
    }
}
