// SPDX-License-Identifier: Apache-2.0
//! Asynchronous publications and subscriptions, with a reactor that the test runs, in virtual time.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::stream::FusedStream;
use futures_util::{FutureExt, SinkExt, StreamExt};
use taran::{
    AsyncPublication, AsyncReconnecting, AsyncSubscription, CommandError, ErrorCode, Lost,
    OfferError, PollError, Publication, Reactor, Subscription,
};

use crate::fake_driver::{Fixture, TERM_LENGTH};
use crate::reconnect::Machine;

/// A task of a runtime that counts how often it is woken.
#[derive(Default)]
struct Task {
    wake_ups: AtomicUsize,
    panics: bool,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_ups.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics, "a defect of the runtime");
    }
}

impl Task {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn wake_ups(&self) -> usize {
        self.wake_ups.load(Ordering::Relaxed)
    }

    fn poll<F: Future + ?Sized>(self: &Arc<Self>, future: Pin<&mut F>) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(self));
        future.poll(&mut Context::from_waker(&waker))
    }

    /// Polls a new future once, and drops it.
    fn poll_once<F: Future>(self: &Arc<Self>, future: F) -> Poll<F::Output> {
        self.poll(pin!(future))
    }
}

/// A connected stream of a shared publication.
fn stream(
    fixture: &mut Fixture,
    reactor: &Reactor,
) -> (AsyncPublication<Publication>, AsyncSubscription) {
    let subscription = fixture.subscription(10);
    let publication = fixture.publication(10);
    fixture.run_cycles();
    (
        publication.into_async(reactor),
        subscription.into_async(reactor),
    )
}

/// Fills the window of a publication.
fn fill(publication: &Publication) -> usize {
    let mut offered = 0;
    while publication.offer(&[7; 1000]) != Err(OfferError::BackPressured) {
        offered += 1;
    }
    offered
}

#[test]
fn poll_without_message_waits_until_message_arrives() {
    let mut fixture = Fixture::new();
    let reactor = Reactor::invoked();
    let (publication, mut subscription) = stream(&mut fixture, &reactor);
    let task = Task::new();
    let mut received = Vec::new();
    {
        let mut poll = pin!(subscription.poll(|message, _| received.push(message.to_vec()), 10));
        assert!(task.poll(poll.as_mut()).is_pending());
        assert_eq!((reactor.invoke(), task.wake_ups()), (0, 0));
        publication.get_ref().offer(b"one").unwrap();
        assert_eq!((reactor.invoke(), task.wake_ups()), (1, 1));
        // The watch is disarmed: a task is woken once.
        assert_eq!((reactor.invoke(), task.wake_ups()), (0, 1));
        assert_eq!(task.poll(poll.as_mut()), Poll::Ready(Ok(1)));
    }
    assert_eq!(received, [b"one"]);
}

#[test]
fn poll_with_message_is_ready_without_reactor() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture, &Reactor::invoked());
    for _ in 0..3 {
        publication.get_ref().offer(b"one").unwrap();
    }
    assert_eq!(subscription.poll(|_, _| (), 2).now_or_never(), Some(Ok(2)));
    assert_eq!(subscription.poll(|_, _| (), 2).now_or_never(), Some(Ok(1)));
    assert_eq!(subscription.poll(|_, _| (), 0).now_or_never(), Some(Ok(0)));
}

#[test]
fn poll_without_image_is_woken_by_new_image_and_its_message() {
    let mut fixture = Fixture::new();
    let reactor = Reactor::invoked();
    let mut subscription = fixture.subscription(10).into_async(&reactor);
    let task = Task::new();
    let mut poll = pin!(subscription.poll(|_, _| (), 10));
    assert!(task.poll(poll.as_mut()).is_pending());
    let publication = fixture.publication(10);
    fixture.run_cycles();
    assert_eq!(reactor.invoke(), 1);
    assert!(task.poll(poll.as_mut()).is_pending());
    assert_eq!(reactor.invoke(), 0);
    publication.offer(b"one").unwrap();
    assert_eq!((reactor.invoke(), task.wake_ups()), (1, 2));
    assert_eq!(task.poll(poll.as_mut()), Poll::Ready(Ok(1)));
}

