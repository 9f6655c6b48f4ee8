// SPDX-License-Identifier: Apache-2.0
//! Routes derived from channel texts: a publication reaches a subscription if both contain the same route.

/// Key of a path from publications to subscriptions.
pub(super) type Route = String;

/// Returns the value of a channel parameter.
pub(super) fn parameter<'c>(channel: &'c str, name: &str) -> Option<&'c str> {
    let (_, parameters) = channel.split_once('?')?;
    parameters
        .split('|')
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// Returns the routes that a publication on a host sends on.
pub(super) fn publication_routes(
    channel: &str,
    destinations: &[String],
    host: usize,
) -> Vec<Route> {
    if channel.starts_with("aeron:ipc") {
        return vec![ipc_route(host)];
    }
    match parameter(channel, "control-mode") {
        Some("manual") => destinations.iter().filter_map(|it| udp_route(it)).collect(),
        // The channel of responses does not name their receiver.
        Some("response") => Vec::new(),
        _ => {
            let route = udp_route(channel);
            let spied = route.iter().map(|it| spy_route(it, host));
            spied.chain(route.clone()).collect()
        }
    }
}

/// Returns the routes that a subscription on a host receives from.
pub(super) fn subscription_routes(channel: &str, sources: &[String], host: usize) -> Vec<Route> {
    if let Some(spied) = channel.strip_prefix("aeron-spy:") {
        return udp_route(spied)
            .iter()
            .map(|it| spy_route(it, host))
            .collect();
    }
    if channel.starts_with("aeron:ipc") {
        return vec![ipc_route(host)];
    }
    match parameter(channel, "control-mode") {
        Some("manual") => {
            let sources = sources.iter();
            sources
                .flat_map(|it| subscription_routes(it, &[], host))
                .collect()
        }
        Some("response") => Vec::new(),
        _ => udp_route(channel).into_iter().collect(),
    }
}

/// Returns true for a route that only spies receive from.
pub(super) fn is_spy_route(route: &str) -> bool {
    route.starts_with("spy ")
}

fn ipc_route(host: usize) -> Route {
    format!("ipc of host {host}")
}

fn spy_route(address: &str, host: usize) -> Route {
    format!("spy of host {host} on {address}")
}

/// With a control address the route is that address, otherwise the endpoint.
fn udp_route(channel: &str) -> Option<Route> {
    let control = parameter(channel, "control").map(|control| format!("control {control}"));
    control.or_else(|| parameter(channel, "endpoint").map(|endpoint| format!("udp {endpoint}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reaches(publication: (&str, usize), subscription: (&str, usize)) -> bool {
        let sent = publication_routes(publication.0, &[], publication.1);
        let received = subscription_routes(subscription.0, &[], subscription.1);
        sent.iter().any(|route| received.contains(route))
    }

    #[test]
    fn channels_with_a_common_route_reach_each_other() {
        let there = "aeron:udp?endpoint=10.0.0.2:1";
        assert!(reaches(
            (there, 0),
            ("aeron:udp?reliable=false|endpoint=10.0.0.2:1", 1)
        ));
        assert!(!reaches((there, 0), ("aeron:udp?endpoint=10.0.0.2:2", 1)));
        assert!(reaches(
            (there, 0),
            ("aeron-spy:aeron:udp?endpoint=10.0.0.2:1", 0)
        ));
        assert!(!reaches(
            (there, 0),
            ("aeron-spy:aeron:udp?endpoint=10.0.0.2:1", 1)
        ));
        assert!(reaches(("aeron:ipc?term-length=64k", 3), ("aeron:ipc", 3)));
        assert!(!reaches(("aeron:ipc", 3), ("aeron:ipc", 2)));
        let dynamic = "aeron:udp?control=10.0.0.1:9|control-mode=dynamic";
        assert!(reaches(
            (dynamic, 0),
            ("aeron:udp?endpoint=10.0.0.2:1|control=10.0.0.1:9", 1)
        ));
    }

    #[test]
    fn manual_channels_use_their_destinations_and_sources() {
        let manual = "aeron:udp?control-mode=manual";
        let path = "aeron:udp?endpoint=10.0.0.2:1".to_owned();
        let here = subscription_routes(manual, &[path.clone(), "aeron:ipc".to_owned()], 1);
        assert_eq!(here.len(), 2);
        assert_eq!(publication_routes(manual, &[path], 0), here[..1]);
        assert!(publication_routes(manual, &[], 0).is_empty());
    }
}
