// SPDX-License-Identifier: Apache-2.0
//! FIX messages: frames in any bytes, and fields that decoders and the checker at run time judge alike.

use std::sync::LazyLock;

use taran_fix::codec::Validation;
use taran_fix::dict::decode::{Log, decode};
use taran_fix::dict::{Checks, Dictionary, Tags, Validator, read_text};
use taran_fix::wire::{Frame, Framed, Framer, Resync, checksum};
use taran_fix_codecs::fix44::{
    execution_report, market_data_incremental_refresh, new_order_single,
};

use crate::allocation;

/// Dictionary of the generated decoders.
pub static FIX44: LazyLock<Dictionary> = LazyLock::new(|| {
    let text = include_str!("../../../crates/fix/dictionary/FIX44.xml");
    read_text("FIX44.xml", text).unwrap_or_else(|rejected| panic!("{rejected}"))
});

/// Reads the input as received bytes, as a log, and as fields of messages.
pub fn run(bytes: &[u8]) {
    for resync in [Resync::Length, Resync::Scan] {
        frames(bytes, Framer::new(1 << 16, resync));
    }
    let mut validator = Validator::new(Checks::default());
    for found in Log::new(bytes).take(16) {
        assert!(found.offset < bytes.len());
        let decoded = decode(&found.bytes, Some(&FIX44), &mut validator, &[554]);
        assert!(decoded.lines.len() <= found.bytes.len());
    }
    for msg_type in ["D", "8", "X"] {
        let message = message(msg_type, bytes);
        if let Framed::Message(frame) = Framer::new(1 << 20, Resync::Length).next(&message) {
            judge(msg_type, &frame);
        }
    }
}

fn frames(bytes: &[u8], framer: Framer) {
    let mut at = 0;
    loop {
        match framer.next(&bytes[at..]) {
            Framed::Incomplete => break,
            Framed::Garbled { length, reason } => {
                assert!(length > 0, "{reason}");
                at += length;
            }
            Framed::Message(frame) => {
                assert!(!frame.msg_type().is_empty() && !frame.begin_string().is_empty());
                assert_eq!(
                    frame
                        .fields()
                        .next()
                        .and_then(Result::ok)
                        .map(|field| field.tag),
                    Some(35)
                );
                at += frame.bytes().len();
            }
        }
        assert!(at <= bytes.len());
    }
}

fn message(msg_type: &str, fields: &[u8]) -> Vec<u8> {
    let mut body =
        format!("35={msg_type}\x0134=2\x0149=A\x0152=20240102-03:04:05\x0156=B\x01").into_bytes();
    body.extend_from_slice(fields);
    body.push(1);
    let mut bytes = format!("8=FIX.4.4\x019={}\x01", body.len()).into_bytes();
    bytes.extend(body);
    let sum = checksum(&bytes);
    bytes.extend(format!("10={sum:03}\x01").into_bytes());
    bytes
}

/// Compares generated decoder and checker at run time, with the choices that both have.
fn judge(msg_type: &str, frame: &Frame<'_>) {
    for level in [Validation::Framing, Validation::Required, Validation::Full] {
        let is_valid = allocation::within(0, || match msg_type {
            "D" => new_order_single::NewOrderSingle::decode(frame, level).is_ok(),
            "8" => execution_report::ExecutionReport::decode(frame, level).is_ok(),
            _ => {
                market_data_incremental_refresh::MarketDataIncrementalRefresh::decode(frame, level)
                    .is_ok()
            }
        });
        // The checker knows header and trailer besides: it may refuse more.
        let checks = Checks {
            level,
            unknown: Tags::Keep,
            foreign: Tags::Keep,
            group_order: false,
            have_values: true,
            section_order: false,
        };
        let at_run_time = Validator::new(checks).validate(&FIX44, frame);
        assert!(is_valid || at_run_time.is_err(), "{level:?}");
    }
    if let Ok(order) = new_order_single::NewOrderSingle::decode(frame, Validation::None) {
        let length = frame.bytes().len();
        let entries = order.no_party_ids().iter().count() + order.no_allocs().iter().count();
        assert!(entries + order.unknown().count() <= length);
    }
}
