// SPDX-License-Identifier: Apache-2.0
//! JSON in the form of the schema-driven decoder, for the generated program.

use crate::chance::Chance;

/// JSON text under construction.
#[derive(Default)]
pub(crate) struct Json(pub(crate) String);

impl Json {
    fn comma(&mut self) {
        if !self.0.is_empty() && !self.0.ends_with(['{', '[', ':']) {
            self.0.push(',');
        }
    }

    fn item(&mut self, text: &str) {
        self.comma();
        self.0.push_str(text);
    }

    pub(crate) fn key(&mut self, name: &str) {
        self.item(&format!("{name:?}:"));
    }

    pub(crate) fn open(&mut self, bracket: &str) {
        self.item(bracket);
    }

    pub(crate) fn close(&mut self, bracket: &str) {
        self.0.push_str(bracket);
    }

    pub(crate) fn null(&mut self) {
        self.item("null");
    }

    pub(crate) fn number<T: Number>(&mut self, number: T) {
        self.item(&number.shown());
    }

    pub(crate) fn numbers<T: Number>(&mut self, numbers: &[T], is_null: impl Fn(T) -> bool) {
        self.open("[");
        for number in numbers {
            if is_null(*number) {
                self.null();
            } else {
                self.number(*number);
            }
        }
        self.close("]");
    }

    /// Adds the text up to the first zero; the test writes only ASCII.
    pub(crate) fn text(&mut self, bytes: &[u8]) {
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        self.item(&format!("{:?}", str::from_utf8(text).unwrap()));
    }

    pub(crate) fn character(&mut self, character: u8) {
        self.item(&format!("\"\\u{:04x}\"", character));
    }

    pub(crate) fn hex(&mut self, bytes: &[u8]) {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.item(&format!("{digits:?}"));
    }

    /// Adds an enumeration value.
    pub(crate) fn named(&mut self, raw: i128, names: &[(i128, &str)], null: i128) {
        match names.iter().find(|(value, _)| *value == raw) {
            Some((_, name)) => self.item(&format!("{name:?}")),
            None if raw == null => self.null(),
            None => self.item(&raw.to_string()),
        }
    }

    /// Adds the choices of a set.
    pub(crate) fn flags(&mut self, raw: u64, names: &[(u64, &str)]) {
        self.open("[");
        let mut rest = raw;
        for (bit, name) in names {
            if raw >> bit & 1 == 1 {
                self.item(&format!("{name:?}"));
                rest &= !(1 << bit);
            }
        }
        for bit in (0..64).filter(|bit| rest >> bit & 1 == 1) {
            self.number(bit);
        }
        self.close("]");
    }
}

/// Number of any primitive type.
pub(crate) trait Number: Copy {
    fn random(chance: &mut Chance) -> Self;
    fn shown(self) -> String;
}

macro_rules! integers {
    ($($kind:ty)*) => {
        $(impl Number for $kind {
            /// Returns a random number; small ones are frequent, so that null values and limits occur.
            fn random(chance: &mut Chance) -> Self {
                match chance.below(4) {
                    0 => chance.below(101) as Self,
                    1 => *chance.pick(&[Self::MIN, Self::MAX]),
                    _ => chance.bits() as Self,
                }
            }

            fn shown(self) -> String {
                self.to_string()
            }
        })*
    };
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! reals {
    ($($kind:ty)*) => {
        $(impl Number for $kind {
            fn random(chance: &mut Chance) -> Self {
                match chance.below(8) {
                    0 => *chance.pick(&[Self::NAN, Self::INFINITY, Self::MIN, 0.0]),
                    1 => chance.below(101) as Self,
                    // Few enough digits for all implementations to format it equally.
                    _ => (chance.bits() as i64 >> 24) as Self / 8.0,
                }
            }

            fn shown(self) -> String {
                if self.is_finite() {
                    format!("{:?}", f64::from(self))
                } else {
                    format!("\"{self}\"")
                }
            }
        })*
    };
}
reals!(f32 f64);

pub(crate) fn letter(chance: &mut Chance) -> u8 {
    b'A' + chance.below(50) as u8
}

pub(crate) fn text(chance: &mut Chance, longest: u64) -> Vec<u8> {
    (0..chance.below(longest + 1)).map(|_| letter(chance)).collect()
}

/// Returns true if each byte of a text field of this length is null.
pub(crate) fn is_null_text(text: &[u8], length: usize, null: u8) -> bool {
    let rest = length - text.len();
    text.iter().all(|byte| *byte == null) && (rest == 0 || null == 0)
}
