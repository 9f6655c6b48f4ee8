//! Codecs in a program that has no standard library and no allocator, as on bare metal.
//!
//! It has a panic handler of its own, and a second one is an error: with the standard library, or anything that brings it in,
//! it would not compile. What allocates would not either, as there is no allocator.

use std::path::Path;
use std::process::Command;

use crate::text::generated;

const PROGRAM: &str = r#"#![no_std]

pub mod garage {
    include!(concat!(env!("GENERATED"), "/garage_v2.rs"));
}
pub mod music {
    include!(concat!(env!("GENERATED"), "/music_v1.rs"));
}

#[panic_handler]
fn stop(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

pub fn echo(bytes: &[u8], buffer: &mut [u8], out: &mut dyn core::fmt::Write) -> Option<usize> {
    let car = garage::car::CarDecoder::decode(bytes).ok()?;
    write!(out, "{car}").ok()?;
    let mut ping = garage::ping::PingEncoder::encode(buffer).ok()?;
    ping.nonce(car.serial());
    Some(ping.finish())
}
"#;

fn rustc(folder: &Path, arguments: &[&str]) -> Result<(), String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition=2024", "--cap-lints=allow", "-Cpanic=abort"])
        .args(arguments)
        .env("GENERATED", folder)
        .current_dir(folder)
        .output()
        .unwrap();
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn codecs_need_nothing_but_the_core_of_the_language() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bare");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["garage_v2", "music_v1"] {
        let path = folder.join(name).with_extension("rs");
        std::fs::write(path, generated(name)).unwrap();
    }
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/lib.rs");
    let library = library.display().to_string();
    rustc(
        &folder,
        &["--crate-name=taran_sbe", "--crate-type=rlib", &library],
    )
    .unwrap();
    let compile = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).unwrap();
        let extern_crate = "--extern=taran_sbe=libtaran_sbe.rlib";
        rustc(&folder, &["--crate-type=staticlib", extern_crate, name])
    };
    compile("bare.rs", PROGRAM).unwrap();
    // So it would be seen.
    let with_std = PROGRAM.replace("#![no_std]", "#![no_std]\nextern crate std;");
    let error = compile("not_bare.rs", &with_std).unwrap_err();
    assert!(error.contains("panic_impl"), "{error}");
    let with_alloc = PROGRAM.replace("#![no_std]", "#![no_std]\nextern crate alloc;");
    let error = compile("with_alloc.rs", &with_alloc).unwrap_err();
    assert!(error.contains("no global memory allocator"), "{error}");
}
