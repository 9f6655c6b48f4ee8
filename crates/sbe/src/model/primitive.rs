//! The eleven types that everything is made of.

use std::fmt;

use super::Scalar;

/// How numbers lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least significant byte comes first.
    Little,
    /// The most significant byte comes first.
    Big,
}

/// A primitive type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// A character of one byte.
    Char,
    /// A signed integer of one byte.
    Int8,
    /// A signed integer of two bytes.
    Int16,
    /// A signed integer of four bytes.
    Int32,
    /// A signed integer of eight bytes.
    Int64,
    /// An unsigned integer of one byte.
    Uint8,
    /// An unsigned integer of two bytes.
    Uint16,
    /// An unsigned integer of four bytes.
    Uint32,
    /// An unsigned integer of eight bytes.
    Uint64,
    /// An IEEE 754 number of four bytes.
    Float,
    /// An IEEE 754 number of eight bytes.
    Double,
}

impl Primitive {
    /// All of them.
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

    /// The primitive type that schemas call by that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|primitive| primitive.name() == name)
    }

    /// What schemas call it.
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

    /// How many bytes one value takes.
    #[must_use]
    pub const fn size(self) -> u32 {
        match self {
            Self::Char | Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double => 8,
        }
    }

    /// Whether it is an integer without a sign.
    #[must_use]
    pub const fn is_unsigned(self) -> bool {
        matches!(
            self,
            Self::Uint8 | Self::Uint16 | Self::Uint32 | Self::Uint64
        )
    }

    /// Whether it is an integer, with or without a sign; characters are not.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        !matches!(self, Self::Char | Self::Float | Self::Double)
    }

    /// The least and the greatest number that its bits can hold; `None` for those that are no integers.
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

    /// The least value, where a type names no other.
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

    /// The greatest value, where a type names no other.
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

    /// What stands for "no value", where a type names no other.
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
