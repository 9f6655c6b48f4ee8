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
