// SPDX-License-Identifier: Apache-2.0
//! State that is reused for many inputs, because its creation takes longer than its use.
//!
//! The cause of a failure may be an earlier input. All inputs since the creation of the state (the story) are recorded in a
//! file, each before it is tried, so that the file is complete even after a crash. The file is replayed if
//! `TARAN_FUZZ_STORY` names it.

use std::cell::RefCell;
use std::env;
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::sync::Once;

/// Variable with the file to replay before any other input.
pub const REPLAY: &str = "TARAN_FUZZ_STORY";
/// Variable with the file to which inputs are recorded.
pub const RECORD: &str = "TARAN_FUZZ_STORY_FILE";

thread_local! {
    static STORY: RefCell<Option<File>> = const { RefCell::new(None) };
}

/// Reused state, with the number of inputs after which it is recreated.
#[derive(Debug)]
pub struct ReusedState<T> {
    /// The state, and the number of inputs it may still serve.
    state: Option<(T, usize)>,
}

impl<T> ReusedState<T> {
    /// Creates an instance whose state is created on the first input.
    pub const fn new() -> Self {
        Self { state: None }
    }

    /// Runs one input. `act` returns true if the state can be reused.
    pub fn run(
        &mut self,
        input: &[u8],
        inputs_per_state: usize,
        make: impl Fn() -> T,
        mut act: impl FnMut(&mut T, &[u8]) -> bool,
    ) {
        static PREPARED: Once = Once::new();
        PREPARED.call_once(|| {
            // Read first: the file to replay may be the file to record to.
            let story = env::var_os(REPLAY)
                .map(|file| fs::read(file).expect("the recorded inputs can be read"));
            let file = env::var_os(RECORD)
                .map(|file| File::create(file).expect("the inputs can be recorded"));
            STORY.set(file);
            if let Some(story) = story {
                for input in recorded_inputs(&story) {
                    self.step(input, inputs_per_state, &make, &mut act);
                }
            }
        });
        self.step(input, inputs_per_state, &make, &mut act);
    }

    fn step(
        &mut self,
        input: &[u8],
        inputs_per_state: usize,
        make: &impl Fn() -> T,
        act: &mut impl FnMut(&mut T, &[u8]) -> bool,
    ) {
        let is_new = self.state.is_none();
        STORY.with_borrow_mut(|story| {
            if let Some(file) = story {
                add(file, is_new, input).expect("the inputs can be recorded");
            }
        });
        let (mut state, left) = self
            .state
            .take()
            .unwrap_or_else(|| (make(), inputs_per_state));
        if act(&mut state, input) && left > 1 {
            self.state = Some((state, left - 1));
        }
    }
}

impl<T> Default for ReusedState<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the recorded inputs.
fn recorded_inputs(story: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = story;
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*length) as usize;
        let (input, behind) = behind.split_at_checked(length)?;
        rest = behind;
        Some(input)
    })
}

fn add(file: &mut File, is_new: bool, input: &[u8]) -> io::Result<()> {
    if is_new {
        file.set_len(0)?;
        file.rewind()?;
    }
    let length = (input.len() as u32).to_le_bytes();
    file.write_all(&[&length, input].concat())
}
