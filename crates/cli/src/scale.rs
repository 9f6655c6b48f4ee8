// SPDX-License-Identifier: Apache-2.0
//! Numbers with prefixes for powers of 1,000.

/// `0`, `950`, `1.2k`, `3.4M`, `5.6G`: at most six characters below a thousand tera.
pub(crate) fn number(value: f64) -> String {
    let (value, prefix) = scaled(value);
    match prefix {
        "" => format!("{value:.0}"),
        prefix => format!("{value:.1}{prefix}"),
    }
}

/// `950 B/s`, `1.2 MB/s`: at most ten characters below a thousand tera.
pub(crate) fn bytes_per_second(value: f64) -> String {
    let (value, prefix) = scaled(value);
    match prefix {
        "" => format!("{value:.0} B/s"),
        prefix => format!("{value:.1} {prefix}B/s"),
    }
}

fn scaled(value: f64) -> (f64, &'static str) {
    for (prefix, scale) in [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)] {
        // What rounds to a thousand of the prefix below belongs to this one.
        if value >= scale * 0.9995 {
            return (value / scale, prefix);
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_bytes_per_second_take_the_prefix_that_fits() {
        for (value, text, rate) in [
            (0.0, "0", "0 B/s"),
            (999.4, "999", "999 B/s"),
            (999.9, "1.0k", "1.0 kB/s"),
            (12_345_678.0, "12.3M", "12.3 MB/s"),
            (5.6e9, "5.6G", "5.6 GB/s"),
            (2e15, "2000.0T", "2000.0 TB/s"),
        ] {
            assert_eq!(number(value), text);
            assert_eq!(bytes_per_second(value), rate);
        }
    }
}
