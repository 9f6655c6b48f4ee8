// SPDX-License-Identifier: Apache-2.0
//! A layer that expands datagrams, with the data flow of a cipher with authentication (AEAD): a counter in front, a tag
//! behind, bytes that change out of place, and a receiver that drops what it cannot verify. It protects nothing.

use taran_net::{
    LayerCapabilities, LowerLayers, NetError, NetworkLayer, ReceiveBatch, SocketSpec, Transmit,
    TransmitScratch, TransportLayer,
};

const COUNTER: usize = 8;
const TAG: usize = 8;
/// Bytes that the layer adds to a datagram.
pub(crate) const EXPANSION: usize = COUNTER + TAG;

/// The layer of a network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealerLayer;

impl NetworkLayer for SealerLayer {
    fn layer(&mut self, _spec: &SocketSpec) -> Option<Box<dyn TransportLayer>> {
        Some(Box::new(Sealer {
            scratch: TransmitScratch::new(),
            arrived: ReceiveBatch::new(16),
            counter: 0,
        }))
    }
}

/// The layer of a transport.
#[derive(Debug)]
struct Sealer {
    scratch: TransmitScratch,
    arrived: ReceiveBatch,
    /// Datagrams sealed so far. No number is used twice, not even for a datagram that was not accepted.
    counter: u64,
}

impl TransportLayer for Sealer {
    fn capabilities(&self) -> LayerCapabilities {
        LayerCapabilities::default()
            .with_inspection()
            .with_transformation(EXPANSION)
    }

    fn send(
        &mut self,
        batch: &[Transmit<'_>],
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        let mut accepted = 0;
        for transmit in batch {
            let (stride, counter) = (transmit.stride(), &mut self.counter);
            let layout = transmit.expanded(EXPANSION);
            let sent = lower.send_with(layout, &mut self.scratch, &mut |index, sealed| {
                *counter += 1;
                let plain = &transmit.payload[index * stride..];
                seal(*counter, &plain[..plain.len().min(stride)], sealed);
            });
            match sent {
                Ok(bytes) => {
                    accepted += transmit.accepted(bytes, EXPANSION);
                    if bytes < layout.length {
                        break;
                    }
                }
                Err(error) if accepted == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(accepted)
    }

    fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        batch.clear();
        // What is opened never needs more slots than what is sealed.
        self.arrived.clear_to(batch.free_slots().len());
        lower.receive(&mut self.arrived)?;
        for datagram in self.arrived.datagrams() {
            let Some(length) = datagram.payload.len().checked_sub(EXPANSION) else {
                continue;
            };
            let (source, time) = (datagram.source, datagram.timestamp_ns);
            batch.push_coalesced_with(source, time, length, |plain| open(datagram.payload, plain));
        }
        Ok(batch.datagram_count())
    }
}

/// Writes counter, changed bytes and tag of `plain` into `sealed`.
fn seal(counter: u64, plain: &[u8], sealed: &mut [u8]) {
    let (body, tag) = sealed.split_at_mut(COUNTER + plain.len());
    body[..COUNTER].copy_from_slice(&counter.to_le_bytes());
    change(counter, plain, &mut body[COUNTER..]);
    tag.copy_from_slice(&checksum(body));
}

/// Writes the plain bytes of `sealed` into `plain`. Returns false, and writes nothing, if the tag is wrong.
fn open(sealed: &[u8], plain: &mut [u8]) -> bool {
    let (body, tag) = sealed.split_at(COUNTER + plain.len());
    if tag != checksum(body) {
        return false;
    }
    let mut counter = [0; COUNTER];
    counter.copy_from_slice(&body[..COUNTER]);
    change(u64::from_le_bytes(counter), &body[COUNTER..], plain);
    true
}

fn change(counter: u64, from: &[u8], to: &mut [u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = !from ^ counter as u8;
    }
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> [u8; TAG] {
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    sum.to_le_bytes()
}
