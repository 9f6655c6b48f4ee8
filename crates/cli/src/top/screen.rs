// SPDX-License-Identifier: Apache-2.0
//! The screen as lines of text, and what keys change on it.
//!
//! Contract: [`Screen::press`] takes a key and says whether the program goes on; [`Screen::lines`] yields the lines for a sample
//! and a size: none is wider, and there are not more than fit. No other input.

use std::cmp::Reverse;

use super::Order;
use crate::live::{Sample, StreamRow};
use crate::printable;
use crate::scale;

/// Lines above the streams: driver, rates, selection, headings.
const HEAD: usize = 4;
/// Line below them.
const FOOT: usize = 1;
/// Most lines of a stream whose limit and channel do not fit behind its numbers.
const UNFOLDED: usize = 3;
/// Indentation of these lines.
const INDENT: &str = "      ";

/// Size of a terminal in characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// A key with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Character(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Interrupt,
}

/// Effect of a key on the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Continue,
    End,
}

/// A line of the screen.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    text: String,
    is_emphasised: bool,
}

impl Line {
    /// Cuts the text off, or fills an emphasised line up, to the width.
    fn new(text: &str, is_emphasised: bool, width: usize) -> Self {
        let text = printable::one_line(text);
        let mut text: String = text.chars().take(width).collect();
        if is_emphasised {
            let missing = width - text.chars().count();
            text.extend(std::iter::repeat_n(' ', missing));
        }
        Self {
            text,
            is_emphasised,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_emphasised(&self) -> bool {
        self.is_emphasised
    }
}

/// State of the screen.
#[derive(Debug)]
pub(super) struct Screen {
    order: Order,
    filter: String,
    /// True while keys edit the filter.
    is_editing: bool,
    nonzero: bool,
    /// True if limits and channels get lines of their own where they do not fit, even if fewer streams do then.
    unfolds: bool,
    /// Streams above the first one shown.
    scrolled: usize,
    /// Streams that the last lines had room for.
    page: usize,
}

impl Screen {
    pub(super) fn new(order: Order, filter: String, nonzero: bool) -> Self {
        Self {
            order,
            filter,
            is_editing: false,
            nonzero,
            unfolds: false,
            scrolled: 0,
            page: 0,
        }
    }

    pub(super) fn press(&mut self, key: Key) -> Action {
        match key {
            Key::Up => self.scrolled = self.scrolled.saturating_sub(1),
            Key::Down => self.scrolled += 1,
            Key::PageUp => self.scrolled = self.scrolled.saturating_sub(self.page),
            Key::PageDown => self.scrolled += self.page,
            Key::Enter => self.is_editing = false,
            Key::Escape if self.is_editing => {
                self.is_editing = false;
                self.filter.clear();
            }
            Key::Backspace if self.is_editing => {
                self.filter.pop();
            }
            Key::Character(character) if self.is_editing => self.filter.push(character),
            Key::Interrupt | Key::Character('q') => return Action::End,
            Key::Character('s') => self.order = next(self.order),
            Key::Character('n') => self.nonzero = !self.nonzero,
            Key::Character('l') => self.unfolds = !self.unfolds,
            Key::Character('/') => {
                self.filter.clear();
                self.is_editing = true;
            }
            Key::Escape | Key::Backspace | Key::Character(_) => {}
        }
        Action::Continue
    }

    pub(super) fn lines(&mut self, sample: &Sample, size: Size) -> Vec<Line> {
        let rows = self.selected(&sample.streams);
        let room = size.height.saturating_sub(HEAD + FOOT);
        let is_cut = |row: &&StreamRow| cells(row).chars().count() > size.width;
        let all_fit = rows.len() <= room / UNFOLDED;
        let unfolded = (self.unfolds || all_fit) && rows.iter().any(is_cut);
        self.page = (if unfolded { room / UNFOLDED } else { room }).max(1);
        self.scrolled = self.scrolled.min(rows.len().saturating_sub(self.page));
        let shown = rows.iter().skip(self.scrolled).take(self.page);

        let plain = |text: String| Line::new(&text, false, size.width);
        let mut lines = vec![
            plain(format!(
                "taran top  {}  pid {}  {} clients",
                sample.directory, sample.pid, sample.clients
            )),
            plain(totals(sample)),
            plain(self.selection(rows.len(), sample.streams.len())),
            Line::new(&heading(unfolded), true, size.width),
        ];
        for row in shown {
            if unfolded {
                lines.push(plain(numbers(row)));
                lines.extend(unfold(row, size.width).into_iter().map(plain));
            } else {
                lines.push(plain(cells(row)));
            }
        }
        if sample.streams.is_empty() {
            lines.push(plain("no streams".to_owned()));
        }
        lines.truncate(size.height.saturating_sub(FOOT));
        while lines.len() + FOOT < size.height {
            lines.push(plain(String::new()));
        }
        if size.height > 0 {
            let keys = if self.is_editing {
                "type a part of a channel or id   Enter done   Esc all streams"
            } else {
                "q end   s order   / filter   n non-zero   l limits   arrows scroll"
            };
            lines.push(Line::new(keys, true, size.width));
        }
        lines
    }

    /// Returns the streams that pass the filters, in order.
    fn selected<'a>(&self, streams: &'a [StreamRow]) -> Vec<&'a StreamRow> {
        let mut rows: Vec<&StreamRow> = streams
            .iter()
            .filter(|row| !self.nonzero || row.rate.is_some_and(|rate| rate > 0.0) || row.lag > 0)
            .filter(|row| {
                row.backlog.channel.contains(&self.filter)
                    || row.backlog.stream_id.to_string().contains(&self.filter)
                    || row.backlog.session_id.to_string().contains(&self.filter)
            })
            .collect();
        // Rates as whole bytes: they have an order. The sort is stable, and streams come ordered by their ids.
        match self.order {
            Order::Rate => rows.sort_by_key(|row| Reverse(row.rate.unwrap_or(0.0) as u64)),
            Order::Lag => rows.sort_by_key(|row| Reverse(row.lag)),
            Order::Loss => rows
                .sort_by_key(|row| Reverse((row.lost, row.naks_per_second.unwrap_or(0.0) as u64))),
            Order::Stream => {
                rows.sort_by_key(|row| (row.backlog.stream_id, row.backlog.session_id));
            }
        }
        rows
    }

