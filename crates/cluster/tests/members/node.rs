// SPDX-License-Identifier: Apache-2.0
//! Members with driver and archive in this process, and our client.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use taran::Client;
use taran_archive::{Archive, ArchiveConfig};
use taran_cluster::container::{ContainerConfig, ServiceContainer};
use taran_cluster::module::{ClusterConfig, ConsensusModule, toggle, type_id};
use taran_cluster::protocol::CloseReason;
use taran_cluster::service::{ClientSession, Cluster, SendError, Service, SnapshotWriter};
use taran_cluster_client::{ClusterClient, ClusterContext, ClusterEvent};
use taran_core::counters::Counter;
use taran_driver::{DriverContext, MediaDriver};
use taran_protocol::option::{OptionSet, Source, ThreadingMode};

/// Bounds a wait for what has to come; a machine that is busy may need most of it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Appends what happens to a list that the test reads. Echoes messages; some are commands.
pub(crate) struct Scribe {
    journal: Arc<Mutex<Vec<String>>>,
    state: Vec<String>,
    /// Sessions that get the echo of `later` outside of the call with their message.
    waiting: Vec<i64>,
    /// While it is set, snapshots go on.
    holds_snapshots: Arc<AtomicBool>,
    /// Set once frames of a snapshot are asked for.
    records_snapshot: Arc<AtomicBool>,
}

/// A frame of snapshots that go on. It is no state.
const FILLER: [u8; 1024] = [b'-'; 1024];

impl Scribe {
    fn note(&mut self, text: String) {
        self.journal.lock().unwrap().push(text);
    }
}

impl Service for Scribe {
    fn on_start(&mut self, cluster: &mut Cluster<'_>, snapshot: Option<&[Vec<u8>]>) {
        let frames = snapshot.unwrap_or_default();
        let texts = frames
            .iter()
            .filter(|frame| **frame != FILLER)
            .map(|frame| String::from_utf8_lossy(frame).into_owned());
        self.state = texts.collect();
        self.note(format!(
            "start {:?} sessions={}",
            self.state,
            cluster.sessions().count()
        ));
    }

    fn on_session_open(&mut self, _: &mut Cluster<'_>, session: &ClientSession) {
        self.note(format!("open {}", session.id));
    }

    fn on_session_close(
        &mut self,
        _: &mut Cluster<'_>,
        session: &ClientSession,
        reason: CloseReason,
    ) {
        self.note(format!("close {} {reason}", session.id));
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        session: Option<&ClientSession>,
        message: &[u8],
    ) {
        let text = String::from_utf8_lossy(message).into_owned();
        let Some(session) = session else {
            self.note(format!("service message {text}"));
            return;
        };
        match &*text {
            "timer" => {
                let now = cluster.timestamp();
                cluster.schedule_timer(2, now + 20);
                cluster.schedule_timer(1, now + 10);
            }
            "offer" => cluster.offer(b"from the service").unwrap(),
            "leave" => cluster.close_session(session.id),
            "later" => return self.waiting.push(session.id),
            _ => {
                self.note(format!("message {text:.20}"));
                self.state.push(text.clone());
            }
        }
        // The client waits for each echo before it sends again, so there is room soon, unless it has left.
        while let Err(SendError::Offer(error)) = cluster.send(session.id, message) {
            assert!(error.is_retryable(), "{error}");
            std::thread::yield_now();
        }
    }

    fn on_timer_event(&mut self, _: &mut Cluster<'_>, correlation_id: i64) {
        self.note(format!("timer {correlation_id}"));
    }

    fn on_take_snapshot(&mut self, _: &mut Cluster<'_>, snapshot: &mut SnapshotWriter) {
        for text in &self.state {
            snapshot.write(text.as_bytes());
        }
        let holds = Arc::clone(&self.holds_snapshots);
        let records = Arc::clone(&self.records_snapshot);
        snapshot.write_later(std::iter::from_fn(move || {
            records.store(true, Ordering::Release);
            holds.load(Ordering::Acquire).then(|| FILLER.to_vec())
        }));
    }

