//! Where a channel sends to and where one is heard, read from its text: two meet if they name the same place.

/// A place where messages pass, as text.
pub(super) type Place = String;

/// The value of a parameter of a channel.
pub(super) fn parameter<'c>(channel: &'c str, name: &str) -> Option<&'c str> {
    let (_, parameters) = channel.split_once('?')?;
    parameters
        .split('|')
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// Where a publication on a host sends to.
pub(super) fn sent_to(channel: &str, destinations: &[String], host: usize) -> Vec<Place> {
    if channel.starts_with("aeron:ipc") {
        return vec![within(host)];
    }
    match parameter(channel, "control-mode") {
        Some("manual") => destinations.iter().filter_map(|it| address(it)).collect(),
        // Answers go to whom they are for, which no channel says.
        Some("response") => Vec::new(),
        _ => {
            let address = address(channel);
            let spied = address.iter().map(|it| spy(it, host));
            spied.chain(address.clone()).collect()
        }
    }
}

/// Where a subscription on a host hears.
pub(super) fn heard_at(channel: &str, sources: &[String], host: usize) -> Vec<Place> {
    if let Some(spied) = channel.strip_prefix("aeron-spy:") {
        return address(spied).iter().map(|it| spy(it, host)).collect();
    }
    if channel.starts_with("aeron:ipc") {
        return vec![within(host)];
    }
    match parameter(channel, "control-mode") {
        Some("manual") => {
            let sources = sources.iter();
            sources.flat_map(|it| heard_at(it, &[], host)).collect()
        }
        Some("response") => Vec::new(),
        _ => address(channel).into_iter().collect(),
    }
}

/// True for a place that only spies hear at.
pub(super) fn is_spied(place: &str) -> bool {
    place.starts_with("spy ")
}

fn within(host: usize) -> Place {
    format!("ipc of host {host}")
}

fn spy(address: &str, host: usize) -> Place {
    format!("spy of host {host} on {address}")
}

/// Who says where to send to is the place of those that are told; otherwise it is the address itself.
fn address(channel: &str) -> Option<Place> {
    let control = parameter(channel, "control").map(|control| format!("control {control}"));
    control.or_else(|| parameter(channel, "endpoint").map(|endpoint| format!("udp {endpoint}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meet(publication: (&str, usize), subscription: (&str, usize)) -> bool {
        let sent = sent_to(publication.0, &[], publication.1);
        let heard = heard_at(subscription.0, &[], subscription.1);
        sent.iter().any(|place| heard.contains(place))
    }

    #[test]
    fn who_names_the_same_place_meets() {
        let there = "aeron:udp?endpoint=10.0.0.2:1";
        assert!(meet(
            (there, 0),
            ("aeron:udp?reliable=false|endpoint=10.0.0.2:1", 1)
        ));
        assert!(!meet((there, 0), ("aeron:udp?endpoint=10.0.0.2:2", 1)));
        assert!(meet(
            (there, 0),
            ("aeron-spy:aeron:udp?endpoint=10.0.0.2:1", 0)
        ));
        assert!(!meet(
            (there, 0),
            ("aeron-spy:aeron:udp?endpoint=10.0.0.2:1", 1)
        ));
        assert!(meet(("aeron:ipc?term-length=64k", 3), ("aeron:ipc", 3)));
        assert!(!meet(("aeron:ipc", 3), ("aeron:ipc", 2)));
        let dynamic = "aeron:udp?control=10.0.0.1:9|control-mode=dynamic";
        assert!(meet(
            (dynamic, 0),
            ("aeron:udp?endpoint=10.0.0.2:1|control=10.0.0.1:9", 1)
        ));
    }

    #[test]
    fn destinations_and_sources_say_where() {
        let manual = "aeron:udp?control-mode=manual";
        let path = "aeron:udp?endpoint=10.0.0.2:1".to_owned();
        let here = heard_at(manual, &[path.clone(), "aeron:ipc".to_owned()], 1);
        assert_eq!(here.len(), 2);
        assert_eq!(sent_to(manual, &[path], 0), here[..1]);
        assert!(sent_to(manual, &[], 0).is_empty());
    }
}
