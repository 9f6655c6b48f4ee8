//! Files of a member: node state and recording log.

use std::path::{Path, PathBuf};

use taran_storage::{Create, Disk, DiskError, DiskFile, DiskLock, OpenOptions, OsDisk, SyncKind};
use thiserror::Error;

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

/// Files of a member, which this process owns. All writes are flushed before they return.
pub(super) struct StateFiles {
    node_state_file: Box<dyn DiskFile>,
    node_state: NodeState,
    recording_log_file: Box<dyn DiskFile>,
    recording_log: RecordingLog,
    _lock: DiskLock,
}

impl StateFiles {
    /// Opens the files in a directory, or creates them if the directory has neither.
    pub(super) fn open(dir: &Path) -> Result<Self, StateFileError> {
        let disk = OsDisk;
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
        let node_state = if has_state && !bytes.is_empty() {
            NodeState::decode(&bytes).map_err(|source| StateFileError::NodeState {
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
            state
        };
        let recording_log =
            RecordingLog::decode(&read(&*recording_log_file)?).map_err(|source| {
                StateFileError::RecordingLog {
                    path: log_path,
                    source,
                }
            })?;
        Ok(Self {
            node_state_file,
            node_state,
            recording_log_file,
            recording_log,
            _lock: lock,
        })
    }

    pub(super) const fn candidate_term(&self) -> i64 {
        self.node_state.candidate_term
    }

    pub(super) const fn recording_log(&self) -> &RecordingLog {
        &self.recording_log
    }

    pub(super) fn set_candidate_term(
        &mut self,
        term: i64,
        now_ms: i64,
        log_position: i64,
    ) -> Result<(), DiskError> {
        self.node_state = NodeState {
            candidate_term: term,
            timestamp: now_ms,
            log_position,
        };
        let block = self.node_state.block();
        self.node_state_file
            .write_at(&block, NodeState::block_offset() as u64)?;
        self.node_state_file.sync(SyncKind::Data)
    }

    /// Changes the recording log.
    pub(super) fn change(
        &mut self,
        change: impl FnOnce(&mut RecordingLog) -> Vec<Patch>,
    ) -> Result<(), DiskError> {
        let patches = change(&mut self.recording_log);
        for Patch { offset, bytes } in &patches {
            self.recording_log_file.write_at(bytes, *offset as u64)?;
        }
        if patches.is_empty() {
            return Ok(());
        }
        self.recording_log_file.sync(SyncKind::All)
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

    #[test]
    fn files_that_are_opened_again_have_what_was_written() {
        let dir = Dir::new("again");
        let mut files = StateFiles::open(&dir.0).unwrap();
        assert_eq!(files.candidate_term(), -1);
        files.set_candidate_term(7, 1, 960).unwrap();
        files.change(|log| log.append_term(3, 7, 960, 1)).unwrap();
        assert!(StateFiles::open(&dir.0).is_err(), "it is in use");
        drop(files);
        let files = StateFiles::open(&dir.0).unwrap();
        assert_eq!(files.candidate_term(), 7);
        assert_eq!(files.recording_log().recording_id(), Some(3));
    }

    #[test]
    fn member_with_a_corrupt_or_missing_file_does_not_start() {
        let dir = Dir::new("corrupt");
        let mut files = StateFiles::open(&dir.0).unwrap();
        files.change(|log| log.append_term(3, 7, 960, 1)).unwrap();
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
