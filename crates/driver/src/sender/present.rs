//! Who is there, as far as status messages tell.
//!
//! The sender asks this three times: who receives a publication, whom its flow control waits for, and where a channel
//! sends to. One table answers, with one rule: who is there stays until it was silent for the timeout, and as long as
//! there are [`MAX_LIVE_ENTRIES`] nobody else is taken. So invented ids can neither fill memory nor push anybody out.

/// Most entries of a table that nobody added by command.
pub(crate) const MAX_LIVE_ENTRIES: usize = 1024;

/// Entries that say what they are, and when each was last heard.
#[derive(Debug)]
pub(super) struct Present<T> {
    entries: Vec<Entry<T>>,
    patience: Patience,
    has_turned_away: bool,
}

#[derive(Debug)]
struct Entry<T> {
    what: T,
    heard_ns: i64,
}

/// After which silence somebody is gone.
#[derive(Clone, Copy, Debug)]
enum Patience {
    /// When it is longer.
    Beyond(i64),
    /// When it is as long.
    UpTo(i64),
}

impl Patience {
    /// The last time at which somebody is there who was heard then.
    fn last_ns(self, heard_ns: i64) -> i64 {
        match self {
            Self::Beyond(timeout_ns) => heard_ns.saturating_add(timeout_ns),
            Self::UpTo(timeout_ns) => heard_ns.saturating_add(timeout_ns).saturating_sub(1),
        }
    }

    fn is_over(self, silent_ns: i64) -> bool {
        match self {
            Self::Beyond(timeout_ns) => silent_ns > timeout_ns,
            Self::UpTo(timeout_ns) => silent_ns >= timeout_ns,
        }
    }
}

impl<T> Entry<T> {
    fn is_silent(&self, now_ns: i64, patience: Patience) -> bool {
        patience.is_over(now_ns - self.heard_ns)
    }
}

impl<T> Present<T> {
    /// Who was silent for longer than the timeout is gone.
    pub(super) fn beyond(timeout_ns: i64) -> Self {
        Self::new(Patience::Beyond(timeout_ns))
    }

    /// At the timeout itself whoever was silent is gone.
    pub(super) fn up_to(timeout_ns: i64) -> Self {
        Self::new(Patience::UpTo(timeout_ns))
    }

