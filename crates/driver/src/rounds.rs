//! Whom an agent looks at in a duty cycle, so that a turn costs what is busy and not what exists.
//!
//! Clients write into shared memory and tell nobody, so everything has to be looked at. What moved lately is *busy* and
//! looked at in each turn. The rest is *calm*: its turn comes by time, one after the other, so that a lap takes no longer
//! than it may (but where many are calm and turns are long), and each time where there is little, or time for it.
//!
//! Contract: `enter` what is new, `leave` what goes, `wake` what is known to have something to do, `rouse` what may have
//! something this once. `turn` lends whoever has a turn, and is told whether it moved. Who knows that nothing comes of a
//! look for a while, or before somebody else goes on, says so ([`Guest::rest`]), and is passed over until then.
//!
//! What is calm has long left the cache when its turn comes, and most of what a look at it takes would be to wait for
//! memory. So it is asked for at the beginning of a turn, while those that are busy have theirs: what ends a rest
//! ([`Watch`]), or who does not rest; what the latter point to ([`Guest::fetch_ahead`]) just before they are looked at.

use std::fmt::Debug;

use taran_core::memory::prefetch_value;
use taran_protocol::log::TailSnapshot;

/// Who has not moved for so long is calm. Ten messages a second keep a stream busy.
const BUSY_NS: i64 = 100_000_000;
/// All that is calm is looked at in such a time …
const LAP_NS: i64 = 10_000_000;
/// … or in this one, for those whom somebody else keeps going meanwhile …
pub(crate) const LONG_LAP_NS: i64 = 20_000_000;
/// … if turns are not longer than this: what takes long must not make itself take longer.
const LONG_TURN_NS: i64 = 1_000_000;
/// Who has had nothing to do for so long is at rest.
const REST_AFTER_NS: i64 = 1_000_000;
/// So few calm ones have all of them a turn each time.
const FEW: usize = 8;
/// Of more, one in such a time for each of them when there is something else to do, but not more often …
const LOOK_NS_EACH: usize = 40;
const SHORTEST_LOOK_NS: usize = 2_000;
/// … nor less: few are found in the cache, and their laps are shorter …
const LONGEST_LOOK_NS: usize = 10_000;
/// … and at most so many …
const SHARE_AT_WORK: usize = 64;
/// … and at least, when there is nothing …
const SHARE_AT_REST: usize = 64;
/// … with one look at most in such a time: some four times what it takes, so that looking leaves time to others on the same
/// thread, and long turns do not make the next ones longer.
const LOOK_NS: usize = 2_000;

/// Most of those that are asked for ahead, a dozen lines each: memory answers so many at once.
const FETCHED_AHEAD: usize = 4;

/// Who is looked at.
pub(crate) trait Guest {
    /// What ends its rests before their time.
    type Watch: Watch;

    /// Whether nothing comes of looks from now on, unless it is roused, woken or changed before. Asked when a look has found
    /// nothing.
    fn rest(&self, now_ns: i64) -> Option<Rest<Self::Watch>>;

    /// Asks for the memory that a look at it reads, besides itself.
    fn fetch_ahead(&self) {}
}

/// Sees cheaply whether somebody goes on whom a guest waits for.
pub(crate) trait Watch: Debug {
    /// He has not.
    fn is_still(&self) -> bool;

    /// Asks for the memory that this takes.
    fn fetch_ahead(&self);
}

impl Watch for TailSnapshot {
    fn is_still(&self) -> bool {
        self.is_current()
    }

    fn fetch_ahead(&self) {
        self.prefetch();
    }
}

/// Nobody in memory is waited for: whoever comes wakes or rouses.
impl Watch for () {
    fn is_still(&self) -> bool {
        true
    }

    fn fetch_ahead(&self) {}
}

/// How long somebody is left alone: until then at most, and no longer than what is watched stays as it is.
#[derive(Debug)]
pub(crate) struct Rest<W> {
    pub(crate) until_ns: i64,
    pub(crate) watch: W,
}

