// SPDX-License-Identifier: Apache-2.0
//! Readers for files of either format.

use std::fs;
use std::path::Path;

use super::{Diagnostic, Dictionary, Problem, Rejected, orchestra, quickfix};

/// Reads a dictionary in QuickFIX XML or Orchestra, with the base scenario of the latter.
///
/// # Errors
///
/// All problems of the file, with positions.
pub fn read_file(path: impl AsRef<Path>) -> Result<Dictionary, Rejected> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let is_file = fs::metadata(path).map(|metadata| metadata.is_file());
    let text = match is_file {
        Ok(true) => fs::read_to_string(path),
        Ok(false) => Err(std::io::Error::other("it is not a regular file")),
        Err(error) => Err(error),
    };
    match text {
        Ok(text) => read_text(&name, &text),
        Err(error) => Err(Rejected {
            problems: vec![Diagnostic {
                file: name,
                line: 1,
                column: 1,
                problem: Problem::Unreadable(error.to_string()),
            }],
        }),
    }
}

/// Reads a dictionary in QuickFIX XML or Orchestra; `file` is the name in problems.
///
/// # Errors
///
/// All problems of the text, with positions.
pub fn read_text(file: &str, text: &str) -> Result<Dictionary, Rejected> {
    // The name of the root element decides; the reader checks it.
    let is_repository = root_name(text).is_some_and(|name| name.ends_with("repository"));
    if is_repository {
        orchestra::read(file, text, orchestra::BASE)
    } else {
        quickfix::read(file, text)
    }
}

/// Returns the name of the first element, with its prefix.
fn root_name(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = &rest[rest.find('<')?..];
        let skipped = [("<!--", "-->"), ("<?", "?>")]
            .into_iter()
            .find_map(|(open, close)| {
                let inside = rest.strip_prefix(open)?;
                Some(
                    inside
                        .find(close)
                        .map_or(rest.len(), |end| open.len() + end + close.len()),
                )
            });
        match skipped {
            Some(length) => rest = &rest[length..],
            None => break,
        }
    }
    let name = &rest[1..];
    let end = name.find(|end: char| end.is_whitespace() || end == '>' || end == '/');
    Some(&name[..end.unwrap_or(name.len())])
}
