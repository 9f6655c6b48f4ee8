// SPDX-License-Identifier: Apache-2.0
//! Speed of the cipher alone: seals and opens datagrams from cache to cache on one thread.
//!
//! `cargo run --release -p taran-secure --example seal` prints the median of rounds that alternate between suites, and the
//! least; nanoseconds per datagram and megabytes of plain bytes per second.

use std::hint::black_box;
use std::time::Instant;

use taran_secure::Secret;
use taran_secure::derive::{Fingerprint, KeyContext, KeyMaterial, Role};
use taran_secure::provider::{Provider, Suite};
use taran_secure::seal::{Direction, OpenKey, SealKey};

const ROUNDS: usize = 41;
const LENGTHS: [usize; 4] = [64, 320, 1_376, 8_192];
/// Bytes sealed in a round.
const BYTES: usize = 4 << 20;
/// Datagrams of a GSO batch: what is sealed before it is opened.
const BATCH: usize = 45;

/// Nanoseconds per datagram of each round.
#[derive(Default)]
struct Samples {
    seal: Vec<f64>,
    open: Vec<f64>,
}

struct Subject<P: Provider> {
    seal: SealKey<P>,
    open: OpenKey<P>,
}

impl<P: Provider> Subject<P> {
    fn new(suite: Suite) -> Self {
        let context = KeyContext {
            role: Role::Stream,
            suite,
            identity: Fingerprint([1; 16]),
            session_id: 1,
            stream_id: 2,
            epoch: 1,
        };
        let material = KeyMaterial::derive::<P>(&Secret::new([7; 32]), &context);
        Self {
            seal: SealKey::new(&material, Direction::Forward),
            open: OpenKey::new(&material, Direction::Forward, 0),
        }
    }

    fn round(&mut self, length: usize, samples: &mut Samples) {
        let plain = vec![0x5a; length];
        let mut sealed = vec![0; (length + 40) * BATCH];
        let mut opened = vec![0; length];
        let batches = (BYTES / length / BATCH).max(1);
        let (mut sealing, mut opening) = (0, 0);
        for _ in 0..batches {
            let start = Instant::now();
            for out in sealed.chunks_mut(length + 40) {
                self.seal
                    .seal(black_box(&plain), out)
                    .expect("the key is far from its limits");
            }
            let middle = Instant::now();
            for datagram in sealed.chunks(length + 40) {
                self.open
                    .open(black_box(datagram), &mut opened)
                    .expect("the datagram is authentic and new");
            }
            sealing += (middle - start).as_nanos();
            opening += middle.elapsed().as_nanos();
        }
        let datagrams = (batches * BATCH) as f64;
        samples.seal.push(sealing as f64 / datagrams);
        samples.open.push(opening as f64 / datagrams);
    }
}

fn measure<P: Provider>(name: &str) {
    println!("{name}, {ROUNDS} rounds: median (least) in ns per datagram, MB/s at the median");
    println!(
        "{:<18} {:>6}  {:>16} {:>7}  {:>16} {:>7}",
        "suite", "bytes", "seal", "MB/s", "open", "MB/s"
    );
    for length in LENGTHS {
        let mut subjects =
            Suite::ALL.map(|suite| (suite, Subject::<P>::new(suite), Samples::default()));
        for _ in 0..ROUNDS {
            for (_, subject, samples) in &mut subjects {
                subject.round(length, samples);
            }
        }
        for (suite, _, samples) in &mut subjects {
            let [seal, open] = [&mut samples.seal, &mut samples.open].map(|samples| {
                samples.sort_by(f64::total_cmp);
                (samples[samples.len() / 2], samples[0])
            });
            let rate = |ns: f64| length as f64 * 1_000.0 / ns;
            println!(
                "{:<18} {length:>6}  {:>7.0} ({:>6.0}) {:>7.0}  {:>7.0} ({:>6.0}) {:>7.0}",
                format!("{suite:?}"),
                seal.0,
                seal.1,
                rate(seal.0),
                open.0,
                open.1,
                rate(open.0)
            );
        }
    }
}

fn main() {
    #[cfg(feature = "aws-lc")]
    measure::<taran_secure::provider::AwsLc>("aws-lc");
    #[cfg(feature = "graviola")]
    measure::<taran_secure::provider::Graviola>("graviola");
}
