//! The logs that this process has mapped, to be found again by their paths.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use taran_protocol::log::LogBuffers;

/// Below so many nobody looks for those that are gone.
const FEW: usize = 32;

/// Mapped logs, shared by all that use the same file.
#[derive(Debug, Default)]
pub(crate) struct MappedLogs {
    /// As text: a path is compared part by part, which takes long where there are thousands.
    by_path: BTreeMap<OsString, Weak<LogBuffers>>,
    /// How many there were after the last sweep.
    swept: usize,
}

impl MappedLogs {
    /// The log at a path, if somebody uses it.
    pub(crate) fn find(&self, path: &Path) -> Option<Arc<LogBuffers>> {
        self.by_path.get(path.as_os_str())?.upgrade()
    }

    /// Remembers a log for as long as somebody uses it.
    pub(crate) fn insert(&mut self, path: PathBuf, log: &Arc<LogBuffers>) {
        // Swept when half of them may be gone: so one costs the same however many there are.
        if self.by_path.len() >= FEW + 2 * self.swept {
            self.by_path.retain(|_, log| log.strong_count() != 0);
            self.swept = self.by_path.len();
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
    fn logs_are_found_while_they_are_used_and_forgotten_afterwards() {
        let mut logs = MappedLogs::default();
        let used = log();
        logs.insert("used".into(), &used);
        for number in 0..1_000 {
            logs.insert(format!("{number}").into(), &log());
        }
        assert!(logs.find("used".as_ref()).is_some());
        assert!(logs.find("999".as_ref()).is_none());
        assert!(logs.by_path.len() <= 2 * FEW + 2, "{}", logs.by_path.len());
    }
}
