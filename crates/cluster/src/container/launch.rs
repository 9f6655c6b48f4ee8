// SPDX-License-Identifier: Apache-2.0
//! Start and end of a container.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use taran::{Client, CommandError, ConnectError, SystemClock};
use taran_core::agent::{AgentEvent, AgentEventHandler, AgentRunner, RunningAgent};
use taran_core::memory::{FileStorage, Storage as _};
use taran_storage::{Disk as _, DiskError, DiskLock, OsDisk};
use thiserror::Error;

use super::agent::{ContainerAgent, Parts};
use super::config::ContainerConfig;
use super::counters::ContainerCounters;
use super::requests::Requests;
use crate::files::{Mark, MarkComponent, MarkError, MarkFile};
use crate::module::LaunchError;
use crate::service::Service;

/// Reason why a container did not start.
#[derive(Error)]
#[non_exhaustive]
pub enum ContainerLaunchError {
    /// The mark file cannot be claimed.
    #[error(transparent)]
    Mark(#[from] MarkError),
    /// Another container of ours has the mark file.
    #[error(
        "another container runs with {}: give each aeron.cluster.service.id one container",
        path.display()
    )]
    InUse {
        /// Lock of the mark file.
        path: std::path::PathBuf,
    },
    /// The lock of the mark file cannot be taken.
    #[error(transparent)]
    Lock(#[from] DiskError),
    /// There is no driver.
    #[error(transparent)]
    Driver(#[from] ConnectError),
    /// The driver has refused what the container needs.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// There is no archive.
    #[error("cannot connect to the archive on {channel}: {source}")]
    Archive {
        /// Channel to the archive.
        channel: String,
        /// Reason.
        source: taran_archive_client::ConnectError,
    },
    /// The snapshot cannot be read.
    #[error(transparent)]
    Snapshot(#[from] LaunchError),
    /// The thread cannot be started.
    #[error("a thread cannot be started: {0}")]
    Thread(std::io::Error),
}

taran_core::debug_is_display!(ContainerLaunchError);

type Fate = Arc<Mutex<Option<Option<String>>>>;

/// A container to start.
pub struct ServiceContainerBuilder<S> {
    config: ContainerConfig,
    service: S,
    on_error: Box<dyn FnMut(&str) + Send>,
    on_end: Box<dyn FnMut() + Send>,
}

impl<S: Service + 'static> ServiceContainerBuilder<S> {
    /// Calls `handler` with errors. By default they are printed to standard error.
    #[must_use]
    pub fn on_error(mut self, handler: impl FnMut(&str) + Send + 'static) -> Self {
        self.on_error = Box::new(handler);
        self
    }

    /// Calls `hook` when the container ends by itself.
    #[must_use]
    pub fn on_end(mut self, hook: impl FnMut() + Send + 'static) -> Self {
        self.on_end = Box::new(hook);
        self
    }

    /// Starts the container. It waits in the background for the consensus module, and loads the snapshot that this names.
    ///
    /// # Errors
    /// See [`ContainerLaunchError`].
    pub fn launch(self) -> Result<ServiceContainer, ContainerLaunchError> {
        let on_end = Mutex::new(self.on_end);
        let idle = self.config.idle.build();
        let name = self.config.service_name.clone();
        let agent = prepare(self.config, self.service, self.on_error)?;
        let fate = Fate::default();
        let seen = Arc::clone(&fate);
        let handler = AgentEventHandler::new(move |event: &AgentEvent| {
            let ended = event.is_failure().then(|| event.to_string());
            let mut first = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if first.is_none() {
                *first = Some(ended);
                drop(first);
                let mut on_end = on_end.lock().unwrap_or_else(PoisonError::into_inner);
                on_end();
            }
        });
        let running = AgentRunner::new(agent, SystemClock::new(), idle, handler)
            .thread_name(&name)
            .start()
            .map_err(ContainerLaunchError::Thread)?;
        Ok(ServiceContainer { running, fate })
    }
}

/// A running container of a service, beside a consensus module on the same driver. Dropping it ends it as [`close`](Self::close)
/// does.
pub struct ServiceContainer {
    running: RunningAgent,
    fate: Fate,
}

impl ServiceContainer {
    /// Returns a builder for a container of this service.
    #[must_use]
    pub fn builder<S: Service + 'static>(
        config: ContainerConfig,
        service: S,
    ) -> ServiceContainerBuilder<S> {
        ServiceContainerBuilder {
            config,
            service,
            on_error: Box::new(|text| eprintln!("taran container: {text}")),
            on_end: Box::new(|| ()),
        }
    }

    /// Returns true once the container has ended by itself: the cluster was terminated, or it has failed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let fate = self.fate.lock().unwrap_or_else(PoisonError::into_inner);
        fate.is_some()
    }

    /// Returns why the container has failed; none while it runs, and after an orderly termination of the cluster.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let fate = self.fate.lock().unwrap_or_else(PoisonError::into_inner);
        fate.clone().flatten()
    }

    /// Ends the container. The consensus module ends, too, because it cannot go on without the service.
    pub fn close(self) {
        self.running.close();
    }
}

