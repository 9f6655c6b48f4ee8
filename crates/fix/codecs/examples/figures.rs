// SPDX-License-Identifier: Apache-2.0
//! Nanoseconds per message: framing, decoding and encoding of NewOrderSingle and ExecutionReport.
//!
//! Each figure is the median of rounds that alternate between the subjects; the smallest and largest are beside it.

use std::hint::black_box;
use std::time::Instant;

use taran_fix::codec::{Decimal, Precision, Timestamp, Validation};
use taran_fix::wire::{Frame, Framed, Framer, Header, Resync};
use taran_fix_codecs::fix44::{BEGIN_STRING, execution_report, fields, new_order_single};

const ROUNDS: usize = 31;
const MESSAGES: u32 = 20_000;

fn time() -> Timestamp {
    Timestamp::from_nanos(1_767_614_400_123_000_000)
}

fn header(msg_type: &'static [u8]) -> Header<'static> {
    Header {
        begin_string: BEGIN_STRING,
        msg_type,
        sender: b"BUYSIDE",
        target: b"SELLSIDE",
        seq: 123_456,
        sending_time: time(),
        precision: Precision::Millis,
    }
}

fn number(mantissa: i64, scale: u8) -> Decimal {
    Decimal::new(mantissa, scale).expect("the scale is small")
}

fn order(buffer: &mut [u8]) -> &[u8] {
    let written = header(new_order_single::MSG_TYPE).write(buffer, |writer| {
        let mut order = new_order_single::NewOrderSingleEncoder::new(writer);
        order
            .cl_ord_id(b"ORD-20260105-000123")
            .account(b"ACC-42")
            .handl_inst(fields::HandlInst::AutomatedExecutionNoIntervention)
            .symbol(b"MSFT")
            .side(fields::Side::Buy)
            .transact_time(time(), Precision::Millis)
            .order_qty(Decimal::from(1500))
            .ord_type(fields::OrdType::Limit)
            .price(number(41_235, 2))
            .time_in_force(fields::TimeInForce::Day);
        order.finish();
    });
    written.expect("it fits")
}

fn report(buffer: &mut [u8]) -> &[u8] {
    let written = header(execution_report::MSG_TYPE).write(buffer, |writer| {
        let mut report = execution_report::ExecutionReportEncoder::new(writer);
        report
            .order_id(b"0000000000123456")
            .cl_ord_id(b"ORD-20260105-000123")
            .no_party_ids(2, |index, party| {
                party
                    .party_id(if index == 0 { b"FIRM-A" } else { b"FIRM-B" })
                    .party_id_source(fields::PartyIdSource::Proprietary)
                    .party_role(fields::PartyRole::ExecutingFirm);
            })
            .exec_id(b"EX-20260105-0000777")
            .exec_type(fields::ExecType::Trade)
            .ord_status(fields::OrdStatus::PartiallyFilled)
            .account(b"ACC-42")
            .symbol(b"MSFT")
            .side(fields::Side::Buy)
            .order_qty(Decimal::from(1500))
            .price(number(41_235, 2))
            .last_qty(Decimal::from(500))
            .last_px(number(41_230, 2))
            .leaves_qty(Decimal::from(1000))
            .cum_qty(Decimal::from(500))
            .avg_px(number(41_230, 2))
            .transact_time(time(), Precision::Millis);
        report.finish();
    });
    written.expect("it fits")
}

fn framed(bytes: &[u8]) -> Frame<'_> {
    match Framer::new(1 << 20, Resync::Length).next(bytes) {
        Framed::Message(frame) => frame,
        other => panic!("{other:?}"),
    }
}

/// Returns the nanoseconds per call.
fn measure(mut act: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..MESSAGES {
        act();
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(MESSAGES)
}

/// Name, length of the message, and a round that returns nanoseconds.
type Subject = (&'static str, usize, Box<dyn FnMut() -> f64>);

fn main() {
    let mut buffers = [[0; 1024]; 2];
    let [first, second] = &mut buffers;
    let (order_bytes, report_bytes) = (order(first).to_vec(), report(second).to_vec());
    let mut scratch = [0; 1024];
    let mut subjects: Vec<Subject> = vec![
        ("NewOrderSingle: frame", order_bytes.len(), {
            let bytes = order_bytes.clone();
            Box::new(move || {
                measure(|| {
                    black_box(framed(black_box(&bytes)));
                })
            })
        }),
        (
            "NewOrderSingle: frame, decode, read 6 fields",
            order_bytes.len(),
            {
                let bytes = order_bytes.clone();
                Box::new(move || {
                    measure(|| {
                        let frame = framed(black_box(&bytes));
                        let order =
                            new_order_single::NewOrderSingle::decode(&frame, Validation::Required);
                        let order = order.expect("valid");
                        black_box((order.cl_ord_id(), order.symbol(), order.side()));
                        black_box((order.order_qty(), order.price(), order.transact_time()));
                    })
                })
            },
        ),
        (
            "NewOrderSingle: the same, fully validated",
            order_bytes.len(),
            {
                let bytes = order_bytes.clone();
                Box::new(move || {
                    measure(|| {
                        let frame = framed(black_box(&bytes));
                        let order =
                            new_order_single::NewOrderSingle::decode(&frame, Validation::Full);
                        let order = order.expect("valid");
                        black_box((order.cl_ord_id(), order.symbol(), order.side()));
                        black_box((order.order_qty(), order.price(), order.transact_time()));
                    })
                })
            },
        ),
        ("NewOrderSingle: encode", order_bytes.len(), {
            Box::new(move || {
                measure(|| {
                    black_box(order(black_box(&mut scratch)).len());
                })
            })
        }),
        ("ExecutionReport: frame", report_bytes.len(), {
            let bytes = report_bytes.clone();
            Box::new(move || {
                measure(|| {
                    black_box(framed(black_box(&bytes)));
                })
            })
        }),
        (
            "ExecutionReport: frame, decode, read 8 fields",
            report_bytes.len(),
            {
                let bytes = report_bytes.clone();
                Box::new(move || {
                    measure(|| {
                        let frame = framed(black_box(&bytes));
                        let report =
                            execution_report::ExecutionReport::decode(&frame, Validation::Required);
                        let report = report.expect("valid");
                        black_box((
                            report.order_id(),
                            report.exec_id(),
                            report.exec_type(),
                            report.ord_status(),
                        ));
                        black_box((
                            report.last_qty(),
                            report.last_px(),
                            report.leaves_qty(),
                            report.cum_qty(),
                        ));
                    })
                })
            },
        ),
        ("ExecutionReport: encode", report_bytes.len(), {
            let mut scratch = [0; 1024];
            Box::new(move || {
                measure(|| {
                    black_box(report(black_box(&mut scratch)).len());
                })
            })
        }),
    ];
    let mut figures = vec![Vec::new(); subjects.len()];
    for _ in 0..ROUNDS {
        for (figure, (_, _, run)) in figures.iter_mut().zip(&mut subjects) {
            figure.push(run());
        }
    }
    for (figure, (name, length, _)) in figures.iter_mut().zip(&subjects) {
        figure.sort_by(f64::total_cmp);
        let (low, median, high) = (figure[0], figure[ROUNDS / 2], figure[ROUNDS - 1]);
        println!("{name:<46} {length:>4} bytes {median:>8.1} ns ({low:.1} to {high:.1})");
    }
}
