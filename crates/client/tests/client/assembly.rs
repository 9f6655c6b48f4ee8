// SPDX-License-Identifier: Apache-2.0
//! Assemblers compared with a model, over streams with gaps.

use std::collections::HashMap;

use proptest::prelude::*;
use taran::{
    Action, ControlledFragmentAssembler, ExclusivePublication, FragmentAssembler, Header,
    ImageControlledFragmentAssembler, ImageFragmentAssembler,
};

use crate::fake_driver::Fixture;

/// A frame of a stream.
#[derive(Clone, Copy, Debug)]
enum Frame {
    Data {
        flags: u8,
        length: usize,
    },
    /// Padding in the middle of a message, as after an unrecovered loss.
    Gap,
}

fn frame() -> impl Strategy<Value = Frame> {
    prop_oneof![
        8 => (prop_oneof![Just(0x80u8), Just(0x00), Just(0x00), Just(0x40), Just(0xC0)], 0usize..300)
            .prop_map(|(flags, length)| Frame::Data { flags, length }),
        1 => Just(Frame::Gap),
    ]
}

/// Writes a frame whose payload is derived from `seed`.
fn write(publication: &mut ExclusivePublication, frame: Frame, seed: u8) -> Option<(u8, Vec<u8>)> {
    loop {
        let (flags, length) = match frame {
            Frame::Data { flags, length } => (flags, length),
            Frame::Gap => (0xC0, 10),
        };
        let Ok(mut claim) = publication.try_claim(length) else {
            continue;
        };
        let payload: Vec<u8> = (0..length)
            .map(|index| seed.wrapping_add(index as u8))
            .collect();
        claim.copy_from_slice(&payload);
        claim.set_flags(flags);
        return match frame {
            Frame::Data { .. } => {
                claim.commit();
                Some((flags, payload))
            }
            Frame::Gap => {
                claim.abort();
                None
            }
        };
    }
}

/// Model of an assembler for one session.
#[derive(Default)]
struct Model {
    open: Option<Vec<u8>>,
}

impl Model {
    fn take(&mut self, frame: Option<(u8, Vec<u8>)>) -> Option<Vec<u8>> {
        match frame {
            None => {
                self.open = None;
                None
            }
            Some((0xC0, payload)) => {
                // An unfragmented message ends the one in progress.
                self.open = None;
                Some(payload)
            }
            Some((flags, payload)) => {
                if flags & 0x80 != 0 {
                    self.open = Some(Vec::new());
                }
                self.open.as_mut()?.extend(payload);
                if flags & 0x40 != 0 {
                    self.open.take()
                } else {
                    None
                }
            }
        }
    }
}

fn check(header: &Header<'_>, message: &[u8]) {
    assert_eq!(header.frame_length() as usize, 32 + message.len());
    assert!(header.is_whole());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn assemblers_match_the_model_over_streams_with_gaps(
        frames in proptest::collection::vec((0usize..3, frame()), 1..120),
        polls in proptest::collection::vec(1usize..6, 200),
        aborts in proptest::collection::vec(any::<bool>(), 400),
    ) {
        let mut fixture = Fixture::new();
        let mut subscription = fixture.subscription(10);
        let mut second = fixture.subscription(10);
        let mut publications: Vec<_> = (0..3).map(|_| fixture.exclusive_publication(10)).collect();
        fixture.run_cycles();
        let mut models: [Model; 3] = Default::default();
        let mut expected: HashMap<i32, Vec<Vec<u8>>> = HashMap::new();
        let (mut plain, mut controlled) = (HashMap::<i32, Vec<Vec<u8>>>::new(), HashMap::<i32, Vec<Vec<u8>>>::new());
        let mut assembler = FragmentAssembler::new();
        let mut controlled_assembler = ControlledFragmentAssembler::new();
        let (mut polls, mut aborts) = (polls.into_iter(), aborts.into_iter());
        for (index, (session, frame)) in frames.into_iter().enumerate() {
            let publication = &mut publications[session];
            let written = write(publication, frame, index as u8);
            let message = models[session].take(written);
            expected.entry(publication.session_id()).or_default().extend(message);
            if index % 2 == 0 {
                let limit = polls.next().unwrap_or(3);
                subscription.poll(assembler.wrap(|message, header| {
                    check(header, message);
                    plain.entry(header.session_id()).or_default().push(message.to_vec());
                }), limit).unwrap();
                second.controlled_poll(controlled_assembler.wrap(|message, header| {
                    check(header, message);
                    if aborts.next().unwrap_or(false) {
                        return Action::Abort;
                    }
                    controlled.entry(header.session_id()).or_default().push(message.to_vec());
                    Action::Commit
                }), limit).unwrap();
            }
        }
        for _ in 0..300 {
            subscription.poll(assembler.wrap(|message, header| {
                plain.entry(header.session_id()).or_default().push(message.to_vec());
            }), 10).unwrap();
            second.controlled_poll(controlled_assembler.wrap(|message, header| {
                controlled.entry(header.session_id()).or_default().push(message.to_vec());
                Action::Continue
            }), 10).unwrap();
        }
        expected.retain(|_, messages| !messages.is_empty());
        prop_assert_eq!(&plain, &expected);
        prop_assert_eq!(&controlled, &expected);
    }
}

