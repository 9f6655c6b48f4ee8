// SPDX-License-Identifier: Apache-2.0
//! A weather report in each version of its schema, and one whose optional fields are all null.

use taran_sbe::runtime::EncodeError;
use taran_sbe_codecs::{weather_v0, weather_v1};

/// Time of the measurement.
pub(crate) const MEASURED: u64 = 0x0102_0304_0506_0708;

macro_rules! report {
    ($version:ident, $buffer:expr, |$report:ident| $fields:block, |$reading:ident, $hour:ident| $wind:block, |$last:ident| $end:expr) => {{
        use $version::report::ReportEncoder;
        use $version::types::{Sky, Trend};

        let mut $report = ReportEncoder::encode($buffer)?;
        $report
            .measured(MEASURED)
            .temperature(-55)
            .grade(b'A')
            .pressure(1013.25)
            .gusts(&[1.5, f32::NAN, 2.5])
            .hours(&[6, -1])
            .probe(&[1, 200, 3])
            .sky(Sky::Clear)
            .trend(Trend::Falling)
            .mark("AB")?;
        $report.wind().speed(120).trend(Trend::Rising);
        $fields
        let mut readings = $report.readings()?;
        for ($hour, temperature) in [(6, Some(-60)), (12, None)] {
            let mut $reading = readings.entry()?;
            $reading.hour($hour).temperature(temperature);
            $wind
        }
        let $last = readings.done();
        Ok($end.finish())
    }};
}

/// Encodes a report of the first version and returns its length.
pub(crate) fn v0(buffer: &mut [u8]) -> Result<usize, EncodeError> {
    report!(
        weather_v0,
        buffer,
        |report| {},
        |reading, hour| {},
        |report| report
    )
}

/// Encodes the same message with the additions of the second version.
pub(crate) fn v1(buffer: &mut [u8]) -> Result<usize, EncodeError> {
    report!(
        weather_v1,
        buffer,
        |report| {
            report.humidity(80).history(&[-1, 7]);
        },
        |reading, hour| {
            // The fields that are not set are null.
            if hour == 12 {
                reading.wind().speed(90).trend(Trend::Falling);
            }
        },
        |report| {
            let mut alerts = report.alerts()?;
            for (trend, hours, text) in [
                (Some(Trend::Rising), &[3, 4][..], "Glätte"),
                (None, &[], ""),
            ] {
                let mut alert = alerts.entry()?;
                alert.trend(trend);
                let mut all = alert.hours()?;
                for hour in hours {
                    all.entry()?.hour(*hour);
                }
                alerts = all.done().text(text)?.done();
            }
            alerts.done().remark("late")?
        }
    )
}

macro_rules! calm {
    ($version:ident, $buffer:expr, |$report:ident| $fields:block, |$last:ident| $end:expr) => {{
        use $version::report::ReportEncoder;
        use $version::types::{Sky, Trend};

        let mut $report = ReportEncoder::encode($buffer)?;
        // Values are set first, so that null is not just the initial state.
        $report.temperature(1).grade(b'A').pressure(2.0);
        $report.gusts(&[3.0; 3]).hours(&[4; 2]).probe(&[5; 3]);
        $report.sky(Sky::Clear).trend(Trend::Rising).mark("full")?;
        $report.wind().speed(1).trend(Trend::Falling);
        $report
            .measured(MEASURED)
            .temperature(None)
            .grade(None)
            .pressure(None)
            .gusts(None)
            .hours(None)
            .probe(None)
            .sky(None)
            .trend(None)
            .mark(None::<&str>)?;
        $report.wind().speed(None).trend(None);
        $fields
        let $last = $report.readings()?.done();
        Ok($end.finish())
    }};
}

/// Encodes a report with only the time of the measurement.
pub(crate) fn calm_v0(buffer: &mut [u8]) -> Result<usize, EncodeError> {
    calm!(weather_v0, buffer, |report| {}, |report| report)
}

/// Encodes the same report with the additions of the second version.
pub(crate) fn calm_v1(buffer: &mut [u8]) -> Result<usize, EncodeError> {
    calm!(
        weather_v1,
        buffer,
        |report| {
            report.humidity(1).history(&[2, 3]);
            report.humidity(None).history(None);
        },
        |report| report.alerts()?.done().remark("")?
    )
}
