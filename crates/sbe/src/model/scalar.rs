// SPDX-License-Identifier: Apache-2.0
//! Values given in a schema.

use std::fmt;
use std::sync::Arc;

use super::Primitive;

/// Value of a primitive type.
#[derive(Debug, Clone, Copy)]
pub enum Scalar {
    /// Integer or character code.
    Integer(i128),
    /// `float` (widened) or `double`.
    Real(f64),
}

impl Scalar {
    /// Parses a value as written in a schema; a `char` is written as the character itself.
    #[must_use]
    pub fn parse(text: &str, primitive: Primitive) -> Option<Self> {
        match primitive {
            Primitive::Char => {
                // A single blank is a valid character, but blanks around a value are removed.
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

    /// Returns the value for display: characters instead of their codes.
    pub(crate) fn shown(self, primitive: Primitive) -> String {
        match (primitive, self) {
            (Primitive::Char, Self::Integer(code)) => {
                let code = u8::try_from(code).unwrap_or_default();
                format!("'{}'", code.escape_ascii())
            }
            _ => self.to_string(),
        }
    }

    /// Returns the integer, if it is one.
    #[must_use]
    pub const fn as_integer(self) -> Option<i128> {
        match self {
            Self::Integer(value) => Some(value),
            Self::Real(_) => None,
        }
    }
}

/// Returns the parsed number, or `None` if a finite literal overflowed to infinity.
fn real(text: &str, number: f64) -> Option<Scalar> {
    let is_too_great = number.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit());
    (!is_too_great).then_some(Scalar::Real(number))
}

/// Compares values; all NaNs are equal.
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

/// Value of a constant, which is not encoded.
#[derive(Debug, Clone, PartialEq)]
pub enum Constant {
    /// Single value.
    Scalar(Scalar),
    /// Characters in the encoding of the type, padded with zeros to its length.
    Bytes(Arc<[u8]>),
}
