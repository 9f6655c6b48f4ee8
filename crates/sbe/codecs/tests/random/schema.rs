//! Random schemas.

use crate::chance::Chance;

/// A schema in each of its versions.
pub(crate) struct Random {
    pub(crate) id: u64,
    /// The newest one.
    pub(crate) version: u32,
    lines: Vec<(u32, String)>,
}

impl Random {
    /// What it was like in that version.
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
/// The header of a group has to have room for what its entries take, and that of a message for what its block takes.
const WIDE: [&str; 3] = ["uint16", "uint32", "uint64"];
const ENCODINGS: [&str; 4] = ["", "US-ASCII", "UTF-8", "ISO-8859-1"];

/// A type that fields may have.
#[derive(Clone)]
struct Known {
    name: String,
    /// Whether a field may say that it is optional, or required.
    has_presence: bool,
    /// The values of an enumeration that were there from the beginning.
    values: Vec<String>,
}

/// Makes a schema of two versions by that seed.
pub(crate) fn random(seed: u64) -> Random {
    let mut making = Making {
        chance: Chance::new(seed),
        lines: Vec::new(),
        known: Vec::new(),
        since: 0,
        next: 0,
    };
    let id = making.chance.below(60_000);
    making.schema(id);
    Random {
        id,
        version: 1,
        lines: making.lines,
    }
}

struct Making {
    chance: Chance,
    lines: Vec<(u32, String)>,
    known: Vec<Known>,
    /// The version in which comes what is written next.
    since: u32,
    next: u32,
}

impl Making {
    fn line(&mut self, line: impl Into<String>) {
        self.lines.push((self.since, line.into()));
    }

    /// A name that nothing else has.
    fn name(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}{}", self.next)
    }

    /// `sinceVersion`, where it is needed.
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
        self.line("</types>");
        for id in 0..1 + self.chance.below(3) {
            self.message(id);
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

    /// A type of one primitive, in all its variety; its line, and whether it is constant.
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
        let name = self.name("T");
        let (line, constant) = self.simple(&name, "");
        self.line(line);
        self.known.push(Known {
            name,
            has_presence: !constant,
            values: Vec::new(),
        });
    }

    fn enumeration(&mut self, prefix: &str, is_shared: bool) -> String {
        let name = self.name(prefix);
        let encoding = *self
            .chance
            .pick(&["uint8", "char", "int8", "uint16", "int32"]);
        self.line(format!(
            "<enum name=\"{name}\" encodingType=\"{encoding}\">"
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
            self.since = u32::from(index > 0 && self.chance.one_in(4));
            let came = self.came();
            self.line(format!(
                "<validValue name=\"{value}\"{came}>{number}</validValue>"
            ));
            if self.since == 0 {
                values.push(value);
            }
            self.since = 0;
        }
        self.line("</enum>");
        if is_shared {
            let has_presence = true;
            self.known.push(Known {
                name: name.clone(),
                has_presence,
                values,
            });
        }
        name
    }

    fn set(&mut self, prefix: &str, is_shared: bool) -> String {
        let name = self.name(prefix);
        let (encoding, bits) =
            *self
                .chance
                .pick(&[("uint8", 8), ("uint16", 16), ("uint32", 32), ("uint64", 64)]);
        self.line(format!("<set name=\"{name}\" encodingType=\"{encoding}\">"));
        let step = 1 + self.chance.below(3);
        for index in 0..1 + self.chance.below(bits / 3) {
            let choice = self.name("B");
            self.since = u32::from(self.chance.one_in(4));
            let (came, bit) = (self.came(), index * step);
            self.line(format!("<choice name=\"{choice}\"{came}>{bit}</choice>"));
            self.since = 0;
        }
        self.line("</set>");
        if is_shared {
            self.known.push(Known {
                name: name.clone(),
                has_presence: false,
                values: Vec::new(),
            });
        }
        name
    }

    fn composite(&mut self, prefix: &str, depth: u32, is_shared: bool) {
        let name = self.name(prefix);
        self.line(format!("<composite name=\"{name}\">"));
        for index in 0..1 + self.chance.below(4) {
            match self.chance.below(8) {
                0 => drop(self.enumeration("E", false)),
                1 => drop(self.set("S", false)),
                2 if depth < 3 => self.composite("C", depth + 1, false),
                3 | 4 if !self.known.is_empty() => {
                    let kind = self.chance.pick(&self.known).name.clone();
                    let member = self.name("r");
                    self.line(format!("<ref name=\"{member}\" type=\"{kind}\"/>"));
                }
                _ => {
                    let member = self.name("m");
                    // Only what comes first has a place that is known here.
                    let offset = if index == 0 && self.chance.one_in(4) {
                        " offset=\"3\""
                    } else {
                        ""
                    };
                    let (line, _) = self.simple(&member, offset);
                    self.line(line);
                }
            }
        }
        self.line("</composite>");
        if is_shared {
            self.known.push(Known {
                name,
                has_presence: false,
                values: Vec::new(),
            });
        }
    }

    fn message(&mut self, id: u64) {
        let name = self.name("M");
        self.line(format!("<sbe:message name=\"{name}\" id=\"{id}\">"));
        self.block(0, true);
        self.line("</sbe:message>");
    }

    /// Fields, groups and data. Only a message itself gets groups or data later.
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
            self.since = 0;
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
        if !may_grow || self.chance.one_in(2) {
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
        let (name, id, came) = (self.name("f"), self.next, self.came());
        let begin = format!("<field name=\"{name}\" id=\"{id}\"{came}");
        if self.chance.one_in(3) {
            let kind = *self.chance.pick(&INTEGERS);
            self.line(format!("{begin} type=\"{kind}\"/>"));
            return;
        }
        let known = self.chance.pick(&self.known).clone();
        let mut line = format!("{begin} type=\"{}\"", known.name);
        if !known.values.is_empty() && self.chance.one_in(5) {
            let value = self.chance.pick(&known.values);
            line += &format!(" presence=\"constant\" valueRef=\"{}.{value}\"", known.name);
        } else if known.has_presence && self.chance.one_in(3) {
            let presence = *self.chance.pick(&["optional", "required"]);
            line += &format!(" presence=\"{presence}\"");
        }
        self.line(line + "/>");
    }
}