    fn do_background_work(&mut self, cluster: &Cluster<'_>) -> usize {
        let before = self.waiting.len();
        let is_refused = |id: &i64| {
            let sent = cluster.send(*id, b"later");
            sent.is_err_and(|error| error.is_retryable())
        };
        self.waiting.retain(is_refused);
        before - self.waiting.len()
    }
}

pub(crate) struct Node {
    id: usize,
    timeout: String,
    driver: Option<MediaDriver>,
    archive: Option<Archive>,
    module: Option<ConsensusModule>,
    /// Runs in a container, beside the module.
    container: Option<ServiceContainer>,
    has_container: bool,
    dir: PathBuf,
    members: String,
    archive_channel: String,
    /// Properties beside those of all members.
    properties: Vec<(String, String)>,
    pub(crate) journal: Arc<Mutex<Vec<String>>>,
    /// While it is set, snapshots of the service go on.
    pub(crate) holds_snapshots: Arc<AtomicBool>,
    /// Set once frames of a snapshot of the service are asked for.
    pub(crate) records_snapshot: Arc<AtomicBool>,
}

/// Returns members with free ports; the port to which leaders replay their log is chosen when it is used.
pub(crate) fn members(count: usize) -> String {
    let members = (0..count).map(|id| {
        let ports = [port(), port(), port(), 0, port()];
        let endpoints = ports.map(|port| format!("127.0.0.1:{port}"));
        format!("{id},{}", endpoints.join(","))
    });
    members.collect::<Vec<_>>().join("|")
}

fn port() -> u16 {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

pub(crate) fn await_true(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what} took too long");
        std::thread::yield_now();
    }
}

impl Node {
    /// Starts a member of its own cluster.
    pub(crate) fn single(name: &str) -> Self {
        Self::start(0, name, &members(1), "20s")
    }

    /// The same, with the service in a container.
    pub(crate) fn single_with_container(name: &str) -> Self {
        Self::create(0, name, &members(1), "20s", true)
    }

    pub(crate) fn start(id: usize, name: &str, members: &str, timeout: &str) -> Self {
        Self::create(id, name, members, timeout, false)
    }

    pub(crate) fn create(
        id: usize,
        name: &str,
        members: &str,
        timeout: &str,
        has_container: bool,
    ) -> Self {
        let root = Path::new("/dev/shm");
        let dir = root.join(format!(
            "taran-test-cluster-{name}-{id}-{}",
            std::process::id()
        ));
        let _ = std::fs::remove_dir_all(&dir);
        let own = members.split('|').nth(id).unwrap();
        let mut node = Self {
            id,
            timeout: timeout.to_owned(),
            driver: None,
            archive: None,
            module: None,
            container: None,
            has_container,
            archive_channel: format!("aeron:udp?endpoint={}", own.split(',').nth(5).unwrap()),
            members: members.to_owned(),
            dir,
            properties: Vec::new(),
            journal: Arc::default(),
            holds_snapshots: Arc::default(),
            records_snapshot: Arc::default(),
        };
        node.launch();
        node
    }

    /// Writes a file into the directory of the member.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Ends the module, and starts it with a property more.
    pub(crate) fn relaunch_with(&mut self, name: &str, value: &str) {
        self.module = None;
        self.properties.push((name.to_owned(), value.to_owned()));
        self.launch_module();
    }

    /// Starts a driver alone, for clients.
    pub(crate) fn driver(name: &str) -> Self {
        let root = Path::new("/dev/shm");
        let mut node = Self {
            id: 0,
            timeout: String::new(),
            driver: None,
            archive: None,
            module: None,
            container: None,
            has_container: false,
            archive_channel: String::new(),
            properties: Vec::new(),
            members: String::new(),
            dir: root.join(format!("taran-test-cluster-{name}-{}", std::process::id())),
            journal: Arc::default(),
            holds_snapshots: Arc::default(),
            records_snapshot: Arc::default(),
        };
        node.launch_driver();
        node
    }

