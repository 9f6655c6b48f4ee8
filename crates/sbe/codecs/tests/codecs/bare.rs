// SPDX-License-Identifier: Apache-2.0
//! Codecs in a program without standard library and allocator, as on bare metal.
//!
//! The program has its own panic handler, which conflicts with that of the standard library, so it does not compile if
//! anything depends on the standard library. Allocation does not compile either, because there is no allocator.

use crate::rustc::Rustc;

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

#[test]
fn generated_code_compiles_without_std() {
    let rustc = Rustc::new("bare", &["garage_v2", "music_v1"]);
    let compile = |name: &str, text: &str| rustc.run(name, "staticlib", text);
    compile("bare.rs", PROGRAM).unwrap();
    // Verifies that the test detects a dependency on the standard library.
    let with_std = PROGRAM.replace("#![no_std]", "#![no_std]\nextern crate std;");
    let error = compile("not_bare.rs", &with_std).unwrap_err();
    assert!(error.contains("panic_impl"), "{error}");
    let with_alloc = PROGRAM.replace("#![no_std]", "#![no_std]\nextern crate alloc;");
    let error = compile("with_alloc.rs", &with_alloc).unwrap_err();
    assert!(error.contains("no global memory allocator"), "{error}");
}
