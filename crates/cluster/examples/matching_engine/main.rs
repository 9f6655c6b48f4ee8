// SPDX-License-Identifier: Apache-2.0
//! A matching engine: an order book with price-time priority, which prints trades.
//!
//! ```text
//! cargo run --release -p taran-cluster --example matching_engine
//! ```
//!
//! starts a cluster of one member with driver and archive in this process, and a client, which reads the lines
//! `buy QUANTITY PRICE`, `sell QUANTITY PRICE`, `buy QUANTITY` and `sell QUANTITY` (market orders), `cancel ORDER` and `snapshot`.
//! `docs/cluster.md` says how to run it on three members.

mod book;
mod engine;
mod messages;
#[path = "../support/mod.rs"]
mod support;

use std::io::{self, BufRead, BufReader, Write};

use self::book::{OrderId, Rejection, Side};
use self::engine::{MatchingEngine, Trade};
use self::messages::{Action, Outcome, Report, Request};
use self::support::Failure;
use self::support::client::Dialogue;
use self::support::program::{self, Output};

/// Turns lines into orders, and prints reports.
#[derive(Debug, Default)]
struct Lines {
    number: u64,
}

impl Dialogue for Lines {
    fn request(&mut self, line: &str) -> Result<Option<Vec<u8>>, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |text: &str| {
            let number = text.parse::<u32>();
            number.map_err(|error| format!("{text}: {error}"))
        };
        let side = |verb| match verb {
            "buy" => Ok(Side::Buy),
            "sell" => Ok(Side::Sell),
            _ => Err(format!("{line}: use buy, sell, cancel or snapshot")),
        };
        let action = match words[..] {
            ["cancel", order] => {
                let order = order.parse().map_err(|error| format!("{order}: {error}"))?;
                Action::Cancel(OrderId(order))
            }
            [verb, quantity] => Action::Market {
                side: side(verb)?,
                quantity: number(quantity)?,
            },
            [verb, quantity, price] => Action::Limit {
                side: side(verb)?,
                quantity: number(quantity)?,
                price: number(price)?,
            },
            _ => return Err(format!("{line}: use buy, sell, cancel or snapshot")),
        };
        self.number += 1;
        let number = self.number;
        Ok(Some(Request { number, action }.encode().to_vec()))
    }

    fn on_message(&mut self, message: &[u8], output: &mut dyn Write) -> io::Result<bool> {
        let Some(Report {
            number,
            remaining,
            outcome,
            ..
        }) = Report::decode(message)
        else {
            return Ok(false);
        };
        match outcome {
            Outcome::Traded { price, quantity } => {
                writeln!(output, "traded {quantity} at {price}, {remaining} left")?;
                return Ok(false);
            }
            Outcome::Hit {
                order: OrderId(order),
                price,
                quantity,
            } => {
                writeln!(
                    output,
                    "order {order} traded {quantity} at {price}, {remaining} left"
                )?;
                return Ok(false);
            }
            _ if number != self.number => return Ok(false),
            Outcome::Rests(OrderId(order)) => {
                writeln!(output, "order {order} rests, {remaining} left")?;
            }
            Outcome::Filled => writeln!(output, "filled")?,
            Outcome::Cancelled => writeln!(output, "cancelled, {remaining} left")?,
            Outcome::Rejected(rejection) => writeln!(
                output,
                "rejected: {}",
                match rejection {
                    Rejection::Price => "prices are 1 to 65535",
                    Rejection::Quantity => "the quantity is 0",
                    Rejection::Full => "the book is full",
                    Rejection::UnknownOrder => "you have no such order",
                }
            )?,
            Outcome::Repeated => writeln!(output, "applied before, its reports are lost")?,
        }
        Ok(true)
    }
}

pub(crate) fn run(
    arguments: &[String],
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), Failure> {
    let output = Output::new(output);
    let mut tape = output.clone();
    // Writing to the output may wait. A production service passes its trades to another thread.
    let service = MatchingEngine::new(move |trade: &Trade| {
        let Trade {
            number,
            price,
            quantity,
            buyer,
            seller,
            ..
        } = trade;
        // Trades that cannot be printed are in the log.
        let _ = writeln!(
            tape,
            "trade {number}: {quantity} at {price}, session {buyer} buys from session {seller}"
        );
    });
    program::run(arguments, input, output, service, &mut Lines::default())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    run(&arguments, BufReader::new(io::stdin()), io::stdout())
}
