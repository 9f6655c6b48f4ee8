// SPDX-License-Identifier: Apache-2.0
//! Compatibility of schema versions.

use taran_sbe::compile;
use taran_sbe::diff::{Change, Impact, diff, worst};
use taran_sbe::model::Schema;
use taran_sbe::xml::NoFiles;

use crate::text_of_version;

const TYPES: &str = r#"<enum name="Side" encodingType="uint8"><validValue name="Buy">1</validValue>
    <validValue name="Sell">2</validValue></enum>
  <set name="Flags" encodingType="uint8"><choice name="a">0</choice><choice name="b">1</choice></set>
  <composite name="Price"><type name="mantissa" primitiveType="int64"/><type name="exponent" primitiveType="int8"/>
  </composite>
  <type name="Tag" primitiveType="char" length="4"/> <composite name="Scale"><type name="tenth" primitiveType="int8" presence="constant">1</type></composite>
"#;
const MESSAGE: &str = r#"<message name="M" id="1">
    <field name="side" id="1" type="Side"/>
    <field name="flags" id="2" type="Flags"/>
    <field name="tag" id="3" type="Tag"/>
    <field name="price" id="4" type="Price"/>
    <group name="legs" id="5"><field name="size" id="1" type="uint32"/></group>
    <data name="text" id="6" type="varText"/>
  </message>
"#;

fn read(version: u32, types: &str, messages: &str) -> Schema {
    compile("", &NoFiles(&text_of_version(version, types, messages)))
        .unwrap_or_else(|rejected| panic!("{rejected}"))
        .schema
}

/// Returns the changes between versions 0 and 1 if a part of the text is replaced.
fn replaced(from: &str, to: &str) -> Vec<Change> {
    let both = format!("{TYPES}|{MESSAGE}");
    assert_eq!(both.matches(from).count(), 1, "{from}");
    let both = both.replace(from, to);
    let (types, message) = both.split_once('|').expect("it was put in");
    let changes = diff(&read(0, TYPES, MESSAGE), &read(1, types, message));
    changes
        .into_iter()
        .filter(|change| change.path != "schema")
        .collect()
}

fn reported(changes: &[Change]) -> Vec<(Impact, &str)> {
    changes
        .iter()
        .map(|change| (change.impact, change.path.as_str()))
        .collect()
}

#[test]
fn diff_of_identical_schemas_is_empty() {
    let schema = read(0, TYPES, MESSAGE);
    assert_eq!(diff(&schema, &schema), []);
    let changes = diff(&schema, &read(1, TYPES, MESSAGE));
    assert_eq!(reported(&changes), [(Impact::Extension, "schema")]);
    let changes = diff(&read(1, TYPES, MESSAGE), &schema);
    assert_eq!(reported(&changes), [(Impact::Breaking, "schema")]);
    assert_eq!(worst(&[]), None);
    assert_eq!(worst(&changes), Some(Impact::Breaking));
}

#[test]
fn compatible_additions_are_extensions() {
    for (from, to, path) in [
        (
            "type=\"Price\"/>",
            "type=\"Price\"/><field name=\"new\" id=\"9\" type=\"Scale\"/>",
            "M.new",
        ),
        (
            "type=\"Price\"/>",
            "type=\"Price\"/><field name=\"new\" id=\"9\" type=\"int16\" sinceVersion=\"1\"/>",
            "M.new",
        ),
        (
            "type=\"uint32\"/>",
            "type=\"uint32\"/><field name=\"new\" id=\"9\" type=\"int16\" sinceVersion=\"1\"/>",
            "M.legs.new",
        ),
        (
            "type=\"varText\"/>",
            "type=\"varText\"/><data name=\"new\" id=\"9\" type=\"varText\" sinceVersion=\"1\"/>",
            "M.new",
        ),
        (
            ">2</validValue>",
            ">2</validValue><validValue name=\"Cross\" sinceVersion=\"1\">3</validValue>",
            "Side.Cross",
        ),
        (
            ">1</choice>",
            ">1</choice><choice name=\"c\" sinceVersion=\"1\">2</choice>",
            "Flags.c",
        ),
        (
            "</message>",
            "</message><message name=\"N\" id=\"2\" sinceVersion=\"1\"/>",
            "N",
        ),
        (
            "<message name=\"M\" id=\"1\">",
            "<message name=\"M\" id=\"1\" blockLength=\"64\">",
            "M",
        ),
    ] {
        let changes = replaced(from, to);
        assert_eq!(worst(&changes), Some(Impact::Extension), "{changes:?}");
        let reported = reported(&changes);
        assert!(
            reported.contains(&(Impact::Extension, path)),
            "{reported:?}"
        );
    }
}

