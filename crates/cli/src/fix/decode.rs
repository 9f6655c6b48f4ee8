// SPDX-License-Identifier: Apache-2.0
//! `taran fix decode`: messages of a log.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use taran_fix::dict::decode::{Decoded, Found, Line, Log, decode};
use taran_fix::dict::{Checks, Validator};

use crate::failure::Failure;
use crate::input;
use crate::output;
use crate::printable;

/// Tags whose values are masked: passwords.
const MASKED: &[u32] = &[554, 925, 1402, 1404, 96];

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Finds messages in bytes as received and in text, with SOH, | or ^A between fields and anything between messages. Without a
dictionary, tags have no names. Defects are printed below the message that has them.

  taran fix decode --dictionary FIX44.xml fix.log
  taran fix decode -d FIX44.xml --type D --where 55=MSFT - < fix.log

Exit status: 0 all messages are valid, 1 there are defects, or no message, or an input cannot be read, 2 incorrect usage.")]
pub(crate) struct Arguments {
    /// The log; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Dictionary for names and checks
    #[arg(short = 'd', long, value_name = "DICTIONARY")]
    dictionary: Option<PathBuf>,

    /// Print only messages of these types, by MsgType
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,

    /// Print only messages from or to this CompID
    #[arg(long, value_name = "COMPID")]
    session: Option<String>,

    /// Print only messages that have this field
    #[arg(long = "where", value_name = "TAG=VALUE", value_parser = condition)]
    conditions: Vec<(u32, String)>,

    /// Tags whose values are replaced by asterisks [default: passwords]
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    mask: Option<Vec<u32>>,

    /// Print one line for each message
    #[arg(long, conflicts_with = "json")]
    brief: bool,

    /// Print a JSON document for each message, one per line
    #[arg(long)]
    json: bool,
}

fn condition(text: &str) -> Result<(u32, String), String> {
    let parts = text.split_once('=');
    let parsed = parts.and_then(|(tag, value)| Some((tag.parse().ok()?, value.to_owned())));
    parsed.ok_or_else(|| "expected TAG=VALUE, such as 55=MSFT".to_owned())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'decoded> {
    offset: usize,
    msg_type: &'decoded str,
    name: Option<&'decoded str>,
    fields: Vec<DocumentField<'decoded>>,
    problems: &'decoded [String],
}

#[derive(Serialize)]
struct DocumentField<'decoded> {
    tag: u32,
    name: Option<&'decoded str>,
    value: &'decoded str,
    meaning: Option<&'decoded str>,
    depth: usize,
}

/// Prints the messages.
pub(crate) fn run(arguments: &Arguments, transport: Option<&Path>) -> Result<ExitCode, Failure> {
    let dictionary = arguments
        .dictionary
        .as_deref()
        .map(|path| super::dictionary(path, transport))
        .transpose()?;
    let bytes = read(&arguments.file).map_err(|source| Failure::File {
        path: arguments.file.clone(),
        source,
    })?;
    let mask = arguments.mask.as_deref().unwrap_or(MASKED);
    let mut validator = Validator::new(Checks::default());
    // All input has been read, so buffered output delays no reader.
    let mut out = BufWriter::new(io::stdout().lock());
    let (mut all_valid, mut count) = (true, 0usize);
    for found in Log::new(&bytes) {
        count += 1;
        // Conditions see values that the output masks.
        let decoded = decode(&found.bytes, dictionary.as_ref(), &mut validator, mask);
        if !is_selected(arguments, &found, &decoded) {
            continue;
        }
        all_valid &= decoded.problems.is_empty();
        if arguments.json {
            output::json_to(&mut out, &document(&found, &decoded))?;
        } else if arguments.brief {
            writeln!(out, "{}", brief(&found, &decoded))?;
        } else {
            out.write_all(text(&found, &decoded).as_bytes())?;
        }
    }
    out.flush()?;
    if count == 0 {
        let name = arguments.file.display();
        return Err(Failure::Other(format!("{name} has no FIX message")));
    }
    Ok(if all_valid {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path != Path::new("-") {
        return input::read(path);
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_selected(arguments: &Arguments, found: &Found, decoded: &Decoded) -> bool {
    let has = |tag: u32, value: &str| {
        let field = format!("\x01{tag}={value}\x01");
        let text = String::from_utf8_lossy(&found.bytes);
        text.contains(&field)
    };
    let is_type = arguments.types.is_empty() || arguments.types.contains(&decoded.msg_type);
    let is_session = arguments
        .session
        .as_ref()
        .is_none_or(|id| has(49, id) || has(56, id));
    is_type
        && is_session
        && arguments
            .conditions
            .iter()
            .all(|(tag, value)| has(*tag, value))
}

fn document<'decoded>(found: &Found, decoded: &'decoded Decoded) -> Document<'decoded> {
    let fields = decoded
        .lines
        .iter()
        .map(|line| DocumentField {
            tag: line.tag,
            name: line.name.as_deref(),
            value: &line.value,
            meaning: line.meaning.as_deref(),
            depth: line.depth,
        })
        .collect();
    Document {
        offset: found.offset,
        msg_type: &decoded.msg_type,
        name: decoded.name.as_deref(),
        fields,
        problems: &decoded.problems,
    }
}

fn value(decoded: &Decoded, tag: u32) -> &str {
    let line = decoded.lines.iter().find(|line| line.tag == tag);
    line.map_or("", |line| line.value.as_str())
}

fn brief(found: &Found, decoded: &Decoded) -> String {
    let name = decoded.name.as_deref().unwrap_or(&decoded.msg_type);
    let defect = if decoded.problems.is_empty() {
        ""
    } else {
        "  DEFECTIVE"
    };
    let line = format!(
        "{:>8} {} {}>{} {:>6} {name}{defect}",
        found.offset,
        value(decoded, 52),
        value(decoded, 49),
        value(decoded, 56),
        value(decoded, 34),
    );
    printable::one_line(&line).into_owned()
}

fn text(found: &Found, decoded: &Decoded) -> String {
    let name = decoded.name.as_deref().unwrap_or("message");
    let head = format!("{}: {name} ({})", found.offset, decoded.msg_type);
    let mut text = printable::one_line(&head).into_owned();
    text.push('\n');
    for line in &decoded.lines {
        let _ = writeln!(text, "{}", printable::one_line(&field(line)));
    }
    for problem in &decoded.problems {
        let _ = writeln!(text, "  ! {}", printable::one_line(problem));
    }
    text
}

fn field(line: &Line) -> String {
    let indent = "  ".repeat(line.depth + 1);
    let entry = line
        .entry
        .map_or_else(String::new, |entry| format!("[{entry}] "));
    let name = line.name.as_deref().unwrap_or("-");
    let meaning = line
        .meaning
        .as_ref()
        .map_or_else(String::new, |meaning| format!(" {meaning}"));
    format!(
        "{indent}{entry}{:<6} {name:<24} {}{meaning}",
        line.tag, line.value
    )
}
