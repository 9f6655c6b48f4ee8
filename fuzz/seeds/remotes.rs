// SPDX-License-Identifier: Apache-2.0
//! Scripts of remote attackers and hostile processes, for targets with whole drivers and clients.

use taran_fuzz::script::Composer;

use crate::Seed;

/// A step in time, by its index.
const STEP: u8 = 0xC0;

pub(crate) fn seeds() -> Vec<Seed> {
    let mut seeds = receiving();
    seeds.extend(sending());
    seeds.extend(gossiping());
    seeds.extend(commanding());
    seeds.extend(logs());
    seeds
}

/// A datagram of a kind (see `wire::datagram`) to a target, its fields chosen by index among what is known.
fn datagram(script: Composer, target: u8, kind: u8) -> Composer {
    script.u8(target).u8(kind)
}

fn setup(script: Composer, target: u8, stream: u8) -> Composer {
    let script = datagram(script, target, 1).u8(0).known(0).known(stream);
    (0..6).fold(script, |script, _| script.known(0))
}

/// One data frame at an offset, by index, of a length, by index.
fn data(script: Composer, target: u8, stream: u8, offset: u8, length: u8) -> Composer {
    let script = datagram(script, target, 2)
        .known(0)
        .known(stream)
        .known(0)
        .known(offset);
    script.u8(0).known(length).u8(0).u8(0xC0)
}

fn receiving() -> Vec<Seed> {
    // Targets in the order of the endpoints, and the stream of each.
    let streams = [0, 1, 2, 3, 5, 5, 4];
    let mut seeds = Vec::new();
    for (target, stream) in (0..).zip(streams) {
        let begun = setup(Composer::new(), target, stream).u8(STEP + 2);
        let whole = data(begun.clone(), target, stream, 0, 1);
        let whole = data(whole, target, stream, 1, 3).u8(STEP + 2);
        let gap = data(begun, target, stream, 0, 1);
        let gap = data(gap, target, stream, 2, 3).u8(STEP + 3).u8(STEP + 3);
        // A heartbeat with the flag of a stream's end, then silence.
        let end = datagram(whole.clone(), target, 9)
            .known(0)
            .known(stream)
            .known(0)
            .known(3);
        let end = end.u8(0xE0).u8(STEP + 5);
        for (name, script) in [("whole", whole), ("gap", gap), ("end", end)] {
            seeds.push(Seed::new(
                "receive_endpoints",
                format!("{name}-{target}"),
                script.done(),
            ));
        }
    }
    seeds
}

fn status(script: Composer, index: u8, window: u8) -> Composer {
    let script = datagram(script, index, 4)
        .u8(0)
        .known(index)
        .known(index)
        .known(0);
    script
        .known(0)
        .known(window)
        .known(0)
        .u8(index & 1)
        .known(0)
}

fn sending() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for index in 0..8 {
        let reported = status(Composer::new(), index, 3).u8(STEP + 2);
        // What is offered is the length in sixteens.
        let sent = reported
            .u8(0x80 + index)
            .u8(4)
            .u8(0x80 + index)
            .u8(200)
            .u8(STEP + 2);
        let nak = datagram(sent.clone(), index, 5)
            .known(index)
            .known(index)
            .known(0);
        let nak = nak.known(0).known(3).u8(STEP + 3);
        let error = datagram(sent.clone(), index, 7)
            .u8(0)
            .known(index)
            .known(index);
        let error = error.known(0).known(2).raw(&[b'x'; 16]).u8(STEP + 2);
        let rtt = datagram(sent.clone(), index, 6)
            .u8(0)
            .known(index)
            .known(index);
        let rtt = rtt.known(1).known(0).known(0).u8(STEP + 2);
        let response = datagram(sent.clone(), index, 8)
            .known(index)
            .known(index)
            .known(0);
        for (name, script) in [
            ("sent", sent),
            ("nak", nak),
            ("error", error),
            ("rtt", rtt),
            ("response", response.u8(STEP + 2)),
        ] {
            seeds.push(Seed::new(
                "send_endpoints",
                format!("{name}-{index}"),
                script.done(),
            ));
        }
    }
    seeds
}

fn gossiping() -> Vec<Seed> {
    let frame = crate::wire::resolution();
    // An entry: its choice of address, port and name, and its age.
    let entry = |script: Composer, choice: u8| script.u8(choice).known(1);
    let own = entry(Composer::new().u8(0).u8(0x10), 0x20).u8(STEP + 2);
    let others = Composer::new().u8(0).u8(3);
    let others = [0x21, 0x41, 0x65, 0x80]
        .into_iter()
        .fold(others, entry)
        .u8(STEP + 4);
    vec![
        Seed::new(
            "gossip",
            "frame",
            Composer::new().u8(0x80).chunk(&frame).u8(STEP + 2).done(),
        ),
        Seed::new("gossip", "self", own.done()),
        Seed::new("gossip", "others", others.done()),
    ]
}

