// SPDX-License-Identifier: Apache-2.0
//! A quote in each version of its schema.

use taran_sbe::runtime::EncodeError;
use taran_sbe_codecs::{ticks_v5, ticks_v6};

macro_rules! quote {
    ($version:ident, $buffer:expr, |$quote:ident| $fields:block, |$level:ident, $tag:ident| $more:block,
     |$leg:ident| $weight:block, |$last:ident| $end:expr) => {{
        use $version::quote::QuoteEncoder;
        use $version::types::{FrameEncoder, Marks, Side};

        let own = |frame: &mut FrameEncoder<'_>| {
            frame.magic(0xBEEF);
        };
        let mut $quote = QuoteEncoder::encode_with($buffer, own)?;
        $quote
            .time(0x0102_0304_0506_0708)
            .price(None)
            .depth(&[1.0, -2.0])
            .side(Side::Unknown_)
            .marks(Marks::OPEN | Marks::LAST)
            .gap(None);
        $fields
        let mut levels = $quote.levels()?;
        for (price, $tag) in [(1, "a"), (-1, "bc")] {
            let mut $level = levels.entry()?;
            $level.price(price).size(7);
            $more
            levels = $level.tag($tag)?.done();
        }
        let mut legs = levels.done().legs()?;
        let mut $leg = legs.entry()?;
        $leg.ratio(-3);
        $weight
        let $last = legs.done()?.raw([9; 3])?;
        Ok($end.finish())
    }};
}

/// Encodes a message of version 5 and returns its length.
pub(crate) fn v5(buffer: &mut [u8]) -> Result<usize, EncodeError> {
    quote!(
        ticks_v5,
        buffer,
        |quote| {},
        |level, tag| {},
        |leg| {},
        |quote| quote
    )
}

/// Encodes the same message with the additions of version 6: within the blocks of version 5, after them, and at the
/// end.
pub(crate) fn v6(buffer: &mut [u8]) -> Result<usize, EncodeError> {
    quote!(
        ticks_v6,
        buffer,
        |quote| {
            quote.venue(0x0A0B).lots(&[0.5, 1e9]);
        },
        |level, tag| {
            // The fields that are not set are null.
            if tag == "a" {
                level.orders(2.5);
            }
        },
        |leg| {
            leg.weight(0.75);
        },
        |quote| quote.memo("späte")?
    )
}
