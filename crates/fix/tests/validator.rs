// SPDX-License-Identifier: Apache-2.0
//! Checks of messages at run time: each reason of a Reject, and each choice.

mod shared;

use shared::{dictionary, fix50, frame, message};
use taran_fix::dict::decode::{self, Log};
use taran_fix::dict::{Checks, Dictionary, Fault, RejectReason, Tags, Validation, Validator};

const HEADER: &str = "34=2|49=A|52=20240102-03:04:05.678|56=B|";
const ORDER: &str = "11=id|55=S|54=1|60=20240102-03:04:05|38=100|40=1|";

fn check(dictionary: &Dictionary, checks: Checks, fields: &str) -> Result<(), Fault> {
    let bytes = message("FIX.4.4", fields);
    Validator::new(checks).validate(dictionary, &frame(&bytes))
}

fn found(dictionary: &Dictionary, fields: &str) -> Option<(RejectReason, Option<i64>)> {
    check(dictionary, Checks::default(), fields)
        .err()
        .map(|fault| (fault.reason, fault.tag))
}

#[test]
fn validator_valid_messages_pass() {
    let fix44 = dictionary("FIX44.xml");
    for fields in [
        format!("35=D|{HEADER}{ORDER}"),
        // Header and body in another order.
        "35=D|56=B|52=20240102-03:04:05|49=A|34=2|40=2|44=1.5|38=1|60=20240102-03:04:05|54=2|11=x|"
            .to_owned(),
        format!(
            "35=D|{HEADER}{ORDER}453=2|448=P|447=D|452=1|802=2|523=a|803=1|523=b|448=Q|447=D|452=3|58=text|"
        ),
        format!("35=D|{HEADER}{ORDER}453=0|58=t|"),
        format!("35=D|{HEADER}{ORDER}18=1 6 G|5001=own|"),
        format!("35=B|{HEADER}148=h|33=2|58=one|58=two|95=3|96=a|b|"),
        format!("35=0|{HEADER}"),
        format!("35=0|{HEADER}627=1|628=H|629=20240101-00:00:00|112=x|"),
    ] {
        assert_eq!(found(&fix44, &fields), None, "{fields}");
    }
    assert_eq!(
        found(&fix50(), &format!("35=D|1128=9|{HEADER}{ORDER}1138=5|")),
        None
    );
}

#[test]
fn validator_defects_have_reason_and_tag() {
    use RejectReason::*;
    let fix44 = dictionary("FIX44.xml");
    let order = |more: &str| format!("35=D|{HEADER}{ORDER}{more}");
    for (fields, reason, tag) in [
        (format!("35=0|{HEADER}999=x|"), InvalidTag, 999),
        (format!("35=0|{HEADER}0=x|"), InvalidTag, 0),
        (format!("35=0|{HEADER}-1=x|"), InvalidTag, -1),
        (
            format!("35=D|{HEADER}55=S|54=1|60=20240102-03:04:05|38=1|40=1|"),
            RequiredTagMissing,
            11,
        ),
        (
            "35=0|34=2|49=A|52=20240102-03:04:05|".into(),
            RequiredTagMissing,
            56,
        ),
        (order("41=x|"), TagNotDefined, 41),
        (order("44=|"), NoValue, 44),
        (order("").replace("54=1", "54=Z"), ValueOutOfRange, 54),
        (order("18=1 Z|"), ValueOutOfRange, 18),
        (
            order("").replace("38=100", "38=+200.00"),
            IncorrectFormat,
            38,
        ),
        (
            order("").replace("60=20240102-03:04:05", "60=20240132-03:04:05"),
            IncorrectFormat,
            60,
        ),
        (order("11=id|"), TagTwice, 11),
        (
            format!("35=D|49=A|52=20240102-03:04:05|56=B|{ORDER}34=2|"),
            TagOutOfOrder,
            34,
        ),
        (
            format!("35=0|{HEADER}93=3|89=abc|112=x|"),
            TagOutOfOrder,
            112,
        ),
        (order("453=2|448=P|447=D|452=1|58=x|"), GroupCount, 453),
        (order("453=1|448=P|448=Q|"), GroupCount, 453),
        (order("453=1|58=x|"), GroupCount, 453),
        (order("453=0|448=P|"), GroupCount, 453),
        (order("453=999999999999|448=P|"), GroupCount, 453),
        (order("453=x|448=P|"), IncorrectFormat, 453),
        (order("453=1|447=D|448=P|"), GroupOutOfOrder, 447),
        (order("453=1|448=P|452=1|447=D|"), GroupOutOfOrder, 447),
        (order("453=1|448=P|447=D|447=D|"), TagTwice, 447),
        (order("453=1|448=P|802=2|523=x|58=y|"), GroupCount, 802),
        (
            format!("35=B|{HEADER}148=h|33=1|58=x|95=9|96=ab|"),
            IncorrectFormat,
            96,
        ),
        ("35=zz|34=1|".into(), InvalidMsgType, 35),
    ] {
        assert_eq!(
            found(&fix44, &fields),
            Some((reason, Some(tag))),
            "{fields}"
        );
    }
    let embedded = format!("35=0|{HEADER}112=a|b|");
    assert_eq!(found(&fix44, &embedded), Some((Delimiter, None)));
}