#[test]
fn dropped_poll_consumes_nothing_and_forgets_its_task() {
    let mut fixture = Fixture::new();
    let reactor = Reactor::invoked();
    let (publication, mut subscription) = stream(&mut fixture, &reactor);
    let task = Task::new();
    assert!(
        task.poll_once(subscription.poll(|_, _| (), 10))
            .is_pending()
    );
    assert_eq!(Arc::strong_count(&task), 1, "the waker is dropped");
    publication.get_ref().offer(b"one").unwrap();
    assert_eq!((reactor.invoke(), task.wake_ups()), (0, 0));
    assert_eq!(subscription.poll(|_, _| (), 10).now_or_never(), Some(Ok(1)));
}

#[test]
fn polls_across_terms_do_not_stop_at_padding() {
    let mut fixture = Fixture::new();
    let reactor = Reactor::invoked();
    let (publication, mut subscription) = stream(&mut fixture, &reactor);
    let task = Task::new();
    let (mut sent, mut received) = (0, 0);
    // Messages that do not fill a term exactly, over four terms.
    while publication.get_ref().position() < 4 * i64::from(TERM_LENGTH) {
        {
            let mut poll = pin!(subscription.poll(|_, _| received += 1, 10));
            assert!(task.poll(poll.as_mut()).is_pending());
            while let Err(error) = publication.get_ref().offer(&[0; 1000]) {
                assert!(error.is_retryable(), "{error}");
                fixture.run_cycles();
            }
            sent += 1;
            assert_eq!(reactor.invoke(), 1);
            assert_eq!(task.poll(poll.as_mut()), Poll::Ready(Ok(1)));
        }
        fixture.run_cycles();
    }
    assert_eq!(received, sent);
}

#[test]
fn stream_yields_whole_messages_in_order_and_ends_with_client() {
    let mut fixture = Fixture::new();
    let reactor = Reactor::invoked();
    let (publication, mut subscription) = stream(&mut fixture, &reactor);
    let task = Task::new();
    let lengths = [3, 5000, 0, 1376, 1377];
    let mut positions = Vec::new();
    for length in lengths {
        positions.push(
            publication
                .get_ref()
                .offer(&vec![length as u8; length])
                .unwrap(),
        );
    }
    for (length, position) in lengths.into_iter().zip(positions) {
        let Poll::Ready(Some(Ok(message))) = task.poll_once(subscription.next()) else {
            panic!("no message of {length} bytes");
        };
        assert_eq!(message.payload(), vec![length as u8; length]);
        assert_eq!(message.position(), position);
        assert_eq!(message.session_id(), publication.get_ref().session_id());
        assert_eq!((message.stream_id(), message.reserved_value()), (10, 0));
    }
    assert!(task.poll_once(subscription.next()).is_pending());
    fixture.client.close();
    assert_eq!((reactor.invoke(), task.wake_ups()), (1, 1));
    assert_eq!(task.poll_once(subscription.next()), Poll::Ready(None));
    assert_eq!(task.poll_once(subscription.next()), Poll::Ready(None));
    let polled = subscription.poll(|_, _| (), 1).now_or_never();
    assert_eq!(polled, Some(Err(PollError::Closed)));
}

#[test]
fn stream_of_long_message_yields_to_other_tasks() {
    let mut fixture = Fixture::new();
    let (publication, mut subscription) = stream(&mut fixture, &Reactor::invoked());
    let task = Task::new();
    let fragment = |flags: u8| {
        let mut claim = publication.get_ref().try_claim(8).unwrap();
        claim.set_flags(flags);
        claim.commit();
    };
    fragment(0x80);
    for _ in 0..98 {
        fragment(0);
    }
    fragment(0x40);
    assert!(task.poll_once(subscription.next()).is_pending());
    assert_eq!(task.wake_ups(), 1, "the task wakes itself");
    let Poll::Ready(Some(Ok(message))) = task.poll_once(subscription.next()) else {
        panic!("no message");
    };
    assert_eq!(message.len(), 800);
}

