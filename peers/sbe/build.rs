//! Makes our codecs.

fn main() {
    taran_sbe::build::schemas(["schema/bench.xml"]);
}
