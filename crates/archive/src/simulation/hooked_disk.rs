// SPDX-License-Identifier: Apache-2.0
//! The disk of an archive in a simulation, with planted defects and power cuts at chosen operations.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taran_sim::disk::{ProcessDisk, SimDisk};
use taran_storage::{
    Advice, Create, DirEntry, Disk, DiskError, DiskFile, DiskLock, ErrorKind, Metadata,
    OpenOptions, Space, SyncKind,
};

/// A defect of an archive, planted on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Defect {
    /// Acknowledges what is written, and syncs later.
    AcknowledgesBeforeSync,
    /// Moves the recorded position when a block is written, without a sync.
    NeverSyncs,
    /// Does not sync the directory after it has created a segment.
    ForgetsDirectorySync,
    /// Takes frames at the end of a recording for whole without their checksums.
    BelievesTornTail,
    /// The replica writes another byte than its source has.
    DamagesReplica,
    /// Retention does not see replays.
    PurgesUnderReplays,
    /// Retention does not see consumers.
    PurgesUnconsumed,
    /// Retention by age purges what is too young.
    PurgesYoung,
    /// A recovery loses a recording, in an archive with retention by age.
    LosesRecording,
}

impl Defect {
    pub(super) const ALL: [Self; 9] = [
        Self::AcknowledgesBeforeSync,
        Self::NeverSyncs,
        Self::ForgetsDirectorySync,
        Self::BelievesTornTail,
        Self::DamagesReplica,
        Self::PurgesUnderReplays,
        Self::PurgesUnconsumed,
        Self::PurgesYoung,
        Self::LosesRecording,
    ];

    /// Returns words of the violation that reports the defect.
    pub(super) fn symptom(self) -> &'static str {
        match self {
            Self::AcknowledgesBeforeSync | Self::NeverSyncs | Self::ForgetsDirectorySync => {
                "recording"
            }
            Self::BelievesTornTail => "none that was published",
            Self::DamagesReplica => "and its replica",
            Self::PurgesUnderReplays => "was purged",
            Self::PurgesUnconsumed => "nothing beyond",
            Self::PurgesYoung => "nothing younger than 5000 ms was to be purged",
            Self::LosesRecording => "the catalog has Some(Deleted) for it",
        }
    }
}

/// Offset of the byte of a block that [`Defect::DamagesReplica`] changes: the first of the payload of a frame.
const DAMAGED: usize = 32;

/// A crash at an operation of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crash {
    /// The host loses power.
    PowerCut,
    /// The archive is killed.
    Kill,
}

#[derive(Debug, Default)]
struct HookState {
    disk: Option<SimDisk>,
    /// Operations until the crash.
    armed: Option<(u64, Crash)>,
    /// The crash that has come.
    crashed: Option<Crash>,
    count: u64,
    /// Files of which a write failed, which leaves any part of it.
    failed_writes: BTreeSet<PathBuf>,
    /// True once the threads of the archive's disk queues have ended.
    threads_have_ended: Arc<AtomicBool>,
}

/// Control over the disk from outside of the archive.
#[derive(Clone, Debug, Default)]
pub(super) struct Hooks(Arc<Mutex<HookState>>);

impl Hooks {
    pub(super) fn new(disk: SimDisk) -> Self {
        Self(Arc::new(Mutex::new(HookState {
            disk: Some(disk),
            ..HookState::default()
        })))
    }

    fn lock(&self) -> MutexGuard<'_, HookState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Crashes before the operation with this number, from now.
    pub(super) fn crash_before(&self, operation: u64, kind: Crash) {
        self.lock().armed = Some((operation, kind));
    }

    /// Returns the crash that has come, once.
    pub(super) fn take_crash(&self) -> Option<Crash> {
        self.lock().crashed.take()
    }

    /// Returns the number of operations so far.
    pub(super) fn count(&self) -> u64 {
        self.lock().count
    }

    /// Returns the files of which a write failed by an error of the device since the last call.
    pub(super) fn take_failed_writes(&self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.lock().failed_writes)
    }

    /// Returns the flag with which the threads of the archive's disk queues end.
    pub(super) fn threads_have_ended(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.lock().threads_have_ended)
    }

    fn on_operation(&self, process: &ProcessDisk) {
        let mut state = self.lock();
        state.count += 1;
        match state.armed {
            None => {}
            Some((0, kind)) => {
                state.armed = None;
                state.crashed = Some(kind);
                match (&state.disk, kind) {
                    (Some(disk), Crash::PowerCut) => disk.power_cut(),
                    _ => process.revoke_all(),
                }
            }
            Some((left, kind)) => state.armed = Some((left - 1, kind)),
        }
    }
}

