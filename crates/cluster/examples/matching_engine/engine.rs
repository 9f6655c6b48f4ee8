// SPDX-License-Identifier: Apache-2.0
//! The service: one book, whose orders belong to sessions.

use std::collections::BTreeMap;

use taran_cluster::consensus::Role;
use taran_cluster::protocol::CloseReason;
use taran_cluster::service::{ClientSession, Cluster, Service, SnapshotWriter};

use super::book::{Book, BookReader, Fill, Placed, Side};
use super::messages::{Action, Outcome, Report, Request};
use super::support::answers::AnswerQueue;
use super::support::chunks::{self, ChunkError, ChunkReader, Format, u64_at};

/// Orders that a book has room for.
const CAPACITY: u32 = 1 << 16;

/// A trade, as it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trade {
    pub(crate) number: u64,
    pub(crate) price: u32,
    pub(crate) quantity: u32,
    /// Session of the buyer, and that of the seller.
    pub(crate) buyer: i64,
    pub(crate) seller: i64,
    /// Time of the cluster.
    pub(crate) time: i64,
}

/// State that all members have in common: it follows from the log, and from nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    book: Book,
    trades: u64,
    /// Number of the last request of each session.
    sessions: BTreeMap<i64, u64>,
}

/// Kind of an item of a snapshot; those of the book begin at 0.
const SESSION: u8 = 10;
const TRADES: u8 = 11;

impl State {
    const FORMAT: Format = Format {
        name: b"matching",
        version: 1,
    };

    fn new() -> Self {
        Self {
            book: Book::new(CAPACITY),
            trades: 0,
            sessions: BTreeMap::new(),
        }
    }

    fn write(&self, snapshot: &mut SnapshotWriter) {
        let mut items = vec![[&[TRADES], &self.trades.to_le_bytes()[..]].concat()];
        for (session, number) in &self.sessions {
            items.push(
                [
                    &[SESSION],
                    &session.to_le_bytes()[..],
                    &number.to_le_bytes(),
                ]
                .concat(),
            );
        }
        let count = items.len() + self.book.item_count();
        let items = items.into_iter().chain(self.book.items());
        chunks::write(snapshot, Self::FORMAT, count, items);
    }

    fn read(frames: &[Vec<u8>]) -> Result<Self, ChunkError> {
        let mut reader = ChunkReader::open(frames, Self::FORMAT)?;
        let (mut trades, mut sessions) = (0, BTreeMap::new());
        let mut book = BookReader::default();
        while let Some(item) = reader.next_item()? {
            let read = match item.split_first() {
                Some((&TRADES, rest)) => u64_at(rest, 0).map(|count| trades = count),
                Some((&SESSION, rest)) => {
                    let session = u64_at(rest, 0).zip(u64_at(rest, 8));
                    sessions.extend(session.map(|(id, number)| (id.cast_signed(), number)));
                    session.map(|_| ())
                }
                _ => book.item(item),
            };
            read.ok_or_else(|| reader.invalid("neither a session nor a part of the book"))?;
        }
        let book = book.finish(CAPACITY);
        Ok(Self {
            book: book.map_err(|reason| reader.invalid(reason))?,
            trades,
            sessions,
        })
    }
}

/// The service. It passes each trade to `print` on the member that leads; what that does must not wait.
pub(crate) struct MatchingEngine<P> {
    state: State,
    answers: AnswerQueue,
    print: P,
}

impl<P: FnMut(&Trade) + Send> MatchingEngine<P> {
    pub(crate) fn new(print: P) -> Self {
        Self {
            state: State::new(),
            answers: AnswerQueue::default(),
            print,
        }
    }