impl<W: Watch> Rest<W> {
    /// As long as nothing moves that is watched; what is not, such as counters that show how far somebody is, is seen to a few
    /// times a second.
    pub(crate) fn for_now(watch: W, now_ns: i64) -> Self {
        Self {
            until_ns: now_ns.saturating_add(BUSY_NS),
            watch,
        }
    }

    fn lasts(&self, now_ns: i64) -> bool {
        now_ns <= self.until_ns && self.watch.is_still()
    }
}

/// Where one of them is, as a number that the next one gets when it has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seat(pub(crate) usize);

/// On which side somebody is whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Has moved lately; these come first.
    Busy,
    /// Has not.
    Calm,
}

/// What the last turns of an agent were like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Something was done: what is busy must not wait for what is calm.
    AtWork,
    /// Nothing was, for a while.
    AtRest,
}

/// When an agent last did something.
#[derive(Debug, Default)]
pub(crate) struct Tempo {
    worked_ns: Option<i64>,
}

impl Tempo {
    /// Another turn, with so much work.
    pub(crate) fn note(&mut self, work: usize, now_ns: i64) {
        if work > 0 {
            self.worked_ns = Some(now_ns);
        }
    }

    /// At rest it is only when it was so for a while: a fast stream leaves turns with nothing to do, too.
    pub(crate) fn pace(&self, now_ns: i64) -> Pace {
        match self.worked_ns {
            Some(worked_ns) if now_ns.saturating_sub(worked_ns) < REST_AFTER_NS => Pace::AtWork,
            Some(_) | None => Pace::AtRest,
        }
    }
}

#[derive(Debug)]
struct Seated<T: Guest> {
    of: Box<T>,
    /// Where in `order` its seat is.
    place: usize,
    moved_ns: i64,
    /// While it is calm.
    rest: Option<Rest<T::Watch>>,
}

/// Those who have turns.
#[derive(Debug)]
pub(crate) struct Rounds<T: Guest> {
    seats: Vec<Option<Seated<T>>>,
    free: Vec<Seat>,
    /// All seats that are taken, those of the busy ones first.
    order: Vec<Seat>,
    busy: usize,
    /// Which of the busy ones begins, and which of the calm ones is next.
    first: usize,
    next: usize,
    turned_ns: Option<i64>,
    lap_ns: i64,
    /// Time that has passed since the last look was due.
    owed_ns: usize,
    /// Who changes sides after the turn.
    changed: Vec<Seat>,
}

impl<T: Guest> Default for Rounds<T> {
    fn default() -> Self {
        Self {
            seats: Vec::new(),
            free: Vec::new(),
            order: Vec::new(),
            busy: 0,
            first: 0,
            next: 0,
            turned_ns: None,
            lap_ns: LAP_NS,
            owed_ns: 0,
            changed: Vec::new(),
        }
    }
}

impl<T: Guest> Rounds<T> {
    /// Nobody yet, and all that is calm looked at in such a time.
    pub(crate) fn in_laps_of(lap_ns: i64) -> Self {
        Self {
            lap_ns,
            ..Self::default()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// How many of them have moved lately.
    pub(crate) fn busy(&self) -> usize {
        self.busy
    }

    /// Somebody, if there is anybody.
    pub(crate) fn any(&self) -> Option<&T> {
        self.get(*self.order.last()?)
    }

    /// Gives somebody a seat, and a turn as soon as there is one.
    pub(crate) fn enter(&mut self, of: Box<T>) -> Seat {
        let guest = Seated {
            of,
            place: self.order.len(),
            moved_ns: i64::MIN,
            rest: None,
        };
        let seat = self.free.pop().unwrap_or_else(|| {
            self.seats.push(None);
            Seat(self.seats.len() - 1)
        });
        self.seats[seat.0] = Some(guest);
        self.order.push(seat);
        self.set_busy(seat);
        seat
    }

    /// Takes somebody out.
    pub(crate) fn leave(&mut self, seat: Seat) -> Option<Box<T>> {
        self.seats.get(seat.0)?.as_ref()?;
        self.set_calm(seat);
        let guest = self.seats[seat.0].take()?;
        self.order.swap_remove(guest.place);
        if let Some(&moved) = self.order.get(guest.place) {
            self.place(moved, guest.place);
        }
        self.free.push(seat);
        Some(guest.of)
    }

    pub(crate) fn get(&self, seat: Seat) -> Option<&T> {
        Some(&self.seats.get(seat.0)?.as_ref()?.of)
    }

    /// Somebody to be changed in what its rest does not depend on: that goes on.
    pub(crate) fn get_mut(&mut self, seat: Seat) -> Option<&mut T> {
        Some(&mut self.seats.get_mut(seat.0)?.as_mut()?.of)
    }

    /// Everybody, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.seats.iter().flatten().map(|guest| &*guest.of)
    }

    /// Everybody to be changed, in no order. Nobody rests any more.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.seats.iter_mut().flatten().map(Seated::disturbed)
    }

