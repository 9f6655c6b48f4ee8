// SPDX-License-Identifier: Apache-2.0
//! Generates the codecs.

use taran_fix::build::{Build, BuildError};

fn main() -> Result<(), BuildError> {
    Build::new("../dictionary/FIX42.xml").run("fix42.rs")?;
    Build::new("../dictionary/FIX44.xml").run("fix44.rs")?;
    Build::new("../dictionary/FIX50SP2.xml")
        .transport("../dictionary/FIXT11.xml")
        .run("fix50sp2.rs")?;
    Ok(())
}
