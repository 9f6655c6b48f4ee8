//! `taran sbe decode`: what is in messages.

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

/// The arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Each message begins with its header. Messages lie one behind the other, or each in a frame that says how long it is; without
frames nobody can go on behind a message that is broken, or that a newer version made longer at its end.

  taran sbe decode schema.xml messages.bin
  taran sbe decode --json schema.xml messages.bin | jq .fields
  taran sbe decode --skip 24 --framing u32le schema.xml capture.bin
  xxd -r -p dump.txt | taran sbe decode schema.xml -

What is wrong with a schema is told as text on standard error, with --json too; taran sbe check --json tells it as JSON.

Exit status: 0 shown, 1 a schema or a message is broken, 2 wrong usage.")]
pub(crate) struct Arguments {
    /// The schema; - is standard input, whose includes lie in the current directory
    #[arg(value_name = "SCHEMA")]
    schema: PathBuf,

    /// The messages; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Pass over that many bytes first
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 0)]
    skip: usize,

    /// What is in front of each message
    #[arg(long, value_enum, default_value_t = InFront::None)]
    framing: InFront,

    /// The most values that one message may have
    #[arg(long, value_name = "VALUES", default_value_t = DEFAULT_LIMIT)]
    limit: usize,

    /// Print a JSON document for each message, one a line
    #[arg(long)]
    json: bool,
}

/// What is in front of each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum InFront {
    /// Nothing
    None,
    /// Its length in two bytes, little endian
    U16le,
    /// Its length in two bytes, big endian
    U16be,
    /// Its length in four bytes, little endian
    U32le,
    /// Its length in four bytes, big endian
    U32be,
    /// The Simple Open Framing Header of FIX
    Sofh,
}

/// Decodes them.
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
            "--skip is {}, and there are only {} bytes",
            arguments.skip,
            bytes.len()
        )));
    };
    let mut all_good = true;
    // All that there is to decode has been read, so nobody waits for what is kept here.
    let mut out = BufWriter::new(io::stdout().lock());
    let (skip, json) = (arguments.skip, arguments.json);
    match framing(arguments.framing) {
        None => {
            for message in decoder.messages(rest) {
                all_good &= show(message, skip, json, &mut out)?;
            }
        }
        Some(framing) => {
            for frame in frames(rest, framing) {
                let (message, offset) = match frame {
                    Ok(frame) => (decoder.message(frame.bytes), frame.offset),
                    Err(error) => (Err(error), 0),
                };
                all_good &= show(message, skip + offset, json, &mut out)?;
            }
        }
    }
    out.flush()?;
    Ok(if all_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Shows a message that was found so far from the start of the file, or says on standard error what it is instead.
fn show(
    found: Result<Message<'_>, DecodeError>,
    offset: usize,
    json: bool,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    match found {
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
            // It is told behind what came before it.
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

fn framing(asked: InFront) -> Option<Framing> {
    let length = |size, order| Some(Framing::Length { size, order });
    match asked {
        InFront::None => None,
        InFront::U16le => length(LengthSize::Two, ByteOrder::Little),
        InFront::U16be => length(LengthSize::Two, ByteOrder::Big),
        InFront::U32le => length(LengthSize::Four, ByteOrder::Little),
        InFront::U32be => length(LengthSize::Four, ByteOrder::Big),
        InFront::Sofh => Some(Framing::SimpleOpen),
    }
}
