// SPDX-License-Identifier: Apache-2.0
//! Generated codecs: values in and out, groups, unknown tags, and the same judgement as the dictionary at run time.

use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use taran_fix::codec::{
    Decimal, Precision, RejectReason, Timestamp, Validation, WriteError, Writer,
};
use taran_fix::dict::{Checks, Dictionary, Tags, Validator, read_file};
use taran_fix::wire::{Frame, Framed, Framer, Header, Resync, checksum};
use taran_fix_codecs::fix44::{self, fields, new_order_single};
use taran_fix_codecs::{fix42, fix50sp2};

fn frame(bytes: &[u8]) -> Frame<'_> {
    match Framer::new(1 << 20, Resync::Length).next(bytes) {
        Framed::Message(frame) => frame,
        other => panic!("{other:?}"),
    }
}

fn message(begin: &str, fields: &str) -> Vec<u8> {
    let body = fields.replace('|', "\x01");
    let mut bytes = format!("8={begin}\x019={}\x01{body}", body.len()).into_bytes();
    let sum = checksum(&bytes);
    bytes.extend(format!("10={sum:03}\x01").into_bytes());
    bytes
}

fn header(msg_type: &'static [u8]) -> Header<'static> {
    Header {
        begin_string: fix44::BEGIN_STRING,
        msg_type,
        sender: b"BUY",
        target: b"SELL",
        seq: 12,
        sending_time: Timestamp::parse(b"20240102-03:04:05.678").expect("valid"),
        precision: Precision::Millis,
    }
}

const HEADER: &str = "34=2|49=A|52=20240102-03:04:05.678|56=B|";

#[test]
fn order_encoded_and_decoded_is_equal() {
    let time = Timestamp::parse(b"20240102-03:04:05").expect("valid");
    let price = Decimal::new(10_125, 2).expect("valid");
    let mut buffer = [0; 1024];
    let bytes = header(new_order_single::MSG_TYPE).write(&mut buffer, |writer| {
        let mut order = new_order_single::NewOrderSingleEncoder::new(writer);
        order
            .cl_ord_id("id-1")
            .no_party_ids(2, |index, party| {
                party
                    .party_id(format!("P{index}"))
                    .party_role(fields::PartyRole::ClientId);
                if index == 1 {
                    party.no_party_sub_ids(1, |_, sub| {
                        sub.party_sub_id("sub").party_sub_id_type(7);
                    });
                }
            })
            .symbol("MSFT")
            .side(fields::Side::Buy)
            .transact_time(time, Precision::Seconds)
            .order_qty(Decimal::from(100))
            .ord_type(fields::OrdType::Limit)
            .price(price)
            .encoded_text(b"a\x01b")
            .encoded(b"5001=own\x01");
        order.finish();
    });
    let bytes = bytes.expect("all is set");
    let frame = frame(bytes);
    let order = new_order_single::NewOrderSingle::decode(&frame, Validation::Full).expect("valid");
    assert_eq!(order.cl_ord_id(), Some(&b"id-1"[..]));
    assert_eq!(order.side(), Some(fields::Side::Buy));
    assert_eq!(order.price(), Some(price));
    assert_eq!(order.price_raw(), Some(&b"101.25"[..]));
    assert_eq!(order.transact_time(), Some(time));
    assert_eq!(order.encoded_text(), Some(&b"a\x01b"[..]));
    assert_eq!(order.stop_px(), None);
    let parties = order.no_party_ids();
    let ids: Vec<_> = parties.iter().map(|party| party.party_id()).collect();
    assert_eq!(ids, [Some(&b"P0"[..]), Some(b"P1")]);
    let subs: Vec<_> = parties
        .iter()
        .map(|party| party.no_party_sub_ids().count())
        .collect();
    assert_eq!(subs, [0, 1]);
    assert_eq!(order.unknown().collect::<Vec<_>>(), [(5001, &b"own"[..])]);
    let header = fix44::header::Header::decode(&frame, Validation::None).expect("valid");
    assert_eq!(
        (header.msg_seq_num(), header.sender_comp_id()),
        (Some(12), Some(&b"BUY"[..]))
    );
}

#[test]
fn encoder_incomplete_or_wrong_messages_are_refused() {
    let encode = |set: fn(&mut new_order_single::NewOrderSingleEncoder<'_, '_>)| {
        let mut buffer = [0; 512];
        let mut writer = Writer::new(&mut buffer);
        let mut order = new_order_single::NewOrderSingleEncoder::new(&mut writer);
        set(&mut order);
        order.finish();
        writer.finish().map(<[u8]>::len)
    };
    assert_eq!(encode(|_| {}), Err(WriteError::Missing { tag: 11 }));
    assert_eq!(
        encode(|order| {
            order.cl_ord_id("a\x01b");
        }),
        Err(WriteError::Value { tag: 11 })
    );
    assert_eq!(
        encode(|order| {
            order.cl_ord_id("a").cl_ord_id("b");
        }),
        Err(WriteError::Twice { tag: 11 })
    );
    let started = encode(|order| {
        order.no_party_ids(1, |_, party| {
            party.party_role(fields::PartyRole::ClientId);
        });
    });
    assert_eq!(
        started,
        Err(WriteError::GroupStart {
            group: 452,
            first: 448
        })
    );
}

#[test]
fn enum_unknown_values_are_kept() {
    let fields = format!("35=D|{HEADER}11=i|55=S|54=Z|60=20240102-03:04:05|38=1|40=1|");
    let bytes = message("FIX.4.4", &fields);
    let frame = frame(&bytes);
    let order =
        new_order_single::NewOrderSingle::decode(&frame, Validation::Required).expect("valid");
    assert_eq!(order.side(), Some(fields::Side::Other(b'Z')));
    assert_eq!(fields::Side::Other(b'Z').value(), b'Z');
    let fault =
        new_order_single::NewOrderSingle::decode(&frame, Validation::Full).expect_err("not a side");
    assert_eq!(
        (fault.reason, fault.tag),
        (RejectReason::ValueOutOfRange, Some(54))
    );
    let wrong = fix44::execution_report::ExecutionReport::decode(&frame, Validation::None);
    assert!(wrong.is_err());
}

#[test]
fn group_foreign_tag_does_not_end_it() {
    let fields = format!(
        "35=D|{HEADER}11=i|453=2|448=P|5001=x|447=D|448=Q|5002=y|55=S|54=1|60=20240102-03:04:05|38=1|40=1|"
    );
    let bytes = message("FIX.4.4", &fields);
    let order =
        new_order_single::NewOrderSingle::decode(&frame(&bytes), Validation::Full).expect("valid");
    let parties: Vec<_> = order.no_party_ids().iter().collect();
    assert_eq!(parties.len(), 2);
    assert_eq!(parties[0].party_id_source_raw(), Some(&b"D"[..]));
    assert_eq!(
        parties[0].unknown().collect::<Vec<_>>(),
        [(5001, &b"x"[..])]
    );
    // Behind the last member it belongs to the message.
    assert_eq!(order.unknown().collect::<Vec<_>>(), [(5002, &b"y"[..])]);
    assert_eq!(order.symbol(), Some(&b"S"[..]));
}

#[test]
fn versions_have_their_own_names_and_header() {
    let fields = format!("35=D|{HEADER}11=i|21=1|55=S|54=1|60=20240102-03:04:05|40=1|22=4|");
    let bytes = message("FIX.4.2", &fields);
    let order = fix42::new_order_single::NewOrderSingle::decode(&frame(&bytes), Validation::Full)
        .expect("valid");
    assert_eq!(order.id_source(), Some(fix42::fields::IdSource::IsinNumber));
    let fields = format!(
        "35=AE|1128=9|{HEADER}1003=T|32=5|31=1.5|75=20240102|60=20240102-03:04:05|552=2|54=1|453=1|448=P|54=2|58=x|"
    );
    let bytes = message("FIXT.1.1", &fields);
    let frame = frame(&bytes);
    let report =
        fix50sp2::trade_capture_report::TradeCaptureReport::decode(&frame, Validation::Full)
            .expect("valid");
    let parties: Vec<u64> = report
        .no_sides()
        .iter()
        .map(|side| side.no_party_ids().count())
        .collect();
    assert_eq!(parties, [1, 0]);
    let header = fix50sp2::header::Header::decode(&frame, Validation::Full).expect("valid");
    assert_eq!(
        header.appl_ver_id(),
        Some(fix50sp2::fields::ApplVerId::Fix50Sp2)
    );
}

static FIX44: LazyLock<Dictionary> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dictionary/FIX44.xml");
    read_file(path).expect("valid")
});