#[test]
fn renames_affect_code_only() {
    for (from, to, path) in [
        ("name=\"size\"", "name=\"quantity\"", "M.legs.quantity"),
        ("name=\"M\"", "name=\"Order\"", "M"),
        ("name=\"Buy\"", "name=\"Bid\"", "Side.Buy"),
        ("<choice name=\"b\"", "<choice name=\"z\"", "Flags.b"),
        ("name=\"mantissa\"", "name=\"value\"", "Price.mantissa"),
        ("name=\"tag\" id=\"3\"", "name=\"tag\" id=\"33\"", "M.tag"),
    ] {
        let changes = replaced(from, to);
        assert_eq!(reported(&changes), [(Impact::Code, path)], "{changes:?}");
    }
}

#[test]
fn misinterpreted_changes_are_breaking() {
    for (from, to, path) in [
        // Fields.
        ("<field name=\"tag\" id=\"3\" type=\"Tag\"/>", "", "M.tag"),
        ("type=\"uint32\"/>", "type=\"int32\"/>", "M.legs.size"),
        (
            "<field name=\"side\"",
            "<field name=\"new\" id=\"9\" type=\"uint8\" sinceVersion=\"1\"/><field name=\"side\"",
            "M.side",
        ),
        (
            "type=\"Price\"/>",
            "type=\"Price\"/><field name=\"new\" id=\"9\" type=\"int16\"/>",
            "M.new",
        ),
        (
            "type=\"uint32\"/>",
            "type=\"uint32\" presence=\"optional\"/>",
            "M.legs.size",
        ),
        (
            "type=\"Flags\"/>",
            "type=\"Flags\" sinceVersion=\"1\"/>",
            "M.flags",
        ),
        // Groups and data.
        (
            "<data name=\"text\" id=\"6\" type=\"varText\"/>",
            "",
            "M.text",
        ),
        (
            "<data name=\"text\"",
            "<data name=\"new\" id=\"9\" type=\"varText\" sinceVersion=\"1\"/><data name=\"text\"",
            "M",
        ),
        (
            "<data name=\"text\"",
            "<group name=\"new\" id=\"9\" sinceVersion=\"1\"/><data name=\"text\"",
            "M.new",
        ),
        (
            "type=\"uint32\"/>",
            "type=\"uint32\"/><data name=\"new\" id=\"9\" type=\"varText\" sinceVersion=\"1\"/>",
            "M.legs.new",
        ),
        // Types.
        (">1</validValue>", ">3</validValue>", "Side.Buy"),
        ("<validValue name=\"Sell\">2</validValue>", "", "Side.Sell"),
        (
            "<enum name=\"Side\" encodingType=\"uint8\">",
            "<enum name=\"Side\" encodingType=\"int8\">",
            "Side",
        ),
        (">1</choice>", ">5</choice>", "Flags.b"),
        ("<choice name=\"b\">1</choice>", "", "Flags.b"),
        ("length=\"4\"", "length=\"5\"", "Tag"),
        (
            "name=\"mantissa\" primitiveType=\"int64\"",
            "name=\"mantissa\" primitiveType=\"int32\"",
            "Price.mantissa",
        ),
        (
            "<type name=\"exponent\"",
            "<type name=\"new\" primitiveType=\"int8\" sinceVersion=\"1\"/><type name=\"exponent\"",
            "Price.exponent",
        ),
        (
            "<type name=\"exponent\" primitiveType=\"int8\"/>",
            "<type name=\"exponent\" primitiveType=\"int8\"/><type name=\"new\" primitiveType=\"int8\" sinceVersion=\"1\"/>",
            "Price.new",
        ),
        // Messages.
        ("name=\"M\" id=\"1\"", "name=\"M\" id=\"2\"", "M"),
        (MESSAGE, "<message name=\"Z\" id=\"8\"/>", "M"),
    ] {
        let changes = replaced(from, to);
        let reported = reported(&changes);
        assert!(
            reported.contains(&(Impact::Breaking, path)),
            "{to}: {reported:?}"
        );
    }
}

