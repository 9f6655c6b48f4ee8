// SPDX-License-Identifier: Apache-2.0
//! Readers of dictionaries, and what they make of good and bad files.

mod shared;

use shared::{dictionary, fix50};
use taran_fix::dict::diff::{Impact, diff, worst};
use taran_fix::dict::{
    Block, Dictionary, Kind, Member, MessageDef, Problem, describe, orchestra, quickfix, read_text,
};

#[test]
fn quickfix_own_dictionaries_are_read() {
    let fix44 = dictionary("FIX44.xml");
    assert_eq!(fix44.version().begin_string(), "FIX.4.4");
    let order = fix44.message(b"D").expect("is defined");
    assert_eq!((order.name(), order.is_admin()), ("NewOrderSingle", false));
    assert!(order.body().get(11).expect("ClOrdID").is_required());
    // A required field of an optional component is optional; a nested group is part of its entry.
    let parties = order
        .body()
        .get(453)
        .and_then(Member::group)
        .expect("group");
    assert_eq!(parties.first(), Some(448));
    assert!(
        parties
            .get(802)
            .is_some_and(|member| member.group().is_some())
    );
    let raw = fix44.field(96).expect("RawData");
    assert_eq!((raw.kind(), raw.partner()), (Kind::Data, Some(95)));
    assert_eq!(fix44.field(89).expect("Signature").partner(), Some(93));
    assert_eq!(fix44.field(54).expect("Side").value_name(b"1"), Some("BUY"));
}

#[test]
fn dictionary_over_transport_has_session_messages_and_header() {
    let fix50 = fix50();
    assert_eq!(fix50.version().begin_string(), "FIXT.1.1");
    assert_eq!(fix50.version().appl_ver_id(), Some("9"));
    assert!(fix50.header().get(1128).is_some());
    assert!(fix50.message(b"A").is_some_and(MessageDef::is_admin));
    assert!(
        fix50
            .message(b"AE")
            .is_some_and(|report| !report.is_admin())
    );
}

#[test]
fn orchestra_same_messages_equal_quickfix() {
    let one = dictionary("FIX44.xml");
    let two = dictionary("FIX44_orchestra.xml");
    let changes = diff(&one, &two);
    assert!(changes.is_empty(), "{changes:#?}");
}

#[test]
fn orchestra_scenario_replaces_message_and_reads_presence() {
    let text = include_str!("../dictionary/FIX44_orchestra.xml");
    let brief = orchestra::read("x", text, "brief").expect("valid");
    assert_eq!(brief.messages().len(), 1);
    let order = brief.message(b"D").expect("is defined").body();
    assert!(order.get(58).is_none());
    assert!(order.get(44).is_some_and(|price| !price.is_required()));
    assert!(order.get(55).is_some_and(Member::is_required));
}

/// Returns a dictionary with these parts, each with defaults.
fn file(fields: &str, components: &str, body: &str) -> String {
    format!(
        "<fix major='4' minor='4'>\n<fields><field number='1' name='A' type='STRING'/>{fields}</fields>\n\
        <components>{components}</components>\n\
        <messages><message name='M' msgtype='m' msgcat='app'>{body}</message></messages></fix>"
    )
}

fn problems(text: &str) -> Vec<Problem> {
    match quickfix::read("x.xml", text) {
        Ok(_) => Vec::new(),
        Err(rejected) => rejected
            .problems
            .into_iter()
            .map(|found| found.problem)
            .collect(),
    }
}

#[test]
fn quickfix_defects_are_reported() {
    let undefined = |kind, name: &str| Problem::Undefined {
        kind,
        name: name.into(),
    };
    let twice = |kind, name: &str| Problem::Twice {
        kind,
        name: name.into(),
    };
    let a = "<field name='A' required='Y'/>";
    for (text, expected) in [
        (file("", "", a), vec![]),
        (
            file("", "", "<field name='B'/>"),
            vec![undefined("field", "B")],
        ),
        (
            file("", "", "<component name='C'/>"),
            vec![undefined("component", "C")],
        ),
        (
            file("", "", "<thing name='C'/>"),
            vec![undefined("element", "thing")],
        ),
        (
            file("<field number='2' name='B' type='BLOB'/>", "", a),
            vec![undefined("type", "BLOB")],
        ),
        (
            file("<field number='2' name='A' type='INT'/>", "", a),
            vec![twice("field", "A")],
        ),
        (
            file("<field number='1' name='B' type='INT'/>", "", a),
            vec![twice("tag", "1 of B and A")],
        ),
        (
            file(
                "",
                "<component name='C'><component name='C'/></component>",
                a,
            ),
            vec![Problem::Cycle("C".into())],
        ),
        (file("", "", &a.repeat(2)), vec![]),
        (
            file("", "", &format!("{a}<group name='A'>{a}</group>")),
            vec![Problem::Duplicate {
                tag: 1,
                scope: "M".into(),
            }],
        ),
        (
            file("", "", "<group name='A'/>"),
            vec![Problem::EmptyGroup("A".into())],
        ),
        (
            file("<field number='9' name='B' type='DATA'/>", "", a),
            vec![Problem::NoLength {
                name: "B".into(),
                tag: 9,
            }],
        ),
        (
            file(
                "<field number='9' name='B' type='INT'><value enum='x'/></field>",
                "",
                a,
            ),
            vec![Problem::EnumType {
                field: "B".into(),
                value: "x".into(),
                kind: "INT",
            }],
        ),
        (
            "<fix major='4'/>".into(),
            vec![Problem::Attribute {
                element: "fix".into(),
                attribute: "minor",
            }],
        ),
        ("<other/>".into(), vec![Problem::Root("other".into())]),
    ] {
        assert_eq!(problems(&text), expected, "{text}");
    }
}

