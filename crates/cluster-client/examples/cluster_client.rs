// SPDX-License-Identifier: Apache-2.0
//! Sends lines of standard input to a cluster, and prints what it answers.
//!
//! ```text
//! cargo run -p taran-cluster-client --example cluster_client -- 0=localhost:20110,1=localhost:20111,2=localhost:20112
//! ```
//!
//! A media driver has to run on this machine: `taran driver`.

use std::io::BufRead;
use std::sync::mpsc::{TryRecvError, channel};
use std::time::Duration;

use taran::Client;
use taran::idle::{Backoff, IdleStrategy};
use taran_cluster_client::ClusterContext;

/// Time for which answers are awaited at the end of the input.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let endpoints = arguments.next().ok_or("state the ingress endpoints")?;
    let egress = arguments.next();
    let client = Client::builder().connect()?;
    let mut context = ClusterContext::new(endpoints).client_name("example");
    if let Some(egress) = egress {
        context = context.egress_channel(egress);
    }
    let mut cluster = context.connect(&client)?;
    println!(
        "session {} at member {}",
        cluster.session_id(),
        cluster.leader()
    );

    let (lines, input) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    let mut idle = Backoff::default();
    let mut end = None;
    // The session has to be polled, also while there is no input.
    loop {
        match input.try_recv() {
            Ok(line) => drop(cluster.offer_blocking(line.as_bytes())?),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => {
                let begin = *end.get_or_insert_with(std::time::Instant::now);
                if begin.elapsed() > LAST_ANSWERS {
                    break;
                }
            }
        }
        let work = cluster.poll(|message, _| println!("{}", String::from_utf8_lossy(message)))?;
        while let Some(event) = cluster.next_event() {
            println!("{event:?}");
        }
        idle.idle(work, &mut std::thread::sleep);
    }
    cluster.close();
    Ok(())
}
