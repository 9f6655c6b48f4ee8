// SPDX-License-Identifier: Apache-2.0
//! Binary form of an event in the queue: its time, then each value in order.
//!
//! Numbers are little-endian. An address is its family (0 none, 4, 6), its port and 16 bytes; a text is a 16-bit length
//! and its bytes; a message is its type, its full length and the beginning of its bytes; a frame is its full length and
//! the beginning of its bytes. Messages and frames are last and extend to the end of the record.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use taran_protocol::event::{Field, FieldKind};

use super::FieldValue;

/// Maximum captured bytes of a text, a message or a frame. A record must fit into an eighth of the smallest queue.
const MAX_CAPTURED: usize = 2048;
const ADDRESS_LENGTH: usize = 19;

/// An event to be written.
#[derive(Debug)]
pub(super) struct Record<'a> {
    time_ns: i64,
    values: &'a [FieldValue<'a>],
}

/// A decoded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecodedValue<'a> {
    Int(i32),
    Long(i64),
    Address(Option<SocketAddr>),
    Text(&'a [u8]),
    /// Type, full length, captured bytes.
    Message(i32, usize, &'a [u8]),
    /// Full length, captured bytes.
    Frame(usize, &'a [u8]),
}

impl<'a> Record<'a> {
    pub(super) fn new(time_ns: i64, values: &'a [FieldValue<'a>]) -> Self {
        Self { time_ns, values }
    }

    /// Returns the encoded length.
    pub(super) fn length(&self) -> usize {
        let values = self.values.iter().map(|value| match value {
            FieldValue::Int(_) => 4,
            FieldValue::Long(_) => 8,
            FieldValue::Address(_) => ADDRESS_LENGTH,
            FieldValue::Text(text) => 2 + captured(text.as_bytes()).len(),
            FieldValue::Message(_, bytes) => 8 + captured(bytes).len(),
            FieldValue::Frame(bytes) => 4 + captured(bytes).len(),
        });
        8 + values.sum::<usize>()
    }

    /// Encodes the event into `target`, which has exactly that length.
    pub(super) fn write(&self, target: &mut [u8]) {
        let mut out = RecordWriter(target);
        out.put(&self.time_ns.to_le_bytes());
        for value in self.values {
            match value {
                FieldValue::Int(n) => out.put(&n.to_le_bytes()),
                FieldValue::Long(n) => out.put(&n.to_le_bytes()),
                FieldValue::Address(address) => out.put(&address_bytes(*address)),
                FieldValue::Text(text) => {
                    let text = captured(text.as_bytes());
                    out.put(&(text.len() as u16).to_le_bytes());
                    out.put(text);
                }
                FieldValue::Message(type_id, bytes) => {
                    out.put(&type_id.to_le_bytes());
                    out.put(&full_length(bytes));
                    out.put(captured(bytes));
                }
                FieldValue::Frame(bytes) => {
                    out.put(&full_length(bytes));
                    out.put(captured(bytes));
                }
            }
        }
    }
}

fn captured(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(MAX_CAPTURED)]
}

fn full_length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes()
}

fn address_bytes(address: Option<SocketAddr>) -> [u8; ADDRESS_LENGTH] {
    let mut bytes = [0; ADDRESS_LENGTH];
    let Some(address) = address else { return bytes };
    bytes[1..3].copy_from_slice(&address.port().to_le_bytes());
    match address.ip() {
        IpAddr::V4(ip) => {
            bytes[0] = 4;
            bytes[3..7].copy_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            bytes[0] = 6;
            bytes[3..].copy_from_slice(&ip.octets());
        }
    }
    bytes
}

/// Appends to a buffer.
struct RecordWriter<'a>(&'a mut [u8]);

impl RecordWriter<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let (front, rest) = std::mem::take(&mut self.0).split_at_mut(bytes.len());
        front.copy_from_slice(bytes);
        self.0 = rest;
    }
}

