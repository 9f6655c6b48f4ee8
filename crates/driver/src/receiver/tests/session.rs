// SPDX-License-Identifier: Apache-2.0
//! Sessions without an image, up to its creation.

use std::net::{Ipv4Addr, SocketAddr};

use super::*;

const ELICIT: &str = "24 00 00 00 00 80 03 00  4d 3c 2b 1a e9 03 00 00  00 00 00 00 00 00 00 00
                      00 00 00 00 88 77 66 55  44 33 22 11";

#[test]
fn data_of_unknown_session_elicits_setup_once_per_second() {
    let mut fixture = ReceiverFixture::new();
    fixture.arrive(&data(START, &[64]));
    assert_eq!(fixture.socket.destinations(), [Some(peer())]);
    assert_eq!(fixture.socket.sent(), [hex(ELICIT)]);
    fixture.arrive(&data(START + 64, &[64]));
    assert_eq!(fixture.socket.sent(), NOTHING);
    fixture.sent_after(1_000 * MS);
    fixture.arrive(&data(START, &[64]));
    assert_eq!(fixture.socket.sent(), [hex(ELICIT)]);
}

#[test]
fn stream_without_subscription_elicits_nothing() {
    let mut fixture = ReceiverFixture::new();
    fixture.arrive(&data_of(SESSION, 5, START, &[64]));
    fixture.arrive(
        Setup {
            stream_id: 5.into(),
            ..setup()
        }
        .as_bytes(),
    );
    assert_eq!(fixture.socket.sent(), NOTHING);
    assert!(fixture.event().is_none());
}

#[test]
fn setup_requests_image_once() {
    let mut fixture = ReceiverFixture::new();
    let setup = Setup {
        header: Setup::header(Setup::GROUP),
        ttl: 4.into(),
        ..setup()
    };
    fixture.arrive(setup.as_bytes());
    let Some(ConductorEvent::CreateImage(create)) = fixture.event() else {
        panic!("no event");
    };
    let expected = CreateImage {
        endpoint: ENDPOINT,
        transport: TransportId(1),
        session_id: SESSION,
        stream_id: STREAM,
        initial_term_id: 100,
        active_term_id: 101,
        term_offset: 192,
        term_length: TERM_LENGTH,
        mtu: 1408,
        ttl: 4,
        own_ttl: 0,
        is_group: true,
        wants_response: false,
        source: peer(),
        control: peer(),
    };
    assert_eq!(create, expected);
    fixture.arrive(setup.as_bytes());
    assert!(fixture.event().is_none());
    let (session_id, stream_id) = (SESSION, STREAM);
    fixture.command(ReceiverCommand::ImageRefused {
        endpoint: ENDPOINT,
        session_id,
        stream_id,
    });
    fixture.arrive(setup.as_bytes());
    assert!(matches!(
        fixture.event(),
        Some(ConductorEvent::CreateImage(_))
    ));
}

#[test]
fn full_event_queue_retries_with_next_setup() {
    let mut fixture = ReceiverFixture::new();
    for session_id in 0..5 {
        fixture.arrive(
            Setup {
                session_id: session_id.into(),
                ..setup()
            }
            .as_bytes(),
        );
    }
    assert_eq!(fixture.counters.failed_offers_to_conductor.get(), 1);
    while fixture.event().is_some() {}
    fixture.arrive(
        Setup {
            session_id: 4.into(),
            ..setup()
        }
        .as_bytes(),
    );
    assert!(
        matches!(fixture.event(), Some(ConductorEvent::CreateImage(create)) if create.session_id == 4)
    );
}

#[test]
fn session_beyond_limit_is_reported() {
    let mut fixture = ReceiverFixture::with(|spec| spec.stream_session_limit = 1);
    fixture.connect(|_| {});
    fixture.arrive(
        Setup {
            session_id: 9.into(),
            ..setup()
        }
        .as_bytes(),
    );
    assert!(matches!(
        fixture.event(),
        Some(ConductorEvent::SessionLimitReached { session_id: 9, .. })
    ));
    fixture.arrive(setup().as_bytes());
    assert!(fixture.event().is_none(), "a SETUP of the same session");
}

#[test]
fn setup_with_invalid_log_parameters_is_invalid() {
    let mut fixture = ReceiverFixture::new();
    for bad in [
        Setup {
            term_length: 65_535.into(),
            ..setup()
        },
        Setup {
            term_length: (1 << 31).into(),
            ..setup()
        },
        Setup {
            term_offset: 65_536.into(),
            ..setup()
        },
        Setup {
            term_offset: 8.into(),
            ..setup()
        },
        Setup {
            mtu: 0.into(),
            ..setup()
        },
        Setup {
            mtu: 65_536.into(),
            ..setup()
        },
        Setup {
            active_term_id: (INITIAL_TERM - 1).into(),
            ..setup()
        },
    ] {
        fixture.arrive(bad.as_bytes());
    }
    assert_eq!(fixture.counters.invalid_packets.get(), 7);
    assert!(fixture.event().is_none());
}

#[test]
fn explicit_control_address_is_sent_setup_request_every_second() {
    let control = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 8), 7));
    let mut fixture = ReceiverFixture::with(|spec| {
        spec.transports[0].explicit_control = Some(control);
        spec.transports[0].re_resolution_timeout_ns = Some(5_000 * MS);
    });
    let mut request = hex(ELICIT);
    request[8..16].fill(0);
    assert_eq!(fixture.socket.destinations(), [Some(control)]);
    assert_eq!(fixture.socket.sent(), [request.clone()]);
    assert_eq!(fixture.sent_after(1_000 * MS), NOTHING);
    assert_eq!(fixture.sent_after(1), [request]);
    fixture.command(ReceiverCommand::AddSubscription {
        endpoint: ENDPOINT,
        stream_id: STREAM,
        session_id: Some(SESSION),
    });
    assert_eq!(fixture.socket.sent(), [hex(ELICIT)]);
    fixture.sent_after(4_000 * MS);
    assert!(matches!(
        fixture.event(),
        Some(ConductorEvent::ReResolveControl {
            transport: TransportId(1),
            ..
        })
    ));
    fixture.command(ReceiverCommand::ChangeControl {
        endpoint: ENDPOINT,
        transport: TransportId(1),
        address: peer(),
    });
    fixture.socket.sent();
    fixture.now_ns += 1_001 * MS;
    fixture.cycle();
    assert_eq!(fixture.socket.destinations(), [Some(peer())]);
}
