// SPDX-License-Identifier: Apache-2.0
//! Message headers and group dimensions with members beyond those of the standard.

use super::type_names::TypeNames;
use crate::model::{Type, TypeKind};

const COUNTS: [&str; 2] = ["numGroups", "numVarDataFields"];

/// Returns the type of a message header with additional members, as a path in message modules.
pub(super) fn header(kind: &Type, types: &TypeNames<'_>) -> Option<String> {
    in_header(kind).then(|| path(kind, types))
}

/// Returns the type of group dimensions with additional members, as a path in message modules.
pub(super) fn dimensions(kind: &Type, types: &TypeNames<'_>) -> Option<String> {
    in_dimensions(kind).then(|| path(kind, types))
}

pub(super) fn in_header(kind: &Type) -> bool {
    has_others(kind, &["blockLength", "templateId", "schemaId", "version"])
}

pub(super) fn in_dimensions(kind: &Type) -> bool {
    has_others(kind, &["blockLength", "numInGroup"])
}

fn has_others(kind: &Type, standard: &[&str]) -> bool {
    let TypeKind::Composite(composite) = &kind.kind else {
        return false;
    };
    composite.members.iter().any(|member| {
        let name = member.name.as_str();
        member.kind.encoded_length() > 0 && !standard.contains(&name) && !COUNTS.contains(&name)
    })
}

fn path(kind: &Type, types: &TypeNames<'_>) -> String {
    format!("types::{}", types.top(&kind.name))
}
