// SPDX-License-Identifier: Apache-2.0
//! Layout tables.

use taran_sbe::describe::{What, describe};

use crate::accepted;

#[test]
fn table_lists_offsets_and_lengths() {
    let schema = accepted(
        r#"<composite name="Price"><type name="mantissa" primitiveType="int64"/>
             <type name="exponent" primitiveType="int8" presence="constant">-2</type></composite>
           <type name="Count" primitiveType="uint16" presence="optional"/>"#,
        r#"<sbe:message name="Order" id="9" blockLength="24" sinceVersion="1">
             <field name="id" id="1" type="uint32"/>
             <field name="price" id="2" type="Price" offset="8"/>
             <field name="count" id="3" type="Count" sinceVersion="2"/>
             <group name="legs" id="4"><field name="side" id="1" type="char"/></group>
             <data name="text" id="5" type="varText"/>
           </sbe:message>"#,
    );
    let description = describe(&schema);
    assert_eq!(
        description.messages[0].to_string(),
        "\
9 Order, block of 24, since version 1
  offset  length  name          type
       0       4  id            uint32
       4       4  -
       8       8  price         Price (composite)
       8       8    mantissa    int64
      16       0    exponent    int8                                     always -2
      16       2  count         Count (uint16)                           optional, null is 65535, since version 2
      18       6  -
               1  legs [group]  groupSizeEncoding
       0       1    side        char
              2+  text [data]   varText (uint8 of length uint16, UTF-8)
"
    );
    assert_eq!(description.header.rows[3].offset, Some(6));
    let json = serde_json::to_value(&description).unwrap();
    assert_eq!(json["messages"][0]["rows"][2]["offset"], 8);
    assert_eq!(json["messages"][0]["rows"][1]["what"], "gap");
    assert_eq!(description.messages[0].rows[8].what, What::Field);
}

#[test]
fn char_values_are_shown_as_characters() {
    let schema = accepted(
        r#"<type name="Flag" primitiveType="char" presence="optional"/>
           <enum name="Side" encodingType="char" presence="optional" nullValue="N">
             <validValue name="Buy">B</validValue></enum>"#,
        r#"<message name="M" id="1"><field name="flag" id="1" type="Flag"/><field name="side" id="2" type="Side"/></message>"#,
    );
    let description = describe(&schema);
    let notes = description.messages[0]
        .rows
        .iter()
        .map(|row| row.note.as_deref());
    assert_eq!(
        notes.collect::<Vec<_>>(),
        [
            Some("optional, null is '\\x00'"),
            Some("optional, null is 'N'")
        ]
    );
}
