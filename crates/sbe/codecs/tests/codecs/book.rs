// SPDX-License-Identifier: Apache-2.0
//! An order book in each version of its schema: groups nested three deep, with data in the entries of each.

use taran_sbe::runtime::EncodeError;
use taran_sbe_codecs::{ticks_v5, ticks_v6};

/// Orders of one side of a venue: number, price and owner.
type Orders = &'static [(u64, Option<i64>, &'static str)];

/// Sides of a venue, with a note. There is at least one side; its orders can be empty.
type Sides = &'static [(u16, Orders, &'static str)];

/// Venues, with their names.
const VENUES: [(u16, &str, Sides); 3] = [
    (
        1,
        "Zürich",
        &[
            (1, &[(11, Some(100), "Ada"), (12, None, "")], "bids"),
            (2, &[(13, Some(101), "Grace")], ""),
        ],
    ),
    (2, "", &[(2, &[], "empty")]),
    (
        3,
        "Oslo",
        &[
            (1, &[], ""),
            (2, &[(14, Some(-1), "Æ")], "asks"),
            (
                1,
                &[(15, Some(0), "b"), (16, Some(1), "c"), (17, Some(2), "d")],
                "more",
            ),
        ],
    ),
];

macro_rules! book {
    ($version:ident, $buffer:expr, |$book:ident| $fields:block, |$venue:ident, $code:ident| $fee:block,
     |$side:ident, $count:ident| $total:block, |$order:ident, $number:ident| $marks:block, |$last:ident| $end:expr) => {{
        use $version::book::BookEncoder;
        use $version::types::{FrameEncoder, Side};

        let own = |frame: &mut FrameEncoder<'_>| {
            frame.magic(0xF00D);
        };
        let mut $book = BookEncoder::encode_with($buffer, own)?;
        $book.time(7);
        $fields
        let mut venues = $book.venues()?;
        for ($code, name, all) in VENUES {
            let mut $venue = venues.entry()?;
            $venue.code($code);
            $fee
            let mut sides = $venue.sides()?;
            for &(which, all, note) in all {
                let $count = all.len();
                let mut $side = sides.entry()?;
                $side.side(Side::from_raw(which));
                $total
                let mut orders = $side.orders()?;
                for &($number, price, owner) in all {
                    let mut $order = orders.entry()?;
                    $order.number($number).price(price);
                    $marks
                    orders = $order.owner(owner)?.done();
                }
                sides = orders.done().note(note)?.done();
            }
            venues = sides.done()?.name(name)?.done();
        }
        let $last = venues.done().source([1, 2])?;
        Ok($end.finish())
    }};
}

/// Encodes a message of version 5 and returns its length.
pub(crate) fn v5(buffer: &mut [u8]) -> Result<usize, EncodeError> {
    book!(
        ticks_v5,
        buffer,
        |book| {},
        |venue, code| {},
        |side, _count| {},
        |order, number| {},
        |book| book
    )
}

/// Encodes the same message with the additions of version 6 to the blocks of each depth, and at the end.
pub(crate) fn v6(buffer: &mut [u8]) -> Result<usize, EncodeError> {
    use ticks_v6::types::Marks;
    book!(
        ticks_v6,
        buffer,
        |book| {
            book.sequence(0x0102_0304);
        },
        |venue, code| {
            // The fields that are not set are null.
            if code == 1 {
                venue.fee(0.25);
            }
        },
        |side, count| {
            side.total(count as u32);
        },
        |order, number| {
            if number % 2 == 0 {
                order.marks(Marks::LAST);
            }
        },
        |book| book.digest("süß")?
    )
}
