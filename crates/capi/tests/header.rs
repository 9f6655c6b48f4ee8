// SPDX-License-Identifier: Apache-2.0
//! `include/taran.h` is what cbindgen makes of this crate.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs;
use std::path::Path;
use std::process::Command;

/// `TARAN_WRITE_HEADER=1 cargo test -p taran-c --test header` writes the header.
#[test]
fn header_is_current() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = package.join("include/taran.h");
    let config = cbindgen::Config::from_file(package.join("cbindgen.toml")).unwrap();
    // The source by name, whose modules cbindgen follows: to find it by the manifest, cbindgen would run Cargo.
    let builder = cbindgen::Builder::new()
        .with_config(config)
        .with_src(package.join("src/lib.rs"));
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    if std::env::var_os("TARAN_WRITE_HEADER").is_some() {
        fs::write(&path, &made).unwrap();
        return;
    }
    assert!(
        fs::read(&path).unwrap_or_default() == made,
        "{} is not current; write it by: TARAN_WRITE_HEADER=1 cargo test -p taran-c --test header",
        path.display()
    );
}

#[test]
fn header_is_also_one_of_cpp() {
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/include/taran.h");
    let compiled = Command::new("c++")
        .args([
            "-x",
            "c++",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "-fsyntax-only",
            header,
        ])
        .output();
    match compiled {
        Ok(output) => assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => eprintln!("SKIPPED: no C++ compiler: {error}"),
    }
}
