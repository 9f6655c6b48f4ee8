// SPDX-License-Identifier: Apache-2.0
//! Generates the codecs.

use taran_sbe::build::{Build, BuildError};

fn main() -> Result<(), BuildError> {
    Build::new().schema("schema/cluster.xml").run()?;
    Ok(())
}
