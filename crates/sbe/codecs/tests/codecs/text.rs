//! Generated text is as rustfmt would set it, and the same each time.

use std::path::Path;
use std::process::Command;

use taran_sbe::{compile_file, generate};

const SCHEMAS: [&str; 5] = ["garage_v0", "garage_v1", "garage_v2", "ticks", "vast"];

fn generated(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
    let compiled = compile_file(&folder.join(name).with_extension("xml")).unwrap();
    let files = generate::rust(&compiled.schema).unwrap();
    let [file] = files.try_into().unwrap();
    file.text
}

#[test]
fn the_same_schema_becomes_the_same_text() {
    for name in SCHEMAS {
        assert_eq!(generated(name), generated(name), "{name}");
    }
}

#[test]
fn rustfmt_would_change_nothing() {
    for name in SCHEMAS {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.rs"));
        std::fs::write(&path, generated(name)).unwrap();
        let mut rustfmt = Command::new("rustfmt");
        rustfmt.args(["--check", "--edition", "2024"]).arg(&path);
        let output = rustfmt.output().expect("rustfmt, which comes with Rust");
        assert!(
            output.status.success(),
            "{name}:\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
