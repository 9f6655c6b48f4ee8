// SPDX-License-Identifier: Apache-2.0
//! Validation rules of the standard that apply to the whole model.

mod fits;
mod values;
mod versions;

use crate::model::Schema;
use crate::problem::Problems;

/// Reports all problems that cannot be detected while the individual elements are read.
pub(crate) fn schema(schema: &Schema, problems: &mut Problems) {
    fits::schema(schema, problems);
    values::schema(schema, problems);
    versions::schema(schema, problems);
}