    fn selection(&self, selected: usize, all: usize) -> String {
        let mut text = format!("{selected} of {all} streams, order: {}", name(self.order));
        if self.nonzero {
            text += ", non-zero";
        }
        if self.is_editing || !self.filter.is_empty() {
            text += &format!(", filter: {}", self.filter);
            if self.is_editing {
                text.push('_');
            }
        }
        text
    }
}

fn next(order: Order) -> Order {
    match order {
        Order::Rate => Order::Lag,
        Order::Lag => Order::Loss,
        Order::Loss => Order::Stream,
        Order::Stream => Order::Rate,
    }
}

fn name(order: Order) -> &'static str {
    match order {
        Order::Rate => "rate",
        Order::Lag => "lag",
        Order::Loss => "loss",
        Order::Stream => "stream",
    }
}

fn totals(sample: &Sample) -> String {
    format!(
        "sent {}  received {}  NAKs {}/s  retransmits {}/s  errors {}{}",
        of_bytes(sample.sent_bytes_per_second),
        of_bytes(sample.received_bytes_per_second),
        of_events(sample.naks_per_second),
        of_events(sample.retransmits_per_second),
        sample.errors,
        // The command that tells more, where there is more to tell.
        if sample.errors > 0 {
            " (taran errors)"
        } else {
            ""
        }
    )
}

fn heading(unfolded: bool) -> String {
    let last = if unfolded { "" } else { "  LIMIT / CHANNEL" };
    format!(
        "{:>11} {:>11} {:>10} {:>8} {:>6} {:>8}{last}",
        "STREAM", "SESSION", "RATE", "LAG", "NAK/s", "LOST"
    )
}

fn cells(row: &StreamRow) -> String {
    format!("{}  {}", numbers(row), texts(row))
}

fn numbers(row: &StreamRow) -> String {
    format!(
        "{:>11} {:>11} {:>10} {:>8} {:>6} {:>8}",
        row.backlog.stream_id,
        row.backlog.session_id,
        of_bytes(row.rate),
        scale::number(row.lag as f64),
        of_events(row.naks_per_second),
        scale::number(row.lost as f64),
    )
}

/// Returns limit and channel.
fn texts(row: &StreamRow) -> String {
    match row.limit().as_str() {
        "" => row.backlog.channel.clone(),
        limit => format!("{limit}; {}", row.backlog.channel),
    }
}

