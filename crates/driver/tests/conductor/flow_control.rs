// SPDX-License-Identifier: Apache-2.0
//! Selection of the flow control of a publication, and its effect on counters and connection (docs/spec/wire.md §4).

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use taran_core::memory::MemoryStorage;
use taran_driver::{FlowControl, StatusReport};
use taran_protocol::counter::type_id;
use taran_protocol::frame::StatusMessage;
use zerocopy::IntoBytes;

use crate::fixture::{DriverFixture, Ready};

const CONTROL: &str = "aeron:udp?control=localhost:40009|control-mode=dynamic";

/// A publication with receivers that the test simulates.
struct Stage {
    driver: DriverFixture,
    publication: Ready,
}

impl Stage {
    fn new(driver: DriverFixture, parameters: &str) -> Self {
        let mut driver = driver;
        let client = driver.client();
        let channel = format!("{CONTROL}{parameters}");
        let publication = driver.add_publication(client, &channel, 10).unwrap();
        Self {
            driver,
            publication,
        }
    }

    /// Delivers a status message at the start of the stream with this window.
    fn status(&mut self, receiver_id: i64, group_tag: Option<i64>, window: i32) {
        let log = self.driver.log(&self.publication.log);
        let mut message = StatusMessage {
            header: StatusMessage::header(0),
            session_id: self.publication.session_id.into(),
            stream_id: 10.into(),
            consumption_term_id: log.geometry().initial_term_id().into(),
            consumption_term_offset: 0.into(),
            receiver_window: window.into(),
            receiver_id: receiver_id.into(),
        };
        let mut bytes = Vec::new();
        match group_tag {
            Some(tag) => {
                message.header.frame_length = 44.into();
                bytes.extend_from_slice(message.as_bytes());
                bytes.extend_from_slice(&tag.to_le_bytes());
            }
            None => bytes.extend_from_slice(message.as_bytes()),
        }
        let from = SocketAddr::from(([127, 0, 0, 1], 41_000));
        self.driver.network.deliver(from, 40_009, &bytes);
        self.driver.run_for(Duration::from_millis(200));
    }

    fn value(&self, type_id: i32) -> Option<i64> {
        let counters = self.driver.counters();
        let found = counters.iter().find(|meta| meta.type_id == type_id)?;
        Some(self.driver.value(found.id))
    }

    fn receivers(&self) -> Option<i64> {
        self.value(type_id::FLOW_CONTROL_RECEIVERS)
    }

    fn sender_limit(&self) -> i64 {
        self.value(type_id::SENDER_LIMIT).unwrap()
    }

    fn is_connected(&self) -> bool {
        self.driver.log(&self.publication.log).is_connected()
    }
}

#[test]
fn flow_control_is_max_unless_channel_or_option_select_another() {
    let min = [("aeron.multicast.FlowControl.supplier", "multicast_min")];
    for (options, parameters, limit, receivers) in [
        (&[][..], "", 9_000, None),
        (&[][..], "|fc=max", 9_000, None),
        (&[][..], "|fc=min", 5_000, Some(2)),
        (&min[..], "", 5_000, Some(2)),
        (&min[..], "|fc=max", 9_000, None),
        (&[][..], "|fc=tagged,g:7", 5_000, Some(1)),
    ] {
        let mut stage = Stage::new(DriverFixture::with(options), parameters);
        stage.status(1, Some(7), 5_000);
        stage.status(2, Some(8), 9_000);
        assert_eq!(stage.sender_limit(), limit, "{options:?} {parameters}");
        assert_eq!(stage.receivers(), receivers, "{options:?} {parameters}");
        assert!(stage.is_connected());
    }
}

#[test]
fn receiver_counter_has_its_own_label() {
    let stage = Stage::new(DriverFixture::new(), "|fc=min");
    let Ready {
        registration_id,
        session_id,
        ..
    } = stage.publication;
    let counters = stage.driver.counters();
    let found = counters
        .iter()
        .find(|meta| meta.type_id == type_id::FLOW_CONTROL_RECEIVERS)
        .unwrap();
    assert_eq!(
        found.label.to_string(),
        format!("fc-receivers: {registration_id} {session_id} 10 {CONTROL}|fc=min")
    );
    assert_eq!(
        (found.registration_id, found.owner_id),
        (registration_id, -1)
    );
}

