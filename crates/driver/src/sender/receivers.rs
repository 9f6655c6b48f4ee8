//! Who receives a publication, as far as status messages tell.

/// Entries kept per publication. Beyond it the receiver that was silent for longest makes room, so that invented ids
/// cannot fill memory.
const MAX_RECEIVERS: usize = 1024;

/// Receivers by id, and when each was last heard (spec/02 §3.6).
#[derive(Debug)]
pub(super) struct Receivers {
    entries: Vec<Entry>,
    timeout_ns: i64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: i64,
    heard_ns: i64,
}

impl Receivers {
    pub(super) fn new(timeout_ns: i64) -> Self {
        Self {
            entries: Vec::with_capacity(4),
            timeout_ns,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn heard(&mut self, id: i64, now_ns: i64) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) {
            entry.heard_ns = now_ns;
            return;
        }
        if self.entries.len() == MAX_RECEIVERS
            && let Some(oldest) = self.entries.iter_mut().min_by_key(|entry| entry.heard_ns)
        {
            *oldest = Entry {
                id,
                heard_ns: now_ns,
            };
            return;
        }
        self.entries.push(Entry {
            id,
            heard_ns: now_ns,
        });
    }

    /// True if it was there.
    pub(super) fn remove(&mut self, id: i64) -> bool {
        let found = self.entries.iter().position(|entry| entry.id == id);
        if let Some(index) = found {
            self.entries.swap_remove(index);
        }
        found.is_some()
    }

    /// Forgets who was silent for the timeout. True if somebody was.
    pub(super) fn expire(&mut self, now_ns: i64) -> bool {
        let before = self.entries.len();
        let timeout_ns = self.timeout_ns;
        self.entries
            .retain(|entry| now_ns - entry.heard_ns < timeout_ns);
        self.entries.len() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_receiver_expires_at_the_timeout() {
        let mut receivers = Receivers::new(100);
        receivers.heard(1, 0);
        receivers.heard(2, 50);
        assert!(!receivers.expire(99));
        assert!(receivers.expire(100));
        assert!(!receivers.is_empty());
        receivers.heard(2, 120);
        assert!(!receivers.expire(219));
        assert!(receivers.expire(220));
        assert!(receivers.is_empty());
    }

    #[test]
    fn a_receiver_can_leave_once() {
        let mut receivers = Receivers::new(100);
        receivers.heard(1, 0);
        assert!(receivers.remove(1));
        assert!(!receivers.remove(1));
    }

    #[test]
    fn invented_receivers_do_not_fill_memory() {
        let mut receivers = Receivers::new(1 << 40);
        for id in 0..100_000 {
            receivers.heard(id, id);
        }
        assert_eq!(receivers.entries.len(), MAX_RECEIVERS);
        assert!(receivers.remove(99_999));
    }
}