#[test]
fn type_change_is_reported_once_with_position() {
    let changes = replaced("length=\"4\"", "length=\"5\"");
    let lines: Vec<_> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            ":31:5: extension: M: the block took 15 bytes, and takes 16",
            ":24:3: breaking: Tag: had 4 elements, and has 5",
            ":31:5: breaking: M.price: was at offset 6, and is at 7",
        ]
    );
}

#[test]
fn built_in_type_change_is_reported_at_use() {
    let changes = replaced("type=\"uint32\"/>", "type=\"int32\"/>");
    assert_eq!(worst(&changes), Some(Impact::Breaking));
    for change in &changes {
        let line = change.to_string();
        assert!(
            line.starts_with(":32:") && change.path == "M.legs.size",
            "{line}"
        );
    }
}

#[test]
fn changed_count_and_length_limits_are_breaking() {
    let frames = |count: &str, length: &str| {
        let types = format!(
            "<composite name=\"Dims\"><type name=\"blockLength\" primitiveType=\"uint16\"/>\
             <type name=\"numInGroup\" primitiveType=\"uint16\" {count}/></composite>\
             <composite name=\"Bytes\"><type name=\"length\" primitiveType=\"uint16\" {length}/>\
             <type name=\"varData\" primitiveType=\"uint8\" length=\"0\"/></composite>"
        );
        let message = "<message name=\"M\" id=\"1\"><group name=\"legs\" id=\"1\" dimensionType=\"Dims\">\
             <field name=\"size\" id=\"1\" type=\"uint32\"/></group><data name=\"raw\" id=\"2\" type=\"Bytes\"/></message>";
        read(0, &types, message)
    };
    let usual = frames("", "");
    for (count, length, path) in [
        ("maxValue=\"9\"", "", "M.legs"),
        ("minValue=\"1\"", "", "M.legs"),
        ("", "maxValue=\"9\"", "M.raw"),
    ] {
        let other = frames(count, length);
        for changes in [diff(&usual, &other), diff(&other, &usual)] {
            let reported = reported(&changes);
            assert!(reported.contains(&(Impact::Breaking, path)), "{reported:?}");
        }
    }
}

#[test]
fn changed_null_value_of_optional_field_is_breaking() {
    let with = |null: u32, presence: &str, fields: &str| {
        let types = format!(
            "<type name=\"T\" primitiveType=\"uint8\" nullValue=\"{null}\" {presence}/>\
             <type name=\"Ts\" primitiveType=\"uint8\" nullValue=\"{null}\" length=\"2\"/>"
        );
        read(
            0,
            &types,
            &format!("<message name=\"M\" id=\"1\">{fields}</message>"),
        )
    };
    let changes =
        |presence: &str, fields: &str| diff(&with(0, presence, fields), &with(9, presence, fields));
    let optional = "presence=\"optional\"";
    let both = changes(
        "",
        "<field name=\"a\" id=\"1\" type=\"T\" presence=\"optional\"/>\
         <field name=\"b\" id=\"2\" type=\"T\"/>\
         <field name=\"c\" id=\"3\" type=\"Ts\" presence=\"optional\"/>",
    );
    assert_eq!(
        reported(&both),
        [(Impact::Breaking, "M.a"), (Impact::Breaking, "M.c")]
    );
    // A change of the type is reported once, for the type.
    let of_type = changes(optional, "<field name=\"a\" id=\"1\" type=\"T\"/>");
    assert_eq!(reported(&of_type), [(Impact::Breaking, "T")]);
    // The null value is irrelevant without optional presence.
    let neither = changes("", "<field name=\"a\" id=\"1\" type=\"T\"/>");
    assert_eq!(neither, []);
}

#[test]
fn name_moved_to_other_element_is_breaking() {
    let fields = |names: [&str; 3]| {
        let [one, two, three] = names;
        format!(
            r#"<message name="M" id="1">
                 <field name="{one}" id="1" type="uint32"/>
                 <field name="{two}" id="2" type="uint32"/>
                 <group name="{three}" id="3"><field name="size" id="1" type="uint32"/></group>
                 <group name="b" id="4"><field name="size" id="1" type="uint32"/></group>
               </message>"#
        )
    };
    let old = read(0, "", &fields(["bid", "ask", "a"]));
    let reported_for = |names| {
        let new = read(1, "", &fields(names));
        let changes = diff(&old, &new);
        changes
            .into_iter()
            .filter(|change| change.path != "schema")
            .map(|change| format!("{}: {}: {}", change.impact, change.path, change.what))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        reported_for(["ask", "bid", "a"]),
        [
            "breaking: M.ask: was called bid, and has the name of the old element with id 2: readers that match by name \
             confuse them",
            "breaking: M.bid: was called ask, and has the name of the old element with id 1: readers that match by name \
             confuse them",
        ]
    );
    // A chain of renames, whose last name was not used before.
    assert_eq!(
        reported_for(["ask", "offer", "c"]),
        [
            "breaking: M.ask: was called bid, and has the name of the old element with id 2: readers that match by name \
             confuse them",
            "code: M.offer: was renamed from ask to offer",
            "code: M.c: was renamed from a to c",
        ]
    );
}