/// Returns limit and channel as indented lines, broken at spaces where there are any. The last one may exceed the width.
fn unfold(row: &StreamRow, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = INDENT.to_owned();
    for word in texts(row).split(' ') {
        let is_empty = line.len() == INDENT.len();
        let length = line.chars().count() + 1 + word.chars().count();
        if !is_empty && length > width && lines.len() + 2 < UNFOLDED {
            lines.push(std::mem::replace(&mut line, format!("{INDENT}{word}")));
            continue;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Returns bytes per second, or a dash as long as there is no rate.
fn of_bytes(rate: Option<f64>) -> String {
    rate.map_or("-".to_owned(), scale::bytes_per_second)
}

fn of_events(rate: Option<f64>) -> String {
    rate.map_or("-".to_owned(), |rate| match rate {
        rate if rate > 0.0 && rate < 10.0 => format!("{rate:.1}"),
        rate => scale::number(rate),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backlog::Backlog;
    use crate::backlog::verdict::Verdict;

    const TERMINAL: Size = Size {
        width: 80,
        height: 24,
    };

    fn stream(stream_id: i32, rate: f64, lag: i64) -> StreamRow {
        StreamRow {
            backlog: Backlog {
                stream_id,
                session_id: -2_000_000_000,
                channel: format!("aeron:udp?endpoint=localhost:{}", 40_000 + stream_id),
                ..Backlog::default()
            },
            rate: Some(rate),
            naks_per_second: Some(0.0),
            lag,
            ..StreamRow::default()
        }
    }

    fn sample(streams: Vec<StreamRow>) -> Sample {
        Sample {
            directory: "/dev/shm/aeron-me".to_owned(),
            pid: 4711,
            clients: 2,
            streams,
            ..Sample::default()
        }
    }

    fn screen(order: Order) -> Screen {
        Screen::new(order, String::new(), false)
    }

    fn texts(lines: &[Line]) -> Vec<&str> {
        lines.iter().map(|line| line.text().trim_end()).collect()
    }

    /// Returns the stream ids in the order of the lines.
    fn ids(screen: &mut Screen, sample: &Sample) -> Vec<i32> {
        let lines = screen.lines(sample, TERMINAL);
        let rows = &lines[HEAD..lines.len() - FOOT];
        let first_word = |line: &Line| line.text().split_whitespace().next()?.parse().ok();
        rows.iter().filter_map(first_word).collect()
    }

    #[test]
    fn lines_fit_every_size() {
        let mut long = stream(7, 1e18, i64::MAX);
        long.backlog.channel = "x".repeat(500);
        long.backlog.limited_by = Some(Verdict::of_text("publisher", &"é".repeat(200)));
        let sample = sample(vec![long; 300]);
        for width in [0, 1, 20, 80, 200] {
            for height in [0, 1, 3, 5, 24] {
                let lines = screen(Order::Rate).lines(&sample, Size { width, height });
                assert_eq!(lines.len(), height, "{width} x {height}");
                assert!(
                    lines
                        .iter()
                        .all(|line| line.text().chars().count() <= width)
                );
            }
        }
    }

    #[test]
    fn lines_show_the_driver_and_its_streams() {
        let mut row = stream(1001, 12_345_678.0, 32_768);
        row.backlog.limited_by = Some(Verdict::of_text("subscriber", "limited by subscriber 88"));
        row.naks_per_second = Some(0.5);
        row.lost = 1_400;
        let mut sample = sample(vec![row]);
        sample.errors = 3;
        sample.sent_bytes_per_second = Some(999_999.0);
        let lines = screen(Order::Lag).lines(
            &sample,
            Size {
                width: 130,
                ..TERMINAL
            },
        );
        let texts = texts(&lines);
        assert_eq!(
            texts[0],
            "taran top  /dev/shm/aeron-me  pid 4711  2 clients"
        );
        assert_eq!(
            texts[1],
            "sent 1.0 MB/s  received -  NAKs -/s  retransmits -/s  errors 3 (taran errors)"
        );
        assert_eq!(texts[2], "1 of 1 streams, order: lag");
        assert_eq!(
            texts[4],
            "       1001 -2000000000  12.3 MB/s    32.8k    0.5     1.4k  limited by subscriber 88; \
             aeron:udp?endpoint=localhost:41001"
        );
        assert!(texts[23].starts_with("q end"), "{texts:?}");
    }

    #[test]
    fn limits_that_do_not_fit_get_lines_of_their_own_where_there_is_room() {
        let verdict = "limited by subscriber 88 (client 87 \"risk-engine[4711]\"), not read for 4 s, 32,768 bytes behind";
        let mut row = stream(1001, 12_345_678.0, 32_768);
        row.backlog.limited_by = Some(Verdict::of_text("subscriber", verdict));
        let few = sample(vec![row.clone(), stream(1002, 1.0, 0)]);
        let mut screen = screen(Order::Rate);
        let lines = screen.lines(&few, TERMINAL);
        assert_eq!(
            texts(&lines)[3..9],
            [
                "     STREAM     SESSION       RATE      LAG  NAK/s     LOST",
                "       1001 -2000000000  12.3 MB/s    32.8k      0        0",
                "      limited by subscriber 88 (client 87 \"risk-engine[4711]\"), not read for 4",
                "      s, 32,768 bytes behind; aeron:udp?endpoint=localhost:41001",
                "       1002 -2000000000      1 B/s        0      0        0",
                "      aeron:udp?endpoint=localhost:41002",
            ]
        );
        // Many streams take a line each, until the key asks for their limits.
        let many = sample(vec![row; 19]);
        let limits = |lines: &[Line]| {
            let is_limit = |line: &&Line| line.text().starts_with("      limited by");
            lines.iter().filter(is_limit).count()
        };
        assert_eq!(limits(&screen.lines(&many, TERMINAL)), 0);
        screen.press(Key::Character('l'));
        assert_eq!(limits(&screen.lines(&many, TERMINAL)), 6);
        let wide = Size {
            width: 200,
            ..TERMINAL
        };
        assert_eq!(limits(&screen.lines(&many, wide)), 0);
    }

    #[test]
    fn lines_of_driver_without_streams_say_so() {
        let lines = screen(Order::Rate).lines(&sample(vec![]), TERMINAL);
        assert_eq!(texts(&lines)[HEAD], "no streams");
    }

    #[test]
    fn press_s_goes_through_the_orders() {
        let mut lossy = stream(3, 1.0, 5);
        lossy.lost = 1;
        let sample = sample(vec![stream(2, 9.0, 0), lossy, stream(1, 5.0, 90)]);
        let mut screen = screen(Order::Rate);
        for expected in [[2, 1, 3], [1, 3, 2], [3, 2, 1], [1, 2, 3], [2, 1, 3]] {
            assert_eq!(ids(&mut screen, &sample), expected);
            assert_eq!(screen.press(Key::Character('s')), Action::Continue);
        }
    }

    #[test]
    fn press_slash_edits_the_filter() {
        let sample = sample(vec![stream(101, 1.0, 0), stream(202, 1.0, 0)]);
        let mut screen = screen(Order::Stream);
        for key in "/40q".chars().map(Key::Character) {
            assert_eq!(screen.press(key), Action::Continue);
        }
        assert_eq!(ids(&mut screen, &sample), [0; 0]);
        screen.press(Key::Backspace);
        for key in [Key::Character('2'), Key::Enter] {
            screen.press(key);
        }
        // The port of the second one is 40202.
        assert_eq!(ids(&mut screen, &sample), [202]);
        assert_eq!(screen.press(Key::Character('q')), Action::End);
        screen.press(Key::Character('/'));
        screen.press(Key::Escape);
        assert_eq!(ids(&mut screen, &sample), [101, 202]);
        assert_eq!(screen.press(Key::Interrupt), Action::End);
    }

    #[test]
    fn press_n_hides_streams_that_neither_move_nor_lag() {
        let sample = sample(vec![
            stream(1, 0.0, 0),
            stream(2, 1.0, 0),
            stream(3, 0.0, 1),
        ]);
        let mut screen = screen(Order::Stream);
        screen.press(Key::Character('n'));
        assert_eq!(ids(&mut screen, &sample), [2, 3]);
        screen.press(Key::Character('n'));
        assert_eq!(ids(&mut screen, &sample), [1, 2, 3]);
    }

    #[test]
    fn press_arrows_scrolls_within_the_streams() {
        let sample = sample((1..=30).map(|id| stream(id, 0.0, 0)).collect());
        let mut screen = screen(Order::Stream);
        assert_eq!(ids(&mut screen, &sample).first(), Some(&1));
        screen.press(Key::Down);
        assert_eq!(ids(&mut screen, &sample).first(), Some(&2));
        screen.press(Key::PageDown);
        screen.press(Key::PageDown);
        assert_eq!(ids(&mut screen, &sample).last(), Some(&30));
        screen.press(Key::PageUp);
        screen.press(Key::PageUp);
        screen.press(Key::Up);
        assert_eq!(ids(&mut screen, &sample).first(), Some(&1));
    }

    #[test]
    fn control_characters_of_channels_are_replaced() {
        let mut row = stream(1, 0.0, 0);
        row.backlog.channel = "aeron:ipc\x1b[2J".to_owned();
        let lines = screen(Order::Rate).lines(&sample(vec![row]), TERMINAL);
        assert!(texts(&lines)[HEAD].ends_with("aeron:ipc?[2J"));
    }
}
