//! When it is not worth asking somebody again.

/// A time after a look that found nothing, in which another one is left out.
#[derive(Debug)]
pub(crate) struct Lull {
    length_ns: i64,
    /// Of the last look, if it found nothing.
    since_ns: Option<i64>,
}

impl Lull {
    pub(crate) const fn new(length_ns: i64) -> Self {
        Self {
            length_ns,
            since_ns: None,
        }
    }

    /// A look found something, or nothing.
    pub(crate) fn looked(&mut self, now_ns: i64, found: bool) {
        self.since_ns = (!found).then_some(now_ns);
    }

    /// The next look is worth it.
    pub(crate) fn end(&mut self) {
        self.since_ns = None;
    }

    /// Whether a look would come too soon. A clock that stands still tells nothing of how long ago the last one was.
    pub(crate) fn lasts(&self, now_ns: i64) -> bool {
        let passed_ns = |since_ns| now_ns.saturating_sub(since_ns);
        self.since_ns
            .is_some_and(|since_ns| (1..self.length_ns).contains(&passed_ns(since_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_a_look_that_found_nothing() {
        let mut lull = Lull::new(10);
        assert!(!lull.lasts(5), "nobody has looked");
        lull.looked(0, false);
        let lasting: Vec<i64> = (-5..40).filter(|&now_ns| lull.lasts(now_ns)).collect();
        assert_eq!(lasting, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        lull.looked(5, true);
        assert!(!lull.lasts(6));
        lull.looked(5, false);
        lull.end();
        assert!(!lull.lasts(6));
    }
}
