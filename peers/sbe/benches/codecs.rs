// SPDX-License-Identifier: Apache-2.0
//! Time that each codec takes to write and to read each message.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use taran_peers_sbe::CASES;

fn codecs(criterion: &mut Criterion) {
    for case in CASES {
        let mut buffer = [0; 1024];
        let name = format!("encode/{}", case.name);
        criterion.bench_function(&name, |bencher| {
            bencher.iter(|| (case.encode)(black_box(&mut buffer), black_box(1_700_000_000)));
        });
        let length = (case.encode)(&mut buffer, 1_700_000_000);
        let name = format!("decode/{}", case.name);
        criterion.bench_function(&name, |bencher| {
            bencher.iter(|| (case.decode)(black_box(&buffer[..length])));
        });
    }
}

criterion_group!(benches, codecs);
criterion_main!(benches);
