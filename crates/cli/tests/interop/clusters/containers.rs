// SPDX-License-Identifier: Apache-2.0
//! Services in containers: official ones on our consensus module, and ours on the official one.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use taran_cluster::container::{ContainerConfig, ServiceContainer};
use taran_cluster::service::{ClientSession, Cluster, Service, SnapshotWriter};
use taran_cluster_client::ClusterClient;

use super::official_members::{PATIENCE, client_of};
use super::{Kind, TestCluster};
use crate::drivers::Driver;
use crate::exchange::await_true;
use crate::java::{self, argument};
use crate::program::Program;
use crate::require_java;

/// Services of each cluster.
const SERVICES: usize = 2;

/// Time for a client to connect its egress. It is shorter than all liveness timeouts.
const EGRESS_TIMEOUT: Duration = Duration::from_secs(3);

/// Counts of a service: messages of clients, timers of its own, messages of all services.
type Counts = [u64; 3];

/// The service of `Services.Relay` in Rust: the same requests, and the same snapshot.
struct Relay {
    service_id: u64,
    counts: Counts,
    /// Last counts, and those of the last start and snapshot.
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    now: Counts,
    started: Option<Counts>,
    is_terminated: bool,
}

impl Relay {
    fn show(&self) {
        self.seen.lock().unwrap().now = self.counts;
    }
}

impl Service for Relay {
    fn on_start(&mut self, _: &mut Cluster<'_>, snapshot: Option<&[Vec<u8>]>) {
        for frame in snapshot.unwrap_or_default() {
            let (values, _) = frame.as_chunks();
            for (count, value) in self.counts.iter_mut().zip(values) {
                *count = u64::from_le_bytes(*value);
            }
        }
        self.seen.lock().unwrap().started = Some(self.counts);
        self.show();
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        session: Option<&ClientSession>,
        message: &[u8],
    ) {
        let Some(session) = session else {
            self.counts[2] += 1;
            return self.show();
        };
        self.counts[0] += 1;
        let count = self.counts[0];
        if count.is_multiple_of(10) {
            let id = 1000 * self.service_id + count;
            cluster.schedule_timer(id as i64, cluster.timestamp() + 1);
            cluster.offer(&count.to_le_bytes()).unwrap();
        }
        if self.service_id == 0 {
            // As in the official service: the publication is there, but its client may not be connected yet.
            let deadline = Instant::now() + EGRESS_TIMEOUT;
            while let Err(error) = cluster.send(session.id, message)
                && error.is_retryable()
                && Instant::now() < deadline
            {
                thread::sleep(Duration::from_millis(1));
            }
        }
        self.show();
    }

    fn on_timer_event(&mut self, _: &mut Cluster<'_>, correlation_id: i64) {
        self.counts[1] += u64::from(correlation_id as u64 / 1000 == self.service_id);
        self.show();
    }

    fn on_take_snapshot(&mut self, _: &mut Cluster<'_>, snapshot: &mut SnapshotWriter) {
        snapshot.write(self.counts.map(u64::to_le_bytes).concat());
    }

    fn on_terminate(&mut self) {
        self.seen.lock().unwrap().is_terminated = true;
    }
}

/// Our container of a service, in this process.
struct OurContainer {
    container: ServiceContainer,
    seen: Arc<Mutex<Seen>>,
}

impl OurContainer {
    fn start(dir: &Path, service_id: usize) -> Self {
        let path = |part: &str| dir.join(part).display().to_string();
        let config = ContainerConfig::from_properties([
            ("aeron.dir", path("driver")),
            ("aeron.cluster.dir", path("cluster")),
            ("aeron.cluster.service.id", service_id.to_string()),
        ])
        .unwrap();
        let seen = Arc::<Mutex<Seen>>::default();
        let service = Relay {
            service_id: service_id as u64,
            counts: [0; 3],
            seen: Arc::clone(&seen),
        };
        let container = ServiceContainer::builder(config, service).launch().unwrap();
        Self { container, seen }
    }

    /// Waits for the start of the service. Returns the counts of its snapshot.
    fn await_start(&self) -> Counts {
        let mut started = None;
        await_true("the start of the service", || {
            assert_eq!(self.container.failure(), None);
            started = self.seen.lock().unwrap().started;
            started.is_some()
        });
        started.unwrap_or_default()
    }

