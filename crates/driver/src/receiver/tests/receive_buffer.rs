// SPDX-License-Identifier: Apache-2.0
//! The receive buffer of a socket grows with the windows of its images.

use super::*;

/// Window of each image.
const WINDOW_LENGTH: i32 = 100_000;

fn fixture(grows: bool) -> ReceiverFixture {
    ReceiverFixture::with(|spec| spec.transports[0].grows = grows)
}

impl ReceiverFixture {
    fn add_image(&mut self, number: i32) {
        let spec = ReceiverImageSpec {
            id: ImageId(1_000 + i64::from(number)),
            session_id: number,
            window: WINDOW_LENGTH,
            shared: Arc::new(ImageShared::new(START, WINDOW)),
            ..self.image_spec()
        };
        self.command(ReceiverCommand::AddImage(Box::new(ReceiverImage::new(
            spec,
        ))));
    }
}

#[test]
fn receive_buffer_grows_with_each_image() {
    let mut fixture = fixture(true);
    assert_eq!(fixture.socket.receive_buffer(), None);
    for images in 1..=100 {
        fixture.add_image(images);
        let asked = fixture.socket.receive_buffer().unwrap();
        let needed = images as usize * WINDOW_LENGTH as usize;
        assert!((2 * needed..=4 * needed).contains(&asked), "{asked}");
    }
}

#[test]
fn receive_buffer_of_removed_images_is_reused() {
    let mut fixture = fixture(true);
    for number in 0..5 {
        fixture.add_image(number);
        fixture.command(ReceiverCommand::RemoveImage {
            endpoint: ENDPOINT,
            image: ImageId(1_000 + i64::from(number)),
        });
    }
    assert_eq!(
        fixture.socket.receive_buffer(),
        Some(2 * WINDOW_LENGTH as usize)
    );
}

#[test]
fn added_transport_gets_buffer_for_all_images() {
    let mut fixture = fixture(true);
    for number in 0..3 {
        fixture.add_image(number);
    }
    let socket = FakeSocket::default();
    let spec = ReceiveTransportSpec {
        id: TransportId(2),
        transport: Box::new(socket.clone()),
        control_group: None,
        explicit_control: None,
        re_resolution_timeout_ns: None,
        grows: true,
    };
    let transport = ReceiveTransport::new(spec, "aeron:udp?endpoint=10.0.0.1:4041".into());
    fixture.command(ReceiverCommand::AddTransport {
        endpoint: ENDPOINT,
        transport: Box::new(transport),
    });
    assert_eq!(socket.receive_buffer(), Some(6 * WINDOW_LENGTH as usize));
}

#[test]
fn configured_receive_buffer_length_is_kept() {
    let mut fixture = fixture(false);
    fixture.add_image(1);
    assert_eq!(fixture.socket.receive_buffer(), None);
}
