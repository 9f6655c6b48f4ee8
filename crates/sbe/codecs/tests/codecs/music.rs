// SPDX-License-Identifier: Apache-2.0
//! A disc in each version of its schema.

use taran_sbe::runtime::EncodeError;
use taran_sbe_codecs::{music_v0, music_v1};

/// `Björk` and other texts in ISO-8859-1.
pub(crate) const ARTIST: &[u8] = b"Bj\xF6rk";
pub(crate) const SIDE: &[u8] = b"C\xF4t\xE9 A";
pub(crate) const NOTE: &[u8] = b"\xFCbrig";

macro_rules! disc {
    ($version:ident, $buffer:expr, |$disc:ident| $last:expr) => {{
        use $version::disc::DiscEncoder;
        use $version::types::Genre;

        let mut disc = DiscEncoder::encode_with($buffer, |label| {
            label.sender(77).hops(None);
        })?;
        disc.year(1993).genre(Genre::Pop).artist(ARTIST)?;
        let mut tracks = disc.tracks()?;
        tracks.dimensions().first(3);
        for seconds in [245, 254] {
            tracks.entry()?.seconds(seconds);
        }
        let mut sides = tracks.done().sides()?;
        sides.dimensions().first(None);
        for text in [SIDE, b""] {
            sides = sides.entry()?.print(text)?.done();
        }
        let $disc = sides.done();
        Ok($last.finish())
    }};
}

/// Encodes a disc of the first version and returns its length.
pub(crate) fn v0(buffer: &mut [u8]) -> Result<usize, EncodeError> {
    disc!(music_v0, buffer, |disc| disc)
}

/// Encodes the same message with the additions of the second version.
pub(crate) fn v1(buffer: &mut [u8]) -> Result<usize, EncodeError> {
    disc!(music_v1, buffer, |disc| {
        let mut bonus = disc.bonus()?;
        bonus.dimensions().first(9);
        bonus.entry()?.seconds(12);
        bonus.done().note(NOTE)?
    })
}