    /// Waits for counts; more would never become these.
    fn await_counts(&self, counts: Counts) {
        await_true(&format!("{counts:?}"), || {
            assert_eq!(self.container.failure(), None);
            self.seen.lock().unwrap().now == counts
        });
    }
}

/// Starts an official container of a service, with its mark file in `marks`: it is refused within 10 s of a kill otherwise.
fn official(dir: &Path, marks: &str, service_id: usize) -> Program {
    let arguments = [
        argument("dir", dir.join("driver").display()),
        argument("cluster-dir", dir.join(marks).display()),
        argument("service-id", service_id),
    ];
    java::start("cluster-service", &arguments)
}

/// Sends `count` messages until each is echoed.
fn echo(cluster: &TestCluster, driver: &Driver, count: usize) {
    let mut arguments = cluster.client(driver);
    arguments.extend([argument("count", count), argument("resend", 120)]);
    let said = java::start("cluster-echo", &arguments).finish();
    let echoed = format!("ECHOED {count} resent=0");
    assert!(
        said.iter().any(|line| line.starts_with(&echoed)),
        "{said:#?}"
    );
}

fn counts(line: &str) -> Counts {
    ["messages", "timers", "relayed"].map(|key| Program::value(line, key))
}

/// Waits until each official container says these counts; more would never become these.
fn await_counts(containers: &mut [Program], expected: Counts) {
    for container in containers {
        while counts(&container.expect("COUNTS")) != expected {}
    }
}

#[test]
fn official_containers_on_our_module_keep_timers_messages_and_snapshots_over_restarts() {
    require_java!();
    let driver = Driver::taran("containers-official", &[]);
    let mut cluster = TestCluster::new("containers-official", 1)
        .with("aeron.cluster.service.count", "2")
        .with("aeron.client.liveness.timeout", "4s")
        .with_service("none");
    let dir = cluster.dirs[0].clone();
    let start = |cluster: &mut TestCluster| -> Vec<Program> {
        cluster.start(0, Kind::Taran);
        (0..SERVICES)
            .map(|id| official(&dir, "cluster", id))
            .collect()
    };
    let mut containers = start(&mut cluster);
    echo(&cluster, &driver, 30);
    await_counts(&mut containers, [30, 3, 6]);
    cluster.snapshot(0);
    for container in &mut containers {
        let line = container.expect("SNAPSHOT");
        assert_eq!(counts(&line), [30, 3, 6]);
    }
    echo(&cluster, &driver, 20);
    // The last of the containers to know is service 1, as service 0 has answered.
    cluster.end(0);
    for container in containers {
        container.finish();
    }

    // From the snapshot, and the log behind it.
    let mut containers = start(&mut cluster);
    for container in &mut containers {
        assert_eq!(counts(&container.expect("STARTED")), [30, 3, 6]);
    }
    echo(&cluster, &driver, 10);
    await_counts(&mut containers, [60, 6, 12]);
    cluster.snapshot(0);
    for container in &mut containers {
        assert_eq!(counts(&container.expect("SNAPSHOT")), [60, 6, 12]);
    }

    // A container that is killed takes the member out of the cluster until it is back.
    containers[1].kill();
    cluster
        .program(0)
        .expect("the member waits for its containers");
    // The other one ends with the consensus module.
    containers.truncate(1);
    containers.remove(0).finish();
    let mut containers: Vec<Program> = (0..SERVICES)
        .map(|id| official(&dir, "marks", id))
        .collect();
    for container in &mut containers {
        assert_eq!(counts(&container.expect("STARTED")), [60, 6, 12]);
    }
    echo(&cluster, &driver, 10);
    await_counts(&mut containers, [70, 7, 14]);
    cluster.snapshot(0);
    for container in &mut containers {
        assert_eq!(counts(&container.expect("SNAPSHOT")), [70, 7, 14]);
    }
    cluster.shutdown(0);
    for mut container in containers {
        container.expect("TERMINATE");
        container.finish();
    }
    cluster.end(0);
}

