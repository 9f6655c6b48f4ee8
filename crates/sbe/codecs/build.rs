// SPDX-License-Identifier: Apache-2.0
//! Generates the codecs.

use taran_sbe::build::{Build, BuildError};

fn main() -> Result<(), BuildError> {
    // The schemas cause many warnings on purpose.
    Build::new()
        .schema("schema/garage_v0.xml")
        .schema("schema/garage_v1.xml")
        .schema("schema/garage_v2.xml")
        .schema("schema/music_v0.xml")
        .schema("schema/music_v1.xml")
        .schema("schema/ticks_v5.xml")
        .schema("schema/ticks_v6.xml")
        .schema("schema/vast.xml")
        .schema("schema/twins.xml")
        .schema("schema/weather_v0.xml")
        .schema("schema/weather_v1.xml")
        .schema("../../archive-client/schema/archive.xml")
        .schema_as("../../archive-client/schema/mark.xml", "archive_mark")
        .schema("../../cluster-client/schema/cluster.xml")
        .schema_as("../../cluster/schema/mark.xml", "cluster_mark")
        .schema("../../cluster/schema/node.xml")
        .quiet()
        .run()?;
    Ok(())
}
