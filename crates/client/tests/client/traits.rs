// SPDX-License-Identifier: Apache-2.0
//! Traits that programs need of the types of the surface. Compiling is the test.

use std::fmt::Debug;

use taran::{
    AsyncPublication, AsyncSubscription, Client, ClientBuilder, Connecting, Counter, DriverView,
    Error, ExclusivePublication, FragmentAssembler, Image, ImageHandlers, ImageView, Message,
    Pending, Publication, Reactor, Reconnecting, ReconnectingClient, Subscription,
};

fn movable<T: Send + Debug + 'static>() {}
fn shareable<T: Clone + Send + Sync + Debug + 'static>() {}
fn future<T: Send>(_: &T) {}

#[test]
fn types_move_between_threads() {
    movable::<ClientBuilder>();
    movable::<Connecting>();
    movable::<DriverView>();
    movable::<ExclusivePublication>();
    movable::<Subscription>();
    movable::<Image>();
    movable::<ImageHandlers>();
    movable::<FragmentAssembler>();
    movable::<Pending<Publication>>();
    movable::<ReconnectingClient>();
    movable::<Reconnecting<Subscription>>();
    movable::<AsyncSubscription>();
    movable::<AsyncPublication<ExclusivePublication>>();
    shareable::<Client>();
    shareable::<Publication>();
    shareable::<Counter>();
    shareable::<ImageView>();
    shareable::<Error>();
    shareable::<Reactor>();
    shareable::<Message>();
}

#[test]
fn futures_move_between_threads() {
    let _check = |subscription: &mut AsyncSubscription,
                  publication: &mut AsyncPublication<Publication>| {
        future(&subscription.poll(|_, _| (), 10));
        future(&publication.offer(b""));
        future(&publication.flush());
    };
}
