// SPDX-License-Identifier: Apache-2.0
//! `loss`: drops datagrams of some frame types with a probability.

use taran_net::DatagramFilter;
use taran_protocol::frame::{FrameHeader, FromBytes};

use super::arguments::Arguments;
use crate::context::Conflict;

const MASK_48: u64 = (1 << 48) - 1;

/// Drops datagrams whose first frame has a type in the mask.
#[derive(Debug)]
pub(super) struct RandomLoss {
    rate: f64,
    /// Bit n stands for frame type n.
    types: u64,
    rng: Erand48,
}

impl RandomLoss {
    pub(super) fn build(arguments: &Arguments) -> Result<Box<dyn DatagramFilter>, Conflict> {
        arguments.allow_only(&["rate", "seed", "recv-msg-mask"])?;
        let rate = arguments.parse_with("rate", "a number between 0 and 1", |text| {
            let rate = text.parse().ok();
            rate.filter(|rate| (0.0..=1.0).contains(rate))
        })?;
        // A negative number is read as its two's complement.
        let seed = arguments.parse_with("seed", "a 64-bit integer", |text| {
            let signed = || text.parse::<i64>().map(i64::cast_unsigned);
            text.parse::<u64>().or_else(|_| signed()).ok()
        })?;
        let types = arguments.parse_with(
            "recv-msg-mask",
            "a hexadecimal number with one bit for each frame type",
            |text| {
                let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
                u64::from_str_radix(digits.unwrap_or(text), 16).ok()
            },
        )?;
        Ok(Box::new(Self {
            rate: rate.unwrap_or(0.0),
            types: types.unwrap_or(0),
            rng: Erand48::new(seed.unwrap_or(0)),
        }))
    }
}

impl DatagramFilter for RandomLoss {
    fn admits(&mut self, datagram: &[u8]) -> bool {
        let Ok((header, _)) = FrameHeader::ref_from_prefix(datagram) else {
            return true;
        };
        let bit = 1u64
            .checked_shl(u32::from(header.frame_type.get()))
            .unwrap_or(0);
        // A random number is drawn only for datagrams that may be dropped.
        self.rate <= 0.0 || self.types & bit == 0 || self.rng.next() > self.rate
    }
}

/// The 48-bit linear congruential generator of POSIX (`erand48`), so that a seed has the same effect as in the C
/// driver.
#[derive(Debug)]
struct Erand48(u64);

impl Erand48 {
    /// The state consists of three 16-bit words; the lowest word of the seed is the most significant.
    fn new(seed: u64) -> Self {
        let word = |shift: u32| seed >> shift & 0xFFFF;
        Self(word(0) << 32 | word(16) << 16 | word(32))
    }

    /// Returns a number from 0 (inclusive) to 1 (exclusive), uniformly distributed.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & MASK_48;
        self.0 as f64 / (1u64 << 48) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erand48_equals_glibc() {
        let mut rng = Erand48::new(0xDEAD_BEEF_1234_5678);
        let drawn = [rng.next(), rng.next(), rng.next()];
        // Results of glibc's `erand48` for the state { 0xBEEF, 0x1234, 0x5678 }.
        assert_eq!(
            drawn,
            [0.9466768698819621, 0.5199852524208417, 0.048515207676445016]
        );
    }
}