    /// Those of up to `count` seats from `seat` on, to be changed, and where to go on; nowhere after the last seat.
    pub(crate) fn portion(
        &mut self,
        seat: usize,
        count: usize,
    ) -> (impl Iterator<Item = &mut T>, Option<usize>) {
        let end = seat.saturating_add(count).min(self.seats.len());
        let next = (end < self.seats.len()).then_some(end);
        let guests = self.seats[seat.min(end)..end].iter_mut().flatten();
        (guests.map(Seated::disturbed), next)
    }

    /// Somebody has something to do, and a turn in each duty cycle for a while.
    pub(crate) fn wake(&mut self, seat: Seat, now_ns: i64) -> Option<&mut T> {
        self.seats.get_mut(seat.0)?.as_mut()?.moved_ns = now_ns;
        self.rouse(seat)
    }

    /// Somebody has a turn in the next duty cycle, and more if it moves then.
    pub(crate) fn rouse(&mut self, seat: Seat) -> Option<&mut T> {
        self.set_busy(seat);
        self.get_mut(seat)
    }

    /// A turn for all that are busy, beginning with another one each time, and for some that are calm. `look` tells
    /// whether somebody moved.
    pub(crate) fn turn(
        &mut self,
        now_ns: i64,
        pace: Pace,
        mut look: impl FnMut(Seat, &mut T, Side) -> bool,
    ) {
        let mut changed = std::mem::take(&mut self.changed);
        let (busy, calm) = (self.busy, self.order.len() - self.busy);
        let share = self.share(calm, now_ns, pace);
        if share < calm {
            self.fetch_ahead(share, now_ns);
        } else {
            // All of them: another one begins.
            self.next = after(self.next, calm);
        }
        self.first = after(self.first, busy);
        for index in (self.first..busy).chain(0..self.first) {
            let seat = self.order[index];
            if let Some(guest) = &mut self.seats[seat.0] {
                if look(seat, &mut guest.of, Side::Busy) {
                    guest.moved_ns = now_ns;
                } else if now_ns.saturating_sub(guest.moved_ns) > BUSY_NS {
                    changed.push(seat);
                }
            }
        }
        let went_calm = changed.len();
        if share < calm {
            let due = self.upcoming(share).filter(|guest| !guest.rests(now_ns));
            due.take(FETCHED_AHEAD)
                .for_each(|guest| guest.of.fetch_ahead());
        }
        for _ in 0..share {
            self.next = after(self.next, calm);
            let seat = self.order[busy + self.next];
            let Some(guest) = &mut self.seats[seat.0] else {
                continue;
            };
            if guest.rests(now_ns) {
                continue;
            }
            if look(seat, &mut guest.of, Side::Calm) {
                guest.moved_ns = now_ns;
                changed.push(seat);
            } else {
                guest.rest = guest.of.rest(now_ns);
            }
        }
        for (index, seat) in changed.drain(..).enumerate() {
            if index < went_calm {
                self.set_calm(seat);
            } else {
                self.set_busy(seat);
            }
        }
        self.changed = changed;
    }

