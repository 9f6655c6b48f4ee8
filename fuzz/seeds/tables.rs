// SPDX-License-Identifier: Apache-2.0
//! Memory: error logs, loss reports, counters, `cnc.dat`.

use taran_core::error_log::ErrorLog;
use taran_core::loss_report::LossReport;
use taran_core::memory::Region;
use taran_fuzz::script::Composer;
use taran_fuzz::targets::cnc;

use crate::Seed;

pub(crate) fn seeds() -> Vec<Seed> {
    let errors = filled(512, |region| {
        let mut log = ErrorLog::open(region);
        for (now, text) in [
            (1, "unknown host"),
            (2, "a\nstack trace"),
            (3, "unknown host"),
        ] {
            log.record(now, 9, text).expect("there is room");
        }
    });
    let losses = filled(512, |region| {
        let mut report = LossReport::open(region);
        for session in 1..3 {
            let entry = report.create_entry(64, 5, session, 7, "aeron:udp?endpoint=a:1", "b:2");
            entry.expect("there is room").record(32, 6);
        }
    });
    let counters = Composer::new()
        .u8(0)
        .raw(b"label---")
        .i32(5)
        .u8(3)
        .u8(0)
        .raw(b"another-")
        .i32(6)
        .u8(5)
        .u8(0)
        .u8(6)
        .raw(&[0xFF; 8])
        .u8(1)
        .u8(0)
        .u8(2)
        .u8(3)
        .u8(0)
        .raw(b"third---")
        .i32(7)
        .done();
    vec![
        Seed::new("error_log", "two", errors),
        Seed::new("loss_report", "two", losses),
        Seed::new("counters", "some", counters),
        Seed::new("cnc", "sound", Composer::new().u8(1).done()),
        Seed::new(
            "cnc",
            "file",
            Composer::new().u8(0).raw(&cnc::valid()).done(),
        ),
        // The first ten fields of the header, each with another value.
        Seed::new("cnc", "version", patch(0, &[0, 3, 0, 0])),
        Seed::new("cnc", "ring", patch(4, &(64 + 768_i32).to_le_bytes())),
        Seed::new("cnc", "counters", patch(12, &(1_i32 << 30).to_le_bytes())),
        Seed::new("cnc", "liveness", patch(24, &(-1_i64).to_le_bytes())),
        Seed::new("cnc", "page", patch(48, &3_i32.to_le_bytes())),
    ]
}

fn patch(at: u16, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).expect("patches are short");
    Composer::new().u8(1).u16(at).u8(length).raw(bytes).done()
}

fn filled(length: usize, fill: impl FnOnce(Region)) -> Vec<u8> {
    let region = Region::anonymous(length).expect("there is memory");
    fill(region.clone());
    let mut bytes = vec![0; length];
    region.read(0, &mut bytes);
    bytes
}
