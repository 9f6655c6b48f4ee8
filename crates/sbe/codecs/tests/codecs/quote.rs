//! A quote.

use taran_sbe_codecs::ticks::quote::QuoteEncoder;
use taran_sbe_codecs::ticks::types::{FrameEncoder, Marks, Side};

/// The bytes of a quote.
pub(crate) fn bytes() -> Vec<u8> {
    let mut buffer = vec![0xAA; 256];
    let own = |frame: &mut FrameEncoder<'_>| {
        frame.magic(0xBEEF);
    };
    let mut quote = QuoteEncoder::encode_with(&mut buffer, own).unwrap();
    quote
        .time(0x0102_0304_0506_0708)
        .price(None)
        .depth(&[1.0, -2.0])
        .side(Side::Unknown_)
        .marks(Marks::OPEN | Marks::LAST)
        .gap(None);
    let mut levels = quote.levels().unwrap();
    for (price, tag) in [(1, "a"), (-1, "bc")] {
        let mut level = levels.entry().unwrap();
        level.price(price).size(7);
        levels = level.tag(tag).unwrap().done();
    }
    let mut legs = levels.done().legs().unwrap();
    legs.entry().unwrap().ratio(-3);
    let length = legs.done().unwrap().raw([9; 3]).unwrap().finish();
    buffer.truncate(length);
    buffer
}