#[test]
fn our_containers_on_the_official_module_keep_timers_messages_and_snapshots_over_restarts() {
    require_java!();
    let driver = Driver::taran("containers-ours", &[]);
    let mut cluster = TestCluster::new("containers-ours", 1)
        .with("aeron.cluster.service.count", "2")
        .with_service("none");
    let dir = cluster.dirs[0].clone();
    let start = |cluster: &mut TestCluster| -> Vec<OurContainer> {
        // The module starts when its containers have.
        cluster.begin(0, Kind::Official);
        await_true("the driver", || dir.join("driver/cnc.dat").exists());
        let containers = (0..SERVICES).map(|id| OurContainer::start(&dir, id));
        let containers = containers.collect();
        cluster.program(0).expect("READY");
        containers
    };
    let containers = start(&mut cluster);
    echo(&cluster, &driver, 30);
    for container in &containers {
        container.await_counts([30, 3, 6]);
    }
    cluster.snapshot(0);
    echo(&cluster, &driver, 20);
    for container in &containers {
        container.await_counts([50, 5, 10]);
    }
    for container in containers {
        container.container.close();
    }
    // The official module ends with its first container.
    cluster.end(0);

    let containers = start(&mut cluster);
    for container in &containers {
        assert_eq!(container.await_start(), [30, 3, 6]);
        container.await_counts([50, 5, 10]);
    }
    echo(&cluster, &driver, 10);
    for container in &containers {
        container.await_counts([60, 6, 12]);
    }
    cluster.shutdown(0);
    for container in &containers {
        await_true("the end of the container", || {
            container.container.has_ended()
        });
        assert_eq!(container.container.failure(), None);
        assert!(container.seen.lock().unwrap().is_terminated);
    }
    cluster.end(0);
}

/// Sends a message until it is answered. Returns the count in the answer, and how often it was sent.
fn increment(client: &mut ClusterClient, message: u64) -> (u64, u64) {
    let deadline = Instant::now() + PATIENCE;
    let (mut resend, mut attempts, mut value) = (Instant::now(), 0, None);
    loop {
        assert!(Instant::now() < deadline, "no answer in time");
        if Instant::now() >= resend && client.offer(&message.to_le_bytes()).is_ok() {
            attempts += 1;
            resend = Instant::now() + Duration::from_secs(5);
        }
        let polled = client.poll(|bytes, _| {
            let (words, _) = bytes.as_chunks();
            if let [number, count] = words
                && u64::from_le_bytes(*number) == message
            {
                value = Some(u64::from_le_bytes(*count));
            }
        });
        polled.expect("the session stays open");
        if let Some(value) = value {
            return (value, attempts);
        }
        thread::yield_now();
    }
}

#[test]
fn our_container_that_is_killed_comes_back_to_one_of_three_members() {
    let cluster = TestCluster::new("containers-three", 3)
        .with("aeron.client.liveness.timeout", "4s")
        .with_service("none");
    let mut cluster = cluster.start_all(Kind::Taran);
    let container = |dir: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taran"));
        let path = |part: &str| dir.join(part).display().to_string();
        command
            .args(["cluster", "--container", "--service", "count"])
            .env_clear()
            .arg(format!("-Daeron.dir={}", path("driver")))
            .arg(format!("-Daeron.cluster.dir={}", path("cluster")));
        let mut program = Program::start("container", &mut command);
        program.expect("container clustered-service-0-0 is started");
        program
    };
    let dirs = cluster.dirs.clone();
    let mut containers: Vec<Program> = dirs.iter().map(|dir| container(dir)).collect();
    let driver = Driver::taran("containers-three", &[]);
    let mut client = client_of(&cluster, &driver);
    let (mut answered, mut sent) = (0, 0);
    let mut send = |client: &mut ClusterClient, times: u64| {
        for number in 0..times {
            let (value, attempts) = increment(client, answered << 8 | number);
            sent += attempts;
            // Each answered message counts, and each attempt at most once.
            assert!(
                answered < value && value <= sent,
                "{answered} {value} {sent}"
            );
            answered = value;
        }
    };
    send(&mut client, 20);
    let leader = client.leader() as usize;
    containers[leader].kill();
    cluster
        .program(leader)
        .expect("the member waits for its containers");
    send(&mut client, 20);
    assert_ne!(client.leader() as usize, leader);
    containers[leader] = container(&dirs[leader]);
    send(&mut client, 20);
    // It is needed for a quorum now.
    let next = client.leader() as usize;
    cluster.kill(next);
    send(&mut client, 20);
    client.close();
    for id in 0..3 {
        let said = cluster.end(id);
        // A container reads the log of the old leader while its member joins the one of the new leader, on the same port.
        let refused = said.iter().find(|line| line.contains("cannot bind"));
        assert_eq!(refused, None, "member {id}: {said:#?}");
    }
    for program in &mut containers {
        program.kill();
    }
}
