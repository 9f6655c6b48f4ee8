// SPDX-License-Identifier: Apache-2.0
//! Exhausted counters: commands fail as long as there are too few, and free the counters that they allocated.

use std::time::Duration;

use taran_protocol::command::Command;
use taran_protocol::error_code::ErrorCode;

use super::{LISTENING, ResourceSequence, Resources, assert_nothing_left, creates_image};
use crate::fixture::{DriverFixture, error_response};

/// A client that allocates all free counters.
struct Hoarder {
    client_id: i64,
    counters: Vec<i64>,
}

impl Hoarder {
    /// Allocates all free counters.
    fn new(driver: &mut DriverFixture) -> Self {
        let client_id = driver.client();
        let mut counters = Vec::new();
        loop {
            let correlation_id = driver.id();
            driver.send(&Command::AddCounter {
                client_id,
                correlation_id,
                counter_type_id: 1_002,
                key: b"",
                label: "",
            });
            for _ in 0..3 {
                driver.duty_cycle();
            }
            let answers = driver.messages();
            if answers
                .iter()
                .any(|message| error_response(message, correlation_id).is_some())
            {
                return Self {
                    client_id,
                    counters,
                };
            }
            counters.push(correlation_id);
        }
    }

    /// Frees one counter and waits for the reuse timeout of a second.
    fn give(&mut self, driver: &mut DriverFixture) {
        let registration_id = self.counters.pop().unwrap();
        let correlation_id = driver.id();
        driver.ask(&Command::RemoveCounter {
            client_id: self.client_id,
            correlation_id,
            registration_id,
        });
        driver.run_for(Duration::from_secs(2));
    }
}

#[test]
fn failed_commands_free_all_counters() {
    let mut driver = DriverFixture::with(&[("aeron.counters.buffer.length", "1m")]);
    let mut hoarder = Hoarder::new(&mut driver);
    let (mut free, mut fewest_rejections) = (0, usize::MAX);
    loop {
        let before = Resources::of(&driver);
        let rejections = ResourceSequence::run(&mut driver);
        for rejected in &rejections {
            assert_eq!(rejected.code, ErrorCode::GenericError, "{rejected:?}");
            // Destinations of a publication that could not be added.
            let says = ["aeron.counters.buffer.length", "unknown"];
            assert!(
                says.iter().any(|text| rejected.text.contains(text)),
                "{rejected:?}"
            );
        }
        assert_nothing_left(&mut driver, &before, &format!("{free} counters were free"));
        if rejections.is_empty() {
            break;
        }
        fewest_rejections = fewest_rejections.min(rejections.len());
        free += 1;
        hoarder.give(&mut driver);
    }
    assert_eq!(
        fewest_rejections, 1,
        "each free counter lets one more request succeed"
    );
    assert!(free > 30, "a sequence needs more than {free} counters");
}

#[test]
fn image_is_created_once_counters_are_free() {
    let mut driver = DriverFixture::with(&[("aeron.counters.buffer.length", "1m")]);
    let client = driver.client();
    driver.add_subscription(client, LISTENING, 10).unwrap();
    let hoarder = Hoarder::new(&mut driver);
    let before = Resources::of(&driver);
    assert!(!creates_image(&mut driver));
    assert_eq!(Resources::of(&driver), before);
    driver.kill(hoarder.client_id);
    driver.run_for(Duration::from_secs(15));
    assert!(creates_image(&mut driver));
}