#[test]
fn quickfix_field_twice_is_warning_and_counts_once() {
    let a = "<field name='A' required='N'/><field name='A' required='Y'/>";
    let read = quickfix::read("x.xml", &file("", "", a)).expect("valid");
    assert_eq!(read.warnings().len(), 1);
    let body = read.message(b"m").expect("is defined").body();
    assert_eq!(body.members().len(), 1);
    assert!(body.members()[0].is_required());
}

#[test]
fn quickfix_problem_position_is_that_of_element() {
    let text = file("", "", "\n  <field name='B'/>");
    let rejected = quickfix::read("x.xml", &text).expect_err("B is not defined");
    let first = &rejected.problems[0];
    assert_eq!((first.line, first.column), (5, 3));
    assert_eq!(first.to_string(), "x.xml:5:3: field \"B\" is not defined");
}

#[test]
fn reader_expensive_files_are_refused() {
    let deep = format!("<fix major='4' minor='4'>{}", "<a>".repeat(100_000));
    let attributes: String = (0..100).map(|index| format!(" a{index}=''")).collect();
    let wide = format!("<fix{attributes}/>");
    let entity = "<!DOCTYPE fix [<!ENTITY a 'b'>]><fix major='4' minor='4'/>".to_owned();
    // Each component doubles the members of the one before.
    let doubling: String = (1..40)
        .map(|index| {
            let inner = format!("<component name='C{}'/>", index - 1).repeat(2);
            format!("<component name='C{index}'>{inner}</component>")
        })
        .collect();
    let doubling = format!("<component name='C0'><field name='A'/></component>{doubling}");
    let doubling = file("", &doubling, "<component name='C39'/>");
    let groups = (0..20).fold("<field name='A'/>".to_owned(), |inner, _| {
        format!("<group name='A'>{inner}</group>")
    });
    for text in [
        deep,
        wide,
        entity,
        doubling,
        file("", "", &groups),
        String::new(),
        "<".into(),
    ] {
        assert!(read_text("x", &text).is_err());
    }
}

#[test]
fn diff_changes_have_their_impact() {
    let b = |kind: &str, values: &str| {
        format!("<field number='2' name='B' type='{kind}'>{values}</field>")
    };
    let read =
        |fields: &str, body: &str| quickfix::read("x", &file(fields, "", body)).expect("valid");
    let value = |name: &str| format!("<value enum='{name}' description='V{name}'/>");
    let base = read(&b("CHAR", &value("1")), "<field name='A'/>");
    let compare = |other: &Dictionary| worst(&diff(&base, other));
    assert_eq!(compare(&base), None);
    let a = "<field name='A'/>";
    for (other, expected) in [
        (
            read(&b("CHAR", &(value("1") + &value("2"))), a),
            Impact::Extension,
        ),
        (read(&b("CHAR", ""), a), Impact::Extension),
        (read(&b("CHAR", &value("2")), a), Impact::Breaking),
        (read(&b("INT", &value("1")), a), Impact::Breaking),
        (read("", a), Impact::Breaking),
        (
            read(&b("CHAR", &value("1")), "<field name='A' required='Y'/>"),
            Impact::Breaking,
        ),
        (
            read(
                &b("CHAR", &value("1")),
                "<field name='A'/><field name='B'/>",
            ),
            Impact::Extension,
        ),
        (
            read(
                &b("CHAR", &value("1")),
                "<group name='A'><field name='B'/></group>",
            ),
            Impact::Breaking,
        ),
        (
            read(&b("CHAR", "<value enum='1' description='X'/>"), a),
            Impact::Name,
        ),
    ] {
        assert_eq!(compare(&other), Some(expected));
    }
}

#[test]
fn describe_message_and_field_name_tags_and_values() {
    let fix44 = dictionary("FIX44.xml");
    let order = describe::message(&fix44, fix44.message(b"D").expect("is defined"));
    assert!(
        order.contains("ClOrdID") && order.contains("required"),
        "{order}"
    );
    assert!(
        order.lines().any(|line| line.starts_with("    PartyID")),
        "{order}"
    );
    let side = describe::field(&fix44, fix44.field(54).expect("is defined"));
    assert!(
        side.contains("1        BUY") && side.contains("NewOrderSingle"),
        "{side}"
    );
    assert!(describe::messages(&fix44).contains("AE") || fix44.message(b"AE").is_none());
}

#[test]
fn block_position_finds_each_member() {
    fn check(block: &Block) {
        for (at, member) in block.members().iter().enumerate() {
            assert_eq!(block.position(member.tag()), Some(at));
            if let Some(group) = member.group() {
                check(group);
            }
        }
        assert_eq!(block.position(4_000_000), None);
    }
    for message in fix50().messages() {
        check(message.body());
    }
}
