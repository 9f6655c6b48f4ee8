//! Something that lives through many inputs, because to make it anew for each would take longer than to use it.
//!
//! What fails then may have begun many inputs before. All inputs since it was made are its story. It is written into a file
//! beside what fails, each input before it is tried, so that it is there however the process ends; and it is told again when
//! `TARAN_FUZZ_STORY` names that file.

use std::cell::RefCell;
use std::env;
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::sync::Once;

/// Names a file with a story to tell before anything else.
pub const TELL: &str = "TARAN_FUZZ_STORY";
/// Names the file that the story is written to.
pub const WRITE: &str = "TARAN_FUZZ_STORY_FILE";

thread_local! {
    static STORY: RefCell<Option<File>> = const { RefCell::new(None) };
}

/// A hero and how many inputs are left for it.
#[derive(Debug)]
pub struct Hero<T> {
    it: Option<(T, usize)>,
}

impl<T> Hero<T> {
    /// Not made yet.
    pub const fn new() -> Self {
        Self { it: None }
    }

    /// Lets it live through one more input. `act` says whether it can be used for another one.
    pub fn live(
        &mut self,
        input: &[u8],
        lives: usize,
        make: impl Fn() -> T,
        mut act: impl FnMut(&mut T, &[u8]) -> bool,
    ) {
        static PREPARED: Once = Once::new();
        PREPARED.call_once(|| {
            // Read first: it may be told from the file that the next one is written to.
            let story =
                env::var_os(TELL).map(|file| fs::read(file).expect("the story can be read"));
            let file = env::var_os(WRITE)
                .map(|file| File::create(file).expect("the story can be written"));
            STORY.set(file);
            if let Some(story) = story {
                for input in chapters(&story) {
                    self.step(input, lives, &make, &mut act);
                }
            }
        });
        self.step(input, lives, &make, &mut act);
    }

    fn step(
        &mut self,
        input: &[u8],
        lives: usize,
        make: &impl Fn() -> T,
        act: &mut impl FnMut(&mut T, &[u8]) -> bool,
    ) {
        let is_new = self.it.is_none();
        STORY.with_borrow_mut(|story| {
            if let Some(file) = story {
                add(file, is_new, input).expect("the story can be written");
            }
        });
        let (mut it, left) = self.it.take().unwrap_or_else(|| (make(), lives));
        if act(&mut it, input) && left > 1 {
            self.it = Some((it, left - 1));
        }
    }
}

impl<T> Default for Hero<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The inputs of a story.
fn chapters(story: &[u8]) -> impl Iterator<Item = &[u8]> {
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