    fn launch_driver(&mut self) {
        let context = DriverContext::new()
            .aeron_dir(self.dir.join("driver"))
            .delete_dir_on_start(true)
            .threading_mode(ThreadingMode::Shared)
            .ipc_term_buffer_length(128 * 1024)
            .term_buffer_length(128 * 1024);
        self.driver = Some(MediaDriver::launch(context).unwrap());
    }

    pub(crate) fn launch(&mut self) {
        self.launch_driver();
        let mut options = OptionSet::archive();
        let text = |path: &str| self.dir.join(path).display().to_string();
        let values = [
            ("aeron.dir", text("driver")),
            ("aeron.archive.dir", text("archive")),
            (
                "aeron.archive.control.channel",
                self.archive_channel.clone(),
            ),
            (
                "aeron.archive.replication.channel",
                "aeron:udp?endpoint=127.0.0.1:0".to_owned(),
            ),
            ("aeron.archive.segment.file.length", "1m".to_owned()),
            ("aeron.archive.low.storage.space.threshold", "1m".to_owned()),
            ("aeron.archive.threading.mode", "SHARED".to_owned()),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value));
        options.apply(&Source::CommandLine, values).unwrap();
        let config = ArchiveConfig::new(&options).unwrap();
        self.archive = Some(Archive::builder(config).launch().unwrap());
        self.launch_module();
    }

    pub(crate) fn launch_module(&mut self) {
        let text = |path: &str| self.dir.join(path).display().to_string();
        let (driver, cluster) = (text("driver"), text("cluster"));
        let id = self.id.to_string();
        let mut properties = vec![
            ("aeron.dir", &*driver),
            ("aeron.cluster.dir", &*cluster),
            ("aeron.cluster.member.id", &*id),
            ("aeron.cluster.members", &*self.members),
            (
                "aeron.cluster.replication.channel",
                "aeron:udp?endpoint=127.0.0.1:0",
            ),
            ("aeron.cluster.log.channel", "aeron:udp?term-length=256k"),
            // A busy machine is not to end leaderships and sessions.
            ("aeron.cluster.session.timeout", "60s"),
            ("aeron.cluster.leader.heartbeat.timeout", &self.timeout),
            ("aeron.cluster.startup.canvass.timeout", "40s"),
        ];
        properties.extend(
            self.properties
                .iter()
                .map(|(name, value)| (&**name, &**value)),
        );
        let config = ClusterConfig::from_properties(properties).unwrap();
        let module = if self.has_container {
            ConsensusModule::with_containers(config).launch()
        } else {
            ConsensusModule::builder(config, self.service()).launch()
        };
        self.module = Some(module.unwrap());
        if self.has_container {
            self.launch_container();
        }
    }

    fn service(&self) -> Scribe {
        Scribe {
            journal: Arc::clone(&self.journal),
            state: Vec::new(),
            waiting: Vec::new(),
            holds_snapshots: Arc::clone(&self.holds_snapshots),
            records_snapshot: Arc::clone(&self.records_snapshot),
        }
    }

    fn launch_container(&mut self) {
        let text = |path: &str| self.dir.join(path).display().to_string();
        let properties = [
            ("aeron.dir", text("driver")),
            ("aeron.cluster.dir", text("cluster")),
        ];
        let config = ContainerConfig::from_properties(properties).unwrap();
        let container = ServiceContainer::builder(config, self.service());
        self.container = Some(container.launch().unwrap());
    }

    /// Ends the container, and waits until the module has noticed that.
    pub(crate) fn lose_container(&mut self) {
        let container = self.container.take().unwrap();
        assert_eq!(container.failure(), None);
        container.close();
        let module = self.module.take().unwrap();
        await_true("the end of the module", || module.has_ended());
        let failure = module.failure().unwrap();
        assert!(
            failure.contains("container of service 0 is gone"),
            "{failure}"
        );
        assert!(module.has_lost_service());
        module.close();
    }

    pub(crate) fn stop(&mut self) {
        if let Some(module) = self.module.take() {
            assert_eq!(module.failure(), None);
            module.close();
        }
        if let Some(container) = self.container.take() {
            // It may have noticed that the module is gone.
            container.close();
        }
        if let Some(archive) = self.archive.take() {
            assert_eq!(archive.failure(), None);
            archive.close();
        }
        if let Some(driver) = self.driver.take() {
            driver.close().unwrap();
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::builder()
            .aeron_dir(self.dir.join("driver"))
            .connect()
            .unwrap()
    }

    pub(crate) fn connect(&self, client: &Client) -> ClusterClient {
        self.context().connect(client).unwrap()
    }

    /// Returns the options of a client of the cluster.
    pub(crate) fn context(&self) -> ClusterContext {
        let ingress = self.members.split('|').map(|member| {
            let mut fields = member.split(',');
            format!("{}={}", fields.next().unwrap(), fields.next().unwrap())
        });
        ClusterContext::new(ingress.collect::<Vec<_>>().join(","))
            .egress_channel("aeron:udp?endpoint=127.0.0.1:0")
            .message_timeout(PATIENCE)
    }

    /// Lets the leader, to which `client` belongs, hand leadership over.
    pub(crate) fn transfer(client: &Client, to: Option<i32>) {
        let found = client
            .counters()
            .find(|meta| meta.type_id == type_id::TRANSFER_TOGGLE);
        let counter = client.counters().counter(found.unwrap().id).unwrap();
        await_true("a neutral toggle", || counter.get() == toggle::NEUTRAL);
        counter.set(toggle::transfer_leadership(to));
    }

    pub(crate) fn journal(&self) -> Vec<String> {
        self.journal.lock().unwrap().clone()
    }

    pub(crate) fn await_entry(&self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.journal().iter().any(|entry| entry == text) {
            let journal = self.journal();
            assert!(Instant::now() < deadline, "no `{text}` in {journal:?}");
            std::thread::yield_now();
        }
    }

    pub(crate) fn toggle(client: &Client, value: i64) {
        let counter = Self::begin_action(client, value);
        Self::await_action(&counter);
    }

    /// Sets the control toggle, once it is neutral.
    pub(crate) fn begin_action(client: &Client, value: i64) -> Counter {
        let toggle = client.counters().find(|meta| meta.type_id == 202).unwrap();
        let counter = client.counters().counter(toggle.id).unwrap();
        await_true("a neutral toggle", || counter.get() == 1);
        counter.set(value);
        counter
    }

    /// Waits until the control toggle is neutral.
    pub(crate) fn await_action(toggle: &Counter) {
        await_true("the end of the action", || toggle.get() == 1);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.module = None;
        self.container = None;
        self.archive = None;
        self.driver = None;
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Sends a message, and waits for its echo. One that a leader takes with it when it ends is sent again.
pub(crate) fn echo(client: &mut ClusterClient, message: &[u8]) {
    let deadline = Instant::now() + PATIENCE;
    let (mut echoed, mut sent) = (Vec::new(), 0);
    while echoed.is_empty() {
        client.poll(|bytes, _| echoed = bytes.to_vec()).unwrap();
        while let Some(event) = client.next_event() {
            if let ClusterEvent::NewLeader { maybe_lost, .. }
            | ClusterEvent::NewSession { maybe_lost, .. } = event
                && maybe_lost >= sent
            {
                sent = 0;
            }
        }
        if sent == 0 {
            sent = client.offer(message).unwrap_or(0);
        }
        assert!(
            Instant::now() < deadline,
            "no echo of {message:.20?}: {client:?}"
        );
        std::thread::yield_now();
    }
    assert_eq!(echoed, message);
}