/// Decodes the values of a record, as far as they are complete.
#[derive(Debug)]
pub(super) struct RecordReader<'a> {
    rest: &'a [u8],
    fields: std::slice::Iter<'static, Field>,
}

impl<'a> RecordReader<'a> {
    /// Decodes the time of a record. Returns it with a reader of the values.
    pub(super) fn new(record: &'a [u8], fields: &'static [Field]) -> Option<(i64, Self)> {
        let (time, rest) = record.split_first_chunk()?;
        let fields = fields.iter();
        Some((i64::from_le_bytes(*time), Self { rest, fields }))
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    fn read(&mut self, kind: FieldKind) -> Option<DecodedValue<'a>> {
        Some(match kind {
            FieldKind::Int => DecodedValue::Int(i32::from_le_bytes(self.take()?)),
            FieldKind::Long => DecodedValue::Long(i64::from_le_bytes(self.take()?)),
            FieldKind::Address => DecodedValue::Address(self.address()?),
            FieldKind::Text => {
                let length = usize::from(u16::from_le_bytes(self.take()?));
                let (text, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                DecodedValue::Text(text)
            }
            FieldKind::Command | FieldKind::Response => {
                let type_id = i32::from_le_bytes(self.take()?);
                let length = u32::from_le_bytes(self.take()?) as usize;
                DecodedValue::Message(type_id, length, std::mem::take(&mut self.rest))
            }
            FieldKind::Frame => {
                let length = u32::from_le_bytes(self.take()?) as usize;
                DecodedValue::Frame(length, std::mem::take(&mut self.rest))
            }
        })
    }

    fn address(&mut self) -> Option<Option<SocketAddr>> {
        let [family] = self.take()?;
        let port = u16::from_le_bytes(self.take()?);
        let octets: [u8; 16] = self.take()?;
        let [a, b, c, d, ..] = octets;
        let ip = match family {
            4 => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            6 => IpAddr::V6(Ipv6Addr::from(octets)),
            _ => return Some(None),
        };
        Some(Some(SocketAddr::new(ip, port)))
    }
}

impl<'a> Iterator for RecordReader<'a> {
    type Item = (&'static Field, DecodedValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.fields.next()?;
        Some((field, self.read(field.kind)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[Field] = &[
        Field {
            name: "a",
            kind: FieldKind::Int,
        },
        Field {
            name: "b",
            kind: FieldKind::Long,
        },
        Field {
            name: "c",
            kind: FieldKind::Address,
        },
        Field {
            name: "d",
            kind: FieldKind::Text,
        },
        Field {
            name: "e",
            kind: FieldKind::Frame,
        },
    ];

    #[test]
    fn record_round_trips() {
        for address in [
            None,
            Some("10.0.0.1:40123".parse().unwrap()),
            Some("[fe80::1]:1".parse().unwrap()),
        ] {
            let frame = [7; 3 * MAX_CAPTURED];
            let values = [
                FieldValue::Int(-1),
                FieldValue::Long(i64::MIN),
                FieldValue::Address(address),
                FieldValue::Text("text"),
                FieldValue::Frame(&frame),
            ];
            let record = Record::new(42, &values);
            let mut bytes = vec![0; record.length()];
            record.write(&mut bytes);
            let (time_ns, reader) = RecordReader::new(&bytes, FIELDS).unwrap();
            let read: Vec<DecodedValue<'_>> = reader.map(|(_, value)| value).collect();
            assert_eq!(time_ns, 42);
            assert_eq!(
                read,
                [
                    DecodedValue::Int(-1),
                    DecodedValue::Long(i64::MIN),
                    DecodedValue::Address(address),
                    DecodedValue::Text(b"text"),
                    DecodedValue::Frame(frame.len(), &frame[..MAX_CAPTURED]),
                ]
            );
            for length in 0..bytes.len() {
                if let Some((_, reader)) = RecordReader::new(&bytes[..length], FIELDS) {
                    assert!(reader.count() <= FIELDS.len());
                }
            }
        }
    }
}
