// SPDX-License-Identifier: Apache-2.0
//! The terminal: its alternate screen, size and keys.

use std::collections::VecDeque;
use std::io::{self, Stdin, Stdout, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use termion::event::{Event, Key as TerminalKey, parse_event};
use termion::raw::{IntoRawMode, RawTerminal};
use termion::screen::{AlternateScreen, IntoAlternateScreen};
use termion::{clear, cursor, style, terminal_size};

use super::screen::{Key, Line, Size};

const ESCAPE: u8 = 0x1b;
/// Wait for the rest of an escape sequence.
const SEQUENCE_WAIT: Duration = Duration::from_millis(20);

/// The alternate screen. Dropped, the terminal is as it was before.
pub(super) struct Terminal {
    /// `None` only while it is dropped.
    screen: Option<AlternateScreen<RawTerminal<Stdout>>>,
    input: Stdin,
    /// Bytes that were read and are not parsed yet.
    pending: VecDeque<u8>,
}

impl Terminal {
    pub(super) fn enter() -> io::Result<Self> {
        let mut screen = io::stdout().into_raw_mode()?.into_alternate_screen()?;
        write!(screen, "{}", cursor::Hide)?;
        Ok(Self {
            screen: Some(screen),
            input: io::stdin(),
            pending: VecDeque::new(),
        })
    }

    /// Draws the lines that `lines` returns for the present size, in one write.
    pub(super) fn draw(&mut self, lines: impl FnOnce(Size) -> Vec<Line>) -> io::Result<()> {
        let (width, height) = terminal_size()?;
        let lines = lines(Size {
            width: usize::from(width),
            height: usize::from(height),
        });
        let mut text = Vec::new();
        for (row, line) in (1..=height).zip(&lines) {
            write!(text, "{}", cursor::Goto(1, row))?;
            if line.is_emphasised() {
                write!(text, "{}{}{}", style::Invert, line.text(), style::Reset)?;
            } else {
                write!(text, "{}", line.text())?;
            }
            write!(text, "{}", clear::UntilNewline)?;
        }
        let Some(screen) = &mut self.screen else {
            return Ok(());
        };
        screen.write_all(&text)?;
        screen.flush()
    }

    /// Waits for a key; `None` if there is none in this time, or it has no meaning.
    pub(super) fn key(&mut self, wait: Duration) -> io::Result<Option<Key>> {
        if self.pending.is_empty() && !self.read(wait)? {
            return Ok(None);
        }
        // The rest of an escape sequence can be late on a slow line; the escape key has none.
        if self.pending == [ESCAPE] {
            self.read(SEQUENCE_WAIT)?;
        }
        let Some(first) = self.pending.pop_front() else {
            return Ok(None);
        };
        // A sequence that ends too early, such as the escape key alone, is an error of the parser.
        let rest = &mut self.pending;
        let mut bytes = std::iter::from_fn(|| rest.pop_front().map(Ok));
        match parse_event(first, &mut bytes) {
            Ok(Event::Key(key)) => Ok(meaning(key)),
            Ok(_) => Ok(None),
            Err(_) => Ok((first == ESCAPE).then_some(Key::Escape)),
        }
    }

    /// Reads what was typed; returns false if nothing was in this time.
    fn read(&mut self, wait: Duration) -> io::Result<bool> {
        let timeout = Timespec {
            tv_sec: wait.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: wait.subsec_nanos().into(),
        };
        let mut inputs = [PollFd::new(&self.input, PollFlags::IN)];
        match poll(&mut inputs, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut buffer = [0; 64];
        // Past the buffer of `Stdin`, whose contents `poll` does not see.
        let count = rustix::io::read(&self.input, &mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.pending.extend(&buffer[..count]);
        Ok(true)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that has gone needs no restoration.
        let _ = write!(io::stdout(), "{}", cursor::Show);
        drop(self.screen.take());
        let _ = io::stdout().flush();
    }
}

fn meaning(key: TerminalKey) -> Option<Key> {
    Some(match key {
        // In raw mode the terminal sends no SIGINT.
        TerminalKey::Ctrl('c') => Key::Interrupt,
        TerminalKey::Char('\n' | '\r') => Key::Enter,
        TerminalKey::Char(character) => Key::Character(character),
        TerminalKey::Esc => Key::Escape,
        TerminalKey::Backspace => Key::Backspace,
        TerminalKey::Up => Key::Up,
        TerminalKey::Down => Key::Down,
        TerminalKey::PageUp => Key::PageUp,
        TerminalKey::PageDown => Key::PageDown,
        _ => return None,
    })
}
