// SPDX-License-Identifier: Apache-2.0
//! Generates a program that uses the codecs of many schemas: it writes random messages, reads them with both versions
//! of the schema, and prints what was read for comparison.

mod decode;
mod encode;
mod value;

use taran_sbe::model::{Message, Schema};

const HEAD: &str = "
#![allow(warnings)]
#[path = CHANCE]
mod chance;
#[path = JSON]
mod json;
use chance::Chance;
use json::{Json, Number, is_null_text, letter, text};
use taran_sbe::runtime::{DecodeError, EncodeError};
type Encode = fn(&mut Chance, &mut [u8], &mut Json) -> Result<usize, EncodeError>;
type Decode = fn(&[u8], &mut Json) -> Result<(), DecodeError>;
";

const MAIN: &str = r#"
fn main() {
    let mut buffer = vec![0xAA; 1 << 20];
    for (writer, encode, readers) in CASES {
        for round in 0..ROUNDS {
            let mut chance = Chance::new(round);
            let mut written = Json::default();
            let length = encode(&mut chance, &mut buffer, &mut written).unwrap();
            for (reader, decode, show) in *readers {
                let mut read = Json::default();
                decode(&buffer[..length], &mut read).unwrap();
                if reader == writer {
                    assert_eq!(read.0, written.0, "schema {reader}");
                }
                let hex: String = buffer[..length].iter().map(|byte| format!("{byte:02x}")).collect();
                println!("{reader} {hex} {}", read.0);
                assert!(!show(&buffer[..length]).contains("Short"), "schema {reader}");
                // A truncated message causes an error, not a panic.
                for end in [length / 3, length / 2, length - 1] {
                    let mut read = Json::default();
                    let _ = decode(&buffer[..end], &mut read);
                    show(&buffer[..end]);
                }
            }
        }
    }
}
"#;

/// Returns the source of the program. Each two consecutive schemas are versions of one; their codecs are in `sN.rs`.
pub(crate) fn program(schemas: &[Schema], rounds: u32, chance: &str, json: &str) -> String {
    let mut text = HEAD
        .replace("CHANCE", &format!("{chance:?}"))
        .replace("JSON", &format!("{json:?}"));
    text += &format!("const ROUNDS: u64 = {rounds};\n");
    let mut cases = String::new();
    for (index, schema) in schemas.iter().enumerate() {
        text += &format!("mod s{index} {{ include!(\"s{index}.rs\"); }}\n");
        for message in &schema.messages {
            functions(&mut text, index, message);
            let name = message.name.to_lowercase();
            let both = [index & !1, index | 1].into_iter();
            let known = both.filter(|reader| schemas[*reader].message(message.id).is_some());
            let readers = known.map(|reader| {
                format!(
                    "({reader}, s{reader}_{name}_decode as Decode,
                    (|bytes| match s{reader}::Message::decode(bytes) {{
                        Ok(message) => message.to_string(),
                        Err(error) => error.to_string(),
                    }}) as fn(&[u8]) -> String)"
                )
            });
            cases += &format!(
                "({index}, s{index}_{name}_encode, &[{}]),\n",
                readers.collect::<Vec<_>>().join(", ")
            );
        }
    }
    text += &format!(
        "const CASES: &[(u32, Encode, &[(u32, Decode, fn(&[u8]) -> String)])] = &[\n{cases}];\n"
    );
    text + MAIN
}

fn functions(text: &mut String, index: usize, message: &Message) {
    let (kind, name) = (&message.name, message.name.to_lowercase());
    *text += &format!(
        "fn s{index}_{name}_encode(chance: &mut Chance, buffer: &mut [u8], out: &mut Json)
        -> Result<usize, EncodeError> {{
            let mut m = s{index}::{name}::{kind}Encoder::encode(buffer)?;
            out.open(\"{{\");\n"
    );
    encode::block(text, &format!("s{index}::types"), &message.block);
    *text += &format!(
        "out.close(\"}}\");
        Ok(m.finish())
        }}
        fn s{index}_{name}_decode(bytes: &[u8], out: &mut Json) -> Result<(), DecodeError> {{
            let m = s{index}::{name}::{kind}Decoder::decode(bytes)?;
            out.open(\"{{\");\n"
    );
    decode::block(text, &message.block, message.since);
    *text += "out.close(\"}\");\nOk(())\n}\n";
}