    /// Asks for what this turn will read first of each calm one.
    fn fetch_ahead(&self, share: usize, now_ns: i64) {
        let mut others = FETCHED_AHEAD;
        for guest in self.upcoming(share) {
            match &guest.rest {
                Some(rest) if now_ns <= rest.until_ns => rest.watch.fetch_ahead(),
                _ if others > 0 => {
                    others -= 1;
                    prefetch_value(&*guest.of);
                }
                _ => {}
            }
        }
    }

    /// The calm ones that so many looks will reach.
    fn upcoming(&self, share: usize) -> impl Iterator<Item = &Seated<T>> {
        let calm = &self.order[self.busy..];
        let first = calm.iter().skip(self.next + 1);
        let seats = first.chain(calm).take(share);
        seats.filter_map(|seat| self.seats[seat.0].as_ref())
    }

    /// How many of the calm ones have a turn now.
    fn share(&mut self, calm: usize, now_ns: i64, pace: Pace) -> usize {
        let last_ns = self.turned_ns.replace(now_ns).unwrap_or(now_ns);
        let passed_ns = now_ns.saturating_sub(last_ns).clamp(0, LONG_TURN_NS);
        let few_ns = (LOOK_NS_EACH * calm).clamp(SHORTEST_LOOK_NS, LONGEST_LOOK_NS);
        let look_ns = (self.lap_ns as usize / calm.max(1)).clamp(1, few_ns);
        self.owed_ns += passed_ns as usize;
        let of_lap = self.owed_ns / look_ns;
        self.owed_ns %= look_ns;
        let share = match pace {
            Pace::AtWork if calm <= FEW => calm,
            Pace::AtWork => of_lap.min(SHARE_AT_WORK),
            Pace::AtRest => {
                let of_time = passed_ns as usize / LOOK_NS;
                of_lap.max(SHARE_AT_REST).min(of_time.max(FEW))
            }
        };
        share.min(calm)
    }

    fn set_busy(&mut self, seat: Seat) {
        if let Some(Some(guest)) = self.seats.get_mut(seat.0) {
            guest.rest = None;
        }
        if self.place_of(seat).is_some_and(|place| place >= self.busy) {
            self.exchange(seat, self.busy);
            self.busy += 1;
        }
    }

    fn set_calm(&mut self, seat: Seat) {
        if self.place_of(seat).is_some_and(|place| place < self.busy) {
            self.busy -= 1;
            self.exchange(seat, self.busy);
        }
    }

    fn place_of(&self, seat: Seat) -> Option<usize> {
        Some(self.seats.get(seat.0)?.as_ref()?.place)
    }

    /// Exchanges the place of a seat with whoever has the other place.
    fn exchange(&mut self, seat: Seat, place: usize) {
        if let Some(own) = self.place_of(seat) {
            let other = self.order[place];
            self.order.swap(own, place);
            self.place(other, own);
            self.place(seat, place);
        }
    }

    fn place(&mut self, seat: Seat, place: usize) {
        if let Some(guest) = &mut self.seats[seat.0] {
            guest.place = place;
        }
    }
}

impl<T: Guest> Seated<T> {
    fn rests(&self, now_ns: i64) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.lasts(now_ns))
    }

    /// To be changed: it may have something to do then.
    fn disturbed(&mut self) -> &mut T {
        self.rest = None;
        &mut self.of
    }
}

