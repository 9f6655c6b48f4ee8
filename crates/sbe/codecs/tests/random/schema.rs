// SPDX-License-Identifier: Apache-2.0
//! Random schemas.

use crate::chance::Chance;

/// Schema in each of its versions.
pub(crate) struct Random {
    pub(crate) id: u64,
    /// Latest version.
    pub(crate) version: u32,
    pub(crate) shapes: Shapes,
    lines: Vec<(u32, String)>,
}

/// Number of occurrences of rare constructs, so that the test can verify that they occur.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Shapes {
    /// Fields whose `sinceVersion` is that of their type.
    pub(crate) as_old_as_types: u32,
    /// Constant fields of the first version after fields of the second.
    pub(crate) unsent_behind: u32,
    /// Messages introduced in the second version.
    pub(crate) late_messages: u32,
}

impl Random {
    /// Returns the text of this version.
    pub(crate) fn at(&self, version: u32) -> String {
        let lines = self.lines.iter().filter(|(since, _)| *since <= version);
        let text = lines.map(|(_, line)| line.replace("VERSION", &version.to_string()) + "\n");
        text.collect()
    }
}

const INTEGERS: [&str; 8] = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
];
const UNSIGNED: [&str; 4] = ["uint8", "uint16", "uint32", "uint64"];
/// The dimensions must have room for the block length of the entries, and the header for that of the message.
const WIDE: [&str; 3] = ["uint16", "uint32", "uint64"];
const ENCODINGS: [&str; 4] = ["", "US-ASCII", "UTF-8", "ISO-8859-1"];

/// Type that fields can use.
#[derive(Clone)]
struct Known {
    name: String,
    /// Version that introduced it.
    since: u32,
    /// True if it is not constant.
    is_sent: bool,
    /// True if a field can specify its presence.
    has_presence: bool,
    /// Enumeration values of the first version.
    values: Vec<String>,
}

/// Generates a schema of two versions from a seed.
pub(crate) fn random(seed: u64) -> Random {
    let mut making = Making {
        chance: Chance::new(seed),
        lines: Vec::new(),
        known: Vec::new(),
        since: 0,
        next: 0,
        shapes: Shapes::default(),
    };
    let id = making.chance.below(60_000);
    making.schema(id);
    Random {
        id,
        version: 1,
        shapes: making.shapes,
        lines: making.lines,
    }
}

struct Making {
    chance: Chance,
    lines: Vec<(u32, String)>,
    known: Vec<Known>,
    /// Version of the elements generated next.
    since: u32,
    next: u32,
    shapes: Shapes,
}

impl Making {
    fn line(&mut self, line: impl Into<String>) {
        self.lines.push((self.since, line.into()));
    }

