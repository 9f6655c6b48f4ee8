// SPDX-License-Identifier: Apache-2.0
//! An archive whose agents the caller runs, with disk, memory, time and random numbers of the caller.

use std::sync::{Arc, Mutex, PoisonError};

use taran::{Client, Counter};
use taran_core::agent::Agent;
use taran_core::clock::{Clock, Now};
use taran_core::error_log::ErrorHandler;
use taran_core::memory::Storage;
use taran_storage::{Disk, DiskQueue};

use crate::assembly::{
    Agents, Assembly, Commands, DriverRequests, Limits, OpenedFiles, check_id, claim,
    mark_settings, shared,
};
use crate::conductor::{Conductor, SteppedStore, StoreState};
use crate::config::ArchiveConfig;
use crate::counters::CounterSpec;
use crate::disk_io::DiskIo;
use crate::event_log::EventLog;
use crate::files::{FoundCatalog, MarkFile, create_directory};
use crate::launch::ArchiveError;
use crate::recorder::Recorder;
use crate::replayer::Replayer;
use crate::security::{AcceptAll, authorisation_of};

/// Capacity of the queues between agents.
const QUEUE_CAPACITY: usize = 64;
/// Highest number of blocks and buffers in memory.
const MAX_BUFFERS: usize = 32;
/// Page size of the driver's files in bytes, for the mark file.
const PAGE_SIZE: usize = 4096;

/// Surroundings of an archive, beside its client.
pub struct ArchiveEnvironment {
    /// Disk of catalog and segment files.
    pub disk: Arc<dyn Disk>,
    /// Memory of the mark file.
    pub storage: Arc<dyn Storage>,
    /// Makes a disk queue with this number of workers.
    pub queue: Box<dyn FnMut(usize) -> Box<dyn DiskQueue + Send>>,
    /// Directory of the driver, for the mark file.
    pub aeron_directory: String,
    /// Random numbers; `None` if there are none.
    pub random: Box<dyn FnMut() -> Option<i64> + Send>,
}

/// An archive that waits for what the driver adds for it.
///
/// Contract: the caller runs the client and calls [`poll`](Self::poll) until it returns true, then [`finish`](Self::finish).
///
/// The configuration's directory of the driver, threading mode, idle strategies, thresholds of duty cycles and event log are
/// ignored, because the caller decides these. A configuration that deletes the directory at start is refused.
pub struct ArchiveStart {
    pub(crate) config: ArchiveConfig,
    client: Client,
    archive_id: i64,
    environment: ArchiveEnvironment,
    mark: MarkFile,
    /// Taken by [`finish`](Self::finish).
    catalog: Option<FoundCatalog>,
    error_counter: Commands<Counter>,
    requests: DriverRequests,
}

/// The agents of an archive.
///
/// Contract: [`do_work`](Self::do_work) is called with the number of each agent, again and again, until it fails or
/// [`close`](Self::close) was called.
pub struct ArchiveParts {
    client: Client,
    archive_id: i64,
    conductor: Conductor,
    recorder: Recorder,
    replayer: Replayer,
    store: Arc<Mutex<StoreState>>,
    failure: Arc<Mutex<Option<String>>>,
}

/// A clock for the end of an archive, which passes a millisecond with each reading.
#[derive(Default)]
struct CloseClock(Now);

impl Clock for CloseClock {
    fn now(&mut self) -> Now {
        self.0.nanos += 1_000_000;
        self.0
    }
}

impl ArchiveStart {
    /// Claims the directory, and asks the driver for counters, subscriptions, and the publication of recording events.
    ///
    /// # Errors
    /// The directory cannot be used, is in use, or is to be deleted; the driver takes no commands, or has an archive with the same
    /// id: also one that was killed, until the driver has timed its client out.
    pub fn begin(
        client: Client,
        config: ArchiveConfig,
        environment: ArchiveEnvironment,
        now: Now,
    ) -> Result<Self, ArchiveError> {
        if config.delete_dir_on_start {
            return Err(ArchiveError::DeletionUnsupported {
                path: config.dir.clone(),
            });
        }
        let disk = &*environment.disk;
        for directory in [&config.dir, &config.mark_file_dir] {
            create_directory(disk, directory)?;
            let created = environment.storage.create_dir_all(directory);
            created.map_err(|source| ArchiveError::Directory {
                path: directory.clone(),
                source,
            })?;
        }
        let archive_id = config
            .archive_id
            .unwrap_or_else(|| client.next_correlation_id());
        let aeron_directory = environment.aeron_directory.clone();
        let (mark, catalog) = claim(
            MarkFile::lock(disk, &config.dir)?,
            &environment.disk,
            &*environment.storage,
            &config,
            &mark_settings(&config, archive_id, 1, aeron_directory, PAGE_SIZE),
            now.epoch_millis,
        )?;
        check_id(&client, archive_id)?;
        let spec = CounterSpec::errors(archive_id, env!("CARGO_PKG_VERSION"), "unknown");
        let mut error_counter = Commands::new();
        error_counter.add_counter(&client, &spec)?;
        let requests = DriverRequests::send(&client, &config, archive_id, Vec::new())?;
        Ok(Self {
            config,
            client,
            archive_id,
            environment,
            mark,
            catalog: Some(catalog),
            error_counter,
            requests,
        })
    }

