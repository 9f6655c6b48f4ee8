// SPDX-License-Identifier: Apache-2.0
//! The eleven primitive types.

use std::fmt;

use super::Scalar;

/// Byte order of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least significant byte comes first.
    Little,
    /// The most significant byte comes first.
    Big,
}

/// Primitive type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// One-byte character.
    Char,
    /// 8-bit signed integer.
    Int8,
    /// 16-bit signed integer.
    Int16,
    /// 32-bit signed integer.
    Int32,
    /// 64-bit signed integer.
    Int64,
    /// 8-bit unsigned integer.
    Uint8,
    /// 16-bit unsigned integer.
    Uint16,
    /// 32-bit unsigned integer.
    Uint32,
    /// 64-bit unsigned integer.
    Uint64,
    /// 32-bit IEEE 754 number.
    Float,
    /// 64-bit IEEE 754 number.
    Double,
}

impl Primitive {
    /// All primitive types.
    pub const ALL: [Self; 11] = [
        Self::Char,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::Uint8,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
        Self::Float,
        Self::Double,
    ];

    /// Returns the primitive type with this schema name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|primitive| primitive.name() == name)
    }

    /// Returns the schema name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Char => "char",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Float => "float",
            Self::Double => "double",
        }
    }

    /// Returns the size of a value in bytes.
    #[must_use]
    pub const fn size(self) -> u32 {
        match self {
            Self::Char | Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double => 8,
        }
    }

    /// Returns true for unsigned integers.
    #[must_use]
    pub const fn is_unsigned(self) -> bool {
        matches!(
            self,
            Self::Uint8 | Self::Uint16 | Self::Uint32 | Self::Uint64
        )
    }

    /// Returns true for signed and unsigned integers, but not for `char`.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        !matches!(self, Self::Char | Self::Float | Self::Double)
    }

    /// Returns the range of the bit representation; `None` for floating-point types.
    #[must_use]
    pub const fn range(self) -> Option<(i128, i128)> {
        let bits = self.size() * 8;
        match self {
            Self::Float | Self::Double => None,
            Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64 => {
                Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1))
            }
            Self::Char | Self::Uint8 | Self::Uint16 | Self::Uint32 | Self::Uint64 => {
                Some((0, (1 << bits) - 1))
            }
        }
    }

    /// Returns the default minimum value.
    #[must_use]
    pub const fn min_value(self) -> Scalar {
        match self {
            Self::Char => Scalar::Integer(0x20),
            Self::Int8 => Scalar::Integer(i8::MIN as i128 + 1),
            Self::Int16 => Scalar::Integer(i16::MIN as i128 + 1),
            Self::Int32 => Scalar::Integer(i32::MIN as i128 + 1),
            Self::Int64 => Scalar::Integer(i64::MIN as i128 + 1),
            Self::Uint8 | Self::Uint16 | Self::Uint32 | Self::Uint64 => Scalar::Integer(0),
            Self::Float => Scalar::Real(f32::MIN as f64),
            Self::Double => Scalar::Real(f64::MIN),
        }
    }

    /// Returns the default maximum value.
    #[must_use]
    pub const fn max_value(self) -> Scalar {
        match self {
            Self::Char => Scalar::Integer(0x7E),
            Self::Int8 => Scalar::Integer(i8::MAX as i128),
            Self::Int16 => Scalar::Integer(i16::MAX as i128),
            Self::Int32 => Scalar::Integer(i32::MAX as i128),
            Self::Int64 => Scalar::Integer(i64::MAX as i128),
            Self::Uint8 => Scalar::Integer(u8::MAX as i128 - 1),
            Self::Uint16 => Scalar::Integer(u16::MAX as i128 - 1),
            Self::Uint32 => Scalar::Integer(u32::MAX as i128 - 1),
            Self::Uint64 => Scalar::Integer(u64::MAX as i128 - 1),
            Self::Float => Scalar::Real(f32::MAX as f64),
            Self::Double => Scalar::Real(f64::MAX),
        }
    }

    /// Returns the default null value.
    #[must_use]
    pub const fn null_value(self) -> Scalar {
        match self {
            Self::Char => Scalar::Integer(0),
            Self::Int8 => Scalar::Integer(i8::MIN as i128),
            Self::Int16 => Scalar::Integer(i16::MIN as i128),
            Self::Int32 => Scalar::Integer(i32::MIN as i128),
            Self::Int64 => Scalar::Integer(i64::MIN as i128),
            Self::Uint8 => Scalar::Integer(u8::MAX as i128),
            Self::Uint16 => Scalar::Integer(u16::MAX as i128),
            Self::Uint32 => Scalar::Integer(u32::MAX as i128),
            Self::Uint64 => Scalar::Integer(u64::MAX as i128),
            Self::Float | Self::Double => Scalar::Real(f64::NAN),
        }
    }
}

impl fmt::Display for Primitive {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