/// A disk that counts writes, syncs and changes of names.
#[derive(Clone, Debug)]
pub(super) struct HookedDisk {
    inner: ProcessDisk,
    hooks: Hooks,
    defect: Option<Defect>,
}

impl HookedDisk {
    pub(super) fn new(inner: ProcessDisk, hooks: Hooks, defect: Option<Defect>) -> Self {
        Self {
            inner,
            hooks,
            defect,
        }
    }
}

impl Disk for HookedDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn DiskFile>, DiskError> {
        if options.create != Create::Never {
            self.hooks.on_operation(&self.inner);
        }
        Ok(Box::new(HookedFile {
            inner: self.inner.open(path, options)?,
            disk: self.clone(),
            is_late: AtomicBool::new(false),
        }))
    }

    fn list(&self, directory: &Path) -> Result<Vec<DirEntry>, DiskError> {
        self.inner.list(directory)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata, DiskError> {
        self.inner.metadata(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.hooks.on_operation(&self.inner);
        self.inner.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        self.hooks.on_operation(&self.inner);
        self.inner.remove_file(path)
    }

    fn create_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.hooks.on_operation(&self.inner);
        self.inner.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.hooks.on_operation(&self.inner);
        self.inner.remove_directory(path)
    }

    fn sync_directory(&self, directory: &Path) -> Result<(), DiskError> {
        self.hooks.on_operation(&self.inner);
        if self.defect == Some(Defect::ForgetsDirectorySync) && directory != Path::new("/") {
            return Ok(());
        }
        self.inner.sync_directory(directory)
    }

    fn space(&self, path: &Path) -> Result<Space, DiskError> {
        self.inner.space(path)
    }

    fn try_lock(&self, path: &Path) -> Result<DiskLock, DiskError> {
        self.inner.try_lock(path)
    }
}

#[derive(Debug)]
struct HookedFile {
    inner: Box<dyn DiskFile>,
    disk: HookedDisk,
    /// True if a sync was acknowledged that was not done.
    is_late: AtomicBool,
}

impl HookedFile {
    fn on_operation(&self) -> Result<(), DiskError> {
        self.disk.hooks.on_operation(&self.disk.inner);
        if self.is_late.swap(false, Ordering::Relaxed) {
            self.inner.sync(SyncKind::All)?;
        }
        Ok(())
    }

    fn is_segment(&self) -> bool {
        self.inner
            .path()
            .extension()
            .is_some_and(|extension| extension == "rec")
    }

    /// Takes note of a write that failed.
    fn written(&self, result: Result<(), DiskError>) -> Result<(), DiskError> {
        if let Err(error) = &result
            && matches!(error.kind, ErrorKind::Io { .. })
        {
            let path = self.inner.path().to_owned();
            self.disk.hooks.lock().failed_writes.insert(path);
        }
        result
    }
}

impl DiskFile for HookedFile {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        self.inner.read_at(buffer, offset)
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> Result<Option<usize>, DiskError> {
        self.inner.read_cached_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        self.on_operation()?;
        if self.disk.defect == Some(Defect::DamagesReplica)
            && self.is_segment()
            && bytes.len() > DAMAGED
        {
            let mut damaged = bytes.to_vec();
            damaged[DAMAGED] ^= 1;
            return self.written(self.inner.write_at(&damaged, offset));
        }
        self.written(self.inner.write_at(bytes, offset))
    }

    fn write_vectored_at(
        &self,
        buffers: &mut [std::io::IoSlice<'_>],
        offset: u64,
    ) -> Result<(), DiskError> {
        self.on_operation()?;
        self.written(self.inner.write_vectored_at(buffers, offset))
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.on_operation()?;
        self.inner.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.on_operation()?;
        self.inner.allocate(offset, len)
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.on_operation()?;
        self.inner.punch_hole(offset, len)
    }

    fn sync(&self, kind: SyncKind) -> Result<(), DiskError> {
        self.on_operation()?;
        if self.disk.defect == Some(Defect::AcknowledgesBeforeSync) {
            self.is_late.store(true, Ordering::Relaxed);
            return Ok(());
        }
        self.inner.sync(kind)
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) -> Result<(), DiskError> {
        self.inner.advise(offset, len, advice)
    }
}