    /// Returns a unique name.
    fn name(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}{}", self.next)
    }

    /// Returns the `sinceVersion` attribute, if it is required.
    fn came(&self) -> &'static str {
        if self.since > 0 {
            " sinceVersion=\"1\""
        } else {
            ""
        }
    }

    fn schema(&mut self, id: u64) {
        let order = *self.chance.pick(&["littleEndian", "bigEndian"]);
        self.line(format!(
            "<sbe:messageSchema xmlns:sbe=\"http://fixprotocol.io/2016/sbe\" package=\"random\" id=\"{id}\" \
             version=\"VERSION\" byteOrder=\"{order}\">\n<types>"
        ));
        self.header();
        self.dimensions("groupSizeEncoding", 0);
        self.dimensions("otherDimensions", 1);
        for (index, inside) in ["text", "bytes", "letters"].into_iter().enumerate() {
            self.data(index, inside);
        }
        for _ in 0..2 + self.chance.below(4) {
            self.simple_type();
        }
        for _ in 0..1 + self.chance.below(3) {
            self.enumeration("E", true);
        }
        for _ in 0..1 + self.chance.below(2) {
            self.set("S", true);
        }
        for _ in 0..1 + self.chance.below(3) {
            self.composite("C", 0, true);
        }
        self.constants();
        self.since = 1;
        self.simple_type();
        match self.chance.below(3) {
            0 => drop(self.enumeration("E", true)),
            1 => drop(self.set("S", true)),
            _ => self.composite("C", 0, true),
        }
        self.since = 0;
        self.line("</types>");
        let messages = 1 + self.chance.below(3);
        for id in 0..messages {
            self.message(id);
        }
        if self.chance.one_in(3) {
            self.since = 1;
            self.message(messages);
            self.since = 0;
            self.shapes.late_messages += 1;
        }
        self.line("</sbe:messageSchema>");
    }

    fn header(&mut self) {
        self.line("<composite name=\"messageHeader\">");
        let mut slots = vec!["blockLength", "templateId", "schemaId", "version"];
        if self.chance.one_in(3) {
            slots.rotate_left(1);
        }
        if self.chance.one_in(3) {
            slots.extend(["numGroups", "numVarDataFields"]);
        }
        for slot in slots {
            let primitive = *self.chance.pick(&WIDE);
            self.line(format!(
                "<type name=\"{slot}\" primitiveType=\"{primitive}\"/>"
            ));
        }
        self.line("</composite>");
    }

    fn dimensions(&mut self, name: &str, least: u64) {
        self.line(format!("<composite name=\"{name}\">"));
        let (length, count) = (*self.chance.pick(&WIDE), *self.chance.pick(&UNSIGNED));
        self.line(format!(
            "<type name=\"blockLength\" primitiveType=\"{length}\"/>"
        ));
        let offset = if self.chance.one_in(3) {
            " offset=\"9\""
        } else {
            ""
        };
        self.line(format!(
            "<type name=\"numInGroup\" primitiveType=\"{count}\" minValue=\"{least}\" maxValue=\"200\"{offset}/>"
        ));
        self.line("</composite>");
    }

    fn data(&mut self, index: usize, name: &str) {
        let length = *self.chance.pick(&UNSIGNED);
        let what = [
            "primitiveType=\"uint8\" characterEncoding=\"UTF-8\"",
            "primitiveType=\"uint8\"",
            "primitiveType=\"char\"",
        ][index];
        self.line(format!(
            "<composite name=\"{name}\"><type name=\"length\" primitiveType=\"{length}\"/>\
             <type name=\"varData\" length=\"0\" {what}/></composite>"
        ));
    }

    /// Generates a simple type; returns its element and whether it is constant.
    fn simple(&mut self, name: &str, more: &str) -> (String, bool) {
        let chance = &mut self.chance;
        let character = chance.one_in(4);
        let primitive = if character {
            "char"
        } else if chance.one_in(4) {
            *chance.pick(&["float", "double"])
        } else {
            *chance.pick(&INTEGERS)
        };
        let begin = format!("<type name=\"{name}\" primitiveType=\"{primitive}\"{more}");
        if chance.one_in(6) {
            let value = if character {
                *chance.pick(&["x", "constant"])
            } else {
                *chance.pick(&["7", "0", "100"])
            };
            return (
                format!("{begin} presence=\"constant\">{value}</type>"),
                true,
            );
        }
        let mut line = begin;
        if chance.one_in(3) {
            line += &format!(" length=\"{}\"", 1 + chance.below(5));
            let encoding = *chance.pick(&ENCODINGS);
            if !encoding.is_empty() && (character || primitive == "uint8") {
                line += &format!(" characterEncoding=\"{encoding}\"");
            }
        }
        if chance.one_in(3) {
            line += " presence=\"optional\"";
            if !character && chance.one_in(2) {
                line += &format!(" nullValue=\"{}\"", chance.below(100));
            }
        }
        if !character && chance.one_in(4) {
            line += &format!(" minValue=\"{}\" maxValue=\"120\"", chance.below(100));
        }
        (line + "/>", false)
    }

    fn simple_type(&mut self) {
        let (name, came) = (self.name("T"), self.came());
        let (line, constant) = self.simple(&name, came);
        self.line(line);
        self.known.push(Known {
            name,
            since: self.since,
            is_sent: !constant,
            has_presence: !constant,
            values: Vec::new(),
        });
    }

    /// Generates constant types.
    fn constants(&mut self) {
        let (constant, composite) = (self.name("K"), self.name("C"));
        let says = "presence=\"constant\"";
        self.line(format!(
            "<type name=\"{constant}\" primitiveType=\"int16\" {says}>-7</type>"
        ));
        self.line(format!(
            "<composite name=\"{composite}\"><ref name=\"r\" type=\"{constant}\"/>\
             <type name=\"m\" primitiveType=\"uint8\" {says}>9</type></composite>"
        ));
        let unsent = |name| Known {
            name,
            since: 0,
            is_sent: false,
            has_presence: false,
            values: Vec::new(),
        };
        self.known.extend([constant, composite].map(unsent));
    }

    /// Selects one of the types so far.
    fn pick(&mut self) -> Known {
        let since = self.since;
        let known: Vec<&Known> = self
            .known
            .iter()
            .filter(|known| known.since <= since)
            .collect();
        (*self.chance.pick(&known)).clone()
    }

    fn enumeration(&mut self, prefix: &str, is_shared: bool) -> String {
        let (name, since, came) = (self.name(prefix), self.since, self.came());
        let encoding = *self
            .chance
            .pick(&["uint8", "char", "int8", "uint16", "int32"]);
        let mut presence = "";
        if self.chance.one_in(4) {
            presence = " presence=\"optional\"";
            if encoding != "char" && self.chance.one_in(2) {
                presence = " presence=\"optional\" nullValue=\"99\"";
            }
        }
        self.line(format!(
            "<enum name=\"{name}\" encodingType=\"{encoding}\"{presence}{came}>"
        ));
        let (mut values, mut last) = (Vec::new(), 0_u8);
        for index in 0..1 + self.chance.below(4) {
            let value = self.name("V");
            last += 1 + self.chance.below(7) as u8;
            let number = if encoding == "char" {
                char::from(b'A' + last).to_string()
            } else {
                last.to_string()
            };
            if index > 0 && self.chance.one_in(4) {
                self.since = 1;
            }
            let came = self.came();
            self.line(format!(
                "<validValue name=\"{value}\"{came}>{number}</validValue>"
            ));
            if self.since == since {
                values.push(value);
            }
            self.since = since;
        }
        self.line("</enum>");
        if is_shared {
            let has_presence = true;
            self.known.push(Known {
                name: name.clone(),
                since,
                is_sent: true,
                has_presence,
                values,
            });
        }
        name
    }

    fn set(&mut self, prefix: &str, is_shared: bool) -> String {
        let (name, since, came) = (self.name(prefix), self.since, self.came());
        let (encoding, bits) =
            *self
                .chance
                .pick(&[("uint8", 8), ("uint16", 16), ("uint32", 32), ("uint64", 64)]);
        self.line(format!(
            "<set name=\"{name}\" encodingType=\"{encoding}\"{came}>"
        ));
        let step = 1 + self.chance.below(3);
        for index in 0..1 + self.chance.below(bits / 3) {
            let choice = self.name("B");
            if self.chance.one_in(4) {
                self.since = 1;
            }
            let (came, bit) = (self.came(), index * step);
            self.line(format!("<choice name=\"{choice}\"{came}>{bit}</choice>"));
            self.since = since;
        }
        self.line("</set>");
        if is_shared {
            self.known.push(Known {
                name: name.clone(),
                since,
                is_sent: true,
                has_presence: false,
                values: Vec::new(),
            });
        }
        name
    }

    fn composite(&mut self, prefix: &str, depth: u32, is_shared: bool) {
        let (name, came) = (self.name(prefix), self.came());
        self.line(format!("<composite name=\"{name}\"{came}>"));
        for index in 0..1 + self.chance.below(4) {
            match self.chance.below(8) {
                0 => drop(self.enumeration("E", false)),
                1 => drop(self.set("S", false)),
                2 if depth < 3 => self.composite("C", depth + 1, false),
                3 | 4 => {
                    let kind = self.pick().name;
                    let member = self.name("r");
                    self.line(format!("<ref name=\"{member}\" type=\"{kind}\"/>"));
                }
                _ => {
                    let member = self.name("m");
                    // Only the offset of the first element is known here.
                    let offset = if index == 0 && self.chance.one_in(4) {
                        " offset=\"3\""
                    } else {
                        ""
                    };
                    let came = self.came();
                    let (line, _) = self.simple(&member, &format!("{offset}{came}"));
                    self.line(line);
                }
            }
        }
        self.line("</composite>");
        if is_shared {
            self.known.push(Known {
                name,
                since: self.since,
                // Composites of only constants are not distinguished.
                is_sent: true,
                has_presence: false,
                values: Vec::new(),
            });
        }
    }

    fn message(&mut self, id: u64) {
        let (name, came) = (self.name("M"), self.came());
        self.line(format!("<sbe:message name=\"{name}\" id=\"{id}\"{came}>"));
        self.block(0, true);
        self.line("</sbe:message>");
    }

    /// Generates fields, groups and data. Only top-level blocks get later groups or data.
    fn block(&mut self, depth: u32, may_grow: bool) {
        let since = self.since;
        for _ in 0..self.chance.below(7) {
            self.field();
        }
        if since == 0 && self.chance.one_in(2) {
            self.since = 1;
            for _ in 0..1 + self.chance.below(3) {
                self.field();
            }
            if self.chance.one_in(3) {
                self.unsent();
            }
            self.since = 0;
            for _ in 0..self.chance.below(3) {
                self.unsent();
                self.shapes.unsent_behind += 1;
            }
        }
        let deep = depth < 3;
        let groups = if deep { self.chance.below(3) } else { 0 };
        for _ in 0..groups {
            self.group(depth);
        }
        let data = self.chance.below(3);
        for _ in 0..data {
            self.tail();
        }
        if !may_grow || since > 0 || self.chance.one_in(2) {
            return;
        }
        self.since = 1;
        if data == 0 && self.chance.one_in(2) {
            self.group(depth);
        }
        self.tail();
        self.since = 0;
    }

    fn group(&mut self, depth: u32) {
        let (name, id, came) = (self.name("g"), self.next, self.came());
        let dimensions = if self.chance.one_in(3) {
            " dimensionType=\"otherDimensions\""
        } else {
            ""
        };
        self.line(format!(
            "<group name=\"{name}\" id=\"{id}\"{came}{dimensions}>"
        ));
        self.block(depth + 1, false);
        self.line("</group>");
    }

    fn tail(&mut self) {
        let (name, id, came) = (self.name("d"), self.next, self.came());
        let kind = *self.chance.pick(&["text", "bytes", "letters"]);
        self.line(format!(
            "<data name=\"{name}\" id=\"{id}\" type=\"{kind}\"{came}/>"
        ));
    }

    fn field(&mut self) {
        if self.chance.one_in(3) {
            let (name, id, came) = (self.name("f"), self.next, self.came());
            let kind = *self.chance.pick(&INTEGERS);
            self.line(format!(
                "<field name=\"{name}\" id=\"{id}\"{came} type=\"{kind}\"/>"
            ));
            return;
        }
        let known = self.pick();
        let is_constant = !known.values.is_empty() && self.chance.one_in(5);
        self.field_of(&known, is_constant);
    }

    /// Generates a constant field.
    fn unsent(&mut self) {
        let since = self.since;
        let unsent =
            |known: &&Known| known.since <= since && !(known.is_sent && known.values.is_empty());
        let known: Vec<&Known> = self.known.iter().filter(unsent).collect();
        let known = (*self.chance.pick(&known)).clone();
        self.field_of(&known, known.is_sent);
    }

    fn field_of(&mut self, known: &Known, is_constant: bool) {
        let (name, id) = (self.name("f"), self.next);
        let mut came = self.came();
        if known.since > 0 && self.chance.one_in(2) {
            // The type has the `sinceVersion`.
            came = "";
            self.shapes.as_old_as_types += 1;
        }
        let mut line = format!(
            "<field name=\"{name}\" id=\"{id}\"{came} type=\"{}\"",
            known.name
        );
        if is_constant {
            let value = self.chance.pick(&known.values);
            line += &format!(" presence=\"constant\" valueRef=\"{}.{value}\"", known.name);
        } else if known.has_presence && self.chance.one_in(3) {
            let presence = *self.chance.pick(&["optional", "required"]);
            line += &format!(" presence=\"{presence}\"");
        }
        self.line(line + "/>");
    }
}