#[test]
fn name_moved_to_new_element_or_message_is_breaking() {
    let reported_for = |old: &str, new: &str| {
        let changes = diff(&read(0, "", old), &read(1, "", new));
        changes
            .into_iter()
            .filter(|change| change.path != "schema")
            .map(|change| format!("{}: {}: {}", change.impact, change.path, change.what))
            .collect::<Vec<_>>()
    };
    let message =
        |name: &str, id: u32| format!(r#"<message name="{name}" id="{id}" sinceVersion="0"/>"#);
    let why = "readers that match by name confuse them";
    let two = |one: &str, other: &str| message(one, 1) + &message(other, 2);
    assert_eq!(
        reported_for(&two("Start", "Stop"), &two("Stop", "Start")),
        [
            format!(
                "breaking: Stop: was called Start, and has the name of the old element with id 2: {why}"
            ),
            format!(
                "breaking: Start: was called Stop, and has the name of the old element with id 1: {why}"
            ),
        ]
    );
    assert_eq!(
        reported_for(
            &message("Start", 1),
            &(message("Halt", 1) + &message("Start", 3))
        ),
        [
            "code: Start: was renamed from Start to Halt".to_owned(),
            format!(
                "breaking: Start: is new, and has the name of the old element with id 1: {why}"
            ),
        ]
    );
    assert_eq!(
        reported_for(&message("Start", 1), &message("Start", 3)),
        ["breaking: Start: had the template id 1, and has 3"]
    );
    let fields = |inside: &str| format!(r#"<message name="M" id="1">{inside}</message>"#);
    for (old, new) in [
        (
            r#"<field name="price" id="1" type="uint32"/>"#,
            r#"<field name="oldPrice" id="1" type="uint32"/><field name="price" id="2" type="uint32" sinceVersion="1"/>"#,
        ),
        (
            r#"<group name="price" id="1"/>"#,
            r#"<group name="oldPrice" id="1"/><group name="price" id="2" sinceVersion="1"/>"#,
        ),
        (
            r#"<data name="price" id="1" type="varText"/>"#,
            r#"<data name="oldPrice" id="1" type="varText"/><data name="price" id="2" type="varText" sinceVersion="1"/>"#,
        ),
    ] {
        let found = reported_for(&fields(old), &fields(new));
        let expected = format!(
            "breaking: M.price: is new, and has the name of the old element with id 1: {why}"
        );
        assert!(found.contains(&expected), "{found:#?}");
        assert!(
            found.contains(&"code: M.oldPrice: was renamed from price to oldPrice".to_owned()),
            "{found:#?}"
        );
    }
}

#[test]
fn composite_enum_becoming_optional_is_breaking() {
    let with = |presence: &str| {
        let types = format!(
            r#"<enum name="E" encodingType="uint8" {presence}><validValue name="A">1</validValue></enum>
               <composite name="C"><ref name="e" type="E"/></composite>"#
        );
        read(
            0,
            &types,
            r#"<message name="M" id="1"><field name="c" id="1" type="C"/></message>"#,
        )
    };
    let (required, optional) = (with(""), with(r#"presence="optional""#));
    let expected = [(Impact::Breaking, "C.e"), (Impact::None, "E")];
    assert_eq!(reported(&diff(&required, &optional)), expected);
    assert_eq!(reported(&diff(&optional, &required)), expected);
}

#[test]
fn type_presence_moved_from_fields_is_no_change() {
    let with = |presence: &str, of_field: &str| {
        let types = format!(
            r#"<enum name="E" encodingType="uint8" {presence}><validValue name="A">1</validValue></enum>
               <type name="T" primitiveType="uint8" {presence}/>"#
        );
        let message = format!(
            r#"<message name="M" id="1"><field name="e" id="1" type="E" {of_field}/>
               <field name="t" id="2" type="T" {of_field}/></message>"#
        );
        read(0, &types, &message)
    };
    let optional = r#"presence="optional""#;
    for of_field in [optional, r#"presence="required""#] {
        let (one, other) = (with("", of_field), with(optional, of_field));
        for changes in [diff(&one, &other), diff(&other, &one)] {
            let expected = [(Impact::None, "E"), (Impact::None, "T")];
            assert_eq!(reported(&changes), expected, "{changes:?}");
        }
    }
    // If the fields inherit the presence, the change is reported for them.
    let changes = diff(&with("", ""), &with(optional, ""));
    assert_eq!(
        reported(&changes),
        [
            (Impact::Breaking, "M.e"),
            (Impact::None, "E"),
            (Impact::Breaking, "M.t"),
            (Impact::None, "T")
        ]
    );
}

#[test]
fn element_since_version_is_at_least_that_of_container() {
    let with = |since: &str, of_inner: &str| {
        let types = format!(
            r#"<composite name="C" sinceVersion="2"><type name="x" primitiveType="uint8" {since}/>
                 <composite name="Inner" {of_inner}><type name="y" primitiveType="uint8" {since}/></composite></composite>"#
        );
        let messages = format!(
            r#"<message name="M" id="1" sinceVersion="2"><field name="a" id="1" type="uint8" {since}/>
                 <field name="c" id="2" type="C" {since}/>
                 <group name="g" id="3" {since}><field name="b" id="1" type="uint8" {since}/></group>
                 <data name="d" id="4" type="varText" {since}/></message>
               <message name="N" id="2"><group name="g" id="1" sinceVersion="2">
                 <field name="b" id="1" type="uint8" {since}/><group name="h" id="2" {since}/>
                 <data name="d" id="3" type="varText" {since}/></group></message>"#
        );
        read(3, &types, &messages)
    };
    let (none, one) = (with("", ""), with(r#"sinceVersion="1""#, ""));
    let two = with(r#"sinceVersion="2""#, r#"sinceVersion="2""#);
    for (old, new) in [(&none, &one), (&none, &two), (&two, &one), (&two, &none)] {
        assert_eq!(diff(old, new), []);
    }
    // Elements introduced still later are unaffected.
    let late = read(
        3,
        "",
        r#"<message name="M" id="1" sinceVersion="2"><field name="a" id="1" type="uint8" sinceVersion="3"/></message>"#,
    );
    let early = read(
        3,
        "",
        r#"<message name="M" id="1" sinceVersion="2"><field name="a" id="1" type="uint8"/></message>"#,
    );
    let changes = diff(&early, &late);
    assert_eq!(reported(&changes), [(Impact::Breaking, "M.a")]);
    assert!(
        changes[0]
            .what
            .starts_with("was introduced in version 2, now in 3:"),
        "{changes:?}"
    );
    // A changed version of a message is not repeated for the elements in it.
    let earlier = read(
        3,
        "",
        r#"<message name="M" id="1"><field name="a" id="1" type="uint8"/></message>"#,
    );
    assert_eq!(reported(&diff(&early, &earlier)), [(Impact::Breaking, "M")]);
}

#[test]
fn encoding_alias_is_no_change() {
    let with = |encoding: &str| {
        let types = format!(
            r#"<type name="T" primitiveType="char" length="4" characterEncoding="{encoding}"/>
               <composite name="D"><type name="length" primitiveType="uint16"/>
                 <type name="varData" primitiveType="uint8" length="0" characterEncoding="{encoding}"/></composite>"#
        );
        let message = r#"<message name="M" id="1"><field name="t" id="1" type="T"/><data name="d" id="2" type="D"/></message>"#;
        compile("", &NoFiles(&text_of_version(0, &types, message)))
            .unwrap_or_else(|rejected| panic!("{rejected}"))
            .schema
    };
    for (old, new) in [
        ("UTF8", "UTF-8"),
        ("latin1", "ISO-8859-1"),
        ("ISO_8859_1", "ISO-8859-1"),
        ("windows-1252", "Cp1252"),
        ("Shift_JIS", "x-sjis"),
        ("ISO-8859-15", "latin9"),
        ("klingon", "KLINGON"),
    ] {
        assert_eq!(diff(&with(old), &with(new)), [], "{old}, {new}");
    }
    for (old, new) in [
        ("UTF-8", "ISO-8859-1"),
        ("ISO-8859-15", "ISO-8859-1"),
        ("windows-1252", "windows-1251"),
        ("UTF-16", "UTF-16LE"),
        // UTF-16 has a byte order mark.
        ("UTF-16", "UTF-16BE"),
        ("UTF-32BE", "UTF-32LE"),
        ("Big5", "GBK"),
        ("klingon", "vulcan"),
        ("UTF-8", "klingon"),
    ] {
        let changes = diff(&with(old), &with(new));
        assert_eq!(worst(&changes), Some(Impact::Breaking), "{old}, {new}");
        let of_both = [(Impact::Breaking, "T"), (Impact::Breaking, "M.d")];
        for expected in of_both {
            assert!(reported(&changes).contains(&expected), "{old}, {new}");
        }
    }
}

#[test]
fn removed_constant_member_affects_code_only() {
    let with = |member: &str, field: &str| {
        let types = format!(
            r#"<type name="K" primitiveType="uint8" presence="constant">1</type>
               <composite name="C"><type name="x" primitiveType="uint8"/>{member}</composite>"#
        );
        let message = format!(
            r#"<message name="M" id="1"><field name="c" id="1" type="C"/>{field}</message>"#
        );
        read(2, &types, &message)
    };
    let constant = |name: &str, since: &str| {
        with(
            &format!(
                r#"<type name="{name}" primitiveType="uint8" presence="constant" {since}>1</type>"#
            ),
            &format!(r#"<field name="{name}" id="2" type="K" {since}/>"#),
        )
    };
    let old = constant("k", "");
    let reported_for = |new: &Schema| -> Vec<(Impact, String)> {
        let changes = diff(&old, new).into_iter();
        changes
            .map(|change| (change.impact, format!("{} {}", change.path, change.what)))
            .collect()
    };
    assert_eq!(
        reported_for(&with("", "")),
        [
            (Impact::Code, "C.k is removed".to_owned()),
            (
                Impact::Code,
                "M.k is removed; deprecate it instead".to_owned()
            ),
        ]
    );
    assert_eq!(
        reported_for(&constant("kk", "")),
        [
            (Impact::Code, "C.k is removed".to_owned()),
            (Impact::Extension, "C.kk is new, a constant".to_owned()),
            (Impact::Code, "M.kk was renamed from k to kk".to_owned()),
        ]
    );
    let came = "was introduced in version 0, now in 2; it is not encoded";
    assert_eq!(
        reported_for(&constant("k", r#"sinceVersion="2""#)),
        [
            (Impact::None, format!("C.k {came}")),
            (Impact::None, format!("M.k {came}")),
        ]
    );
    // Removing an encoded member is breaking.
    let sent = with(r#"<type name="y" primitiveType="uint8"/>"#, "");
    let changes = diff(&sent, &with("", ""));
    assert!(reported(&changes).contains(&(Impact::Breaking, "C.y")));
}

#[test]
fn default_time_unit_is_nanosecond() {
    let with = |unit: &str| {
        let message = format!(
            r#"<message name="M" id="1"><field name="t" id="1" type="uint64" {unit}/></message>"#
        );
        read(0, "", &message)
    };
    let (none, nano, micro) = (
        with(""),
        with(r#"timeUnit="nanosecond""#),
        with(r#"timeUnit="microsecond""#),
    );
    assert_eq!(diff(&none, &nano), []);
    assert_eq!(reported(&diff(&none, &micro)), [(Impact::Breaking, "M.t")]);
}

#[test]
fn changed_length_of_empty_block_is_reported() {
    let old = read(
        0,
        "",
        r#"<message name="M" id="1"><group name="g" id="1"/></message>"#,
    );
    let new = read(
        0,
        "",
        r#"<message name="M" id="1" blockLength="16"><group name="g" id="1" blockLength="2"/></message>"#,
    );
    assert_eq!(
        reported(&diff(&old, &new)),
        [(Impact::Extension, "M"), (Impact::Extension, "M.g")]
    );
}

#[test]
fn changed_enum_null_value_is_breaking_if_used() {
    let side = |null: u8, presence: &str| {
        format!(
            r#"<type name="Raw" primitiveType="uint8" presence="optional" nullValue="{null}"/>
               <enum name="S" encodingType="Raw" {presence}><validValue name="Buy">1</validValue></enum>"#
        )
    };
    let message = |presence: &str| {
        format!(
            r#"<message name="M" id="1"><field name="side" id="1" type="S" {presence}/></message>"#
        )
    };
    let (none, optional) = ("", r#"presence="optional""#);
    for (kind, field, expected) in [
        (none, none, &[(Impact::Code, "S")][..]),
        (
            none,
            optional,
            &[(Impact::Breaking, "M.side"), (Impact::Code, "S")],
        ),
        (optional, none, &[(Impact::Breaking, "S")]),
    ] {
        let old = read(0, &side(254, kind), &message(field));
        let new = read(0, &side(253, kind), &message(field));
        let changes = diff(&old, &new);
        let mut reported: Vec<_> = reported(&changes);
        // The encoding type has no other use.
        reported.retain(|(_, path)| *path != "Raw");
        assert_eq!(reported, expected, "{kind}, {field}: {changes:?}");
    }
}

#[test]
fn changes_of_unused_types_affect_code_only() {
    let with = |version: u32, unused: &str| {
        let types = format!("{TYPES}{unused}");
        read(version, &types, MESSAGE)
    };
    let old = "<type name=\"Unused\" primitiveType=\"uint8\"/>\
               <composite name=\"Pair\"><type name=\"one\" primitiveType=\"int8\"/></composite>\
               <enum name=\"Only\" encodingType=\"uint8\"><validValue name=\"A\">1</validValue></enum>";
    let new = "<type name=\"Unused\" primitiveType=\"uint32\"/>\
               <composite name=\"Pair\"><type name=\"one\" primitiveType=\"int64\"/></composite>\
               <set name=\"Only\" encodingType=\"uint8\"/>";
    let changes = diff(&with(0, old), &with(0, new));
    assert_eq!(
        reported(&changes),
        [
            // Its encoding type, and the names of its values.
            (Impact::Code, "Unused"),
            (Impact::Code, "Unused"),
            (Impact::Code, "Pair.one"),
            (Impact::Code, "Pair.one"),
            (Impact::Code, "Only"),
        ]
    );
    assert_eq!(
        reported(&diff(&with(0, old), &with(0, ""))),
        ["Unused", "Pair", "Only"].map(|path| (Impact::Code, path))
    );
}

#[test]
fn changed_data_layout_is_breaking() {
    let with = |of_length: &str, of_bytes: &str| {
        let types = format!(
            "<composite name=\"Bytes\"><type name=\"length\" primitiveType=\"{of_length}\" maxValue=\"9\"/>\
             <type name=\"varData\" primitiveType=\"{of_bytes}\" length=\"0\"/></composite>"
        );
        let message =
            "<message name=\"M\" id=\"1\"><data name=\"raw\" id=\"1\" type=\"Bytes\"/></message>";
        read(0, &types, message)
    };
    let usual = with("uint8", "uint8");
    let longer = diff(&usual, &with("uint16", "uint8"));
    assert_eq!(
        reported(&longer)[0],
        (Impact::Breaking, "M.raw"),
        "{longer:?}"
    );
    let signed = diff(&usual, &with("uint8", "int8"));
    assert_eq!(worst(&signed), Some(Impact::Code), "{signed:?}");
}

#[test]
fn char_values_are_shown_as_characters() {
    let schema = |null: &str, least: &str, value: &str| {
        let types = format!(
            r#"<type name="Flag" primitiveType="char" presence="optional" nullValue="{null}" minValue="{least}"/>
               <enum name="Side" encodingType="char" nullValue="{null}">
                 <validValue name="Buy">{value}</validValue></enum>"#
        );
        let message = r#"<message name="M" id="1"><field name="flag" id="1" type="Flag"/>
            <field name="side" id="2" type="Side" presence="optional"/></message>"#;
        read(0, &types, message)
    };
    let changes = diff(&schema("N", "A", "1"), &schema("n", "a", "2"));
    let reported: Vec<_> = changes
        .iter()
        .map(|change| format!("{}: {}", change.path, change.what))
        .collect();
    assert_eq!(
        reported,
        [
            "Flag: null was 'N', and is 'n'",
            "Flag: went from 'A' to '~', and goes from 'a' to '~'",
            "M.side: null was 'N', and is 'n'",
            "Side: null was 'N', and is 'n'",
            "Side.Buy: was '1', and is '2'",
        ]
    );
}