    /// Returns the client.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns true when the driver has added all.
    ///
    /// # Errors
    /// It has refused something.
    pub fn poll(&mut self) -> Result<bool, ArchiveError> {
        Ok(self.error_counter.poll()? && self.requests.poll()?)
    }

    /// Recovers the files, and makes the agents.
    ///
    /// # Errors
    /// Catalog or mark file cannot be read or written, or there are no random numbers.
    ///
    /// # Panics
    /// If [`poll`](Self::poll) has not returned true.
    pub fn finish(mut self, now: Now) -> Result<ArchiveParts, ArchiveError> {
        let found = self.catalog.take();
        let found = found.expect("only this method, which takes the start, takes the catalog");
        let disk = &self.environment.disk;
        let files = OpenedFiles::open(found, disk, &self.config, now.epoch_millis)?;
        self.assemble(files, now)
    }

    /// Makes the agents over recovered files.
    pub(crate) fn assemble(
        self,
        files: OpenedFiles,
        now: Now,
    ) -> Result<ArchiveParts, ArchiveError> {
        let Self {
            config,
            client,
            archive_id,
            environment: ArchiveEnvironment {
                mut queue, random, ..
            },
            mark,
            mut error_counter,
            requests,
            ..
        } = self;
        let error_counter = error_counter.next();
        let errors = ErrorHandler::or_stderr(mark.error_log(), shared(&client, &error_counter));
        if let Some(unsaved) = mark.unsaved_errors() {
            errors.on_error(now.epoch_millis, 0, &unsaved.to_string());
        }
        for finding in files.findings {
            errors.on_error(now.epoch_millis, 0, &finding);
        }
        let store = Arc::new(Mutex::new(StoreState::new(files.file)));
        let failure: Arc<Mutex<Option<String>>> = Arc::default();
        let on_fatal = Arc::clone(&failure);
        let assembly = Assembly {
            limits: Limits {
                queue_capacity: QUEUE_CAPACITY,
                max_blocks: MAX_BUFFERS,
                max_buffers: MAX_BUFFERS,
                replayed_per_cycle: config.io_max_length,
            },
            authorisation: authorisation_of(config.deny_all),
            config,
            archive_id,
            client: client.clone(),
            requests,
            catalog: files.catalog,
            store: Box::new(SteppedStore::new(Arc::clone(&store))),
            mark,
            errors,
            error_counter: Some(error_counter),
            events: EventLog::default(),
            authenticator: Box::new(AcceptAll),
            random,
            close_clock: Box::new(CloseClock::default()),
            on_fatal: Box::new(move |text| {
                let mut failure = on_fatal.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert_with(|| text.to_owned());
            }),
        };
        let io = |_: &str, workers: usize| Ok(DiskIo::new(queue(workers)));
        let Agents {
            conductor,
            recorder,
            replayer,
        } = assembly.assemble(now.epoch_millis, io)?;
        Ok(ArchiveParts {
            client,
            archive_id,
            conductor,
            recorder,
            replayer,
            store,
            failure,
        })
    }
}

impl ArchiveParts {
    /// Number of the conductor.
    pub const CONDUCTOR: usize = 0;
    /// Number of the recorder.
    pub const RECORDER: usize = 1;
    /// Number of the replayer.
    pub const REPLAYER: usize = 2;
    /// Number of the agent that applies changes to the catalog file, which an archive with threads does on one of its own.
    pub const CATALOG: usize = 3;
    /// Number of agents.
    pub const AGENTS: usize = 4;

    /// Returns the client of the archive.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the id of the archive.
    #[must_use]
    pub fn archive_id(&self) -> i64 {
        self.archive_id
    }

    /// Returns recording, position, and the segment file that is read next, of each replay that has not ended.
    #[cfg(test)]
    pub(crate) fn replayed_files(&self) -> Vec<(i64, i64, std::path::PathBuf)> {
        self.replayer.files().collect()
    }

    /// Returns id, start and stop position of each recording that was not deleted; `None` for those that are unavailable.
    #[cfg(test)]
    pub(crate) fn extents(&self) -> impl Iterator<Item = (i64, Option<(i64, i64)>)> {
        self.conductor.extents()
    }

    /// Runs one duty cycle of an agent; returns the amount of work.
    ///
    /// # Errors
    /// The reason why the archive cannot go on, as text.
    pub fn do_work(&mut self, agent: usize, now: Now) -> Result<usize, String> {
        let done = match agent {
            Self::CONDUCTOR => self.conductor.do_work(now),
            Self::RECORDER => self.recorder.do_work(now),
            Self::REPLAYER => self.replayer.do_work(now),
            _ => {
                let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(store.step())
            }
        };
        let failure = self
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match (done, failure) {
            (Ok(work), None) => Ok(work),
            (Err(end), None) => Err(end.to_string()),
            (_, Some(text)) => Err(text),
        }
    }

    /// Ends the archive in order. It must have no active recordings.
    pub fn close(&mut self) {
        self.recorder.on_close();
        self.replayer.on_close();
        self.conductor.on_close();
    }
}
