// SPDX-License-Identifier: Apache-2.0
//! Helpers of unit tests.

/// Makes a test for each provider in the build.
macro_rules! each_provider {
    ($($name:ident => $check:ident),+ $(,)?) => { $(
        #[test]
        fn $name() {
            #[cfg(feature = "aws-lc")]
            $check::<crate::provider::AwsLc>();
            #[cfg(feature = "graviola")]
            $check::<crate::provider::Graviola>();
        }
    )+ };
}
pub(crate) use each_provider;

/// Returns the bytes of hexadecimal digits.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(|byte| *byte != b' ').collect();
    digits
        .chunks(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("ASCII");
            u8::from_str_radix(pair, 16).expect("hexadecimal digits")
        })
        .collect()
}
