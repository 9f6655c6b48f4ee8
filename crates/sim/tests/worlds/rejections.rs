//! Subscribers that send an image away (spec/01 §9.4, spec/02 §3.7, §5.6).

use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;
use taran_sim::{Publishing, Subscribing, seeded};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, channel};

const REASON: &str = "the messages make no sense";

seeded! {
    /// An image is sent away: the publisher is told once, with the reason, over whatever network; the image goes; and
    /// after a while the stream, which went on in the meantime where others read it, is received again.
    told_once, 40, |seed| {
        let Pair { mut world, hosts, clients } = Pair::in_any_weather(seed);
        let ipc = world.random().bool();
        let (channel, reader) = if ipc { ("aeron:ipc".to_owned(), 0) } else { (channel(1), 1) };
        let subscriber = world.subscribe(clients[reader], Subscribing::new(channel.as_str(), STREAM));
        let publishing = Publishing::new(channel, STREAM).pause(Duration::from_millis(10));
        let publisher = world.publish(clients[0], publishing.messages(10_000));
        await_offered(&mut world, publisher, 20);
        world.run_until("there is an image", LONG, |world| {
            world.subscriber(subscriber).images().next().is_some()
        });
        assert!(world.subscriber_mut(subscriber).reject(REASON));
        world.run_until("the publisher is told", LONG, |world| {
            !world.complaints(clients[0]).is_empty()
        });
        world.run_until("the image has gone", LONG, |world| {
            world.subscriber(subscriber).ended().len() == 1
        });
        world.run_until("the stream is received again", LONG, |world| {
            world.subscriber(subscriber).images().next().is_some()
        });
        await_all(&mut world, &[(subscriber, publisher)]);
        let complaints = world.complaints(clients[0]);
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        let said = &complaints[0];
        let key = world.publisher(publisher).key().unwrap();
        assert_eq!((said.session_id, said.stream_id), (key.session_id, STREAM));
        assert_eq!(said.code, ErrorCode::ImageRejected);
        assert_eq!(said.text, REASON);
        let of = hosts[reader];
        assert_eq!(world.system(of, SystemCounter::ImagesRejected), 1);
        world.close_all();
        world.expect_nothing_left();
        world.expect_no_errors_but(&[REASON]);
    }
}

seeded! {
    /// One of two receivers sends its image away: the other reads on as if nothing had been.
    the_other_reads_on, 30, |seed| {
        let Pair { mut world, hosts, clients } = Pair::in_any_weather(seed);
        let other_host = world.add_host(taran_sim::HostSpec::new());
        let other = world.connect(other_host);
        let mut flows = Vec::new();
        for (client, host) in [(clients[1], 1), (other, 2)] {
            let subscriber = world.subscribe(client, Subscribing::new(channel(host), STREAM));
            let publishing = Publishing::new(channel(host), STREAM).messages(300);
            flows.push((subscriber, world.publish(clients[0], publishing)));
        }
        await_offered(&mut world, flows[0].1, 20);
        world.run_until("there is an image", LONG, |world| {
            world.subscriber(flows[0].0).images().next().is_some()
        });
        world.subscriber_mut(flows[0].0).reject(REASON);
        await_all(&mut world, &flows[1..]);
        assert!(world.subscriber(flows[1].0).ended().is_empty());
        world.run_until("the publisher is told", LONG, |world| {
            !world.complaints(clients[0]).is_empty()
        });
        assert_eq!(world.system(hosts[1], SystemCounter::ImagesRejected), 1);
        assert_eq!(world.system(other_host, SystemCounter::ImagesRejected), 0);
        world.close_all();
        world.expect_nothing_left();
        world.expect_no_errors_but(&[REASON]);
    }
}