#[test]
fn lost_driver_ends_stream_and_offer_with_reason() {
    let mut fixture = Fixture::new();
    let reactor = Reactor::invoked();
    let (mut publication, mut subscription) = stream(&mut fixture, &reactor);
    fill(publication.get_ref());
    subscription.get_mut().poll(|_, _| (), usize::MAX).unwrap();
    let task = Task::new();
    {
        let mut offer = pin!(publication.offer(b"late"));
        assert!(task.poll(offer.as_mut()).is_pending());
        assert!(task.poll_once(subscription.next()).is_pending());
        fixture.driver.set_heartbeat_ms(-1);
        fixture.clock.advance(Duration::from_secs(1));
        fixture.client.do_work(fixture.clock.read());
        assert_eq!((reactor.invoke(), task.wake_ups()), (2, 2));
        let lost = OfferError::DriverLost(Lost::DriverShutdown);
        assert_eq!(task.poll(offer.as_mut()), Poll::Ready(Err(lost)));
    }
    let lost = PollError::DriverLost(Lost::DriverShutdown);
    assert_eq!(
        task.poll_once(subscription.next()),
        Poll::Ready(Some(Err(lost)))
    );
    assert_eq!(task.poll_once(subscription.next()), Poll::Ready(None));
}

#[test]
fn offer_without_subscriber_waits_until_one_is_connected() {
    let mut fixture = Fixture::new();
    let reactor = Reactor::invoked();
    let mut publication = fixture.exclusive_publication(10).into_async(&reactor);
    let task = Task::new();
    let mut offer = pin!(publication.offer(b"one"));
    assert!(task.poll(offer.as_mut()).is_pending());
    assert_eq!(reactor.invoke(), 0);
    let _subscription = fixture.subscription(10);
    fixture.run_cycles();
    assert_eq!((reactor.invoke(), task.wake_ups()), (1, 1));
    assert_eq!(task.poll(offer.as_mut()), Poll::Ready(Ok(64)));
}

#[test]
fn offer_at_limit_waits_until_subscriber_polls() {
    let mut fixture = Fixture::new();
    let reactor = Reactor::invoked();
    let (mut publication, mut subscription) = stream(&mut fixture, &reactor);
    fill(publication.get_ref());
    let before = publication.get_ref().position();
    let task = Task::new();
    let mut offer = pin!(publication.offer(b"late"));
    assert!(task.poll(offer.as_mut()).is_pending());
    fixture.run_cycles();
    assert_eq!((reactor.invoke(), task.wake_ups()), (0, 0));
    subscription.get_mut().poll(|_, _| (), usize::MAX).unwrap();
    fixture.run_cycles();
    assert_eq!((reactor.invoke(), task.wake_ups()), (1, 1));
    assert_eq!(task.poll(offer.as_mut()), Poll::Ready(Ok(before + 64)));
}

#[test]
fn dropped_offer_has_not_sent_its_message() {
    let mut fixture = Fixture::new();
    let reactor = Reactor::invoked();
    let (mut publication, mut subscription) = stream(&mut fixture, &reactor);
    let offered = fill(publication.get_ref());
    let task = Task::new();
    assert!(task.poll_once(publication.offer(b"dropped")).is_pending());
    assert_eq!(Arc::strong_count(&task), 1, "the waker is dropped");
    let mut received = 0;
    while subscription
        .get_mut()
        .poll(|_, _| received += 1, usize::MAX)
        .unwrap()
        > 0
    {
        fixture.run_cycles();
    }
    assert_eq!((received, reactor.invoke()), (offered, 0));
}

#[test]
fn offer_that_cannot_succeed_is_an_error_at_once() {
    let mut fixture = Fixture::new();
    let (mut publication, _subscription) = stream(&mut fixture, &Reactor::invoked());
    let max = publication.get_ref().max_message_length();
    let too_long = publication.offer(&vec![0; max + 1]).now_or_never();
    let expected = OfferError::TooLong {
        length: max + 1,
        max,
    };
    assert_eq!(too_long, Some(Err(expected)));
    publication.get_ref().close();
    assert_eq!(
        publication.offer(b"late").now_or_never(),
        Some(Err(OfferError::Closed))
    );
}

