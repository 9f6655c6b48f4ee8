//! Hosts whose clocks disagree.

use std::time::Duration;

use taran_sim::{HostSpec, seeded};

use super::common::{Pair, await_offered};

seeded! {
    /// One host is hours ahead of the other: nobody notices.
    ahead, 30, |seed| {
        let hours = Duration::from_secs(3_600) * (1 + seed as u32 % 50);
        let [left, right] = if seed % 2 == 0 { [hours, Duration::ZERO] } else { [Duration::ZERO, hours] };
        let spec = |ahead| HostSpec::new().clocks_ahead(ahead);
        let mut pair = Pair::of(seed, spec(left), spec(right));
        let faults = taran_sim::weather::foul(pair.world.random());
        pair.world.set_faults(faults);
        let (subscriber, publisher) = pair.flow(300);
        await_offered(&mut pair.world, publisher, 50);
        pair.world.run_for(Duration::from_secs(30));
        pair.await_all((subscriber, publisher));
        assert!(pair.world.subscriber(subscriber).ended().is_empty());
        pair.end();
    }
}