#[test]
fn publication_without_required_receivers_is_not_connected() {
    let options = [("aeron.flow.control.group.min.size", "2")];
    for (options, parameters) in [(&[][..], "|fc=min,g:/2"), (&options[..], "|fc=min")] {
        let mut stage = Stage::new(DriverFixture::with(options), parameters);
        stage.status(1, None, 5_000);
        assert_eq!((stage.receivers(), stage.is_connected()), (Some(1), false));
        stage.status(2, None, 5_000);
        assert_eq!((stage.receivers(), stage.is_connected()), (Some(2), true));
        // One keeps sending status messages, the other one times out.
        for _ in 0..30 {
            stage.status(1, None, 5_000);
        }
        assert_eq!((stage.receivers(), stage.is_connected()), (Some(1), false));
    }
}

#[test]
fn tag_and_timeout_follow_the_options() {
    let options = [
        ("aeron.multicast.FlowControl.supplier", "multicast_tagged"),
        ("aeron.flow.control.group.tag", "99"),
        ("aeron.flow.control.receiver.timeout", "1s"),
    ];
    let mut stage = Stage::new(DriverFixture::with(&options), "");
    stage.status(1, Some(98), 9_000);
    stage.status(2, Some(99), 5_000);
    assert_eq!(stage.receivers(), Some(1));
    stage.driver.run_for(Duration::from_millis(700));
    assert_eq!(stage.receivers(), Some(1));
    stage.driver.run_for(Duration::from_millis(500));
    assert_eq!(stage.receivers(), Some(0));
}

#[test]
fn removed_publication_frees_its_counters() {
    let mut stage = Stage::new(DriverFixture::new(), "|fc=min");
    stage.status(1, None, 5_000);
    let living = stage.driver.counters().len();
    assert!(living > 8);
    let clients: Vec<i64> = stage
        .driver
        .counters()
        .iter()
        .filter(|meta| meta.type_id == type_id::CLIENT_HEARTBEAT)
        .map(|meta| meta.registration_id)
        .collect();
    stage.driver.kill(clients[0]);
    stage.driver.run_for(Duration::from_secs(25));
    assert_eq!(stage.driver.counters().len(), 0);
}

/// Flow control that grants a tenth of the requested window.
#[derive(Debug)]
struct Stingy(Arc<Mutex<Vec<StatusReport>>>);

impl FlowControl for Stingy {
    fn on_status(&mut self, report: &StatusReport, limit: i64, _now_ns: i64) -> i64 {
        self.0.lock().unwrap().push(*report);
        limit.max(report.position + i64::from(report.window / 10))
    }

    fn on_idle(&mut self, limit: i64, _now_ns: i64) -> i64 {
        limit
    }

    fn has_required_receivers(&self) -> bool {
        self.0.lock().unwrap().len() > 1
    }

    fn retransmit_window_multiple(&self) -> i32 {
        1
    }
}

#[test]
fn supplied_flow_control_overrides_channels() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (seen, requested) = (Arc::clone(&reports), Arc::clone(&asked));
    let driver = DriverFixture::built(MemoryStorage::new(), |context| {
        context.flow_control(move |request| {
            requested
                .lock()
                .unwrap()
                .push((request.stream_id, request.is_group));
            request
                .is_group
                .then(|| -> Box<dyn FlowControl> { Box::new(Stingy(Arc::clone(&seen))) })
        })
    });
    let mut stage = Stage::new(driver, "|fc=min");
    stage.status(1, Some(3), 5_000);
    assert_eq!((stage.sender_limit(), stage.is_connected()), (500, false));
    stage.status(2, None, 9_000);
    assert_eq!((stage.sender_limit(), stage.is_connected()), (900, true));
    assert_eq!(stage.receivers(), None, "it counts for itself");
    assert_eq!(reports.lock().unwrap()[0].group_tag, Some(3));
    // The driver handles the publications that the supplier declines.
    let client = stage.driver.client();
    let unicast = "aeron:udp?endpoint=localhost:40001";
    stage.driver.add_publication(client, unicast, 11).unwrap();
    assert_eq!(*asked.lock().unwrap(), [(10, true), (11, false)]);
}
