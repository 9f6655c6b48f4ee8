// SPDX-License-Identifier: Apache-2.0
//! Values of the benchmarks' command-line arguments: durations, sizes, rates, cores, driver options.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use taran_core::affinity;
use taran_protocol::option::{Define, parse_define};
use taran_protocol::uri::value::{parse_duration_ns, parse_size};

/// Parses a duration such as `5s`, `500ms` or `20us`. A bare number is rejected, because its unit is ambiguous.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    const NEEDED: &str = "needs a duration with its unit, such as 500us, 10ms or 5s";
    let is_bare = text.bytes().all(|byte| byte.is_ascii_digit()) && text != "0";
    parse_duration_ns(text)
        .ok()
        .filter(|_| !is_bare)
        .and_then(|nanos| u64::try_from(nanos).ok())
        .map(Duration::from_nanos)
        .ok_or_else(|| NEEDED.to_owned())
}

/// Parses a number of bytes such as `288`, `8k` or `1m` (k = 1024, m = 1024 * 1024).
pub(super) fn bytes(text: &str) -> Result<usize, String> {
    parse_size(text)
        .ok()
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| "needs a number of bytes, such as 288, 8k or 1m".to_owned())
}

/// Parses a rate in messages per second such as `500`, `100k` or `1.5m` (k = 1,000, m = 1,000,000); `_` and `,` may
/// group digits.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    const NEEDED: &str = "needs a number of messages per second above 0, such as 500, 100k or 1.5m";
    let plain: String = text.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    let (number, factor) = match plain.as_bytes() {
        [.., b'k' | b'K'] => (&plain[..plain.len() - 1], 1_000.0),
        [.., b'm' | b'M'] => (&plain[..plain.len() - 1], 1_000_000.0),
        _ => (plain.as_str(), 1.0),
    };
    // `f64::from_str` would accept signs and exponents.
    if !number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return Err(NEEDED.to_owned());
    }
    let rate = number.parse::<f64>().map_err(|_| NEEDED.to_owned())? * factor;
    if (1.0..1e12).contains(&rate) && rate.fract() == 0.0 {
        // A whole number below 2^53, so the conversion is exact.
        Ok(rate as u64)
    } else {
        Err(NEEDED.to_owned())
    }
}

/// Cores of the two sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cpus {
    /// The first two allowed cores, if there are two.
    Auto,
    /// These cores; empty if threads are not to be pinned.
    List(Vec<usize>),
}

impl Cpus {
    /// Returns the core numbers; empty if threads are not to be pinned.
    pub(super) fn resolve(&self) -> Vec<usize> {
        match self {
            Cpus::List(cpus) => cpus.clone(),
            Cpus::Auto => {
                let allowed = affinity::allowed_cpus();
                // Two busy-spinning sides on one core would only slow each other down.
                if allowed.len() < 2 {
                    Vec::new()
                } else {
                    allowed[..2].to_vec()
                }
            }
        }
    }
}

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Cpus, String> {
        match text {
            "auto" => Ok(Cpus::Auto),
            "none" => Ok(Cpus::List(Vec::new())),
            list => list
                .split(',')
                .map(|cpu| cpu.trim().parse())
                .collect::<Result<_, _>>()
                .map(Cpus::List)
                .map_err(|_| "needs core numbers such as 0,1, or auto, or none".to_owned()),
        }
    }
}

/// Displays cores for the output.
pub(super) struct Cores<'a>(pub(super) &'a [usize]);

impl fmt::Display for Cores<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("not pinned");
        }
        let cores: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        write!(f, "cores {}", cores.join(","))
    }
}

/// Parses `name=value` of an option.
pub(super) fn define(text: &str) -> Result<Define, String> {
    parse_define(text).ok_or_else(|| "needs name=value, such as aeron.mtu.length=8k".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_requires_a_unit() {
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for text in ["5", "", "s", "-1s", "5m", "5 s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_uses_binary_and_rate_decimal_factors() {
        assert_eq!(bytes("288"), Ok(288));
        assert_eq!(bytes("8k"), Ok(8192));
        assert!(bytes("-1").is_err());
        assert_eq!(rate("100k"), Ok(100_000));
        assert_eq!(rate("1.5M"), Ok(1_500_000));
        assert_eq!(rate("250_000"), Ok(250_000));
        for text in [
            "0", "", "k", "1e5", "-5", "0.5", "1.2.3", "nan", "inf", "5g",
        ] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn cpus_parses_lists_and_keywords() {
        assert_eq!("0,1".parse(), Ok(Cpus::List(vec![0, 1])));
        assert_eq!("none".parse(), Ok(Cpus::List(Vec::new())));
        assert_eq!("auto".parse(), Ok(Cpus::Auto));
        for text in ["a", "", "1,", "-1"] {
            assert!(text.parse::<Cpus>().is_err(), "{text}");
        }
        assert!(matches!(Cpus::Auto.resolve().len(), 0 | 2));
        assert_eq!(Cores(&[2, 3]).to_string(), "cores 2,3");
        assert_eq!(Cores(&[]).to_string(), "not pinned");
    }
}
