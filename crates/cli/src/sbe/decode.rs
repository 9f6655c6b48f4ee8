// SPDX-License-Identifier: Apache-2.0
//! `taran sbe decode`: prints messages.

use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use taran_sbe::decode::{
    DEFAULT_LIMIT, DecodeError, Decoder, Framing, LengthSize, Message, frames,
};
use taran_sbe::model::ByteOrder;

use super::{show, source};
use crate::failure::Failure;
use crate::input;
use crate::output;
use crate::printable;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Each message begins with its message header. Messages follow each other directly, or each one is preceded by a frame
header with its length. Without frame headers, decoding stops at a damaged message, and at a message to which a newer
version of the schema added groups or data.

  taran sbe decode schema.xml messages.bin
  taran sbe decode --json schema.xml messages.bin | jq .fields
  taran sbe decode --skip 24 --framing u32le schema.xml capture.bin
  xxd -r -p dump.txt | taran sbe decode schema.xml -

Errors in a schema are printed as text on standard error, even with --json; taran sbe check --json prints them as JSON.

Exit status: 0 decoded, 1 a schema or a message is invalid, 2 incorrect usage.")]
pub(crate) struct Arguments {
    /// The schema; - is standard input, whose includes are searched for in the current directory
    #[arg(value_name = "SCHEMA")]
    schema: PathBuf,

    /// The messages; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Skip this many bytes first
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 0)]
    skip: usize,

    /// Frame header that precedes each message
    #[arg(long, value_enum, default_value_t = FrameHeader::None)]
    framing: FrameHeader,

    /// Maximum number of values in one message
    #[arg(long, value_name = "VALUES", default_value_t = DEFAULT_LIMIT)]
    limit: usize,

    /// Print a JSON document for each message, one per line
    #[arg(long)]
    json: bool,
}

/// Frame header that precedes each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FrameHeader {
    /// No frame header
    None,
    /// Length in two bytes, little endian
    U16le,
    /// Length in two bytes, big endian
    U16be,
    /// Length in four bytes, little endian
    U32le,
    /// Length in four bytes, big endian
    U32be,
    /// Simple Open Framing Header of FIX
    Sofh,
}

/// Decodes the messages.
pub(crate) fn run(arguments: &Arguments, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    source::at_most_one([&arguments.schema, &arguments.file])?;
    let schema = super::schema(&arguments.schema, folders)?;
    let decoder = Decoder::new(&schema).with_limit(arguments.limit);
    let bytes = read(&arguments.file).map_err(|source| Failure::File {
        path: arguments.file.clone(),
        source,
    })?;
    let Some(rest) = bytes.get(arguments.skip..) else {
        return Err(Failure::Usage(format!(
            "--skip is {}, but the input has only {} bytes",
            arguments.skip,
            bytes.len()
        )));
    };
    let mut all_valid = true;
    // All input has been read, so buffered output delays no reader.
    let mut out = BufWriter::new(io::stdout().lock());
    let (skip, json) = (arguments.skip, arguments.json);
    match framing(arguments.framing) {
        None => {
            for message in decoder.messages(rest) {
                all_valid &= show(message, skip, json, &mut out)?;
            }
        }
        Some(framing) => {
            for frame in frames(rest, framing) {
                let (message, offset) = match frame {
                    Ok(frame) => (decoder.message(frame.bytes), frame.offset),
                    Err(error) => (Err(error), 0),
                };
                all_valid &= show(message, skip + offset, json, &mut out)?;
            }
        }
    }
    out.flush()?;
    Ok(if all_valid {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints a message, or its error on standard error. `offset` is the offset of the message or error in the input.
/// Returns true if the message is valid.
fn show(
    decoded: Result<Message<'_>, DecodeError>,
    offset: usize,
    json: bool,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    match decoded {
        Ok(mut message) => {
            message.offset += offset;
            if json {
                output::json_to(out, &message)?;
            } else {
                out.write_all(show::message(&message).as_bytes())?;
            }
            Ok(true)
        }
        Err(mut error) => {
            error.offset += offset;
            // Flushed first, so that the error appears after the messages before it.
            out.flush()?;
            eprintln!("taran: {}", printable::one_line(&error.to_string()));
            Ok(false)
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !source::is_standard_input(path) {
        return input::read(path);
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn framing(header: FrameHeader) -> Option<Framing> {
    let length = |size, order| Some(Framing::Length { size, order });
    match header {
        FrameHeader::None => None,
        FrameHeader::U16le => length(LengthSize::Two, ByteOrder::Little),
        FrameHeader::U16be => length(LengthSize::Two, ByteOrder::Big),
        FrameHeader::U32le => length(LengthSize::Four, ByteOrder::Little),
        FrameHeader::U32be => length(LengthSize::Four, ByteOrder::Big),
        FrameHeader::Sofh => Some(Framing::SimpleOpen),
    }
}
