// SPDX-License-Identifier: Apache-2.0
//! Sources that are added while their address is in use or unavailable.

use super::*;

/// The receiver closes the socket shortly after the removal is confirmed.
#[test]
fn add_of_closing_source_fails_temporarily() {
    let mut driver = DriverFixture::new();
    let only_conductor = |driver: &mut DriverFixture| {
        for _ in 0..10 {
            driver.parts.conductor.do_work(driver.now());
        }
    };
    let take_away: [fn(&mut DriverFixture, i64); 2] = [
        |driver, subscription| {
            driver.send(&Command::RemoveReceiveDestination {
                client_id: 1,
                correlation_id: driver.id(),
                registration_id: subscription,
                channel: FIRST,
            });
        },
        |driver, subscription| {
            driver.send(&Command::RemoveSubscription {
                client_id: 1,
                correlation_id: driver.id(),
                registration_id: subscription,
            });
        },
    ];
    for take_away in take_away {
        let (one, other) = (
            subscribe(&mut driver, MANUAL),
            subscribe(&mut driver, MANUAL),
        );
        add(&mut driver, one, FIRST).unwrap();
        take_away(&mut driver, one);
        let correlation_id = driver.id();
        driver.send(&Command::AddReceiveDestination {
            client_id: 1,
            correlation_id,
            registration_id: other,
            channel: FIRST,
        });
        only_conductor(&mut driver);
        let messages = driver.messages();
        let refused = messages
            .iter()
            .find_map(|it| error_response(it, correlation_id));
        let refused = refused.expect("the socket is there still");
        assert_eq!(
            refused.code,
            ErrorCode::ResourceTemporarilyUnavailable,
            "{refused:?}"
        );
        assert!(refused.text.contains("please retry"), "{refused:?}");
        driver.settle();
        add(&mut driver, other, FIRST).unwrap();
        // It is in use as long as a subscription needs it.
        let third = subscribe(&mut driver, MANUAL);
        let refused = add(&mut driver, third, FIRST).unwrap_err();
        assert_eq!(refused.code, ErrorCode::GenericError, "{refused:?}");
        remove(&mut driver, other, FIRST).unwrap();
    }
}

/// Errors that are unrelated to the closing socket are permanent; a retry does not help.
#[test]
fn add_of_unavailable_source_fails_permanently() {
    let (mut driver, one, other) = one_with_a_source();
    driver.send(&Command::RemoveReceiveDestination {
        client_id: 1,
        correlation_id: driver.id(),
        registration_id: one,
        channel: FIRST,
    });
    driver.network.fail_after(0);
    let refused = add(&mut driver, other, FIRST).unwrap_err();
    assert!(driver.network.has_failed());
    assert_eq!(refused.code, ErrorCode::GenericError, "{refused:?}");
    assert!(
        refused.text.contains("cannot open a UDP socket"),
        "{refused:?}"
    );
}

/// An image that drains needs the socket for a while after the subscription is gone.
#[test]
fn add_of_source_with_draining_image_fails_temporarily() {
    let (mut driver, one, other) = one_with_a_source();
    let _sender = Sender::new(&driver);
    Sender::send_setup(&driver, 0);
    driver.settle();
    assert!(image_log(&driver.messages()).is_some());
    let correlation_id = driver.id();
    driver.ask(&Command::RemoveSubscription {
        client_id: 1,
        correlation_id,
        registration_id: one,
    });
    let refused = add(&mut driver, other, FIRST).unwrap_err();
    assert_eq!(
        refused.code,
        ErrorCode::ResourceTemporarilyUnavailable,
        "{refused:?}"
    );
    driver.run_for(TICK * 30);
    add(&mut driver, other, FIRST).unwrap();
}
