// SPDX-License-Identifier: Apache-2.0
//! Files of a member: node state and recording log.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taran_storage::{
    AlignedBuf, Create, Disk, DiskError, DiskFile, DiskLock, DiskQueue as _, OpenOptions, OsDisk,
    QueuedFile, RejectReason, Rejected, Request, SyncKind, ThreadedQueue, ThreadedQueueOptions,
};
use thiserror::Error;

use crate::consensus::Nanos;
use crate::files::{
    NODE_STATE_FILE_LENGTH, NodeState, NodeStateError, Patch, RecordingLog, RecordingLogError,
};

const NODE_STATE: &str = "node-state.dat";
const RECORDING_LOG: &str = "recording.log";

/// Reason why the files of a member cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StateFileError {
    /// The directory cannot be created.
    #[error("cannot create the directory {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// The disk failed, or another process uses the directory.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The node state file is corrupt.
    #[error("{}: {source}", path.display())]
    NodeState {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: NodeStateError,
    },
    /// The recording log is corrupt.
    #[error("{}: {source}", path.display())]
    RecordingLog {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: RecordingLogError,
    },
    /// The thread that writes the files cannot be started.
    #[error("the thread that writes the files of the member cannot be started: {0}")]
    Thread(std::io::Error),
    /// The thread that writes the files has ended.
    #[error("the thread that writes the files of the member has ended")]
    Stopped,
    /// One of the two files is missing.
    #[error(
        "{} is missing beside {}: without it the member could vote twice in one term; restore it, or replace the member",
        missing.display(), found.display()
    )]
    Missing {
        /// The file that is missing.
        missing: PathBuf,
        /// The other file.
        found: PathBuf,
    },
}

/// Files of a member, which this process owns.
///
/// Changes are written and flushed by a [`DiskQueue`], so that the agent does not wait for the disk. [`poll`](Self::poll) makes them
/// progress, and [`is_flushed`](Self::is_flushed) tells whether all are durable.
pub(super) struct StateFiles {
    queue: ThreadedQueue,
    node_state_file: QueuedFile,
    node_state: NodeState,
    /// Offset of the candidate term in the file.
    node_state_offset: usize,
    recording_log_file: QueuedFile,
    recording_log: RecordingLog,
    /// Requests that the queue had no room for.
    waiting: VecDeque<Request>,
    _lock: DiskLock,
}

impl StateFiles {
    /// Opens the files in a directory, or creates them if the directory has neither. Waits for the disk.
    pub(super) fn open(dir: &Path) -> Result<Self, StateFileError> {
        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        std::fs::create_dir_all(dir).map_err(|source| StateFileError::Directory {
            path: dir.to_path_buf(),
            source,
        })?;
        let lock = disk.try_lock(dir)?;
        let (state_path, log_path) = (dir.join(NODE_STATE), dir.join(RECORDING_LOG));
        let (has_state, has_log) = (state_path.exists(), log_path.exists());
        if has_log && !has_state {
            return Err(StateFileError::Missing {
                missing: state_path,
                found: log_path,
            });
        }
        let open =
            |path: &Path| disk.open(path, OpenOptions::write().with_create(Create::IfMissing));
        let (node_state_file, recording_log_file) = (open(&state_path)?, open(&log_path)?);
        let bytes = read(&*node_state_file)?;
        let (node_state, node_state_offset) = if has_state && !bytes.is_empty() {
            NodeState::decode_with_offset(&bytes).map_err(|source| StateFileError::NodeState {
                path: state_path.clone(),
                source,
            })?
        } else {
            let state = NodeState {
                candidate_term: -1,
                timestamp: 0,
                log_position: 0,
            };
            node_state_file.set_len(NODE_STATE_FILE_LENGTH as u64)?;
            node_state_file.write_at(&state.encode(), 0)?;
            node_state_file.sync(SyncKind::All)?;
            disk.sync_directory(dir)?;
            (state, NodeState::block_offset())
        };
        let recording_log =
            RecordingLog::decode(&read(&*recording_log_file)?).map_err(|source| {
                StateFileError::RecordingLog {
                    path: log_path,
                    source,
                }
            })?;
        let mut options = ThreadedQueueOptions::default();
        options.workers = 1;
        options.name = "cluster-files".to_owned();
        let mut queue = ThreadedQueue::start(&disk, &options).map_err(StateFileError::Thread)?;
        Ok(Self {
            node_state_file: queue.attach(node_state_file),
            node_state,
            node_state_offset,
            recording_log_file: queue.attach(recording_log_file),
            recording_log,
            queue,
            waiting: VecDeque::new(),
            _lock: lock,
        })
    }

    pub(super) const fn candidate_term(&self) -> i64 {
        self.node_state.candidate_term
    }

    pub(super) const fn recording_log(&self) -> &RecordingLog {
        &self.recording_log
    }

    /// Changes the highest term that the member voted in or followed.
    pub(super) fn set_candidate_term(&mut self, term: i64, now_ms: i64, log_position: i64) {
        self.node_state = NodeState {
            candidate_term: term,
            timestamp: now_ms,
            log_position,
        };
        let file = self.node_state_file.clone();
        let block = self.node_state.block();
        self.write(&file, self.node_state_offset, &block);
        self.waiting.push_back(Request::Sync {
            file,
            kind: SyncKind::Data,
        });
    }

