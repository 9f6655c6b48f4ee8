// SPDX-License-Identifier: Apache-2.0
//! Datagrams and items of transport security by themselves: what the parser accepts is in bounds, and items read the same
//! when they are written again.

use taran_secure::frame::{InvalidItem, ItemWriter, Items, SecureFrame};

use crate::allocation;

/// Reads a datagram, and the same bytes as the items of a PAIR frame.
pub fn run(bytes: &[u8]) {
    if let Some(SecureFrame::Pair(frames)) =
        allocation::within(0, || SecureFrame::parse(bytes).ok())
    {
        let mut total = 0;
        for frame in frames {
            total += frame.bytes().len();
            let (head, sealed) = frame.parts();
            assert_eq!((head.len(), sealed.len() >= 16), (24, true));
        }
        assert!(total <= bytes.len());
    }
    let items = match allocation::within(0, || Items::parse(bytes)) {
        Ok(items) => items,
        Err(InvalidItem::Truncated) if bytes.is_empty() => panic!("no items are valid"),
        Err(_) => return,
    };
    let mut rest = bytes;
    for item in items {
        let mut writer = ItemWriter::new();
        assert!(writer.push(&item));
        let (written, behind) = rest.split_at(writer.bytes().len());
        assert_eq!(written, writer.bytes());
        rest = behind;
        assert!(!format!("{item:?}").is_empty());
    }
    assert!(rest.is_empty());
}
