// SPDX-License-Identifier: Apache-2.0
//! Decoders accept or reject arbitrary bytes without a panic.

use proptest::collection::vec;
use proptest::prelude::*;
use taran_sbe_codecs::show;

use crate::{book, garage, music, quote, weather};

/// Returns a message with some bytes changed, possibly truncated.
fn broken() -> impl Strategy<Value = Vec<u8>> {
    let messages = [garage::v0, garage::v1, garage::v2].map(garage::bytes);
    let discs = [music::v0, music::v1].map(garage::bytes);
    let reports = [weather::v0, weather::v1, weather::calm_v0, weather::calm_v1];
    let prices = [quote::v5, quote::v6, book::v5, book::v6];
    let messages = messages
        .into_iter()
        .chain(discs)
        .chain(reports.map(garage::bytes))
        .chain(prices.map(garage::bytes));
    let messages: Vec<_> = messages.collect();
    let changes = vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (
        prop::sample::select(messages),
        changes,
        any::<prop::sample::Index>(),
    )
        .prop_map(|(mut bytes, changes, end)| {
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            // Half of the messages are not truncated.
            bytes.truncate(end.index(2 * bytes.len()) + 1);
            bytes
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn decode_arbitrary_bytes_never_panics(bytes in vec(any::<u8>(), 0..200)) {
        let mut shown = String::new();
        show(&bytes, &mut shown).unwrap();
        prop_assert_eq!(shown.lines().count(), 16);
    }

    #[test]
    fn decode_corrupted_messages_never_panics(bytes in broken()) {
        let mut shown = String::new();
        show(&bytes, &mut shown).unwrap();
        prop_assert_eq!(shown.lines().count(), 16);
    }
}