/// The next one of so many in a ring.
fn after(index: usize, count: usize) -> usize {
    if index + 1 < count { index + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use proptest::prelude::*;

    use super::*;

    const TURN_NS: i64 = 1_000;
    /// Who rests, and until when.
    const SLEEPER: u32 = u32::MAX;
    const SLEEPS_UNTIL_NS: i64 = 50 * LONG_TURN_NS;

    impl Guest for u32 {
        type Watch = ();

        fn rest(&self, _now_ns: i64) -> Option<Rest<()>> {
            (*self == SLEEPER).then_some(Rest {
                until_ns: SLEEPS_UNTIL_NS,
                watch: (),
            })
        }
    }

    /// Whom a turn looked at.
    fn looked(rounds: &mut Rounds<u32>, now_ns: i64, pace: Pace, moving: &[u32]) -> Vec<u32> {
        let mut seen = Vec::new();
        rounds.turn(now_ns, pace, |_, guest, _| {
            seen.push(*guest);
            moving.contains(guest)
        });
        seen
    }

    fn with(count: u32) -> (Rounds<u32>, Vec<Seat>) {
        let mut rounds = Rounds::default();
        let seats = (0..count).map(|guest| rounds.enter(Box::new(guest)));
        let seats = seats.collect();
        (rounds, seats)
    }

    #[test]
    fn who_is_new_has_a_turn_at_once() {
        let (mut rounds, _) = with(1_000);
        assert_eq!(looked(&mut rounds, 0, Pace::AtWork, &[]).len(), 1_000);
        assert_eq!(looked(&mut rounds, TURN_NS, Pace::AtWork, &[]), []);
    }

    #[test]
    fn looks_are_due_by_time_and_not_by_turns() {
        for (calm, look_ns) in [
            (9, 2_000),
            (100, 4_000),
            (250, 10_000),
            (1_000, 10_000),
            (5_000, 2_000),
        ] {
            let (mut rounds, _) = with(calm);
            looked(&mut rounds, 0, Pace::AtWork, &[]);
            let mut looks = 0;
            for turn in 1..=1_000 {
                looks += looked(&mut rounds, turn * TURN_NS, Pace::AtWork, &[]).len();
            }
            assert_eq!(looks, 1_000 * TURN_NS as usize / look_ns, "{calm}");
        }
    }

    #[test]
    fn a_turn_costs_what_is_busy() {
        let (mut rounds, _) = with(10_000);
        looked(&mut rounds, 0, Pace::AtRest, &[7]);
        for turn in 1..1_000 {
            let seen = looked(&mut rounds, turn * TURN_NS, Pace::AtWork, &[7]);
            assert_eq!(seen[0], 7);
            assert!(seen.len() <= 3, "{}", seen.len());
        }
    }

    #[test]
    fn who_is_roused_has_one_turn_and_who_is_woken_has_more() {
        let (mut rounds, seats) = with(1_000);
        looked(&mut rounds, 0, Pace::AtWork, &[]);
        let mut now_ns = 0;
        let mut turns_of = |rounds: &mut Rounds<u32>, guest| {
            let seen = (0..10).map(|_| {
                now_ns += TURN_NS;
                looked(rounds, now_ns, Pace::AtWork, &[]).first().copied()
            });
            seen.filter(|first| *first == Some(guest)).count()
        };
        assert_eq!(turns_of(&mut rounds, 700), 0);
        rounds.rouse(seats[700]);
        assert_eq!(turns_of(&mut rounds, 700), 1);
        rounds.wake(seats[700], 0);
        assert_eq!(turns_of(&mut rounds, 700), 10);
    }

    #[test]
    fn nobody_waits_for_longer_than_a_lap() {
        let paces = [
            (TURN_NS, Pace::AtWork),
            (50_000, Pace::AtWork),
            (LONG_TURN_NS, Pace::AtRest),
        ];
        for (turn_ns, pace) in paces {
            for lap_ns in [LAP_NS, LONG_LAP_NS] {
                let mut rounds = Rounds::in_laps_of(lap_ns);
                for guest in 0..5_000 {
                    rounds.enter(Box::new(guest));
                }
                looked(&mut rounds, 0, Pace::AtWork, &[]);
                let mut seen = BTreeSet::new();
                for turn in 1..=lap_ns / turn_ns {
                    seen.extend(looked(&mut rounds, turn * turn_ns, pace, &[]));
                }
                assert_eq!(seen.len(), 5_000, "{turn_ns} {lap_ns}");
            }
        }
    }

    #[test]
    fn a_turn_after_a_long_one_is_bounded_too() {
        let (mut rounds, _) = with(10_000);
        looked(&mut rounds, 0, Pace::AtWork, &[]);
        for (turn, pace, share) in [
            (100, Pace::AtWork, SHARE_AT_WORK),
            (200, Pace::AtRest, LONG_TURN_NS as usize / LOOK_NS),
        ] {
            let seen = looked(&mut rounds, turn * LAP_NS, pace, &[]);
            assert_eq!(seen.len(), share);
        }
    }

    #[test]
    fn who_rests_is_passed_over_until_it_is_time_or_somebody_comes() {
        let (mut rounds, mut seats) = with(3);
        seats.push(rounds.enter(Box::new(SLEEPER)));
        let sleeper = seats[3];
        let sees = |rounds: &mut Rounds<u32>, now_ns| {
            looked(rounds, now_ns, Pace::AtRest, &[]).contains(&SLEEPER)
        };
        assert!(sees(&mut rounds, 0), "who is new");
        assert!(sees(&mut rounds, 1), "who is calm, and says so then");
        assert!(!sees(&mut rounds, 2) && !sees(&mut rounds, SLEEPS_UNTIL_NS));
        rounds.rouse(sleeper);
        assert!(sees(&mut rounds, 3), "who is roused");
        assert!(sees(&mut rounds, 4), "and calm again");
        assert!(!sees(&mut rounds, 5));
        rounds.iter_mut().for_each(|_| ());
        assert!(sees(&mut rounds, 6), "who may have been changed");
        assert!(!sees(&mut rounds, 7));
        rounds.portion(0, 4).0.for_each(|_| ());
        assert!(sees(&mut rounds, 8), "among others, too");
        assert!(!sees(&mut rounds, 9));
        assert!(sees(&mut rounds, SLEEPS_UNTIL_NS + 1), "when it is time");
    }

    /// Rests until what it watches moves.
    struct Listener(Arc<AtomicBool>);

    impl Watch for Arc<AtomicBool> {
        fn is_still(&self) -> bool {
            !self.load(Ordering::Relaxed)
        }

        fn fetch_ahead(&self) {}
    }

    impl Guest for Listener {
        type Watch = Arc<AtomicBool>;

        fn rest(&self, now_ns: i64) -> Option<Rest<Self::Watch>> {
            self.0
                .is_still()
                .then(|| Rest::for_now(self.0.clone(), now_ns))
        }
    }

    #[test]
    fn what_is_watched_ends_a_rest_before_its_time() {
        let mut rounds = Rounds::default();
        let moves = Arc::new(AtomicBool::new(false));
        rounds.enter(Box::new(Listener(moves.clone())));
        let mut is_seen = |now_ns| {
            let mut is_seen = false;
            rounds.turn(now_ns, Pace::AtRest, |_, _, _| {
                is_seen = true;
                false
            });
            is_seen
        };
        assert!(is_seen(0) && is_seen(1), "new, and calm");
        assert!(!is_seen(2) && !is_seen(1 + BUSY_NS));
        assert!(is_seen(2 + BUSY_NS), "now and then");
        assert!(!is_seen(3 + BUSY_NS));
        moves.store(true, Ordering::Relaxed);
        assert!(is_seen(4 + BUSY_NS));
        assert!(is_seen(5 + BUSY_NS), "there is no rest while it moves");
    }

    #[test]
    fn few_have_a_turn_each_time_while_nobody_works() {
        let (mut rounds, _) = with(SHARE_AT_REST as u32);
        for turn in 0..10 {
            let now_ns = turn * (SHARE_AT_REST * LOOK_NS) as i64;
            let seen = looked(&mut rounds, now_ns, Pace::AtRest, &[]);
            assert_eq!(seen.len(), SHARE_AT_REST);
        }
    }

    #[test]
    fn looking_leaves_time_to_others_even_while_nobody_works() {
        let (mut rounds, _) = with(10_000);
        looked(&mut rounds, 0, Pace::AtRest, &[]);
        for (turn_ns, share) in [(500, FEW), (40_000, 20)] {
            let mut now_ns = 0;
            for _ in 0..10 {
                now_ns += turn_ns;
                looked(&mut rounds, now_ns, Pace::AtRest, &[]);
            }
            let seen = looked(&mut rounds, now_ns + turn_ns, Pace::AtRest, &[]);
            assert_eq!(seen.len(), share, "{turn_ns}");
        }
    }

    #[test]
    fn who_moves_is_busy_for_a_while() {
        let (mut rounds, _) = with(100);
        looked(&mut rounds, 0, Pace::AtWork, &[]);
        looked(&mut rounds, LONG_TURN_NS, Pace::AtRest, &[42]);
        let last = LONG_TURN_NS + BUSY_NS;
        let over = last + 1;
        assert_eq!(looked(&mut rounds, last, Pace::AtWork, &[])[0], 42);
        assert_eq!(looked(&mut rounds, over, Pace::AtWork, &[])[0], 42);
        assert_eq!(looked(&mut rounds, over, Pace::AtWork, &[]), []);
    }

    #[test]
    fn who_is_woken_has_the_next_turn() {
        let (mut rounds, seats) = with(10_000);
        looked(&mut rounds, 0, Pace::AtWork, &[]);
        assert_eq!(rounds.wake(seats[9_999], 1), Some(&mut 9_999));
        assert_eq!(looked(&mut rounds, 1, Pace::AtWork, &[])[0], 9_999);
    }

    #[test]
    fn the_busy_ones_take_turns_at_being_first() {
        let (mut rounds, _) = with(3);
        let all = [0, 1, 2];
        let firsts: BTreeSet<u32> = (0..3)
            .map(|turn| looked(&mut rounds, turn, Pace::AtWork, &all)[0])
            .collect();
        assert_eq!(firsts.len(), 3);
    }

    #[test]
    fn so_do_the_calm_ones_while_all_have_a_turn() {
        let (mut rounds, _) = with(3);
        looked(&mut rounds, 0, Pace::AtRest, &[]);
        let firsts: BTreeSet<u32> = (1..4)
            .map(|turn| looked(&mut rounds, turn, Pace::AtRest, &[])[0])
            .collect();
        assert_eq!(firsts.len(), 3);
    }

    #[test]
    fn portions_reach_everybody_once() {
        let (mut rounds, seats) = with(10);
        rounds.leave(seats[4]);
        let (mut seen, mut next) = (Vec::new(), Some(0));
        while let Some(seat) = next {
            let (portion, rest) = rounds.portion(seat, 3);
            seen.extend(portion.map(|guest| *guest));
            next = rest;
        }
        assert_eq!(seen, [0, 1, 2, 3, 5, 6, 7, 8, 9]);
    }

    proptest! {
        /// Whoever comes and goes: the books are in order, and a lap reaches everybody, each busy one once a turn.
        #[test]
        fn books_are_in_order(steps in prop::collection::vec((0_u8..4, any::<prop::sample::Index>()), 0..200)) {
            let mut rounds: Rounds<u32> = Rounds::default();
            let mut seats: Vec<(Seat, u32)> = Vec::new();
            let (mut guest, mut now_ns) = (0, 0);
            for (step, index) in steps {
                match step {
                    0 => {
                        seats.push((rounds.enter(Box::new(guest)), guest));
                        guest += 1;
                    }
                    1 if !seats.is_empty() => {
                        let (seat, guest) = seats.swap_remove(index.index(seats.len()));
                        prop_assert_eq!(rounds.leave(seat), Some(Box::new(guest)));
                        prop_assert!(rounds.get(seat).is_none() && rounds.leave(seat).is_none());
                    }
                    2 if !seats.is_empty() => {
                        let (seat, _) = seats[index.index(seats.len())];
                        rounds.wake(seat, now_ns);
                    }
                    _ => {
                        now_ns += BUSY_NS / 2;
                        let moving: Vec<u32> = seats.iter().map(|(_, guest)| *guest).filter(|guest| guest % 3 == 0).collect();
                        let seen = looked(&mut rounds, now_ns, Pace::AtRest, &moving);
                        let once: BTreeSet<u32> = seen.iter().copied().collect();
                        prop_assert_eq!((once.len(), seen.len()), (seats.len(), seats.len()));
                    }
                }
                prop_assert_eq!(rounds.len(), seats.len());
                prop_assert_eq!(rounds.any().is_none(), seats.is_empty());
                for (seat, guest) in &seats {
                    prop_assert_eq!(rounds.get(*seat), Some(guest));
                }
            }
        }
    }
}
