//! Values that a schema itself names.

use std::fmt;
use std::sync::Arc;

use super::Primitive;

/// One value of a primitive type.
#[derive(Debug, Clone, Copy)]
pub enum Scalar {
    /// Of an integer, or the code of a character.
    Integer(i128),
    /// Of a `float` (widened) or a `double`.
    Real(f64),
}

impl Scalar {
    /// Reads a value of that type as schemas write it; a `char` is the character itself.
    #[must_use]
    pub fn parse(text: &str, primitive: Primitive) -> Option<Self> {
        match primitive {
            Primitive::Char => {
                // A blank is a character too, but not one around others.
                let text = match text.trim() {
                    "" => text,
                    trimmed => trimmed,
                };
                match *text.as_bytes() {
                    [byte] => Some(Self::Integer(byte.into())),
                    _ => None,
                }
            }
            Primitive::Float => real(text, text.trim().parse::<f32>().ok()?.into()),
            Primitive::Double => real(text, text.trim().parse().ok()?),
            _ => {
                let value = text.trim().parse().ok()?;
                let (least, greatest) = primitive.range()?;
                (least..=greatest)
                    .contains(&value)
                    .then_some(Self::Integer(value))
            }
        }
    }

    /// As people read a value of that type: characters are shown, and not their codes.
    pub(crate) fn shown(self, primitive: Primitive) -> String {
        match (primitive, self) {
            (Primitive::Char, Self::Integer(code)) => {
                let code = u8::try_from(code).unwrap_or_default();
                format!("'{}'", code.escape_ascii())
            }
            _ => self.to_string(),
        }
    }

    /// The integer, if it is one.
    #[must_use]
    pub const fn as_integer(self) -> Option<i128> {
        match self {
            Self::Integer(value) => Some(value),
            Self::Real(_) => None,
        }
    }
}

/// A number that was written so, unless it became infinite only because it is greater than any that its type can hold.
fn real(text: &str, number: f64) -> Option<Scalar> {
    let is_too_great = number.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit());
    (!is_too_great).then_some(Scalar::Real(number))
}

/// Equal in what they stand for: one NaN is like another.
impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Integer(one), Self::Integer(two)) => one == two,
            (Self::Real(one), Self::Real(two)) => one == two || (one.is_nan() && two.is_nan()),
            _ => false,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(out),
            Self::Real(value) => value.fmt(out),
        }
    }
}

/// The value of something that is not sent, because it is always the same.
#[derive(Debug, Clone, PartialEq)]
pub enum Constant {
    /// One value.
    Scalar(Scalar),
    /// Characters, in the encoding of their type, filled up with zeros to its length.
    Bytes(Arc<[u8]>),
}
