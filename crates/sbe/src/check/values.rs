// SPDX-License-Identifier: Apache-2.0
//! Checks value ranges and zero lengths.

use crate::model::{Scalar, Schema, Simple, Type, TypeKind};
use crate::problem::{Problem, Problems};

pub(super) fn schema(schema: &Schema, problems: &mut Problems) {
    for kind in &schema.types {
        each(kind, problems);
    }
}

/// Checks a type and the types nested in it. Referenced types are checked separately.
fn each(kind: &Type, problems: &mut Problems) {
    match &kind.kind {
        TypeKind::Simple(simple) => self::simple(kind, simple, problems),
        TypeKind::Composite(composite) => {
            for member in composite.members.iter().filter(|member| !member.is_ref) {
                // The length of `varData` is given by the member `length`.
                if member.name != "varData" {
                    each(&member.kind, problems);
                }
            }
        }
        TypeKind::Enum(_) | TypeKind::Set(_) => {}
    }
}

fn simple(kind: &Type, simple: &Simple, problems: &mut Problems) {
    if simple.length == 0 {
        problems.add(&kind.position, Problem::NoLength);
    }
    let upside_down = match (simple.min, simple.max) {
        (Scalar::Integer(min), Scalar::Integer(max)) => min > max,
        (Scalar::Real(min), Scalar::Real(max)) => min > max,
        _ => false,
    };
    if upside_down {
        let problem = Problem::MinAboveMax {
            min: simple.min.to_string(),
            max: simple.max.to_string(),
        };
        problems.add(&kind.position, problem);
    }
}
