// SPDX-License-Identifier: Apache-2.0
//! Output of the tools: text for people, or one JSON document per line for programs.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Prints a text in one write, so that readers never see a part of it.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// JSON formatter that also escapes the control characters which JSON allows in strings, so that output is safe on a
/// terminal.
struct EscapeControls;

impl serde_json::ser::Formatter for EscapeControls {
    fn write_string_fragment<W>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + io::Write,
    {
        let mut rest = fragment;
        while let Some(start) = rest.find(char::is_control) {
            writer.write_all(&rest.as_bytes()[..start])?;
            let mut following = rest[start..].chars();
            // Every control character is below U+00A0.
            if let Some(control) = following.next() {
                write!(writer, "\\u{:04x}", u32::from(control))?;
            }
            rest = following.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

/// Prints a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    json_to(&mut out, value)?;
    out.flush()?;
    Ok(())
}

/// Writes a value as one line of JSON.
pub(crate) fn json_to(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, EscapeControls);
    value.serialize(&mut serializer).map_err(io::Error::from)?;
    out.write_all(b"\n")
}
