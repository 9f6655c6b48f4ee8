// SPDX-License-Identifier: Apache-2.0
//! `repeat encode|decode CASE TIMES`: does one thing again and again, for callgrind to count, and tells how many nanoseconds
//! it was on a processor for that.

use std::fs;
use std::hint::black_box;

use taran_peers_sbe::CASES;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [verb, name, times] = arguments.as_slice() else {
        panic!("encode|decode CASE TIMES");
    };
    let times: u64 = times.parse().expect("a number");
    let case = CASES
        .into_iter()
        .find(|case| case.name == *name)
        .expect("a case");
    let mut buffer = [0; 1024];
    let length = (case.encode)(&mut buffer, 1_700_000_000);
    let start = cpu_time_ns();
    for _ in 0..times {
        if verb == "encode" {
            black_box((case.encode)(
                black_box(&mut buffer),
                black_box(1_700_000_000),
            ));
        } else {
            black_box((case.decode)(black_box(&buffer[..length])));
        }
    }
    println!("{}", cpu_time_ns() - start);
}

/// Returns the CPU time of this thread in nanoseconds, as accounted by Linux.
fn cpu_time_ns() -> u64 {
    let account = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let spent = account.split_whitespace().next().expect("three numbers");
    spent.parse().expect("a number")
}
