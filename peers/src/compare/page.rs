// SPDX-License-Identifier: Apache-2.0
//! HTML output: tables and percentile curves.

use std::fmt::Write as _;

use plotters::prelude::{
    BLACK, ChartBuilder, Color, IntoDrawingArea, IntoLogRange, LineSeries, PathElement, RGBColor,
    SVGBackend, SeriesLabelPosition, WHITE,
};

use crate::about::About;
use crate::figures::{Outcome, Row, Status, TargetResult, median};
use crate::plan::Kind;
use crate::subject::Implementation;
use crate::table::{bound_text, number, ratio, spread, verdict_text};

const SIZE: (u32, u32) = (860, 380);
/// Line colours, ours first; distinguishable with colour blindness.
const COLOURS: [RGBColor; 4] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(120, 120, 120),
    RGBColor(204, 51, 17),
];
/// Right end of the curves: one message in this many.
const RAREST: f64 = 100_000.0;

const STYLE: &str = include_str!("page.css");

/// Returns the page.
pub(crate) fn html(outcomes: &[Outcome], about: &About) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Taran compared with Aeron</title><style>{STYLE}</style>\
         <header><h1>Taran compared with Aeron</h1><p>Medians of {rounds} alternating rounds on one machine, with minimum and maximum. \
         The ratio compares the median with that of the baseline: the last row of the same figure, or the configuration of \
         which the row is a variant. Round trips are measured from the time at which a message was scheduled; a ping-pong \
         has no schedule and is measured from the time of sending.</p><p>{}</p></header>",
        about.line(),
        rounds = about.rounds,
    );
    summary(&mut page, outcomes);
    for outcome in outcomes {
        section(&mut page, outcome);
    }
    page.push_str("</html>\n");
    page
}

/// Appends the table of all targets.
fn summary(page: &mut String, outcomes: &[Outcome]) {
    let results: Vec<TargetResult<'_>> =
        outcomes.iter().flat_map(Outcome::target_results).collect();
    if results.is_empty() {
        return;
    }
    let met = results
        .iter()
        .filter(|result| result.status() == Status::Met)
        .count();
    let _ = write!(
        page,
        "<section><h2>Targets: {met} of {} met</h2><table class=\"targets\"><tr><th>measurement<th>figure<th>median (minimum .. \
         maximum)<th>ratio<th>target<th>status</tr>",
        results.len()
    );
    for result in &results {
        let class = match result.status() {
            Status::Met => "good",
            Status::Missed | Status::Invalid => "bad",
            Status::NotMeasured => "unknown",
        };
        let _ = write!(
            page,
            "<tr><td><a href=\"#{}\">{}</a><td>{}<td>{}<td>{}<td>{}<td><span class=\"{class}\">{}</span></tr>",
            anchor(result.name),
            result.name,
            result.figure,
            result.of.map_or_else(String::new, |of| spread(&of)),
            ratio(result),
            bound_text(result),
            result.status()
        );
    }
    page.push_str("</table></section>");
}

fn anchor(name: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '-'
        }
    };
    name.chars().map(plain).collect()
}

/// Returns the length of a row's bar in per cent of the longest bar of the same figure.
fn bar(outcome: &Outcome, figure: usize, median: f64) -> f64 {
    let medians = (0..outcome.rows.len()).filter_map(|row| outcome.figure(row, figure));
    let most = medians.map(|figure| figure.median).fold(0.0, f64::max);
    if most > 0.0 {
        100.0 * median / most
    } else {
        0.0
    }
}