#[test]
fn validator_choices_decide() {
    let fix44 = dictionary("FIX44.xml");
    let all = Checks::default();
    let own = format!("35=0|{HEADER}5001=x|");
    let foreign = format!("35=0|{HEADER}41=x|");
    let unordered = format!("35=D|{HEADER}{ORDER}453=1|448=P|452=1|447=D|");
    let empty = format!("35=0|{HEADER}112=|");
    let value = format!("35=D|{HEADER}{ORDER}").replace("54=1", "54=Z");
    let missing = format!("35=1|{HEADER}");
    let syntax = format!("35=0|{HEADER}0=x|");
    let is_ok = |checks: Checks, fields: &str| check(&fix44, checks, fields).is_ok();
    assert!(
        is_ok(all, &own)
            && !is_ok(
                Checks {
                    unknown: Tags::Reject,
                    ..all
                },
                &own
            )
    );
    assert!(
        !is_ok(all, &foreign)
            && is_ok(
                Checks {
                    foreign: Tags::Keep,
                    ..all
                },
                &foreign
            )
    );
    assert!(
        !is_ok(all, &unordered)
            && is_ok(
                Checks {
                    group_order: false,
                    ..all
                },
                &unordered
            )
    );
    assert!(
        !is_ok(all, &empty)
            && is_ok(
                Checks {
                    have_values: false,
                    ..all
                },
                &empty
            )
    );
    let at = |level| Checks { level, ..all };
    assert!(is_ok(at(Validation::Required), &value));
    assert!(!is_ok(at(Validation::Required), &missing));
    assert!(is_ok(at(Validation::Framing), &missing));
    assert!(!is_ok(at(Validation::Framing), &syntax));
    assert!(is_ok(at(Validation::None), &syntax));
}

#[test]
fn log_messages_in_any_delimiter_are_found_and_decoded() {
    let bytes = message(
        "FIX.4.4",
        &format!("35=D|{HEADER}{ORDER}453=1|448=P|447=D|452=1|"),
    );
    let text = String::from_utf8(bytes.clone()).expect("ASCII");
    let log = format!(
        "2024-01-02 in  {}\nnoise 8=FIX noise\r\n{}\r\nout: {} end",
        text.replace('\x01', "|"),
        text.replace('\x01', "^A"),
        text
    );
    let found: Vec<_> = Log::new(log.as_bytes()).collect();
    assert_eq!(found.len(), 3);
    assert!(
        found.iter().all(|message| message.bytes == bytes),
        "{found:?}"
    );
    let fix44 = dictionary("FIX44.xml");
    let mut validator = Validator::new(Checks::default());
    let decoded = decode::decode(&bytes, Some(&fix44), &mut validator, &[55]);
    assert_eq!(
        (decoded.name.as_deref(), decoded.problems.len()),
        (Some("NewOrderSingle"), 0)
    );
    let line = |tag: u32| {
        decoded
            .lines
            .iter()
            .find(|line| line.tag == tag)
            .expect("is there")
    };
    assert_eq!(line(54).meaning.as_deref(), Some("BUY"));
    assert_eq!(line(55).value, "*");
    assert_eq!((line(448).depth, line(448).entry), (1, Some(1)));
    assert_eq!((line(10).depth, line(10).entry), (0, None));
}

#[test]
fn log_damaged_messages_are_shown_with_problem() {
    let mut validator = Validator::new(Checks::default());
    for text in [
        "8=FIX.4.4|9=5|35=0|10=000|",
        "8=FIX.4.4|9=500|35=0|58=cut off",
        "8=FIX.4.4|35=0|9=5|10=1|",
        "8=FIX.4.4|",
    ] {
        let found: Vec<_> = Log::new(text.as_bytes()).collect();
        assert_eq!(found.len(), 1, "{text}");
        let decoded = decode::decode(&found[0].bytes, None, &mut validator, &[]);
        assert!(!decoded.problems.is_empty(), "{text}");
    }
    assert_eq!(Log::new(b"nothing 8=FI here 8=FIXED").count(), 0);
}