#[test]
fn sink_holds_one_message_until_there_is_room() {
    let mut fixture = Fixture::new();
    let reactor = Reactor::invoked();
    let (mut publication, mut subscription) = stream(&mut fixture, &reactor);
    fill(publication.get_ref());
    let task = Task::new();
    // The send is dropped while it waits: the sink holds the message.
    assert!(task.poll_once(publication.send(b"held")).is_pending());
    assert!(
        task.poll_once(publication.send(b"never taken"))
            .is_pending()
    );
    assert!(task.poll_once(publication.flush()).is_pending());
    subscription.get_mut().poll(|_, _| (), usize::MAX).unwrap();
    fixture.run_cycles();
    assert_eq!(
        task.poll_once(publication.send(b"next")),
        Poll::Ready(Ok(()))
    );
    assert_eq!(task.poll_once(publication.flush()), Poll::Ready(Ok(())));
    let mut received = Vec::new();
    let keep = |message: &[u8], _: &taran::Header<'_>| received.push(message.to_vec());
    subscription.get_mut().poll(keep, usize::MAX).unwrap();
    assert_eq!(received, [&b"held"[..], b"next"]);
}

#[test]
fn offer_sends_held_message_of_sink_first() {
    let mut fixture = Fixture::new();
    let (mut publication, mut subscription) = stream(&mut fixture, &Reactor::invoked());
    fill(publication.get_ref());
    assert_eq!(publication.send("held").now_or_never(), None);
    subscription.get_mut().poll(|_, _| (), usize::MAX).unwrap();
    fixture.run_cycles();
    assert!(publication.offer(b"next").now_or_never().unwrap().is_ok());
    let mut received = Vec::new();
    let keep = |message: &[u8], _: &taran::Header<'_>| received.push(message.to_vec());
    subscription.get_mut().poll(keep, usize::MAX).unwrap();
    assert_eq!(received, [b"held", b"next"]);
}

#[test]
fn closed_sink_takes_no_message_and_publication_closes_by_drop() {
    let mut fixture = Fixture::new();
    let (mut publication, mut subscription) = stream(&mut fixture, &Reactor::invoked());
    let clone = publication.get_ref().clone();
    assert_eq!(publication.send("last").now_or_never(), Some(Ok(())));
    assert_eq!(
        SinkExt::<&str>::close(&mut publication).now_or_never(),
        Some(Ok(()))
    );
    let closed = Some(Err(OfferError::Closed));
    assert_eq!(publication.send("late").now_or_never(), closed);
    assert!(publication.offer(b"late").now_or_never().unwrap().is_err());
    assert_eq!(subscription.poll(|_, _| (), 10).now_or_never(), Some(Ok(1)));
    assert!(!clone.is_closed());
    drop((clone, publication));
    fixture.run_cycles();
    assert!(fixture.driver.streams.is_empty());
}

#[test]
fn corrupt_frame_does_not_wake_the_task_again_and_again() {
    let mut fixture = Fixture::with(|builder| builder.on_error(|_| ()));
    let reactor = Reactor::invoked();
    let (publication, mut subscription) = stream(&mut fixture, &reactor);
    publication.get_ref().offer(b"one").unwrap();
    assert_eq!(subscription.poll(|_, _| (), 10).now_or_never(), Some(Ok(1)));
    let log = fixture.driver.streams[0].log.clone();
    let term = log.term_at(64);
    term.atomic_i32(64).store(5, Ordering::Release);
    let task = Task::new();
    let mut poll = pin!(subscription.poll(|_, _| (), 10));
    assert!(task.poll(poll.as_mut()).is_pending());
    assert_eq!((reactor.invoke(), task.wake_ups()), (0, 0));
}

#[test]
fn panic_of_a_waker_does_not_keep_other_tasks_from_being_woken() {
    let mut fixture = Fixture::new();
    let reactor = Reactor::invoked();
    let (publication, mut first) = stream(&mut fixture, &reactor);
    let mut second = fixture.subscription(10).into_async(&reactor);
    fixture.run_cycles();
    let faulty = Arc::new(Task {
        panics: true,
        ..Task::default()
    });
    let task = Task::new();
    assert!(faulty.poll_once(first.next()).is_pending());
    assert!(task.poll_once(second.next()).is_pending());
    publication.get_ref().offer(b"one").unwrap();
    assert_eq!(reactor.invoke(), 2);
    assert_eq!((faulty.wake_ups(), task.wake_ups()), (1, 1));
    assert!(task.poll_once(second.next()).is_ready());
}

