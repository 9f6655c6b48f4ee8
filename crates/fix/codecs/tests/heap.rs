// SPDX-License-Identifier: Apache-2.0
//! The message path allocates nothing: a session that is logged on and has seen one message, a decoder, an encoder, a checker.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use taran_fix::codec::Validation;
use taran_fix::dict::read_file;
use taran_fix::session::{
    Application, Config, DisconnectReason, Event, Inbound, Now, Numbers, Outbound, Output, Role,
    Session, State,
};
use taran_fix::wire::{Header, Precision, Timestamp, Writer};
use taran_fix_codecs::fix44::{BEGIN_STRING, fields, new_order_single};

thread_local! {
    // Per thread, because tests run concurrently.
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is forwarded unchanged to the system allocator. Counting does not allocate, because the cell has a
// constant initial value and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // The cell of a thread that ends may already be destroyed; its last allocations are not counted.
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds the contract of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Output that reads what it gets.
#[derive(Default)]
struct Reader {
    sent: usize,
    delivered: usize,
}

impl Output for Reader {
    fn send(&mut self, message: Outbound<'_>) {
        self.sent += message.bytes.len();
    }

    fn deliver(&mut self, message: Inbound<'_>) {
        let order = new_order_single::NewOrderSingle::decode(&message.frame, Validation::Full);
        let order = order.expect("valid");
        assert_eq!(order.side(), Some(fields::Side::Sell));
        assert_eq!(order.no_party_ids().iter().count(), 2);
        self.delivered += 1;
    }

    fn event(&mut self, _: Event<'_>) {}

    fn disconnect(&mut self, reason: DisconnectReason) {
        panic!("{reason:?}");
    }
}

const NOW: Now = Now {
    monotonic: 0,
    wall: Timestamp::from_nanos(1_767_614_400_000_000_000),
};

fn order(writer: &mut Writer<'_>) {
    let mut order = new_order_single::NewOrderSingleEncoder::new(writer);
    order
        .cl_ord_id(b"id")
        .no_party_ids(2, |_, party| {
            party.party_id(b"P");
        })
        .symbol(b"S")
        .side(fields::Side::Sell)
        .transact_time(NOW.wall, Precision::Millis)
        .order_qty(100.into())
        .ord_type(fields::OrdType::Market);
    order.finish();
}

/// Writes a message of the peer.
fn message<'buffer>(
    buffer: &'buffer mut [u8],
    msg_type: &[u8],
    seq: u64,
    body: impl FnOnce(&mut Writer<'_>),
) -> &'buffer [u8] {
    let header = Header {
        begin_string: BEGIN_STRING,
        msg_type,
        sender: b"PEER",
        target: b"US",
        seq,
        sending_time: NOW.wall,
        precision: Precision::Millis,
    };
    header.write(buffer, body).expect("it fits")
}

#[test]
fn session_active_messages_allocate_nothing() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dictionary/FIX44.xml");
    let mut config = Config::new(Role::Acceptor, "FIX.4.4", "US", "PEER");
    config.dictionary = Some(Arc::new(read_file(path).expect("valid")));
    let mut session = Session::new(config, Numbers::default()).expect("valid");
    let mut out = Reader::default();
    let mut buffer = [0; 1024];
    let mut body = [0; 512];
    session.connected(NOW, &mut out);
    let logon = message(&mut buffer, b"A", 1, |writer| {
        writer.unsigned(98, 0);
        writer.unsigned(108, 30);
    });
    session.receive(logon, NOW, &mut out);
    assert_eq!(session.state(), State::Active);
    let mut allocations = 0;
    for seq in 2..1002 {
        let before = COUNT.get();
        let bytes = message(&mut buffer, b"D", seq, order);
        assert_eq!(session.receive(bytes, NOW, &mut out), bytes.len());
        let mut writer = Writer::new(&mut body);
        order(&mut writer);
        let answer = Application {
            msg_type: b"D",
            body: writer.finish().expect("it fits"),
            header: b"",
        };
        session.send(answer, NOW, &mut out).expect("logged on");
        session.tick(NOW, &mut out);
        let more = COUNT.get() - before;
        // The first message grows the buffers.
        allocations += if seq == 2 { 0 } else { more };
    }
    assert_eq!((allocations, out.delivered), (0, 1000));
}
