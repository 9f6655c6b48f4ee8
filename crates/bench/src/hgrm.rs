// SPDX-License-Identifier: Apache-2.0
//! Histograms in the text format of the public `HdrHistogram` plotter (`.hgrm`).

use std::io::{self, Write};

use hdrhistogram::Histogram;

/// Steps per halving of the distance to 100 percent; the same as in the original tools.
const TICKS_PER_HALF: u32 = 5;

/// Writes the percentile distribution of `histogram` in microseconds. The recorded values are nanoseconds.
///
/// # Errors
/// Any error of `out`.
pub fn write(histogram: &Histogram<u64>, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut count = 0;
    for step in histogram.iter_quantiles(TICKS_PER_HALF) {
        count += step.count_since_last_iteration();
        let value = micros(step.value_iterated_to());
        let quantile = step.quantile_iterated_to();
        if quantile < 1.0 {
            let inverse = 1.0 / (1.0 - quantile);
            writeln!(
                out,
                "{value:12.3} {quantile:2.12} {count:10} {inverse:14.2}"
            )?;
        } else {
            // The plotter recognises the last line by its missing fourth column.
            writeln!(out, "{value:12.3} {quantile:2.12} {count:10}")?;
        }
    }
    writeln!(
        out,
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]",
        histogram.mean() / 1_000.0,
        histogram.stdev() / 1_000.0
    )?;
    writeln!(
        out,
        "#[Max     = {:12.3}, Total count    = {:12}]",
        micros(histogram.max()),
        histogram.len()
    )?;
    writeln!(
        out,
        "#[Buckets = {:12}, SubBuckets     = {:12}]",
        histogram.buckets(),
        (2 * 10_u64.pow(u32::from(histogram.sigfig()))).next_power_of_two()
    )
}

#[allow(clippy::cast_precision_loss)] // a value in nanoseconds is far below 2^53
fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hgrm_text_has_columns_and_footer() {
        let mut histogram = Histogram::new(3).unwrap();
        for value in 1..=1_000 {
            histogram.record(value * 1_000).unwrap();
        }
        let mut text = Vec::new();
        write(&histogram, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();

        assert_eq!(
            lines[0].split_whitespace().collect::<Vec<_>>(),
            ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
        );
        assert_eq!(lines[1], "");
        let rows: Vec<Vec<f64>> = lines[2..]
            .iter()
            .take_while(|line| !line.starts_with('#'))
            .map(|line| {
                line.split_whitespace()
                    .map(|field| field.parse().unwrap())
                    .collect()
            })
            .collect();
        assert!(rows.windows(2).all(|pair| pair[0][..3] <= pair[1][..3]));
        assert!(rows[..rows.len() - 1].iter().all(|row| row.len() == 4));
        let last = rows.last().unwrap();
        assert_eq!(last[1..], [1.0, 1_000.0]);
        assert!((last[0] - 1_000.0).abs() < 1.0);
        assert!(lines[lines.len() - 3].starts_with("#[Mean"));
        assert!(lines[lines.len() - 2].contains("Total count    =         1000]"));
        assert!(lines[lines.len() - 1].ends_with("SubBuckets     =         2048]"));
    }
}