fn section(page: &mut String, outcome: &Outcome) {
    let _ = write!(
        page,
        "<section id=\"{}\"><h2>{}</h2><table><tr><th>figure<th>implementation<th>median<th class=\"bar\"><th>minimum<th>maximum<th>ratio\
         <th>target</tr>",
        anchor(&outcome.name),
        outcome.title()
    );
    for (figure, spec) in outcome.kind.figures().iter().enumerate() {
        for (index, row) in outcome.rows.iter().enumerate() {
            let Some(values) = outcome.figure(index, figure) else {
                continue;
            };
            let ratio = outcome.ratio(index, figure);
            let _ = write!(
                page,
                "<tr{}><td>{}<td>{}<td>{}<td class=\"bar\"><i class=\"{}\" style=\"width:{:.1}%\"></i><td>{}<td>{}<td>{}<td>",
                if index == 0 { " class=\"first\"" } else { "" },
                if index == 0 { spec.name } else { "" },
                row.label,
                number(values.median),
                if row.implementation == Implementation::Taran {
                    "ours"
                } else {
                    "theirs"
                },
                bar(outcome, figure, values.median),
                number(values.least),
                number(values.most),
                ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
            );
            for verdict in outcome.verdicts(index, figure) {
                let class = if verdict.status == Status::Met {
                    "good"
                } else {
                    "bad"
                };
                let _ = write!(
                    page,
                    "<span class=\"{class}\">{}</span> ",
                    verdict_text(&verdict)
                );
            }
            page.push_str("</tr>");
        }
    }
    page.push_str("</table>");
    for warning in outcome.rows.iter().filter_map(Row::warning) {
        let _ = write!(page, "<p class=\"bad\">{warning}.</p>");
    }
    if outcome.kind == Kind::RoundTrips {
        match curves(outcome) {
            Ok(svg) => page.push_str(&svg),
            Err(reason) => {
                let _ = write!(page, "<p class=\"bad\">no curves: {reason}</p>");
            }
        }
    }
    page.push_str("</section>");
}

/// Draws round trip over percentile, both axes logarithmic, one line for each subject.
fn curves(outcome: &Outcome) -> Result<String, String> {
    let lines: Vec<(&Row, Vec<(f64, f64)>)> =
        outcome.rows.iter().map(|row| (row, curve(row))).collect();
    let all = || lines.iter().flat_map(|(_, points)| points.iter());
    let least = all().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let most = all().map(|point| point.1).fold(0.0, f64::max);
    if !(least > 0.0 && most > least) {
        return Err("fewer than two distinct round trips".to_owned());
    }
    let mut svg = String::new();
    draw(&mut svg, &lines, least, most).map_err(|error| error.to_string())?;
    Ok(svg)
}

fn draw(
    svg: &mut String,
    lines: &[(&Row, Vec<(f64, f64)>)],
    least: f64,
    most: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .margin_right(30)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(
            (1.0..RAREST).log_scale(),
            (least * 0.8..most * 1.25).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc("percentile")
        .y_desc("round trip, us")
        .x_label_formatter(&|rarity| percentile(*rarity))
        .draw()?;
    for (index, (row, points)) in lines.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        chart
            .draw_series(LineSeries::new(
                points.iter().copied(),
                colour.stroke_width(2),
            ))?
            .label(row.label.clone())
            .legend(move |(x, y)| {
                PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2))
            });
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

/// Returns the points of a curve: x is n where one message in n is slower, y the median over the rounds in microseconds.
fn curve(row: &Row) -> Vec<(f64, f64)> {
    let Some(first) = row.rounds.first() else {
        return Vec::new();
    };
    let shares = first.round_trips.iter().map(|(share, _)| *share);
    shares
        .filter_map(|share| {
            let rarity = if share < 1.0 {
                1.0 / (1.0 - share)
            } else {
                RAREST
            };
            let round_trips = row
                .rounds
                .iter()
                .filter_map(|round| round.round_trip(share));
            let mut micros: Vec<f64> = round_trips.map(|nanos| nanos as f64 / 1_000.0).collect();
            micros.sort_by(f64::total_cmp);
            (rarity <= RAREST).then_some((rarity, median(&micros)?))
        })
        .collect()
}

fn percentile(rarity: f64) -> String {
    let percentile = 100.0 - 100.0 / rarity;
    format!("{percentile:.3}")
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}
