// SPDX-License-Identifier: Apache-2.0
//! Generates random schemas, compiles their codecs, and compares what these write and read with the schema-driven
//! decoder.
//!
//! `TARAN_SBE_SCHEMAS` sets the number of schemas, `TARAN_SBE_SEED` the seed of the first one. The generated files stay
//! in `target/tmp/random-SEED`.

#![expect(clippy::unwrap_used, reason = "tests")]

mod chance;
mod program;
mod schema;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use schema::Shapes;
use serde_json::Value;
use taran_sbe::decode::Decoder;
use taran_sbe::model::Schema;
use taran_sbe::problem::Problem;
use taran_sbe::xml::NoFiles;
use taran_sbe::{compile, generate};

/// Number of messages written per message of each schema.
const ROUNDS: u32 = 12;

#[test]
fn random_schema_codecs_agree_with_schema_driven_decoder() {
    let number = |name, otherwise| {
        std::env::var(name).map_or(otherwise, |text| text.parse::<u64>().unwrap())
    };
    let first = number("TARAN_SBE_SEED", 1);
    let count = number("TARAN_SBE_SCHEMAS", 8);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("random-{first}"));
    fs::create_dir_all(&folder).unwrap();
    let mut shapes = Shapes::default();
    let schemas: Vec<Schema> = (first..first + count)
        .flat_map(|seed| both_versions(seed, &folder, &mut shapes))
        .collect();
    if count >= 8 {
        let Shapes {
            as_old_as_types,
            unsent_behind,
            late_messages,
        } = shapes;
        let least = as_old_as_types.min(unsent_behind).min(late_messages);
        assert!(least > 0, "some did not come up: {shapes:?}");
    }
    let program = build(&schemas, &folder);
    let output = Command::new(program).output().unwrap();
    let (out, err) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{err}");
    let mut messages = 0;
    for line in out.lines() {
        let [reader, hex, read] = line.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
        let reader: usize = reader.parse().unwrap();
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        let generic = Decoder::new(&schemas[reader]).message(&bytes).unwrap();
        let generic = serde_json::to_value(&generic).unwrap()["fields"].to_string();
        // Both are parsed from text, so that parsing affects their numbers equally.
        let [read, generic]: [Value; 2] =
            [read, &generic].map(|text| serde_json::from_str(text).unwrap());
        let seed = first + reader as u64 / 2;
        assert_eq!(
            read,
            generic,
            "seed {seed}, schema {}",
            folder.join(format!("{seed}.{}.xml", reader % 2)).display()
        );
        messages += 1;
    }
    let least = 2 * 2 * count * u64::from(ROUNDS);
    assert!(messages >= least, "{messages} messages of at least {least}");
    println!("{count} schemas, {messages} messages read");
}

/// Returns the older and the newer version of a random schema.
fn both_versions(seed: u64, folder: &Path, shapes: &mut Shapes) -> [Schema; 2] {
    let random = schema::random(seed);
    shapes.as_old_as_types += random.shapes.as_old_as_types;
    shapes.unsent_behind += random.shapes.unsent_behind;
    shapes.late_messages += random.shapes.late_messages;
    [0, random.version].map(|version| {
        let text = random.at(version);
        let path = folder.join(format!("{seed}.{version}.xml"));
        fs::write(&path, &text).unwrap();
        let compiled = compile("", &NoFiles(&text))
            .unwrap_or_else(|error| panic!("{}:\n{error}", path.display()));
        assert_eq!(compiled.schema.id, random.id);
        // Only these warnings are allowed.
        for warning in &compiled.warnings {
            let is_misplaced = matches!(
                warning.problem,
                Problem::VersionOrder { .. } | Problem::CompositeExtended { .. }
            );
            assert!(!is_misplaced, "{}: {warning}", path.display());
        }
        compiled.schema
    })
}

/// Builds the program that uses the codecs of all schemas.
fn build(schemas: &[Schema], folder: &Path) -> PathBuf {
    for (index, schema) in schemas.iter().enumerate() {
        let files = generate::rust(schema).unwrap();
        fs::write(folder.join(format!("s{index}.rs")), &files[0].text).unwrap();
    }
    formatted(folder, schemas.len());
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/random");
    let [chance, json] = ["chance.rs", "json.rs"].map(|name| here.join(name).display().to_string());
    let text = program::program(schemas, ROUNDS, &chance, &json);
    fs::write(folder.join("main.rs"), text).unwrap();
    // The codecs depend only on the runtime module, which compiles quickly.
    let runtime = here.join("../../../src/runtime/mod.rs");
    let library = format!(
        "#![no_std]\n#[path = {:?}]\npub mod runtime;\n",
        runtime.display().to_string()
    );
    fs::write(folder.join("lib.rs"), library).unwrap();
    rustc(
        folder,
        &["--crate-name=taran_sbe", "--crate-type=rlib", "lib.rs"],
    );
    rustc(folder, &["--extern=taran_sbe=libtaran_sbe.rlib", "main.rs"]);
    folder.join("main")
}

/// Checks that the codecs are formatted as by rustfmt.
fn formatted(folder: &Path, schemas: usize) {
    let output = Command::new("rustfmt")
        .args(["--check", "--edition=2024"])
        .args((0..schemas).map(|index| format!("s{index}.rs")))
        .current_dir(folder)
        .output()
        .expect("rustfmt, which comes with Rust");
    let changes = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{changes}");
}

fn rustc(folder: &Path, arguments: &[&str]) {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition=2024", "--cap-lints=allow", "-Cdebuginfo=0"])
        .args(["-Cdebug-assertions=yes", "-Coverflow-checks=yes"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "in {}:\n{errors}",
        folder.display()
    );
}
