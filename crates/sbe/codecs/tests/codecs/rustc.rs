// SPDX-License-Identifier: Apache-2.0
//! Compiles programs that use the codecs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::text::generated;

/// Folder with the codecs and the library without its default features.
pub(crate) struct Rustc {
    folder: PathBuf,
}

impl Rustc {
    pub(crate) fn new(name: &str, codecs: &[&str]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        for name in codecs {
            let path = folder.join(name).with_extension("rs");
            std::fs::write(path, generated(name)).unwrap();
        }
        let this = Self { folder };
        let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/lib.rs");
        let library = library.display().to_string();
        this.compile(&["--crate-name=taran_sbe", "--crate-type=rlib", &library])
            .unwrap();
        this
    }

    /// Compiles a source text; the error is the output of the compiler.
    pub(crate) fn run(&self, name: &str, kind: &str, text: &str) -> Result<(), String> {
        std::fs::write(self.folder.join(name), text).unwrap();
        let kind = format!("--crate-type={kind}");
        self.compile(&[&kind, "--extern=taran_sbe=libtaran_sbe.rlib", name])
    }

    fn compile(&self, arguments: &[&str]) -> Result<(), String> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(rustc)
            .args(["--edition=2024", "--cap-lints=allow", "-Cpanic=abort"])
            .args(arguments)
            .env("GENERATED", &self.folder)
            .current_dir(&self.folder)
            .output()
            .unwrap();
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// As in the schema `issue910.xml` of the official tool's tests: a byte for the length, and one for `varData`.
#[test]
fn code_of_a_field_of_a_data_composite_compiles() {
    let schema = r#"<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="a" id="910" version="0">
        <types>
            <composite name="messageHeader">
                <type name="blockLength" primitiveType="uint16"/>
                <type name="templateId" primitiveType="uint16"/>
                <type name="schemaId" primitiveType="uint16"/>
                <type name="version" primitiveType="uint16"/>
            </composite>
            <composite name="varDataEncoding">
                <type name="length" primitiveType="uint8"/>
                <type name="varData" primitiveType="char"/>
            </composite>
        </types>
        <sbe:message name="M" id="2"><field name="yield" type="varDataEncoding" id="1"/></sbe:message>
    </sbe:messageSchema>"#;
    let compiled = taran_sbe::compile("", &taran_sbe::xml::NoFiles(schema)).unwrap();
    assert_eq!(compiled.schema.messages[0].block.length, 2);
    let files = taran_sbe::generate::rust(&compiled.schema).unwrap();
    let rustc = Rustc::new("data-composite", &[]);
    rustc
        .run("data_composite.rs", "rlib", &files[0].text)
        .unwrap();
}
