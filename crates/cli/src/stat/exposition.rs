// SPDX-License-Identifier: Apache-2.0
//! Metrics as text: OpenMetrics 1.0.0, and the text format 0.0.4 of Prometheus for scrapers that do not ask for OpenMetrics.

use std::fmt::Write;

use crate::printable;

/// Prefix of every metric name.
const PREFIX: &str = "aeron_";

/// Label of the driver that a sample belongs to.
pub(super) const DIRECTORY: &str = "directory";

/// A format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    OpenMetrics,
    /// Version 0.0.4 of Prometheus' text format.
    Prometheus,
}

impl Format {
    /// Returns the HTTP content type.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Returns the format for the value of an `Accept` header (RFC 9110 §12.5.1): OpenMetrics if there is no header, or if the
    /// header names it and prefers no text.
    pub(super) fn for_accept(accept: Option<&str>) -> Self {
        let Some(accept) = accept else {
            return Self::OpenMetrics;
        };
        let quality = |wanted: &str| {
            let ranges = accept.split(',').map(MediaRange::parse);
            ranges
                .filter(|range| range.name.eq_ignore_ascii_case(wanted))
                .map(|range| range.quality)
                .fold(0.0, f32::max)
        };
        let openmetrics = quality("application/openmetrics-text");
        if openmetrics > 0.0 && openmetrics >= quality("text/plain") {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }
}

/// A part of an `Accept` header.
struct MediaRange<'a> {
    name: &'a str,
    /// 0 to 1; 0 is "not acceptable". A malformed weight counts as 0.
    quality: f32,
}

impl<'a> MediaRange<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().unwrap_or("");
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        let quality = weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0));
        Self { name, quality }
    }
}

/// Properties common to all samples of a metric.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    /// Name without the prefix, and without the suffix `_total` of counters.
    pub(super) name: &'static str,
    /// Type in OpenMetrics.
    pub(super) kind: &'static str,
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
}

pub(super) const fn family(
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    help: &'static str,
) -> Family {
    Family {
        name,
        kind,
        unit,
        help,
    }
}

impl Family {
    /// Returns what the names of samples add to that of the family.
    fn suffix(self) -> &'static str {
        match self.kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        }
    }
}

/// Name and value of a label.
pub(super) type Label<'a> = (&'static str, &'a str);

/// Metric families. The samples of a family are contiguous, also those of several drivers.
#[derive(Debug)]
pub(super) struct Families {
    entries: Vec<(Family, String)>,
    /// Directory of the driver whose samples are added, if there are several drivers.
    directory: Option<String>,
}

impl Families {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            directory: None,
        }
    }

    /// Begins the samples of the driver with this directory, which all get it as a label.
    pub(super) fn begin_driver(&mut self, directory: &str) {
        self.directory = Some(directory.to_owned());
    }

    pub(super) fn sample(&mut self, family: Family, labels: &[Label<'_>], value: &str) {
        let known = self
            .entries
            .iter()
            .position(|(present, _)| present.name == family.name);
        let index = known.unwrap_or_else(|| {
            self.entries.push((family, String::new()));
            self.entries.len() - 1
        });
        let own_directory = labels.iter().any(|(name, _)| *name == DIRECTORY);
        let directory = self.directory.as_deref().filter(|_| !own_directory);
        let directory = directory.map(|directory| (DIRECTORY, directory));
        let samples = &mut self.entries[index].1;
        samples.push_str(PREFIX);
        samples.push_str(family.name);
        samples.push_str(family.suffix());
        let mut separator = '{';
        for (name, value) in directory.iter().chain(labels) {
            // Writing to a string cannot fail, here and below.
            let _ = write!(samples, "{separator}{name}=\"{}\"", escaped(value));
            separator = ',';
        }
        if separator == ',' {
            samples.push('}');
        }
        let _ = writeln!(samples, " {value}");
    }

    pub(super) fn finish(self, format: Format) -> String {
        let mut text = String::new();
        for (family, samples) in self.entries {
            let Family {
                name,
                kind,
                unit,
                help,
            } = family;
            match format {
                Format::OpenMetrics => {
                    let _ = writeln!(text, "# TYPE {PREFIX}{name} {kind}");
                    if !unit.is_empty() {
                        let _ = writeln!(text, "# UNIT {PREFIX}{name} {unit}");
                    }
                    let _ = writeln!(text, "# HELP {PREFIX}{name} {}", escaped(help));
                }
                Format::Prometheus => {
                    let suffix = family.suffix();
                    let kind = match kind {
                        "info" => "gauge",
                        "unknown" => "untyped",
                        kind => kind,
                    };
                    let help = printable::one_line(help).replace('\\', "\\\\");
                    let _ = writeln!(text, "# HELP {PREFIX}{name}{suffix} {help}");
                    let _ = writeln!(text, "# TYPE {PREFIX}{name}{suffix} {kind}");
                }
            }
            text.push_str(&samples);
        }
        if format == Format::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }
}

/// Escapes a text for use between quotes. Control characters, which the formats allow, are replaced, because the text
/// is also read on terminals.
fn escaped(text: &str) -> String {
    printable::one_line(text)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_accept_takes_openmetrics_only_if_it_is_named_and_preferred() {
        for (accept, format) in [
            (None, Format::OpenMetrics),
            (
                Some("application/openmetrics-text; version=1.0.0"),
                Format::OpenMetrics,
            ),
            // Prometheus 2.42 sends this.
            (
                Some(
                    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                     text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                ),
                Format::OpenMetrics,
            ),
            (Some("text/plain;version=0.0.4"), Format::Prometheus),
            (Some("*/*"), Format::Prometheus),
            (Some("text/html,*/*;q=0.8"), Format::Prometheus),
            (Some("application/openmetrics-text;q=0"), Format::Prometheus),
            (Some("application/openmetrics-text;q=x"), Format::Prometheus),
            (
                Some("application/openmetrics-text;q=0.3, text/plain;q=0.9"),
                Format::Prometheus,
            ),
            (Some(""), Format::Prometheus),
        ] {
            assert_eq!(Format::for_accept(accept), format, "{accept:?}");
        }
    }
}
