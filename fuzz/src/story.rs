//! Something that lives through many inputs, because to make it anew for each would take longer than to use it.
//!
//! What fails then may have begun many inputs before. All inputs since it was made are its story, which a panic writes
//! into a file beside the failing input, and which is told again when `TARAN_FUZZ_STORY` names that file.

use std::cell::RefCell;
use std::sync::Once;
use std::{env, fs, panic};

/// Names a file with a story to tell before anything else.
pub const TELL: &str = "TARAN_FUZZ_STORY";
/// Names the file that a panic writes the story to.
pub const WRITE: &str = "TARAN_FUZZ_STORY_FILE";

thread_local! {
    static STORY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
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
            write_story_on_panic();
            if let Some(story) = env::var_os(TELL) {
                let story = fs::read(story).expect("the story can be read");
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
        let (mut it, left) = self.it.take().unwrap_or_else(|| {
            STORY.with_borrow_mut(Vec::clear);
            (make(), lives)
        });
        STORY.with_borrow_mut(|story| {
            story.extend((input.len() as u32).to_le_bytes());
            story.extend(input);
        });
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

fn write_story_on_panic() {
    let Some(file) = env::var_os(WRITE) else {
        return;
    };
    // libFuzzer's own hook ends the process, so it comes last.
    let next = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let written = STORY.with_borrow(|story| fs::write(&file, story));
        match written {
            Ok(()) => eprintln!("the story is in {}", file.display()),
            Err(error) => eprintln!("the story cannot be written: {error}"),
        }
        next(panic);
    }));
}