    fn new(patience: Patience) -> Self {
        Self {
            entries: Vec::with_capacity(4),
            patience,
            has_turned_away: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|entry| &entry.what)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|entry| &mut entry.what)
    }

    /// All of them, beginning with one and going around.
    pub(super) fn iter_from(&self, first: usize) -> impl Iterator<Item = &T> {
        let (later, sooner) = self.entries.split_at(first.min(self.entries.len()));
        sooner.iter().chain(later).map(|entry| &entry.what)
    }

    /// The first that fits speaks.
    pub(super) fn hear(&mut self, now_ns: i64, fits: impl Fn(&T) -> bool) -> Option<&mut T> {
        let entry = self.entries.iter_mut().find(|entry| fits(&entry.what))?;
        entry.heard_ns = now_ns;
        Some(&mut entry.what)
    }

    /// One that spoke for the first time. Where there are too many, those are shown `gone` that nobody has missed so far.
    /// False if there are too many still.
    pub(super) fn admit(&mut self, what: T, now_ns: i64, gone: impl FnMut(&T)) -> bool {
        let has_room = self.entries.len() < MAX_LIVE_ENTRIES || self.forget_silent(now_ns, gone);
        self.has_turned_away |= !has_room;
        if has_room {
            self.enter(what, now_ns);
        }
        has_room
    }

    /// One that was added by command, of which there may be any number.
    pub(super) fn enter(&mut self, what: T, now_ns: i64) {
        let heard_ns = now_ns;
        self.entries.push(Entry { what, heard_ns });
    }

    /// Takes out all that fit. True if there was one.
    pub(super) fn remove(&mut self, fits: impl Fn(&T) -> bool) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| !fits(&entry.what));
        self.entries.len() != before
    }

    /// Takes out who was silent for too long, and shows each. True if there was one.
    pub(super) fn forget_silent(&mut self, now_ns: i64, gone: impl FnMut(&T)) -> bool {
        self.forget(now_ns, |_| false, gone)
    }

    /// Takes out who was silent for too long or has left, and shows each. True if there was one.
    pub(super) fn forget(
        &mut self,
        now_ns: i64,
        has_left: impl Fn(&T) -> bool,
        mut gone: impl FnMut(&T),
    ) -> bool {
        let (before, patience) = (self.entries.len(), self.patience);
        self.entries.retain(|entry| {
            let stays = !entry.is_silent(now_ns, patience) && !has_left(&entry.what);
            if !stays {
                gone(&entry.what);
            }
            stays
        });
        self.entries.len() != before
    }

    /// Until when nobody goes, if nobody speaks.
    pub(super) fn unchanged_until_ns(&self) -> i64 {
        let last = |entry: &Entry<T>| self.patience.last_ns(entry.heard_ns);
        self.entries.iter().map(last).min().unwrap_or(i64::MAX)
    }

    /// Hands out who of those that fit was silent for too long. Each is given as much time as before then.
    pub(super) fn silent(
        &mut self,
        now_ns: i64,
        fits: impl Fn(&T) -> bool,
        mut take: impl FnMut(&T),
    ) {
        for entry in &mut self.entries {
            if entry.is_silent(now_ns, self.patience) && fits(&entry.what) {
                entry.heard_ns = now_ns;
                take(&entry.what);
            }
        }
    }

    /// Whether somebody was turned away since this was last asked.
    pub(super) fn take_turned_away(&mut self) -> bool {
        std::mem::take(&mut self.has_turned_away)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(present: &mut Present<i64>, id: i64, now_ns: i64) {
        if present.hear(now_ns, |&known| known == id).is_none() {
            present.admit(id, now_ns, |_| {});
        }
    }

    #[test]
    fn who_is_silent_for_longer_than_the_timeout_is_gone() {
        let mut present = Present::beyond(100);
        hear(&mut present, 1, 0);
        hear(&mut present, 2, 50);
        let mut gone = Vec::new();
        assert_eq!(present.unchanged_until_ns(), 100);
        assert!(!present.forget_silent(100, |&id| gone.push(id)));
        hear(&mut present, 2, 101);
        assert!(present.forget_silent(101, |&id| gone.push(id)));
        assert_eq!(gone, [1]);
        assert!(!present.forget_silent(201, |&id| gone.push(id)));
        assert!(present.forget_silent(202, |&id| gone.push(id)));
        assert!(present.is_empty());
    }

    #[test]
    fn who_is_silent_up_to_the_timeout_is_gone_at_it() {
        for (timeout_ns, last_ns) in [(100, 99), (0, -1)] {
            let mut present = Present::up_to(timeout_ns);
            hear(&mut present, 1, 0);
            assert_eq!(present.unchanged_until_ns(), last_ns);
            assert!(!present.forget_silent(last_ns, |_| {}));
            assert!(present.forget_silent(last_ns + 1, |_| {}));
            assert_eq!(present.unchanged_until_ns(), i64::MAX);
        }
    }

    #[test]
    fn one_can_leave_once() {
        let mut present = Present::beyond(100);
        hear(&mut present, 1, 0);
        assert!(present.remove(|&id| id == 1));
        assert!(!present.remove(|&id| id == 1));
    }

    #[test]
    fn invented_ones_neither_fill_memory_nor_push_anybody_out() {
        let mut present = Present::beyond(100);
        hear(&mut present, -1, 0);
        for id in 0..10_000 {
            hear(&mut present, id, id / 1000);
        }
        assert_eq!(present.len(), MAX_LIVE_ENTRIES);
        assert!(present.take_turned_away() && !present.take_turned_away());
        assert!(present.iter().any(|&id| id == -1));
        // Where some are gone, even if nobody has looked, others are taken.
        hear(&mut present, 20_000, 101);
        assert!(!present.take_turned_away());
        assert!(present.iter().all(|&id| id != -1));
    }

    #[test]
    fn who_was_handed_out_is_given_as_much_time_again() {
        let mut present = Present::beyond(100);
        present.enter(7, 0);
        present.enter(8, 0);
        let mut silent = |now_ns| {
            let mut taken = Vec::new();
            present.silent(now_ns, |&id| id == 7, |&id| taken.push(id));
            taken
        };
        assert!(silent(100).is_empty());
        assert_eq!(silent(101), [7]);
        assert!(silent(201).is_empty());
        assert_eq!(silent(202), [7]);
        // The other one was not asked for, and is as silent as ever.
        assert!(present.forget_silent(202, |&id| assert_eq!(id, 8)));
    }

    #[test]
    fn one_goes_around_from_anywhere() {
        let mut present = Present::beyond(100);
        for id in 0..3 {
            present.enter(id, 0);
        }
        for (first, order) in [(0, [0, 1, 2]), (2, [2, 0, 1]), (9, [0, 1, 2])] {
            assert!(present.iter_from(first).eq(&order), "{first}");
        }
    }
}