/// Choices of the run-time checker that generated decoders have.
fn checks(level: Validation) -> Checks {
    Checks {
        level,
        unknown: Tags::Keep,
        foreign: Tags::Keep,
        group_order: false,
        have_values: true,
        section_order: false,
    }
}

/// Fields that orders can have, among them groups, data, and wrong values.
fn any_field() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "11=id|",
        "1=acc|",
        "21=1|",
        "55=S|",
        "54=1|",
        "54=Z|",
        "60=20240102-03:04:05|",
        "60=x|",
        "38=100|",
        "38=+1|",
        "40=1|",
        "44=1.5|",
        "453=1|448=P|",
        "453=2|448=P|448=Q|447=D|",
        "453=2|448=P|802=1|523=s|448=Q|",
        "453=1|447=D|",
        "453=2|448=P|",
        "453=0|",
        "354=3|355=a|b|",
        "354=9|355=a|",
        "5001=x|",
        "41=foreign|",
        "44=|",
        "abc|",
        "0=x|",
        "448=stray|",
        "523=stray|",
        "78=1|79=A|539=1|524=N|80=5|",
        "78=2|79=A|79=B|467=i|",
        "18=1 2|",
        "18=1 Z|",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn generated_decoder_and_run_time_checker_agree(parts in prop::collection::vec(any_field(), 0..14)) {
        let base = "11=i|55=S|54=1|60=20240102-03:04:05|38=1|40=1|";
        for start in ["", base] {
            let bytes = message("FIX.4.4", &format!("35=D|{HEADER}{start}{}", parts.concat()));
            let frame = frame(&bytes);
            for level in [Validation::Framing, Validation::Required, Validation::Full] {
                let generated = new_order_single::NewOrderSingle::decode(&frame, level).is_ok();
                let at_run_time = Validator::new(checks(level)).validate(&FIX44, &frame);
                prop_assert_eq!(generated, at_run_time.is_ok(), "{:?} {:?} {}", level, at_run_time, parts.concat());
            }
        }
    }

    #[test]
    fn decoder_any_bytes_are_decoded_or_refused(body in "[ -~\x01]{0,200}") {
        let bytes = message("FIX.4.4", &format!("35=D|{body}|"));
        if let Framed::Message(frame) = Framer::new(1 << 20, Resync::Length).next(&bytes)
            && let Ok(order) = new_order_single::NewOrderSingle::decode(&frame, Validation::None)
        {
            let parties = order.no_party_ids().iter().count() + order.no_allocs().iter().count();
            prop_assert!(parties + order.unknown().count() <= body.len());
        }
    }
}
