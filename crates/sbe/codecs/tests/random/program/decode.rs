// SPDX-License-Identifier: Apache-2.0
//! Generates the part of the program that reads messages and prints their content.

use taran_sbe::model::{Block, Primitive, TypeKind};

use super::value::{self, Item, is_text};

/// Adds the statements that read a block from `m` and the groups and data after it; elements introduced after `since`
/// can be absent.
pub(super) fn block(text: &mut String, block: &Block, since: u32) {
    for field in &block.fields {
        item(text, &Item::field(field), since);
    }
    for (index, group) in block.groups.iter().enumerate() {
        let name = &group.name;
        present(text, group.since, since);
        *text += &format!("if present {{ out.key({name:?}); out.open(\"[\"); }}\n");
        let is_deep = !(group.block.groups.is_empty() && group.block.data.is_empty());
        // Covers both ways to read a group.
        let at_once = is_deep && index % 2 == 0;
        *text += &if at_once {
            format!("let m = m.each_{name}(|m| {{\n")
        } else {
            format!("let (group, m) = m.{name}()?;\nfor m in group {{\n")
        };
        *text += "assert!(present);\nout.open(\"{\");\n";
        self::block(text, &group.block, since.max(group.since));
        *text += "out.close(\"}\");\n";
        *text += if at_once {
            "Ok::<_, DecodeError>(m)\n})?;\n"
        } else {
            "}\n"
        };
        *text += "if present { out.close(\"]\"); }\n";
    }
    for data in &block.data {
        let name = &data.name;
        present(text, data.since, since);
        let encoding = &data.encoding;
        let is_text =
            encoding.primitive == Primitive::Char || encoding.character_encoding.is_some();
        let shown = if is_text {
            "out.text(value.as_bytes())"
        } else {
            "out.hex(value)"
        };
        let value = if data.since > since {
            "Some(value)"
        } else {
            "value"
        };
        *text += &format!(
            "let (value, m) = m.{name}()?;
            if present {{
                let {value} = value else {{ panic!() }};
                out.key({name:?});
                {shown};
            }}\n"
        );
    }
}

fn present(text: &mut String, came: u32, since: u32) {
    *text += &if came > since {
        format!("let present = m.acting_version() >= {came};\n")
    } else {
        "let present = true;\n".to_owned()
    };
}

fn item(text: &mut String, item: &Item<'_>, since: u32) {
    let (name, method) = (item.name, item.method());
    present(text, item.since, since);
    *text += &format!("let value = m.{method}();\nif present {{\nout.key({name:?});\n");
    if item.is_constant() {
        let shown = match &item.kind.kind {
            TypeKind::Simple(simple) if is_text(simple) => "out.text(value.as_bytes());".to_owned(),
            _ => value::show(item),
        };
        *text += &format!("{shown}\n}}\n");
        return;
    }
    if item.is_nullable() {
        *text += &format!(
            "if let Some(value) = value {{ {} }} else {{ out.null() }}\n",
            shown(item, since)
        );
    } else {
        if item.since > since {
            *text += "let value = value.unwrap();\n";
        }
        *text += &shown(item, since);
    }
    *text += if item.since > since {
        "\n} else { assert!(value.is_none()); }\n"
    } else {
        "\n}\n"
    };
}

fn shown(item: &Item<'_>, since: u32) -> String {
    match &item.kind.kind {
        TypeKind::Simple(simple) if is_text(simple) => {
            "let value = value.as_bytes(); out.text(&value);".to_owned()
        }
        TypeKind::Composite(composite) => {
            let mut text = "let m = value;\nout.open(\"{\");\n".to_owned();
            // Members are as old as their composite.
            let since = since.max(item.since);
            for member in &composite.members {
                self::item(&mut text, &Item::member(member, &item.path), since);
            }
            text + "out.close(\"}\");"
        }
        _ => value::show(item),
    }
}
