// SPDX-License-Identifier: Apache-2.0
//! Messages between the engine and its clients: fixed length, little-endian.

use super::book::{OrderId, Rejection, Side};
use super::support::chunks::{u32_at, u64_at};

/// Length of a request.
pub(crate) const REQUEST_LENGTH: usize = 32;
/// Length of a report.
pub(crate) const REPORT_LENGTH: usize = 40;

/// Wish of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Limit {
        side: Side,
        price: u32,
        quantity: u32,
    },
    Market {
        side: Side,
        quantity: u32,
    },
    Cancel(OrderId),
}

/// A request. A client gives each a higher number than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) number: u64,
    pub(crate) action: Action,
}

impl Request {
    /// Layout: kind at 0, side at 1, price at 4, quantity at 8, number at 16, order at 24.
    pub(crate) fn encode(&self) -> [u8; REQUEST_LENGTH] {
        let (kind, side, price, quantity, order) = match self.action {
            Action::Limit {
                side,
                price,
                quantity,
            } => (0, side, price, quantity, 0),
            Action::Market { side, quantity } => (1, side, 0, quantity, 0),
            Action::Cancel(OrderId(order)) => (2, Side::Buy, 0, 0, order),
        };
        let mut bytes = [0; REQUEST_LENGTH];
        bytes[0] = kind;
        bytes[1] = u8::from(side == Side::Sell);
        bytes[4..8].copy_from_slice(&price.to_le_bytes());
        bytes[8..12].copy_from_slice(&quantity.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&order.to_le_bytes());
        bytes
    }

    /// Decodes a request; none if it is malformed.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; REQUEST_LENGTH] = bytes.try_into().ok()?;
        let side = side(bytes[1])?;
        let (price, quantity) = (u32_at(bytes, 4)?, u32_at(bytes, 8)?);
        let action = match bytes[0] {
            0 => Action::Limit {
                side,
                price,
                quantity,
            },
            1 => Action::Market { side, quantity },
            2 => Action::Cancel(OrderId(u64_at(bytes, 24)?)),
            _ => return None,
        };
        Some(Self {
            number: u64_at(bytes, 16)?,
            action,
        })
    }
}

/// Fate of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A part of the request's order traded: others follow.
    Traded { price: u32, quantity: u32 },
    /// The order rests in the book with this id.
    Rests(OrderId),
    /// The order traded as a whole.
    Filled,
    /// The order is cancelled, or there is nothing for the rest of a market order.
    Cancelled,
    /// The request changes nothing.
    Rejected(Rejection),
    /// The request was applied before: its reports are lost.
    Repeated,
    /// An order of the client that rests has traded.
    Hit {
        order: OrderId,
        price: u32,
        quantity: u32,
    },
}

/// A report to a client. The last one of a request is any but [`Outcome::Traded`] and [`Outcome::Hit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// Number of the request; 0 for [`Outcome::Hit`].
    pub(crate) number: u64,
    /// Quantity that the order has left.
    pub(crate) remaining: u32,
    /// Time of the cluster.
    pub(crate) time: i64,
    pub(crate) outcome: Outcome,
}

impl Report {
    /// Layout: kind at 0, reason at 1, price at 4, quantity at 8, remaining at 12, number at 16, order at 24, time at 32.
    pub(crate) fn encode(&self) -> [u8; REPORT_LENGTH] {
        let (mut reason, mut price, mut quantity, mut order) = (0, 0, 0, 0);
        let kind = match self.outcome {
            Outcome::Traded {
                price: at,
                quantity: of,
            } => {
                (price, quantity) = (at, of);
                0
            }
            Outcome::Rests(OrderId(id)) => {
                order = id;
                1
            }
            Outcome::Filled => 2,
            Outcome::Cancelled => 3,
            Outcome::Rejected(rejection) => {
                reason = match rejection {
                    Rejection::Price => 0,
                    Rejection::Quantity => 1,
                    Rejection::Full => 2,
                    Rejection::UnknownOrder => 3,
                };
                4
            }
            Outcome::Repeated => 5,
            Outcome::Hit {
                order: OrderId(id),
                price: at,
                quantity: of,
            } => {
                (order, price, quantity) = (id, at, of);
                6
            }
        };
        let mut bytes = [0; REPORT_LENGTH];
        (bytes[0], bytes[1]) = (kind, reason);
        bytes[4..8].copy_from_slice(&price.to_le_bytes());
        bytes[8..12].copy_from_slice(&quantity.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.remaining.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&order.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.time.to_le_bytes());
        bytes
    }

    /// Decodes a report; none if it is malformed.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; REPORT_LENGTH] = bytes.try_into().ok()?;
        let (price, quantity) = (u32_at(bytes, 4)?, u32_at(bytes, 8)?);
        let order = OrderId(u64_at(bytes, 24)?);
        let outcome = match (bytes[0], bytes[1]) {
            (0, _) => Outcome::Traded { price, quantity },
            (1, _) => Outcome::Rests(order),
            (2, _) => Outcome::Filled,
            (3, _) => Outcome::Cancelled,
            (4, 0) => Outcome::Rejected(Rejection::Price),
            (4, 1) => Outcome::Rejected(Rejection::Quantity),
            (4, 2) => Outcome::Rejected(Rejection::Full),
            (4, 3) => Outcome::Rejected(Rejection::UnknownOrder),
            (5, _) => Outcome::Repeated,
            (6, _) => Outcome::Hit {
                order,
                price,
                quantity,
            },
            _ => return None,
        };
        Some(Self {
            number: u64_at(bytes, 16)?,
            remaining: u32_at(bytes, 12)?,
            time: u64_at(bytes, 32)?.cast_signed(),
            outcome,
        })
    }
}

fn side(byte: u8) -> Option<Side> {
    match byte {
        0 => Some(Side::Buy),
        1 => Some(Side::Sell),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_and_others_are_refused() {
        let (side, price, quantity) = (Side::Sell, 101, 7);
        for action in [
            Action::Limit {
                side,
                price,
                quantity,
            },
            Action::Market { side, quantity },
            Action::Cancel(OrderId(1 << 40 | 3)),
        ] {
            let request = Request { number: 9, action };
            let bytes = request.encode();
            assert_eq!(Request::decode(&bytes), Some(request));
            assert_eq!(Request::decode(&bytes[1..]), None);
        }
        let order = OrderId(1 << 40 | 3);
        for outcome in [
            Outcome::Traded { price, quantity },
            Outcome::Rests(order),
            Outcome::Filled,
            Outcome::Cancelled,
            Outcome::Rejected(Rejection::Price),
            Outcome::Rejected(Rejection::Quantity),
            Outcome::Rejected(Rejection::Full),
            Outcome::Rejected(Rejection::UnknownOrder),
            Outcome::Repeated,
            Outcome::Hit {
                order,
                price,
                quantity,
            },
        ] {
            let report = Report {
                number: 9,
                remaining: 4,
                time: -1,
                outcome,
            };
            let bytes = report.encode();
            assert_eq!(Report::decode(&bytes), Some(report));
            assert_eq!(Report::decode(&bytes[1..]), None);
        }
        let mut bytes = [0; REQUEST_LENGTH];
        bytes[0] = 3;
        assert_eq!(Request::decode(&bytes), None, "no such kind");
        (bytes[0], bytes[1]) = (0, 2);
        assert_eq!(Request::decode(&bytes), None, "no such side");
    }
}
