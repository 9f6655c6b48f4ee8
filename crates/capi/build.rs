// SPDX-License-Identifier: Apache-2.0
//! Names the shared library for the dynamic linker.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Until 1.0, a minor version may change the interface.
    let version = concat!(
        env!("CARGO_PKG_VERSION_MAJOR"),
        ".",
        env!("CARGO_PKG_VERSION_MINOR")
    );
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtaran.so.{version}");
}