#[test]
fn message_header_has_first_fragment_fields_and_end_of_whole_message() {
    let mut fixture = Fixture::new();
    let mut subscription = fixture.subscription(10);
    let publication = fixture.publication(10);
    fixture.run_cycles();
    publication.offer(b"before").unwrap();
    let end = publication
        .offer_with(&[&[1; 3000]], |payload| payload.len() as i64)
        .unwrap();
    let mut headers = Vec::new();
    let mut assembler = FragmentAssembler::new();
    subscription
        .poll(
            assembler.wrap(|_, header| {
                headers.push((
                    header.position(),
                    header.term_offset(),
                    header.frame_length(),
                    header.flags(),
                    header.reserved_value(),
                ));
            }),
            10,
        )
        .unwrap();
    assert_eq!(headers, [(64, 0, 38, 0xC0, 0), (end, 64, 3032, 0xC0, 1376)]);
}

#[test]
fn assembler_discards_message_without_first_fragment() {
    let mut fixture = Fixture::new();
    let mut subscription = fixture.subscription(10);
    let publication = fixture.publication(10);
    fixture.run_cycles();
    publication.offer(&[1; 3000]).unwrap();
    publication.offer(&[2; 3000]).unwrap();
    subscription
        .image_mut(publication.session_id())
        .unwrap()
        .set_position(1408)
        .unwrap();
    let mut seen = Vec::new();
    let mut assembler = FragmentAssembler::new();
    subscription
        .poll(
            assembler.wrap(|message, _| seen.push((message[0], message.len()))),
            10,
        )
        .unwrap();
    assert_eq!(seen, [(2, 3000)]);
    assert!(assembler.free_session_buffer(publication.session_id()));
    assert!(!assembler.free_session_buffer(publication.session_id()));
    assembler.clear();
}

#[test]
fn image_assemblers_reassemble_one_image() {
    let mut fixture = Fixture::new();
    let mut subscription = fixture.subscription(10);
    let publication = fixture.publication(10);
    fixture.run_cycles();
    for value in 1..4 {
        publication.offer(&[value; 3000]).unwrap();
    }
    let mut image = subscription.take_image(publication.session_id()).unwrap();
    let mut seen = Vec::new();
    let mut assembler = ImageFragmentAssembler::new();
    assert_eq!(
        image.poll(
            assembler.wrap(|message, _| seen.push((message[0], message.len()))),
            3
        ),
        3
    );
    let mut controlled = ImageControlledFragmentAssembler::new();
    for answer in [Action::Abort, Action::Break, Action::Continue] {
        image.controlled_poll(
            controlled.wrap(|message, _| {
                seen.push((message[0], message.len()));
                answer
            }),
            10,
        );
    }
    assert_eq!(seen, [(1, 3000), (2, 3000), (2, 3000), (3, 3000)]);
}

#[test]
fn try_wrap_with_failing_handler_delivers_whole_message_again() {
    let mut fixture = Fixture::new();
    let mut subscription = fixture.subscription(10);
    let publication = fixture.publication(10);
    fixture.run_cycles();
    let long = vec![7; publication.max_payload_length() + 1];
    let mut assembler = taran::FragmentAssembler::new();
    let mut single = taran::ImageFragmentAssembler::new();
    for round in 0..2 {
        publication.offer(&long).unwrap();
        let mut lengths = Vec::new();
        for attempt in 0..2 {
            let handler = |message: &[u8], _: &taran::Header<'_>| {
                lengths.push(message.len());
                if attempt == 0 { Err(()) } else { Ok(()) }
            };
            let image = &mut subscription.images()[0];
            let outcome = if round == 0 {
                image.try_poll(assembler.try_wrap(handler), 10)
            } else {
                image.try_poll(single.try_wrap(handler), 10)
            };
            // The first poll consumes the first fragment, the second poll the last one.
            assert_eq!(outcome, if attempt == 0 { Err(()) } else { Ok(1) });
        }
        assert_eq!(lengths, [long.len(), long.len()], "round {round}");
    }
}
