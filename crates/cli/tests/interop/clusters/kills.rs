// SPDX-License-Identifier: Apache-2.0
//! Members that are killed under load, with a check of what their clients have seen.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use taran::Client;
use taran_cluster_client::{ClusterClient, ClusterContext};

use super::{Kind, TestCluster};
use crate::drivers::Driver;
use crate::exchange::connect;

/// Clients that send at the same time.
const CLIENTS: usize = 2;

/// Time for an answer, after which it is unknown whether the message was applied.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Time for an answer to any client. Longer means that the cluster has stopped.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(120);

/// An increment of the counter that the cluster keeps.
#[derive(Clone, Copy, Debug)]
struct Increment {
    begin: Instant,
    /// Time of the answer.
    end: Instant,
    /// Value after the increment.
    value: u64,
}

/// Answers that the clients have seen.
#[derive(Debug, Default)]
pub(super) struct History {
    answered: Vec<Increment>,
    /// Increments without an answer: each may have been applied or not.
    unknown: u64,
}

impl History {
    /// Returns why no order of the increments explains the answers, if there is none.
    ///
    /// Answers are linearizable if all values differ, no increment that ended before another one began has a higher value than
    /// that one, and the values without an answer are not more than the increments without one.
    pub(super) fn violation(&self) -> Option<String> {
        let mut by_value = self.answered.clone();
        by_value.sort_by_key(|it| it.value);
        let values: HashSet<u64> = by_value.iter().map(|it| it.value).collect();
        if values.len() < by_value.len() || values.contains(&0) {
            let twice = by_value
                .windows(2)
                .find(|pair| pair[0].value == pair[1].value);
            return Some(format!("a value was given to two increments: {twice:?}"));
        }
        let mut latest: Option<Increment> = None;
        for increment in &by_value {
            if let Some(lower) = latest.filter(|lower| increment.end < lower.begin) {
                return Some(format!("{increment:?} ended before {lower:?} began"));
            }
            if latest.is_none_or(|lower| lower.begin < increment.begin) {
                latest = Some(*increment);
            }
        }
        let highest = by_value.last().map_or(0, |it| it.value);
        let applied = by_value.len() as u64 + self.unknown;
        (highest > applied).then(|| {
            format!(
                "the counter is {highest} after at most {applied} increments: one was applied twice"
            )
        })
    }
}

#[test]
fn history_with_a_lost_repeated_or_reordered_increment_is_a_violation() {
    let start = Instant::now();
    let at = |ms: u64| start + Duration::from_millis(ms);
    let increment = |begin, end, value| Increment {
        begin: at(begin),
        end: at(end),
        value,
    };
    let history = |answered: &[Increment], unknown| History {
        answered: answered.to_vec(),
        unknown,
    };
    let fine = history(&[increment(0, 5, 2), increment(1, 4, 1)], 0);
    assert_eq!(fine.violation(), None);
    let with_unknown = history(&[increment(0, 5, 1), increment(6, 7, 3)], 1);
    assert_eq!(with_unknown.violation(), None);
    let lost = history(&[increment(0, 5, 1), increment(6, 7, 1)], 0);
    assert!(lost.violation().is_some());
    let reordered = history(&[increment(0, 5, 2), increment(6, 7, 1)], 0);
    assert!(reordered.violation().is_some());
    let repeated = history(&[increment(0, 5, 1), increment(6, 7, 3)], 0);
    assert!(repeated.violation().is_some());
}

/// Returns a client with a new session.
fn open(client: &Client, endpoints: &str) -> Option<ClusterClient> {
    ClusterContext::new(endpoints)
        .egress_channel("aeron:udp?endpoint=127.0.0.1:0")
        .message_timeout(Duration::from_secs(20))
        .connect(client)
        .ok()
}

/// Increments one after the other until `stop` is set.
fn increment_until(
    stop: &AtomicBool,
    driver: &Path,
    endpoints: &str,
    number: u64,
    history: &Mutex<History>,
    count: &AtomicUsize,
) {
    let client = connect(driver);
    let mut session = None;
    let mut next = number << 32;
    while !stop.load(Ordering::Relaxed) {
        let Some(cluster) = &mut session else {
            session = open(&client, endpoints);
            continue;
        };
        next += 1;
        match increment(cluster, next) {
            Outcome::Answered(increment) => {
                history.lock().unwrap().answered.push(increment);
                count.fetch_add(1, Ordering::Relaxed);
            }
            Outcome::Unknown => {
                history.lock().unwrap().unknown += 1;
                session = None;
            }
            Outcome::NotSent => session = None,
        }
    }
}

