// SPDX-License-Identifier: Apache-2.0
//! Generates the part of the program that writes messages with random content and prints it.

use taran_sbe::model::{Block, Presence, Primitive, Simple, TypeKind};

use super::value::{self, Item, is_text, literal, rust};

/// Adds the statements that write a block to `m` and the groups and data after it.
pub(super) fn block(text: &mut String, types: &str, block: &Block) {
    for field in &block.fields {
        item(text, types, &Item::field(field));
    }
    for group in &block.groups {
        let (name, dimensions) = (&group.name, &group.dimensions);
        *text += &format!(
            "let mut {name} = m.{name}()?;
            out.key({name:?});
            out.open(\"[\");
            for _ in 0..{least} + chance.below(4) {{
                let mut m = {name}.entry()?;
                out.open(\"{{\");
                ",
            least = dimensions.min_count
        );
        self::block(text, types, &group.block);
        *text += "out.close(\"}\");\n";
        if !(group.block.groups.is_empty() && group.block.data.is_empty()) {
            *text += &format!("{name} = m.done();\n");
        }
        let checked = if dimensions.min_count > 0 { "?" } else { "" };
        *text += &format!("}}\nout.close(\"]\");\nlet mut m = {name}.done(){checked};\n");
    }
    for data in &block.data {
        let encoding = &data.encoding;
        let is_text =
            encoding.primitive == Primitive::Char || encoding.character_encoding.is_some();
        let shown = if is_text { "text" } else { "hex" };
        let name = &data.name;
        *text += &format!(
            "let value = text(chance, 20);
            out.key({name:?});
            out.{shown}(&value);
            let mut m = m.{name}(&value)?;\n"
        );
    }
}

fn item(text: &mut String, types: &str, item: &Item<'_>) {
    *text += &format!("out.key({:?});\n", item.name);
    if item.is_constant() {
        *text += &format!("out.open({:?});\n", value::constant(item));
        return;
    }
    let method = item.method();
    let path = format!("{types}::{}", item.path);
    // The initial value, a random value, and the argument of the setter.
    let (default, random, set) = match &item.kind.kind {
        TypeKind::Composite(composite) => {
            *text += &format!("{{ let mut m = m.{method}();\nout.open(\"{{\");\n");
            for member in &composite.members {
                self::item(text, types, &Item::member(member, &item.path));
            }
            *text += "out.close(\"}\"); }\n";
            return;
        }
        TypeKind::Simple(simple) => simple_item(item, simple),
        TypeKind::Enum(kind) => {
            let null = kind.null.as_integer().unwrap_or_default();
            let raws: Vec<_> = kind
                .values
                .iter()
                .map(|value| value.value)
                .chain([null, 77])
                .collect();
            let set = if item.is_nullable() {
                format!("Some(value).filter(|value| *value != {path}::NULL)")
            } else {
                "value".to_owned()
            };
            let random = format!("{path}::from_raw(*chance.pick(&{raws:?}))");
            (format!("{path}::NULL"), random, set)
        }
        TypeKind::Set(_) => {
            let random = format!("{path}::from_raw(Number::random(chance))");
            (format!("{path}::NONE"), random, "value".to_owned())
        }
    };
    let failing = matches!(&item.kind.kind, TypeKind::Simple(simple) if is_text(simple));
    let failing = if failing { "?" } else { "" };
    *text += &format!(
        "let value = if chance.one_in(8) {{ {default} }} else {{
            let value = {random};
            m.{method}({set}){failing};
            value
        }};\n"
    );
    *text += &match &item.kind.kind {
        TypeKind::Simple(simple) if item.is_nullable() && simple.is_array => format!(
            "if {} {{ out.null() }} else {{ {} }}\n",
            value::is_null_array(simple),
            value::show(item)
        ),
        TypeKind::Simple(simple) if item.is_nullable() => format!(
            "match value {{ None => out.null(), Some(value) => {{ {} }} }}\n",
            value::show(item)
        ),
        _ => value::show(item),
    };
}

fn simple_item(item: &Item<'_>, simple: &Simple) -> (String, String, String) {
    let (kind, length) = (rust(simple.primitive), simple.length);
    let null = literal(simple.null, simple.primitive);
    let zero = if item.presence == Presence::Optional {
        null.clone()
    } else {
        format!("0 as {kind}")
    };
    if simple.is_array {
        let (default, mut random) = if is_text(simple) {
            let default = format!("vec![{zero}; {length}]");
            (default, format!("text(chance, {length})"))
        } else {
            let random = format!("[(); {length}].map(|()| <{kind}>::random(chance))");
            (format!("[{zero}; {length}]"), random)
        };
        let mut set = "&value".to_owned();
        if item.is_nullable() {
            random = format!("if chance.one_in(6) {{ {default} }} else {{ {random} }}");
            set = format!(
                "Some(&value).filter(|value| !({}))",
                value::is_null_array(simple)
            );
        }
        return (default, random, set);
    }
    let mut random = if simple.primitive == Primitive::Char {
        "letter(chance)".to_owned()
    } else {
        format!("<{kind}>::random(chance)")
    };
    if !item.is_nullable() {
        return (format!("0 as {kind}"), random, "value".into());
    }
    random = format!(
        "Some({random}).filter(|_| !chance.one_in(4)).filter(|value| {{ let value = *value; !({}) }})",
        value::is_null(simple)
    );
    ("None".into(), random, "value".into())
}
