// SPDX-License-Identifier: Apache-2.0
//! The logs that this client has mapped, by path.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use taran_protocol::log::LogBuffers;

/// Minimum number of entries before a sweep for unmapped logs.
const MIN_SWEEP_LEN: usize = 32;

/// Mapped logs by path; a publication and an image on the same file share one mapping.
#[derive(Debug, Default)]
pub(crate) struct MappedLogs {
    /// Keyed by text, because `Path` compares component by component, which is slow with thousands of entries.
    by_path: BTreeMap<OsString, Weak<LogBuffers>>,
    /// Number of entries after the last sweep.
    len_after_sweep: usize,
}

impl MappedLogs {
    /// Returns the log at a path if it is mapped.
    pub(crate) fn find(&self, path: &Path) -> Option<Arc<LogBuffers>> {
        self.by_path.get(path.as_os_str())?.upgrade()
    }

    /// Adds a log. The entry does not keep the log mapped.
    pub(crate) fn insert(&mut self, path: PathBuf, log: &Arc<LogBuffers>) {
        // Swept when the number of entries has doubled, so the amortised cost of an insertion is constant.
        if self.by_path.len() >= MIN_SWEEP_LEN + 2 * self.len_after_sweep {
            self.by_path.retain(|_, log| log.strong_count() != 0);
            self.len_after_sweep = self.by_path.len();
        }
        self.by_path
            .insert(path.into_os_string(), Arc::downgrade(log));
    }
}

#[cfg(test)]
mod tests {
    use taran_core::memory::Region;
    use taran_protocol::log::{LogKind, LogSpec};

    use super::*;

    fn log() -> Arc<LogBuffers> {
        let spec = LogSpec::new(LogKind::Concurrent, 1, 2, 3, 64 * 1024);
        let region = Region::anonymous(spec.file_length()).unwrap();
        Arc::new(LogBuffers::create(&region, &spec, 0).unwrap())
    }

    #[test]
    fn find_returns_logs_in_use_and_sweep_removes_the_others() {
        let mut logs = MappedLogs::default();
        let used = log();
        logs.insert("used".into(), &used);
        for number in 0..1_000 {
            logs.insert(format!("{number}").into(), &log());
        }
        assert!(logs.find("used".as_ref()).is_some());
        assert!(logs.find("999".as_ref()).is_none());
        assert!(
            logs.by_path.len() <= 2 * MIN_SWEEP_LEN + 2,
            "{}",
            logs.by_path.len()
        );
    }
}
