// SPDX-License-Identifier: Apache-2.0
//! Shared memory with arbitrary contents.

use std::cell::OnceCell;

use taran_core::memory::Region;

/// Longest contents in bytes.
pub const LENGTH_MAX: usize = 1 << 20;

thread_local! {
    static MEMORY: OnceCell<Region> = const { OnceCell::new() };
}

/// Returns a region with these contents, valid until the next call, or `None` if they are empty or too long. The mapping is
/// reused, because a new mapping would take longer than most targets.
pub fn region(contents: &[u8]) -> Option<Region> {
    let all = MEMORY.with(|memory| {
        memory
            .get_or_init(|| Region::anonymous(LENGTH_MAX).expect("there is memory"))
            .clone()
    });
    let fits = (1..=LENGTH_MAX).contains(&contents.len());
    let region = fits.then(|| all.sub(0, contents.len()).ok()).flatten()?;
    region.write(0, contents);
    Some(region)
}
