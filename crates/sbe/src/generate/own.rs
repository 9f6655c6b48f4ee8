//! Headers of messages, and dimensions of groups, that have more than the standard asks for.

use super::names;
use crate::model::{Type, TypeKind};

const COUNTS: [&str; 2] = ["numGroups", "numVarDataFields"];

/// The type of a header that has members of its own, as the modules of messages call it.
pub(super) fn header(kind: &Type) -> Option<String> {
    let standard = ["blockLength", "templateId", "schemaId", "version"];
    has_own(kind, &standard).then(|| path(kind))
}

/// The type of dimensions that have members of their own, as the modules of messages call it.
pub(super) fn dimensions(kind: &Type) -> Option<String> {
    has_own(kind, &["blockLength", "numInGroup"]).then(|| path(kind))
}

fn has_own(kind: &Type, standard: &[&str]) -> bool {
    let TypeKind::Composite(composite) = &kind.kind else {
        return false;
    };
    composite.members.iter().any(|member| {
        let name = member.name.as_str();
        member.kind.encoded_length() > 0 && !standard.contains(&name) && !COUNTS.contains(&name)
    })
}

fn path(kind: &Type) -> String {
    format!("types::{}", names::kind(&kind.name))
}