#[test]
fn dropped_subscription_leaves_the_reactor() {
    let mut fixture = Fixture::new();
    let reactor = Reactor::invoked();
    let (publication, mut subscription) = stream(&mut fixture, &reactor);
    let task = Task::new();
    assert!(task.poll_once(subscription.next()).is_pending());
    drop(subscription);
    assert_eq!(Arc::strong_count(&task), 1, "the waker is dropped");
    drop(publication);
    assert_eq!((reactor.invoke(), task.wake_ups()), (0, 0));
}

/// A task that owns its subscription, and is dropped when it is woken.
struct OwningTask {
    subscription: Mutex<Option<AsyncSubscription>>,
    dropped: mpsc::Sender<()>,
}

impl Wake for OwningTask {
    fn wake(self: Arc<Self>) {
        drop(self.subscription.lock().unwrap().take());
        self.dropped.send(()).unwrap();
    }
}

#[test]
fn last_handle_dropped_on_the_thread_of_the_reactor_ends_it() {
    let mut fixture = Fixture::new();
    let reactor = Reactor::start().unwrap();
    let subscription = fixture.subscription(10);
    let publication = fixture.publication(10);
    fixture.run_cycles();
    let (sender, dropped) = mpsc::channel();
    let task = Arc::new(OwningTask {
        subscription: Mutex::new(Some(subscription.into_async(&reactor))),
        dropped: sender,
    });
    drop(reactor);
    {
        let waker = Waker::from(Arc::clone(&task));
        let mut owned = task.subscription.lock().unwrap();
        let next = owned
            .as_mut()
            .unwrap()
            .poll_next_unpin(&mut Context::from_waker(&waker));
        assert!(next.is_pending());
    }
    publication.offer(b"one").unwrap();
    dropped.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(task.subscription.lock().unwrap().is_none());
    // The thread has released the last reference that it had.
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while Arc::strong_count(&task) > 1 && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!(Arc::strong_count(&task), 1);
}

/// The stream of one publication over two drivers: the loss of the first one is an item, and the wait for the second one
/// wakes the task.
#[test]
fn reconnecting_stream_and_sink_go_on_with_the_next_driver() {
    let mut machine = Machine::without_driver();
    let reactor = Reactor::invoked();
    let mut messages = machine
        .client
        .add_subscription("aeron:ipc", 12)
        .into_async(&reactor);
    let mut sink = machine
        .client
        .add_publication("aeron:ipc", 12)
        .into_async(&reactor);
    for generation in 1..=2 {
        let (receiver, sender) = (Task::new(), Task::new());
        assert!(receiver.poll_once(messages.next()).is_pending());
        assert!(sender.poll_once(sink.send("first")).is_pending());
        machine.start_driver();
        assert_eq!((1, 1), (receiver.wake_ups(), sender.wake_ups()));
        assert!(matches!(
            sender.poll_once(sink.send("first")),
            Poll::Ready(Ok(()))
        ));
        assert!(matches!(
            sender.poll_once(sink.offer(b"second")),
            Poll::Ready(Ok(_))
        ));
        for expected in ["first", "second"] {
            let Poll::Ready(Some(Ok(message))) = receiver.poll_once(messages.next()) else {
                panic!("{expected} has arrived");
            };
            assert_eq!(message.payload(), expected.as_bytes());
        }
        assert_eq!(
            (generation, generation),
            (messages.generation(), sink.generation())
        );

        assert!(receiver.poll_once(messages.next()).is_pending());
        machine.kill_driver();
        machine.advance(Duration::from_secs(12));
        reactor.invoke();
        assert_eq!(2, receiver.wake_ups(), "woken by the loss");
        let Poll::Ready(Some(Err(error))) = receiver.poll_once(messages.next()) else {
            panic!("the loss is an item");
        };
        assert!(error.lost().is_some(), "{error}");
        let Poll::Ready(Err(error)) = sender.poll_once(sink.send("third")) else {
            panic!("the loss is a result");
        };
        assert!(error.lost().is_some(), "{error}");
    }

    let task = Task::new();
    assert!(task.poll_once(messages.next()).is_pending());
    drop(machine);
    assert_eq!(1, task.wake_ups(), "woken by the end of the client");
    assert!(matches!(task.poll_once(messages.next()), Poll::Ready(None)));
    let sent = task.poll_once(sink.send("fourth"));
    assert_eq!(sent, Poll::Ready(Err(OfferError::Closed)));
    assert_eq!(
        task.poll_once(messages.get()).map(|it| it.is_some()),
        Poll::Ready(false)
    );
}

