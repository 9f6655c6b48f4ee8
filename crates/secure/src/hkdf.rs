// SPDX-License-Identifier: Apache-2.0
//! HKDF with SHA-256 (RFC 5869) over the HMAC of a provider.

use zeroize::Zeroize;

use crate::provider::Provider;
use crate::secret::Secret;

/// Returns the pseudorandom key of input key material.
pub(crate) fn extract<P: Provider>(salt: &[u8], material: &[u8]) -> Secret {
    Secret::new(P::hmac_sha256(salt, &[material]))
}

/// Fills `output`, of at most 8,160 bytes, with output key material.
pub(crate) fn expand<P: Provider>(key: &Secret, info: &[&[u8]], output: &mut [u8]) {
    assert!(output.len() <= 255 * 32, "RFC 5869 limits the output");
    let mut block = [0; 32];
    for (index, chunk) in output.chunks_mut(32).enumerate() {
        let previous: &[u8] = if index == 0 { &[] } else { &block };
        let counter = [index as u8 + 1];
        let mut parts = Vec::with_capacity(info.len() + 2);
        parts.push(previous);
        parts.extend_from_slice(info);
        parts.push(&counter);
        let next = P::hmac_sha256(key.expose(), &parts);
        block = next;
        chunk.copy_from_slice(&block[..chunk.len()]);
    }
    block.zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::{each_provider, hex};

    fn check<P: Provider>(material: &str, salt: &str, info: &str, key: &str, output: &str) {
        let extracted = extract::<P>(&hex(salt), &hex(material));
        assert_eq!(extracted.expose().as_slice(), hex(key));
        let expected = hex(output);
        let mut expanded = vec![0; expected.len()];
        expand::<P>(&extracted, &[&hex(info)], &mut expanded);
        assert_eq!(expanded, expected);
    }

    fn rfc5869<P: Provider>() {
        check::<P>(
            "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
            "000102030405060708090a0b0c",
            "f0f1f2f3f4f5f6f7f8f9",
            "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
        );
        check::<P>(
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f\
             303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f",
            "606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f\
             909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
            "b0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf\
             e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
            "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09\
             da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
        );
        check::<P>(
            "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
            "",
            "",
            "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
        );
    }

    each_provider!(hkdf_of_rfc_5869_inputs_gives_its_outputs => rfc5869);
}