fn commanding() -> Vec<Seed> {
    // Kind, client, registration id, stream, channel.
    let command = |script: Composer, kind: u8, channel: u8| {
        script.u8(0).u8(kind).u8(0).known(0).u8(1).u8(channel)
    };
    let mut seeds = Vec::new();
    for kind in 0..18 {
        for channel in [0, 2, 6, 7, 8, 10] {
            let added = command(Composer::new(), 4, channel);
            let script = command(command(added, 0, channel), kind, channel);
            let script = script.raw(b"a text of 20 bytes..").u8(STEP + 2);
            seeds.push(Seed::new(
                "commands",
                format!("{kind}-{channel}"),
                script.done(),
            ));
        }
    }
    for kind in 2..5 {
        for channel in 0..6 {
            let lasting = Composer::new().u8(0xB0).u8(kind).u8(0).u8(1).u8(channel);
            seeds.push(Seed::new(
                "commands",
                format!("lasting-{kind}-{channel}"),
                lasting.u8(STEP + 2).done(),
            ));
        }
    }
    let counter = Composer::new().u8(0xB0).u8(0).u8(0).u8(1).u8(0).known(0);
    let counter = counter.known(0).raw(b"a key of 20 bytes...").u8(STEP + 2);
    seeds.push(Seed::new("commands", "static-counter", counter.done()));
    let scribble = |area: u8| {
        Composer::new()
            .u8(0xA0)
            .u8(area)
            .u8(0)
            .u16(0)
            .u8(8)
            .raw(&[0xFF; 8])
    };
    for area in 0..6 {
        seeds.push(Seed::new(
            "commands",
            format!("scribble-{area}"),
            scribble(area).done(),
        ));
    }
    seeds
}

fn logs() -> Vec<Seed> {
    // A frame: partition, offset, kind, length, term.
    let frame =
        |script: Composer, length: u8| script.u8(0).u8(0).known(0).u8(0xC1).known(length).known(0);
    let mut seeds = Vec::new();
    for length in 0..10 {
        let publisher = frame(Composer::new().u8(0), length).u8(0x0E).u8(7).done();
        seeds.push(Seed::new(
            "publisher_log",
            format!("frame-{length}"),
            publisher,
        ));
        let image = frame(Composer::new(), length)
            .u8(6)
            .u8(0x1E)
            .u8(0x26)
            .done();
        seeds.push(Seed::new("image_log", format!("frame-{length}"), image));
    }
    for field in 0..16 {
        let field_of = |script: Composer| script.u8(3).u8(field).u8(0x80).known(2).known(1);
        let publisher = field_of(Composer::new().u8(1)).u8(4).u8(4).u8(0x0E).done();
        seeds.push(Seed::new(
            "publisher_log",
            format!("field-{field}"),
            publisher,
        ));
        let image = field_of(Composer::new()).u8(5).u8(4).u8(6).done();
        seeds.push(Seed::new("image_log", format!("field-{field}"), image));
    }
    // Long segment runs, damage, segment runs again: first inserted one by one, then received directly.
    let runs = |script: Composer| (0..6).fold(script, |script, _| script.u8(0x1D));
    for reliable in 0..2 {
        for length in 0..10 {
            let begun = runs(Composer::new().u8(reliable));
            let reader = runs(frame(begun, length)).u8(0x13).u8(4).done();
            seeds.push(Seed::new(
                "reader_log",
                format!("frame-{reliable}-{length}"),
                reader,
            ));
        }
        for field in 0..16 {
            let begun = runs(Composer::new().u8(reliable));
            let damaged = begun.u8(2).u8(field).u8(0x80).known(2).known(1);
            let reader = runs(damaged).u8(0x13).u8(4).done();
            seeds.push(Seed::new(
                "reader_log",
                format!("field-{reliable}-{field}"),
                reader,
            ));
        }
    }
    for kind in 0..13 {
        // Identifiers, counters and a log by index; then a duty cycle, and all resources are used.
        let script = Composer::new().u8(0).u8(kind);
        let own = kind.saturating_sub(3).min(3);
        let script = script.known(own).known(5).known(0).known(0).u8(kind % 3);
        seeds.push(Seed::new(
            "broadcast",
            format!("event-{kind}"),
            script.u8(0xE0).done(),
        ));
    }
    seeds
}