    /// Changes the recording log.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut RecordingLog) -> Vec<Patch>) {
        let patches = change(&mut self.recording_log);
        if patches.is_empty() {
            return;
        }
        let file = self.recording_log_file.clone();
        for Patch { offset, bytes } in &patches {
            self.write(&file, *offset, bytes);
        }
        self.waiting.push_back(Request::Sync {
            file,
            kind: SyncKind::All,
        });
    }

    fn write(&mut self, file: &QueuedFile, offset: usize, bytes: &[u8]) {
        let mut buffer = AlignedBuf::new(bytes.len());
        buffer.copy_from_slice(bytes);
        self.waiting.push_back(Request::Write {
            file: file.clone(),
            offset: offset as u64,
            buffer,
            range: 0..bytes.len(),
        });
    }

    /// Hands changes to the disk, and takes completions. A change that failed may be on the disk in part: the member must not go on.
    pub(super) fn poll(&mut self, now: Nanos) -> Result<(), StateFileError> {
        while let Some(request) = self.waiting.pop_front() {
            if let Err(Rejected {
                reason, request, ..
            }) = self.queue.submit(0, request)
            {
                self.waiting.push_front(request);
                if reason == RejectReason::Full {
                    break;
                }
                return Err(StateFileError::Stopped);
            }
        }
        while let Some(completion) = self.queue.poll(now) {
            completion.result?;
        }
        Ok(())
    }

    /// Returns true if all changes are durable.
    pub(super) fn is_flushed(&self) -> bool {
        self.waiting.is_empty() && self.queue.in_flight() == 0
    }
}

fn read(file: &dyn DiskFile) -> Result<Vec<u8>, DiskError> {
    let length = usize::try_from(file.len()?).unwrap_or(0);
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Self {
            let name = format!("taran-cluster-files-{name}-{}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            let _ = std::fs::remove_dir_all(&dir);
            Self(dir)
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn flush(files: &mut StateFiles) {
        while !files.is_flushed() {
            files.poll(0).unwrap();
            std::thread::yield_now();
        }
    }

    #[test]
    fn files_that_are_opened_again_have_what_was_written() {
        let dir = Dir::new("again");
        let mut files = StateFiles::open(&dir.0).unwrap();
        assert_eq!(files.candidate_term(), -1);
        files.set_candidate_term(7, 1, 960);
        files.change(|log| log.append_term(3, 7, 960, 1));
        assert!(!files.is_flushed());
        flush(&mut files);
        assert!(StateFiles::open(&dir.0).is_err(), "it is in use");
        drop(files);
        let files = StateFiles::open(&dir.0).unwrap();
        assert_eq!(files.candidate_term(), 7);
        assert_eq!(files.recording_log().recording_id(), Some(3));
    }

    #[test]
    fn candidate_term_behind_a_frame_of_another_kind_is_changed_in_its_place() {
        let dir = Dir::new("frames");
        drop(StateFiles::open(&dir.0).unwrap());
        let path = dir.0.join(NODE_STATE);
        let bytes = std::fs::read(&path).unwrap();
        // A frame without content before the others, with a template that no version has.
        let mut frame = bytes[8..24].to_vec();
        frame[..4].copy_from_slice(&[0, 0, 0xff, 0x02]);
        frame[8] = 16;
        let with_frame = [&bytes[..8], &frame, &bytes[8..]].concat();
        std::fs::write(&path, &with_frame).unwrap();
        let mut files = StateFiles::open(&dir.0).unwrap();
        files.set_candidate_term(7, 1, 960);
        flush(&mut files);
        drop(files);
        let files = StateFiles::open(&dir.0).unwrap();
        assert_eq!(files.candidate_term(), 7);
        let written = std::fs::read(&path).unwrap();
        assert_eq!(written[..24], with_frame[..24], "the frame is kept");
    }

    #[test]
    fn member_with_a_corrupt_or_missing_file_does_not_start() {
        let dir = Dir::new("corrupt");
        let mut files = StateFiles::open(&dir.0).unwrap();
        files.change(|log| log.append_term(3, 7, 960, 1));
        flush(&mut files);
        drop(files);
        let state = dir.0.join(NODE_STATE);
        let bytes = std::fs::read(&state).unwrap();
        std::fs::write(&state, vec![0; bytes.len()]).unwrap();
        let error = StateFiles::open(&dir.0).err().unwrap().to_string();
        assert!(
            error.contains(NODE_STATE) && error.contains("restore"),
            "{error}"
        );
        std::fs::remove_file(&state).unwrap();
        let error = StateFiles::open(&dir.0).err().unwrap().to_string();
        assert!(
            error.contains("missing") && error.contains("restore"),
            "{error}"
        );
        std::fs::write(&state, bytes).unwrap();
        let log = dir.0.join(RECORDING_LOG);
        let mut bytes = std::fs::read(&log).unwrap();
        bytes[44] = 9;
        std::fs::write(&log, bytes).unwrap();
        let error = StateFiles::open(&dir.0).err().unwrap().to_string();
        assert!(
            error.contains(RECORDING_LOG) && error.contains("restore"),
            "{error}"
        );
    }
}
