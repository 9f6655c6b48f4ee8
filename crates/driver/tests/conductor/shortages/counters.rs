//! No counter: whatever takes some is refused as long as there are too few, and gives back those it got.

use std::time::Duration;

use taran_protocol::command::Command;
use taran_protocol::error_code::ErrorCode;

use super::{Holdings, LISTENING, Tourist, expect_nothing_left, image_is_made};
use crate::bench::{Bench, refusal};

/// Somebody who has all counters that nobody else has.
struct Hoarder {
    client_id: i64,
    counters: Vec<i64>,
}

impl Hoarder {
    /// Takes all there are.
    fn new(bench: &mut Bench) -> Self {
        let client_id = bench.client();
        let mut counters = Vec::new();
        loop {
            let correlation_id = bench.id();
            bench.send(&Command::AddCounter {
                client_id,
                correlation_id,
                counter_type_id: 1_002,
                key: b"",
                label: "",
            });
            for _ in 0..3 {
                bench.turn();
            }
            let answers = bench.messages();
            if answers
                .iter()
                .any(|message| refusal(message, correlation_id).is_some())
            {
                return Self {
                    client_id,
                    counters,
                };
            }
            counters.push(correlation_id);
        }
    }

    /// Gives one back. It rests for a second.
    fn give(&mut self, bench: &mut Bench) {
        let registration_id = self.counters.pop().unwrap();
        let correlation_id = bench.id();
        bench.ask(&Command::RemoveCounter {
            client_id: self.client_id,
            correlation_id,
            registration_id,
        });
        bench.run_for(Duration::from_secs(2));
    }
}

#[test]
fn whatever_number_of_counters_is_left_they_are_all_given_back() {
    let mut bench = Bench::with(&[("aeron.counters.buffer.length", "1m")]);
    let mut hoarder = Hoarder::new(&mut bench);
    let (mut free, mut fewer_refusals) = (0, usize::MAX);
    loop {
        let before = Holdings::of(&bench);
        let refusals = Tourist::tour(&mut bench);
        for refused in &refusals {
            assert_eq!(refused.code, ErrorCode::GenericError, "{refused:?}");
            // What was never added is not there to be added to.
            let says = ["aeron.counters.buffer.length", "unknown"];
            assert!(
                says.iter().any(|text| refused.text.contains(text)),
                "{refused:?}"
            );
        }
        expect_nothing_left(&mut bench, &before, &format!("{free} counters were free"));
        if refusals.is_empty() {
            break;
        }
        fewer_refusals = fewer_refusals.min(refusals.len());
        free += 1;
        hoarder.give(&mut bench);
    }
    assert_eq!(fewer_refusals, 1, "the tour came to its end step by step");
    assert!(free > 30, "{free} counters are not what a tour takes");
}

#[test]
fn without_counters_there_are_no_images_and_with_them_there_are() {
    let mut bench = Bench::with(&[("aeron.counters.buffer.length", "1m")]);
    let client = bench.client();
    bench.add_subscription(client, LISTENING, 10).unwrap();
    let hoarder = Hoarder::new(&mut bench);
    let before = Holdings::of(&bench);
    assert!(!image_is_made(&mut bench));
    assert_eq!(Holdings::of(&bench), before);
    bench.kill(hoarder.client_id);
    bench.run_for(Duration::from_secs(15));
    assert!(image_is_made(&mut bench));
}
