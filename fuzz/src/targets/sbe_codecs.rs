// SPDX-License-Identifier: Apache-2.0
//! Arbitrary bytes as messages of every schema with generated codecs: all elements are read.

use std::fmt;

use taran_sbe_codecs::show;

use crate::allocation;

/// Counts the bytes written to it.
struct Count(usize);

impl fmt::Write for Count {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// Reads a message, which allocates nothing.
pub fn run(bytes: &[u8]) {
    allocation::within(0, || {
        let mut shown = Count(0);
        assert_eq!(show(bytes, &mut shown), Ok(()));
        assert!(shown.0 > 0);
    });
}