enum Outcome {
    Answered(Increment),
    Unknown,
    NotSent,
}

/// Sends one increment, and waits for its answer.
fn increment(cluster: &mut ClusterClient, id: u64) -> Outcome {
    let begin = Instant::now();
    let deadline = begin + ANSWER_TIMEOUT;
    loop {
        match cluster.offer(&id.to_le_bytes()) {
            Ok(_) => break,
            Err(error) if error.is_retryable() && Instant::now() < deadline => {
                if cluster.poll(|_, _| ()).is_err() {
                    return Outcome::NotSent;
                }
                thread::yield_now();
            }
            Err(_) => return Outcome::NotSent,
        }
    }
    let mut value = None;
    while Instant::now() < deadline {
        let polled = cluster.poll(|bytes, _| {
            if let Some((head, tail)) = bytes.split_first_chunk::<8>()
                && u64::from_le_bytes(*head) == id
            {
                value = tail.try_into().ok().map(u64::from_le_bytes);
            }
        });
        if let Some(value) = value {
            let end = Instant::now();
            return Outcome::Answered(Increment { begin, end, value });
        }
        if polled.is_err() {
            break;
        }
        thread::yield_now();
    }
    Outcome::Unknown
}

/// Clients in threads of their own, which increment the counter of a cluster one after the other.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    /// Answers so far.
    count: Arc<AtomicUsize>,
    history: Arc<Mutex<History>>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    pub(super) fn start(driver: &Driver, cluster: &TestCluster) -> Self {
        let (stop, count) = (Arc::default(), Arc::default());
        let history = Arc::default();
        let clients = (0..CLIENTS as u64)
            .map(|number| {
                let (stop, count) = (Arc::clone(&stop), Arc::clone(&count));
                let history = Arc::clone(&history);
                let (dir, endpoints) = (driver.dir().to_path_buf(), cluster.endpoints.clone());
                thread::spawn(move || {
                    increment_until(&stop, &dir, &endpoints, number, &history, &count);
                })
            })
            .collect();
        Self {
            stop,
            count,
            history,
            clients,
        }
    }

    /// Waits for this many more answers.
    pub(super) fn await_answers(&self, more: usize) {
        let goal = self.count.load(Ordering::Relaxed) + more;
        let deadline = Instant::now() + PROGRESS_TIMEOUT;
        while self.count.load(Ordering::Relaxed) < goal {
            assert!(Instant::now() < deadline, "the cluster has stopped");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// See [`History::violation`].
    fn violation(&self) -> Option<String> {
        self.history.lock().unwrap().violation()
    }

    /// Ends the clients, and returns what they have seen.
    pub(super) fn end(self) -> History {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().unwrap();
        }
        std::mem::take(&mut self.history.lock().unwrap())
    }
}

fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn counter_of_three_members_is_linearizable_while_members_are_killed() {
    let kills = number("TARAN_CLUSTER_KILLS", 2);
    let seed = number("TARAN_CLUSTER_KILLS_SEED", 1);
    println!("TARAN_CLUSTER_KILLS={kills} TARAN_CLUSTER_KILLS_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let driver = Driver::taran("cluster-kills", &[]);
    let mut cluster = TestCluster::new("cluster-kills", 3)
        .with("aeron.cluster.leader.heartbeat.timeout", "1s")
        .with("aeron.cluster.startup.canvass.timeout", "2s")
        .with("aeron.cluster.max.sessions", "1000")
        .with("aeron.cluster.session.timeout", "10s")
        .with_service("count")
        .start_all(Kind::Taran);
    let load = Load::start(&driver, &cluster);
    load.await_answers(20);
    for kill in 0..kills {
        // Sometimes all, so that no member knows more than its disk.
        if kill > 0 && random.u8(..8) == 0 {
            (0..3).for_each(|id| cluster.kill(id));
            (0..3).for_each(|id| cluster.start(id, Kind::Taran));
        } else {
            // The first one is the leader.
            let leader = (0..3).find(|id| cluster.is_leader(*id));
            let victim = match leader {
                Some(leader) if kill == 0 || random.bool() => leader,
                _ => random.usize(..3),
            };
            cluster.kill(victim);
            load.await_answers(random.usize(1..40));
            cluster.start(victim, Kind::Taran);
        }
        load.await_answers(random.usize(1..40));
        assert_eq!(load.violation(), None, "seed {seed}");
    }
    let history = load.end();
    assert_eq!(history.violation(), None, "seed {seed}");
    println!(
        "{kills} kills, {} answers, {} increments without an answer",
        history.answered.len(),
        history.unknown
    );
    cluster.end_all();
}
