//! The rules of the standard that only a whole model can be held to.

mod fits;
mod values;
mod versions;

use crate::model::Schema;
use crate::problem::Problems;

/// Tells everything that is wrong with a schema beyond what its parts alone show.
pub(crate) fn schema(schema: &Schema, problems: &mut Problems) {
    fits::schema(schema, problems);
    values::schema(schema, problems);
    versions::schema(schema, problems);
}
