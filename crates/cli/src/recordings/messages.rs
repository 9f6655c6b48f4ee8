// SPDX-License-Identifier: Apache-2.0
//! Frames and messages as text or JSON.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write as _};
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use taran_sbe::decode::Decoder;
use taran_sbe::model::Schema;

use crate::failure::Failure;
use crate::output;
use crate::printable;
use crate::sbe;

/// Flags of a frame with the beginning and the end of a message.
const BEGIN: u8 = 0x80;
const END: u8 = 0x40;
/// Longest message that is assembled from fragments, in bytes; that of the protocol.
const MESSAGE_MAX: usize = 16 << 20;

/// Format in which frames are shown.
#[derive(Args, Debug)]
pub(super) struct Format {
    /// Show at most this number of bytes of each frame
    #[arg(long, value_name = "N", default_value_t = 64)]
    bytes: usize,

    /// Decode the messages with this SBE schema
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,

    /// Directory from which the schema may include files, besides its own one
    #[arg(long, value_name = "DIR", requires = "schema")]
    include_from: Vec<PathBuf>,

    /// Bytes of each message before its message header
    #[arg(long, value_name = "BYTES", default_value_t = 0, requires = "schema")]
    skip: usize,
}

impl Format {
    /// Reads the schema.
    pub(super) fn schema(&self) -> Result<Option<Schema>, Failure> {
        self.schema
            .as_ref()
            .map(|path| sbe::schema(path, &self.include_from))
            .transpose()
    }
}

/// A frame of a recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'a> {
    pub(super) position: i64,
    pub(super) length: i32,
    pub(super) flags: u8,
    pub(super) is_padding: bool,
    pub(super) session_id: i32,
    pub(super) reserved_value: i64,
    pub(super) payload: &'a [u8],
}

#[derive(Debug, Serialize)]
struct ShownFrame {
    position: i64,
    length: i32,
    flags: u8,
    padding: bool,
    session_id: i32,
    reserved_value: i64,
    payload_hex: String,
}

#[derive(Debug, Serialize)]
struct ShownMessage<'a> {
    position: i64,
    length: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<taran_sbe::decode::Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Prints frames in order, or the messages in them.
#[derive(Debug)]
pub(super) struct Printer<'s> {
    json: bool,
    bytes: usize,
    skip: usize,
    decoder: Option<Decoder<'s>>,
    /// Position and first fragments of a message.
    partial: Option<(i64, Vec<u8>)>,
    left: u64,
    all_valid: bool,
    out: BufWriter<io::Stdout>,
}

impl<'s> Printer<'s> {
    /// Creates a printer of at most `limit` frames or messages.
    pub(super) fn new(format: &Format, schema: Option<&'s Schema>, json: bool, limit: u64) -> Self {
        Self {
            json,
            bytes: format.bytes,
            skip: format.skip,
            decoder: schema.map(Decoder::new),
            partial: None,
            left: limit,
            all_valid: true,
            out: BufWriter::new(io::stdout()),
        }
    }

    /// Prints the heading of a table.
    pub(super) fn heading(&mut self) -> Result<(), Failure> {
        if !self.json && self.decoder.is_none() {
            writeln!(
                self.out,
                "{:>20} {:>10} FLAGS PAYLOAD",
                "POSITION", "LENGTH"
            )?;
        }
        Ok(())
    }

    /// Returns true if nothing more is to be printed.
    pub(super) fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Prints a frame, or the message that it completes. Breaks when the limit is reached.
    pub(super) fn frame(&mut self, frame: &Shown<'_>) -> Result<ControlFlow<()>, Failure> {
        if self.is_full() {
            return Ok(ControlFlow::Break(()));
        }
        if self.decoder.is_some() {
            self.assemble(frame)?;
        } else {
            self.print_frame(frame)?;
        }
        Ok(if self.is_full() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    }

    fn print_frame(&mut self, frame: &Shown<'_>) -> Result<(), Failure> {
        let mut payload_hex = String::new();
        for byte in &frame.payload[..frame.payload.len().min(self.bytes)] {
            // Writing to a string cannot fail.
            let _ = write!(payload_hex, "{byte:02x}");
        }
        let shown = ShownFrame {
            position: frame.position,
            length: frame.length,
            flags: frame.flags,
            padding: frame.is_padding,
            session_id: frame.session_id,
            reserved_value: frame.reserved_value,
            payload_hex,
        };
        if self.json {
            output::json_to(&mut self.out, &shown)?;
        } else {
            let payload = if shown.padding {
                "(padding)"
            } else {
                &shown.payload_hex
            };
            writeln!(
                self.out,
                "{:>20} {:>10}    {:02x} {payload}",
                shown.position, shown.length, shown.flags
            )?;
        }
        self.left -= 1;
        Ok(())
    }

    fn assemble(&mut self, frame: &Shown<'_>) -> Result<(), Failure> {
        if frame.is_padding {
            return Ok(());
        }
        let (is_begin, is_end) = (frame.flags & BEGIN != 0, frame.flags & END != 0);
        if is_begin && is_end {
            self.partial = None;
            return self.message(frame.position, frame.payload);
        }
        if is_begin {
            self.partial = Some((frame.position, frame.payload.to_vec()));
            return Ok(());
        }
        // The beginning of a message may be before the first frame.
        let Some((position, mut bytes)) = self.partial.take() else {
            return Ok(());
        };
        if bytes.len() + frame.payload.len() > MESSAGE_MAX {
            return Ok(());
        }
        bytes.extend_from_slice(frame.payload);
        if is_end {
            return self.message(position, &bytes);
        }
        self.partial = Some((position, bytes));
        Ok(())
    }

    fn message(&mut self, position: i64, bytes: &[u8]) -> Result<(), Failure> {
        let Some(decoder) = &self.decoder else {
            return Ok(());
        };
        self.left -= 1;
        let decoded = match bytes.get(self.skip..) {
            Some(rest) => decoder.message(rest).map_err(|error| error.to_string()),
            None => Err(format!("it is shorter than --skip {}", self.skip)),
        };
        self.all_valid &= decoded.is_ok();
        let length = bytes.len();
        if self.json {
            let (message, error) = match decoded {
                Ok(message) => (Some(message), None),
                Err(error) => (None, Some(error)),
            };
            let shown = ShownMessage {
                position,
                length,
                message,
                error,
            };
            output::json_to(&mut self.out, &shown)?;
            return Ok(());
        }
        match decoded {
            Ok(mut message) => {
                // Shown in place of the offset in a file.
                message.offset = usize::try_from(position).unwrap_or(0);
                self.out.write_all(sbe::message_text(&message).as_bytes())?;
            }
            Err(error) => {
                let error = printable::one_line(&error).into_owned();
                writeln!(
                    self.out,
                    "{position}: {length} bytes cannot be decoded: {error}"
                )?;
            }
        }
        Ok(())
    }

    /// Shows what was printed so far.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }

    /// Ends the output. Returns true if all messages were decoded.
    pub(super) fn end(mut self) -> Result<bool, Failure> {
        self.flush()?;
        Ok(self.all_valid)
    }
}
