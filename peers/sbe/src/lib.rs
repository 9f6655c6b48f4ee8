// SPDX-License-Identifier: Apache-2.0
//! The same three messages written and read by our codecs, by those of the official tool, and by prost.
//!
//! A reader sums all values of a message, so that the compiler cannot remove any of the work.

#![forbid(unsafe_code)]

pub mod official_codecs;
pub mod ours;
pub mod protobuf;

/// Our codecs for `schema/bench.xml`.
pub mod bench {
    include!(concat!(env!("OUT_DIR"), "/bench.rs"));
}

/// One codec of one message.
pub struct Case {
    /// The codec and the message.
    pub name: &'static str,
    /// Writes the message; how long it is.
    pub encode: fn(&mut [u8], u64) -> usize,
    /// Reads it, and adds it up.
    pub decode: fn(&[u8]) -> u64,
}

/// All of them.
pub const CASES: [Case; 10] = [
    Case {
        name: "order/ours",
        encode: ours::order,
        decode: ours::read_order,
    },
    Case {
        name: "order/official",
        encode: official_codecs::order,
        decode: official_codecs::read_order,
    },
    Case {
        name: "order/prost",
        encode: protobuf::order,
        decode: protobuf::read_order,
    },
    Case {
        name: "book/ours",
        encode: ours::book,
        decode: ours::read_book,
    },
    Case {
        name: "book/official",
        encode: official_codecs::book,
        decode: official_codecs::read_book,
    },
    Case {
        name: "book/prost",
        encode: protobuf::book,
        decode: protobuf::read_book,
    },
    Case {
        name: "report/ours",
        encode: ours::report,
        decode: ours::read_report,
    },
    Case {
        name: "report/official",
        encode: official_codecs::report,
        decode: official_codecs::read_report,
    },
    Case {
        name: "report/prost",
        encode: protobuf::report,
        decode: protobuf::read_report,
    },
    // The others have one way to read entries.
    Case {
        name: "report/iterated",
        encode: ours::report,
        decode: ours::iterate_report,
    },
];

/// Number of levels of a book.
pub const LEVELS: u64 = 10;
/// The parties of a report, and how many fills each has.
pub const PARTIES: [(&str, u64); 2] = [("Alpha Trading", 3), ("Omega Securities", 2)];
/// Texts of a report.
pub const VENUE: &str = "XETRA";
/// Texts of a report.
pub const NOTE: &str = "filled in the opening auction";

/// Adds up numbers.
pub fn sum(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, u64::wrapping_add)
}

/// Adds up bytes.
pub fn bytes(bytes: &[u8]) -> u64 {
    bytes.len() as u64 + u64::from(bytes.first().copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_codecs_say_the_same_of_a_message_and_both_of_sbe_send_the_same_bytes() {
        for three in CASES.chunks(3) {
            let read: Vec<_> = three
                .iter()
                .map(|case| {
                    let mut buffer = [0; 1024];
                    let length = (case.encode)(&mut buffer, 1_700_000_000);
                    ((case.decode)(&buffer[..length]), buffer[..length].to_vec())
                })
                .collect();
            let [ours, official, prost] = read.as_slice() else {
                continue;
            };
            assert_eq!(ours.0, official.0, "{}", three[1].name);
            assert_eq!(ours.0, prost.0, "{}", three[2].name);
            assert_eq!(ours.1, official.1, "{}", three[1].name);
        }
        let mut buffer = [0; 1024];
        let length = ours::report(&mut buffer, 1_700_000_000);
        let both = [ours::read_report, ours::iterate_report].map(|read| read(&buffer[..length]));
        assert_eq!(both[0], both[1]);
    }
}
