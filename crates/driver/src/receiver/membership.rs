// SPDX-License-Identifier: Apache-2.0
//! Subscriptions, images and transports that the conductor adds to and removes from an endpoint.

use std::net::SocketAddr;

use super::ReceiveContext;
use super::dispatcher::Dispatcher;
use super::endpoint::ReceiveEndpoint;
use super::image::ReceiverImage;
use super::transport::ReceiveTransport;
use crate::boundary::{ImageId, TransportId};
use crate::poll_schedule::Slot;

impl ReceiveEndpoint {
    pub(super) fn add_subscription(
        &mut self,
        stream_id: i32,
        session_id: Option<i32>,
        context: &mut ReceiveContext<'_>,
    ) {
        self.dispatcher.add_subscription(stream_id, session_id);
        if let Some(session_id) = session_id {
            self.elicit_session_setup(stream_id, session_id, context);
        }
    }

    pub(super) fn remove_subscription(&mut self, stream_id: i32, session_id: Option<i32>) {
        let images = &mut self.images;
        self.dispatcher
            .remove_subscription(stream_id, session_id, |slot| {
                if let Some(image) = images.schedule_once(Slot(slot)) {
                    image.abandon();
                }
            });
    }

    pub(super) fn add_image(
        &mut self,
        mut image: Box<ReceiverImage>,
        context: &mut ReceiveContext<'_>,
    ) {
        let transport = image.transport();
        let slot = self.slot_of(transport);
        image.start(slot, self.transports.len(), context.now);
        self.total_window += image.window();
        for transport in self.transports.iter_mut().flatten() {
            transport.grow_receive_buffer(self.total_window, context.now, context.reporter);
        }
        let key = image.key();
        for older in self.image_index.slots_of_session(key) {
            if let Some(older) = self.images.get_mut(older) {
                older.yield_to_newer_image();
            }
        }
        let image_slot = self.images.insert(image);
        if let Some(image) = self.images.get(image_slot) {
            self.image_index.insert(image, image_slot);
        }
        if !self.dispatcher.add_image(key.0, key.1, image_slot.0)
            && let Some(image) = self.images.get_mut(image_slot)
        {
            image.abandon();
        }
    }

    pub(super) fn remove_image(&mut self, id: ImageId) -> Option<Box<ReceiverImage>> {
        let image_slot = self.image_index.slot_of(id)?;
        let image = self.images.remove(image_slot)?;
        self.image_index.remove(&image);
        self.total_window -= image.window();
        let (session_id, stream_id) = image.key();
        self.dispatcher
            .remove_image(session_id, stream_id, image_slot.0, false);
        Some(image)
    }

    pub(super) fn remove_any_image(&mut self) -> Option<Box<ReceiverImage>> {
        let id = self.images.any()?.id();
        self.remove_image(id)
    }

    /// Returns the image and schedules a poll, because the caller changes it.
    pub(super) fn image(&mut self, id: ImageId) -> Option<&mut ReceiverImage> {
        self.images.schedule_once(self.image_index.slot_of(id)?)
    }

    pub(super) fn dispatcher(&mut self) -> &mut Dispatcher {
        &mut self.dispatcher
    }

    /// Changes the explicit control address of a transport, also for existing images.
    pub(super) fn change_control(&mut self, id: TransportId, address: SocketAddr) {
        if let Some(slot) = self.slot_of(id)
            && let Some(transport) = &mut self.transports[slot]
            && let Some(control) = &mut transport.explicit_control
        {
            *control = address;
            for image in self.images.iter_mut() {
                image.connections.rebind(slot, address);
            }
        }
    }

    /// Adds a transport. If its control address is known, existing images send feedback there from now on.
    pub(super) fn add_transport(
        &mut self,
        mut transport: ReceiveTransport,
        context: &mut ReceiveContext<'_>,
    ) {
        let free = self.transports.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| {
            self.transports.push(None);
            self.transports.len() - 1
        });
        transport.grow_receive_buffer(self.total_window, context.now, context.reporter);
        let control = transport.known_control_address();
        self.transports[slot] = Some(transport);
        for image in self.images.iter_mut() {
            image.connections.reserve(self.transports.len());
            if let Some(control) = control {
                image.connections.add(slot, control, context.now.nanos);
            }
        }
        self.start_transport(slot, context);
    }

    /// Removes a transport. Images continue with the remaining ones.
    pub(super) fn remove_transport(&mut self, id: TransportId) -> Option<Box<ReceiveTransport>> {
        let slot = self.slot_of(id)?;
        for image in self.images.iter_mut() {
            image.connections.remove(slot);
        }
        self.transports[slot].take().map(Box::new)
    }

    fn slot_of(&self, id: TransportId) -> Option<usize> {
        let mut slots = self.transports.iter();
        slots.position(|transport| transport.as_ref().is_some_and(|it| it.id == id))
    }
}
