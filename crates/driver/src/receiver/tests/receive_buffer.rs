//! The receive buffer of a socket grows with what its images may have under way.

use super::*;

/// How much may be under way to each image.
const UNDER_WAY: i32 = 100_000;

fn fixture(grows: bool) -> ReceiverFixture {
    ReceiverFixture::with(|spec| spec.transports[0].grows = grows)
}

impl ReceiverFixture {
    fn image_more(&mut self, number: i32) {
        let spec = ReceiverImageSpec {
            id: ImageId(1_000 + i64::from(number)),
            session_id: number,
            window: UNDER_WAY,
            shared: Arc::new(ImageShared::new(START, WINDOW)),
            ..self.image_spec()
        };
        self.command(ReceiverCommand::AddImage(Box::new(ReceiverImage::new(
            spec,
        ))));
    }
}

#[test]
fn each_image_has_room() {
    let mut fixture = fixture(true);
    assert_eq!(fixture.socket.receive_buffer(), None);
    for images in 1..=100 {
        fixture.image_more(images);
        let asked = fixture.socket.receive_buffer().unwrap();
        let needed = images as usize * UNDER_WAY as usize;
        assert!((2 * needed..=4 * needed).contains(&asked), "{asked}");
    }
}

#[test]
fn what_was_given_back_is_room_for_others() {
    let mut fixture = fixture(true);
    for number in 0..5 {
        fixture.image_more(number);
        fixture.command(ReceiverCommand::RemoveImage {
            endpoint: ENDPOINT,
            image: ImageId(1_000 + i64::from(number)),
        });
    }
    assert_eq!(
        fixture.socket.receive_buffer(),
        Some(2 * UNDER_WAY as usize)
    );
}

#[test]
fn a_socket_more_has_the_room_that_the_others_have() {
    let mut fixture = fixture(true);
    for number in 0..3 {
        fixture.image_more(number);
    }
    let socket = FakeSocket::default();
    let spec = ReceiveTransportSpec {
        id: TransportId(2),
        transport: Box::new(socket.clone()),
        control_group: None,
        explicit_control: None,
        unheard_timeout_ns: None,
        grows: true,
    };
    let transport = ReceiveTransport::new(spec, "aeron:udp?endpoint=10.0.0.1:4041".into());
    fixture.command(ReceiverCommand::AddTransport {
        endpoint: ENDPOINT,
        transport: Box::new(transport),
    });
    assert_eq!(socket.receive_buffer(), Some(6 * UNDER_WAY as usize));
}

#[test]
fn a_length_that_somebody_chose_stays() {
    let mut fixture = fixture(false);
    fixture.image_more(1);
    assert_eq!(fixture.socket.receive_buffer(), None);
}