#[test]
fn refusal_of_a_driver_wakes_the_task_and_is_told_once() {
    let mut machine = Machine::without_driver();
    let reactor = Reactor::invoked();
    let mut subscribe = || {
        let subscription = machine.client.add_subscription("aeron:ipc", 12);
        subscription.into_async(&reactor)
    };
    let (mut messages, mut polled, mut got) = (subscribe(), subscribe(), subscribe());
    let mut publish = || {
        let publication = machine.client.add_publication("aeron:ipc", 12);
        publication.into_async(&reactor)
    };
    let (mut sink, mut offered) = (publish(), publish());
    let task = Task::new();
    assert!(task.poll_once(messages.next()).is_pending());
    assert!(task.poll_once(polled.poll(|_, _| (), 1)).is_pending());
    assert!(task.poll_once(got.get()).is_pending());
    assert!(task.poll_once(sink.send("lost")).is_pending());
    assert!(task.poll_once(offered.offer(b"lost")).is_pending());
    machine.start_driver_that_refuses(ErrorCode::InvalidChannel);
    assert_eq!(task.wake_ups(), 5);

    let next = task.poll_once(messages.next());
    assert!(matches!(next, Poll::Ready(Some(Err(PollError::Refused)))));
    let next = task.poll_once(polled.poll(|_, _| (), 1));
    assert_eq!(next, Poll::Ready(Err(PollError::Refused)));
    let sent = task.poll_once(sink.send("lost"));
    assert_eq!(sent, Poll::Ready(Err(OfferError::Refused)));
    let sent = task.poll_once(offered.offer(b"lost"));
    assert_eq!(sent, Poll::Ready(Err(OfferError::Refused)));
    let Poll::Ready(Some(Err(error))) = task.poll_once(got.get()) else {
        panic!("the refusal is a result");
    };
    assert!(error.is_permanent(), "{error}");
    assert_eq!(
        sink.handle().failure().map(|it| it.is_permanent()),
        Some(true)
    );
    assert!(task.poll_once(messages.next()).is_pending(), "told once");
    assert!(task.poll_once(got.get()).is_pending(), "told once");
    assert!(task.poll_once(sink.send("lost")).is_pending(), "told once");
    assert!(!messages.is_terminated());

    machine.kill_driver();
    machine.advance(Duration::from_secs(12));
    machine.start_driver();
    assert_passes_a_message(&mut messages, &mut sink);
}

/// A machine with a driver, and a stream and a sink between which one message was sent.
fn connected_machine(
    reactor: &Reactor,
) -> (
    Machine,
    AsyncReconnecting<Subscription>,
    AsyncReconnecting<Publication>,
) {
    let mut machine = Machine::without_driver();
    let mut messages = machine
        .client
        .add_subscription("aeron:ipc", 12)
        .into_async(reactor);
    let mut sink = machine
        .client
        .add_publication("aeron:ipc", 12)
        .into_async(reactor);
    machine.start_driver();
    assert_passes_a_message(&mut messages, &mut sink);
    (machine, messages, sink)
}

#[track_caller]
fn assert_passes_a_message(
    messages: &mut AsyncReconnecting<Subscription>,
    sink: &mut AsyncReconnecting<Publication>,
) {
    let task = Task::new();
    let sent = task.poll_once(sink.send("message"));
    assert!(matches!(sent, Poll::Ready(Ok(()))), "{sent:?}");
    let received = task.poll_once(messages.next());
    assert!(
        matches!(&received, Poll::Ready(Some(Ok(message))) if message.payload() == b"message"),
        "{received:?}"
    );
}

