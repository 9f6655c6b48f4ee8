//! What is to be sent again: the stretches of a stream that were asked for, each byte of them at most once in a lap.
//!
//! A NAK may come from anybody, so what one asks for must not push out, put off or turn away what another one asks for.
//! Stretches that touch become one. Where there are too many, the two nearest become one, with what lies between. They are
//! served in the order of the stream, from where the last one ended on, and then from the beginning: nobody waits for more
//! bytes than the stream can repeat, twice, however much is asked for meanwhile.

/// A stretch of the stream to send again. It starts with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Stretch {
    pub(in super::super) position: i64,
    pub(in super::super) length: i64,
}

impl Stretch {
    pub(super) fn end(&self) -> i64 {
        self.position + self.length
    }

    pub(super) fn contains(&self, position: i64) -> bool {
        (self.position..self.end()).contains(&position)
    }

    fn between(position: i64, end: i64) -> Self {
        Self {
            position,
            length: end - position,
        }
    }
}

/// What came of asking for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Added {
    /// All of it was asked for before.
    Nothing,
    /// Some of it was not.
    Something,
    /// The same, and for want of room more will be sent than was asked for.
    Crowded,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    stretch: Stretch,
    due_ns: i64,
    /// What lies before it was sent as part of it.
    is_begun: bool,
}

impl Waiting {
    /// Both, and what lies between them.
    fn with(self, other: Self) -> Self {
        let (first, second) = if self.stretch.position <= other.stretch.position {
            (self, other)
        } else {
            (other, self)
        };
        let end = first.stretch.end().max(second.stretch.end());
        Self {
            stretch: Stretch::between(first.stretch.position, end),
            due_ns: first.due_ns.min(second.due_ns),
            is_begun: first.is_begun,
        }
    }
}

#[derive(Debug)]
pub(super) struct Wanted {
    /// In the order of the stream. None goes beyond the cursor that starts before it.
    stretches: Vec<Waiting>,
    most: usize,
    /// So far this lap has come; a frame starts there.
    cursor: i64,
    /// Bytes until the next one, whatever is asked for meanwhile.
    lap_left: i64,
}

impl Wanted {
    /// At least two stretches have to fit in on each side of the cursor, or one would be lengthened across it.
    pub(super) fn up_to(most: usize) -> Self {
        debug_assert!(most >= 2);
        Self {
            stretches: Vec::with_capacity(most + 1),
            most,
            cursor: i64::MIN,
            lap_left: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.stretches.len()
    }

    pub(super) fn add(&mut self, asked: Stretch, due_ns: i64) -> Added {
        // What was passed in this lap has to wait for the next one, or a lap would never end.
        let cut = self.cursor.clamp(asked.position, asked.end());
        let parts = [
            Stretch::between(asked.position, cut),
            Stretch::between(cut, asked.end()),
        ];
        let parts = parts.into_iter().filter(|part| part.length > 0);
        let added = parts.map(|part| self.insert(part, due_ns));
        added.max().unwrap_or(Added::Nothing)
    }

    /// Adds what lies on one side of the cursor.
    fn insert(&mut self, part: Stretch, due_ns: i64) -> Added {
        let is_passed = part.position < self.cursor;
        let mut whole = Waiting {
            stretch: part,
            due_ns,
            is_begun: false,
        };
        let touches = |known: &Stretch| {
            (known.position < self.cursor) == is_passed
                && known.position <= part.end()
                && part.position <= known.end()
        };
        let covers = |known: &Stretch| {
            touches(known) && known.position <= part.position && part.end() <= known.end()
        };
        if let Some(known) = self.stretches.iter_mut().find(|it| covers(&it.stretch)) {
            known.due_ns = known.due_ns.min(due_ns);
            return Added::Nothing;
        }
        self.stretches.retain(|known| {
            let is_joined = touches(&known.stretch);
            if is_joined {
                whole = whole.with(*known);
            }
            !is_joined
        });
        let start = whole.stretch.position;
        let place = self
            .stretches
            .partition_point(|known| known.stretch.position < start);
        self.stretches.insert(place, whole);
        if self.stretches.len() <= self.most {
            return Added::Something;
        }
        self.join_nearest();
        Added::Crowded
    }

    fn join_nearest(&mut self) {
        let is_passed = |waiting: &Waiting| waiting.stretch.position < self.cursor;
        let pairs = self.stretches.windows(2).enumerate();
        let nearest = pairs
            .filter(|(_, pair)| is_passed(&pair[0]) == is_passed(&pair[1]))
            .min_by_key(|(_, pair)| pair[1].stretch.position - pair[0].stretch.end());
        if let Some((first, _)) = nearest {
            let second = self.stretches.remove(first + 1);
            self.stretches[first] = self.stretches[first].with(second);
        }
    }

    /// Whose turn it is, and whether nothing of it was sent yet.
    pub(super) fn next(&mut self, now_ns: i64) -> Option<(Stretch, bool)> {
        let is_due = |waiting: &&Waiting| waiting.due_ns <= now_ns;
        let ahead = |cursor| {
            let mut due = self.stretches.iter().filter(is_due);
            due.find(|waiting| waiting.stretch.position >= cursor)
        };
        let in_lap = (self.lap_left > 0).then(|| ahead(self.cursor)).flatten();
        let next = if let Some(next) = in_lap {
            *next
        } else {
            let next = *ahead(i64::MIN)?;
            let last = self.stretches.last()?;
            self.cursor = i64::MIN;
            self.lap_left = last.stretch.end() - next.stretch.position;
            next
        };
        Some((next.stretch, !next.is_begun))
    }

    /// So much was sent from the start of the next one on. That may be more than there was of it: padding is sent whole.
    pub(super) fn sent(&mut self, next: Stretch, advanced: i64) {
        self.advance(next, advanced, true);
    }

    /// So much was not sent from the start of the next one on, and will not be.
    pub(super) fn passed(&mut self, next: Stretch, advanced: i64) {
        self.advance(next, advanced, false);
    }

    fn advance(&mut self, next: Stretch, advanced: i64, went_out: bool) {
        let (from, to) = (next.position, next.position + advanced);
        self.cursor = to;
        self.lap_left -= advanced;
        self.stretches.retain_mut(|waiting| {
            if (from..to).contains(&waiting.stretch.position) {
                waiting.stretch = Stretch::between(to, waiting.stretch.end());
                waiting.is_begun |= went_out;
            }
            waiting.stretch.length > 0
        });
    }

    /// What starts there will not be sent.
    pub(super) fn give_up(&mut self, position: i64) {
        self.stretches
            .retain(|waiting| waiting.stretch.position != position);
    }
}
