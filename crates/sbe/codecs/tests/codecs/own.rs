// SPDX-License-Identifier: Apache-2.0
//! Message headers and dimensions with additional members: round trips, and correctness of the standard members.

use taran_sbe::runtime::{DecodeError, EncodeError};
use taran_sbe_codecs::music_v0::disc::DiscEncoder;
use taran_sbe_codecs::music_v1::disc::DiscDecoder;
use taran_sbe_codecs::{music_v0, music_v1, ticks_v5};

use crate::{garage, music, quote};

#[test]
fn custom_header_members_round_trip() {
    let bytes = garage::bytes(music::v1);
    let label = music_v1::whole_header(&bytes).unwrap();
    assert_eq!((label.sender(), label.hops()), (77, None));
    assert_eq!((label.schema_id(), label.version()), (8, 1));
    // After the four standard members.
    assert_eq!(bytes[8..13], [77, 0, 0, 0, 255]);
    let error = music_v1::whole_header(&bytes[..12])
        .map(|_| ())
        .unwrap_err();
    let short = DecodeError::Short {
        what: "Label",
        needed: 13,
        actual: 12,
    };
    assert_eq!(error, short);

    let frame = garage::bytes(quote::v5);
    assert_eq!(ticks_v5::whole_header(&frame).unwrap().magic(), 0xBEEF);
    assert_eq!(frame[3..5], [0xBE, 0xEF]);
}

#[test]
fn custom_dimension_members_round_trip() {
    let bytes = garage::bytes(music::v1);
    let (tracks, disc) = DiscDecoder::decode(&bytes).unwrap().tracks().unwrap();
    let dimensions = tracks.dimensions();
    assert_eq!(
        (dimensions.first(), dimensions.num_in_group()),
        (Some(3), 2)
    );
    assert_eq!(dimensions.block_length(), 2);
    let (sides, disc) = disc.sides().unwrap();
    assert_eq!(sides.dimensions().first(), None);
    let prints: Vec<_> = sides
        .map(|side| side.print().unwrap().0.as_bytes())
        .collect();
    assert_eq!(prints, [music::SIDE, b""]);
    let (bonus, _) = disc.bonus().unwrap();
    assert_eq!(bonus.dimensions().unwrap().first(), Some(9));

    let bytes = garage::bytes(music::v0);
    let (_, disc) = DiscDecoder::decode(&bytes).unwrap().tracks().unwrap();
    let disc = disc
        .each_sides(|side| Ok::<_, DecodeError>(side.print()?.1))
        .unwrap();
    let (bonus, disc) = disc.bonus().unwrap();
    assert!(bonus.dimensions().is_none(), "its sender does not know it");
    assert_eq!((bonus.count(), disc.note().unwrap().0), (0, None));
}

#[test]
fn custom_members_unset_are_null_and_standard_members_are_always_correct() {
    let mut buffer = [0xAA; 128];
    let disc = DiscEncoder::encode(&mut buffer).unwrap();
    let length = disc
        .tracks()
        .unwrap()
        .done()
        .sides()
        .unwrap()
        .done()
        .finish();
    let plain = buffer[..length].to_vec();
    let label = music_v0::whole_header(&plain).unwrap();
    assert_eq!((label.sender(), label.hops()), (0, None));
    let (tracks, _) = music_v0::disc::DiscDecoder::decode(&plain)
        .unwrap()
        .tracks()
        .unwrap();
    assert_eq!(tracks.dimensions().first(), None);

    let wrong = |buffer: &mut [u8]| {
        let disc = DiscEncoder::encode_with(buffer, |label| {
            label.block_length(1).template_id(2).schema_id(3).version(4);
        })?;
        let mut tracks = disc.tracks()?;
        tracks.dimensions().block_length(9).num_in_group(9);
        let mut sides = tracks.done().sides()?;
        sides.dimensions().block_length(9).num_in_group(9);
        Ok::<_, EncodeError>(sides.done().finish())
    };
    let length = wrong(&mut buffer).unwrap();
    assert_eq!(buffer[..length], plain);
}

#[test]
fn node_state_header_has_frame_length() {
    use taran_sbe_codecs::node;
    let mut buffer = [0; 64];
    let own = |header: &mut node::types::MessageHeaderEncoder<'_>| {
        header.frame_length(40).padding(0);
    };
    let term = node::candidate_term::CandidateTermEncoder::encode_with(&mut buffer, own);
    let length = term.unwrap().finish();
    let header = node::whole_header(&buffer).unwrap();
    assert_eq!((header.frame_length(), header.template_id()), (40, 301));
    assert_eq!(length, 16 + 24);
}
