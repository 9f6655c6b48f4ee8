// SPDX-License-Identifier: Apache-2.0
//! Makes our codecs.

fn main() {
    taran_sbe::build::schemas(["schema/bench.xml"]);
}
