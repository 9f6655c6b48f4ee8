// SPDX-License-Identifier: Apache-2.0
//! Valid and invalid schemas.

mod accepted;
mod costs;
mod decode;
mod describe;
mod diff;
mod hostile;
mod includes;
mod protocols;
mod refused;
mod versions;

use taran_sbe::model::Schema;
use taran_sbe::problem::{Diagnostic, Severity};
use taran_sbe::xml::NoFiles;
use taran_sbe::{Rejected, compile};

/// Header, dimensions and data composites for most tests.
const FRAMES: &str = r#"<types>
<composite name="messageHeader">
  <type name="blockLength" primitiveType="uint16"/>
  <type name="templateId" primitiveType="uint16"/>
  <type name="schemaId" primitiveType="uint16"/>
  <type name="version" primitiveType="uint16"/>
</composite>
<composite name="groupSizeEncoding">
  <type name="blockLength" primitiveType="uint16"/>
  <type name="numInGroup" primitiveType="uint16"/>
</composite>
<composite name="varText">
  <type name="length" primitiveType="uint16"/>
  <type name="varData" primitiveType="uint8" length="0" characterEncoding="UTF-8"/>
</composite>
</types>
"#;

/// Returns a schema of version 3 with these types and messages.
fn text(types: &str, messages: &str) -> String {
    text_of_version(3, types, messages)
}

fn text_of_version(version: u32, types: &str, messages: &str) -> String {
    // Keeps the line numbers if there are no types.
    let types = match types {
        "" => "\n\n".to_owned(),
        _ => format!("<types>\n{types}\n</types>"),
    };
    format!(
        "<sbe:messageSchema xmlns:sbe=\"http://fixprotocol.io/2016/sbe\" package=\"a.b\" id=\"7\" version=\"{version}\">\n\
         {FRAMES}{types}\n{messages}\n</sbe:messageSchema>"
    )
}

fn accepted(types: &str, messages: &str) -> Schema {
    let compiled = compile("", &NoFiles(&text(types, messages)))
        .unwrap_or_else(|rejected| panic!("{rejected}"));
    assert_eq!(compiled.warnings, []);
    compiled.schema
}

fn problems(types: &str, messages: &str) -> Vec<Diagnostic> {
    match compile("", &NoFiles(&text(types, messages))) {
        Ok(compiled) => compiled.warnings,
        Err(Rejected { problems }) => {
            let is_error = |found: &Diagnostic| found.severity() == Severity::Error;
            assert!(problems.iter().any(is_error), "{problems:?}");
            problems
        }
    }
}