fn prepare<S: Service>(
    config: ContainerConfig,
    service: S,
    on_error: Box<dyn FnMut(&str) + Send>,
) -> Result<ContainerAgent<S>, ContainerLaunchError> {
    let lock = lock(&config)?;
    let mark = claim_mark(&config)?;
    let mut builder = Client::builder().client_name(config.service_name.clone());
    if let Some(directory) = &config.aeron_dir {
        builder = builder.aeron_dir(directory);
    }
    let client = builder.connect()?;
    let counters = ContainerCounters::add(&client, &config)?;
    let channel = &config.control_channel;
    let publication = client.add_publication(channel, config.consensus_module_stream_id)?;
    let commands = client.add_subscription(channel, config.service_stream_id)?;
    Ok(ContainerAgent::new(Parts {
        requests: Requests::new(config.service_id, publication),
        service,
        client,
        commands,
        counters,
        mark,
        lock,
        on_error,
        config,
    }))
}

/// Takes the lock of the mark file, whose directory the consensus module may have locked.
fn lock(config: &ContainerConfig) -> Result<DiskLock, ContainerLaunchError> {
    let name = format!("cluster-mark-service-{}.lock", config.service_id);
    let path = config.mark_dir.join(name);
    let created = std::fs::create_dir_all(&config.mark_dir).and_then(|()| {
        let mut options = std::fs::OpenOptions::new();
        options.create(true).append(true).open(&path).map(drop)
    });
    created.map_err(|error| MarkError::Io {
        path: path.clone(),
        error,
    })?;
    match OsDisk.try_lock(&path) {
        Err(error) if error.is_locked() => Err(ContainerLaunchError::InUse { path }),
        locked => Ok(locked?),
    }
}

/// Claims the mark file.
fn claim_mark(config: &ContainerConfig) -> Result<MarkFile, ContainerLaunchError> {
    let io = |path: &Path| {
        let path = path.to_path_buf();
        |error| MarkError::Io { path, error }
    };
    let storage = FileStorage;
    for dir in [&config.dir, &config.mark_dir] {
        storage.create_dir_all(dir).map_err(io(dir))?;
    }
    let now = taran::Clock::now(&mut SystemClock::new());
    let aeron_dir = config
        .aeron_dir
        .clone()
        .unwrap_or_else(taran_core::directory::default_directory);
    let mark = Mark {
        component: MarkComponent::Container,
        activity_timestamp: 0,
        start_timestamp: now.epoch_millis,
        pid: i64::from(std::process::id()),
        archive_stream_id: config.archive_stream_id,
        service_stream_id: config.service_stream_id,
        consensus_module_stream_id: config.consensus_module_stream_id,
        ingress_stream_id: -1,
        member_id: -1,
        service_id: config.service_id,
        cluster_id: config.cluster_id,
        aeron_directory: aeron_dir.display().to_string(),
        control_channel: config.control_channel.clone(),
        ingress_channel: String::new(),
        service_name: config.service_name.clone(),
        authenticator: String::new(),
        services_directory: String::new(),
        error_log_length: config.error_log_length,
    };
    let name = format!("cluster-mark-service-{}", config.service_id);
    let path = config.mark_dir.join(format!("{name}.dat"));
    let file = MarkFile::claim(&storage, &path, &mark)?;
    let link = config.dir.join(format!("{name}.lnk"));
    let linked = if config.mark_dir == config.dir {
        match storage.remove(&link) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    } else {
        storage.write_file(&link, config.mark_dir.to_string_lossy().as_bytes())
    };
    linked.map_err(io(&link))?;
    Ok(file)
}