    /// Applies a request, and tells the sessions that it concerns.
    fn apply(&mut self, cluster: &Cluster<'_>, session: i64, request: &Request) {
        let Self {
            state,
            answers,
            print,
        } = self;
        let time = cluster.timestamp();
        let number = request.number;
        let mut report = |to, number, remaining, outcome| {
            let report = Report {
                number,
                remaining,
                time,
                outcome,
            };
            answers.send(cluster, to, &report.encode());
        };
        let last = state.sessions.entry(session).or_default();
        if number <= *last {
            return report(session, number, 0, Outcome::Repeated);
        }
        *last = number;
        let trades = &mut state.trades;
        let mut on_fill = |side: Side, fill: &Fill| {
            *trades += 1;
            let Fill {
                maker: order,
                maker_owner,
                maker_remaining,
                taker_remaining,
                price,
                quantity,
            } = *fill;
            if cluster.role() == Role::Leader {
                let (buyer, seller) = match side {
                    Side::Buy => (session, maker_owner),
                    Side::Sell => (maker_owner, session),
                };
                print(&Trade {
                    number: *trades,
                    price,
                    quantity,
                    buyer,
                    seller,
                    time,
                });
            }
            report(
                maker_owner,
                0,
                maker_remaining,
                Outcome::Hit {
                    order,
                    price,
                    quantity,
                },
            );
            let outcome = Outcome::Traded { price, quantity };
            report(session, number, taker_remaining, outcome);
        };
        let (remaining, outcome) = match request.action {
            Action::Limit {
                side,
                price,
                quantity,
            } => {
                let on_fill = |fill: &Fill| on_fill(side, fill);
                match state.book.limit(session, side, price, quantity, on_fill) {
                    Ok(Placed::Filled) => (0, Outcome::Filled),
                    Ok(Placed::Rests { id, remaining }) => (remaining, Outcome::Rests(id)),
                    Err(rejection) => (quantity, Outcome::Rejected(rejection)),
                }
            }
            Action::Market { side, quantity } => {
                let on_fill = |fill: &Fill| on_fill(side, fill);
                match state.book.market(side, quantity, on_fill) {
                    Ok(0) => (0, Outcome::Filled),
                    Ok(remaining) => (remaining, Outcome::Cancelled),
                    Err(rejection) => (quantity, Outcome::Rejected(rejection)),
                }
            }
            Action::Cancel(id) => match state.book.cancel(session, id) {
                Ok(remaining) => (remaining, Outcome::Cancelled),
                Err(rejection) => (0, Outcome::Rejected(rejection)),
            },
        };
        report(session, number, remaining, outcome);
    }
}

impl<P: FnMut(&Trade) + Send> Service for MatchingEngine<P> {
    fn check_snapshot(&self, frames: &[Vec<u8>]) -> Result<(), String> {
        State::read(frames)
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn on_start(&mut self, _: &mut Cluster<'_>, snapshot: Option<&[Vec<u8>]>) {
        // It was checked.
        if let Some(Ok(state)) = snapshot.map(State::read) {
            self.state = state;
        }
    }

    fn on_session_open(&mut self, _: &mut Cluster<'_>, session: &ClientSession) {
        self.state.sessions.insert(session.id, 0);
    }

    /// Cancels the orders of the session: the next session of the client has another id, and could not.
    fn on_session_close(&mut self, _: &mut Cluster<'_>, session: &ClientSession, _: CloseReason) {
        self.state.sessions.remove(&session.id);
        self.state.book.cancel_all(session.id);
        self.answers.forget(session.id);
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        session: Option<&ClientSession>,
        message: &[u8],
    ) {
        // Messages without a session are of services, and this one sends none. Malformed ones have no answer.
        if let (Some(session), Some(request)) = (session, Request::decode(message)) {
            self.apply(cluster, session.id, &request);
        }
    }

    fn on_take_snapshot(&mut self, _: &mut Cluster<'_>, snapshot: &mut SnapshotWriter) {
        self.state.write(snapshot);
    }

    fn do_background_work(&mut self, cluster: &Cluster<'_>) -> usize {
        self.answers.flush(cluster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshot_has_book_sessions_and_the_number_of_trades() {
        let mut state = State::new();
        for number in 0..500_u32 {
            let owner = i64::from(number % 3);
            let (side, price) = (Side::Buy, 1 + number);
            let placed = state.book.limit(owner, side, price, 5, |_| ());
            placed.expect("it is valid");
            state.sessions.insert(owner, number.into());
        }
        state.book.cancel_all(1);
        state.trades = 77;
        let mut snapshot = SnapshotWriter::new();
        state.write(&mut snapshot);
        let frames = snapshot.into_frames();
        assert!(frames.len() > 2, "{} frames", frames.len());
        assert_eq!(State::read(&frames), Ok(state));
        let engine = MatchingEngine::new(|_| ());
        assert!(engine.check_snapshot(&frames).is_ok());
        let refused = engine.check_snapshot(&frames[..2]).unwrap_err();
        assert!(refused.contains("its header says"), "{refused}");
    }
}