#[test]
fn reconnecting_stream_ends_without_an_error_when_its_client_is_dropped() {
    let reactor = Reactor::invoked();
    let (machine, mut messages, mut sink) = connected_machine(&reactor);
    let task = Task::new();
    assert!(task.poll_once(messages.next()).is_pending());
    drop(machine);
    reactor.invoke();
    assert_eq!(1, task.wake_ups());
    for _ in 0..2 {
        let next = task.poll_once(messages.next());
        assert!(matches!(next, Poll::Ready(None)), "{next:?}");
    }
    assert!(messages.is_terminated());
    let sent = task.poll_once(sink.send("late"));
    assert_eq!(sent, Poll::Ready(Err(OfferError::Closed)));
    let offered = task.poll_once(sink.offer(b"late"));
    assert_eq!(offered, Poll::Ready(Err(OfferError::Closed)));
    assert!(matches!(task.poll_once(sink.get()), Poll::Ready(None)));
}

#[test]
fn loss_of_a_driver_is_told_once_by_get_as_well() {
    let reactor = Reactor::invoked();
    let (mut machine, mut messages, mut sink) = connected_machine(&reactor);
    machine.kill_driver();
    machine.advance(Duration::from_secs(12));
    let task = Task::new();
    let lost = task.poll_once(messages.get());
    assert!(
        matches!(
            lost,
            Poll::Ready(Some(Err(CommandError::DriverLost(
                Lost::DriverTimeout { .. }
            ))))
        ),
        "{lost:?}"
    );
    assert!(task.poll_once(messages.get()).is_pending(), "told once");
    assert!(task.poll_once(messages.next()).is_pending(), "told once");
    let ready = task.poll_once(sink.feed("lost"));
    assert!(
        matches!(&ready, Poll::Ready(Err(error)) if error.lost().is_some()),
        "{ready:?}"
    );
    assert!(task.poll_once(sink.get()).is_pending(), "told once");
    machine.start_driver();
    assert_passes_a_message(&mut messages, &mut sink);
    assert!(matches!(
        task.poll_once(messages.get()),
        Poll::Ready(Some(Ok(_)))
    ));
}

#[test]
fn resource_closed_by_the_application_ends_the_stream_and_the_sink() {
    let reactor = Reactor::invoked();
    let (mut machine, mut messages, mut sink) = connected_machine(&reactor);
    let task = Task::new();
    let Poll::Ready(Some(Ok(subscription))) = task.poll_once(messages.get()) else {
        panic!("there is a subscription");
    };
    let id = subscription.get_ref().registration_id();
    let client = machine.client.client().expect("connected");
    drop(client.async_remove_subscription(id).expect("it is open"));
    let Poll::Ready(Some(Ok(publication))) = task.poll_once(sink.get()) else {
        panic!("there is a publication");
    };
    // The sink of one driver.
    let closed = task.poll_once(SinkExt::<&str>::close(publication));
    assert_eq!(closed, Poll::Ready(Ok(())));
    machine.kill_driver();
    machine.advance(Duration::from_millis(200));
    assert!(matches!(task.poll_once(messages.next()), Poll::Ready(None)));
    assert!(matches!(task.poll_once(messages.get()), Poll::Ready(None)));
    for _ in 0..2 {
        let sent = task.poll_once(sink.send("late"));
        assert_eq!(sent, Poll::Ready(Err(OfferError::Closed)));
    }
}

#[test]
fn reconnecting_stream_goes_on_after_the_application_has_closed_one_client() {
    let reactor = Reactor::invoked();
    let (mut machine, mut messages, mut sink) = connected_machine(&reactor);
    machine.client.client().expect("connected").close();
    let task = Task::new();
    assert!(task.poll_once(messages.next()).is_pending());
    assert!(task.poll_once(sink.send("waits")).is_pending());
    machine.advance(Duration::from_secs(12));
    assert_passes_a_message(&mut messages, &mut sink);
    assert_eq!((2, 2), (messages.generation(), sink.generation()));
}
