// SPDX-License-Identifier: Apache-2.0
//! Loss injection in a running driver, with the options of the C driver (docs/spec/uri-and-configuration.md §2.5).
//!
//! `AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS` and `..._OUTGOING_INTERCEPTORS` name the interceptors that datagrams pass,
//! in that order; each interceptor has an option with its arguments. A datagram dropped by one interceptor does not
//! reach the next. The rules by which datagrams are counted and dropped are those of the C driver, so that a test gets
//! the same loss. Missing or malformed arguments, which the C driver tolerates, are rejected at start.

mod arguments;
mod fixed_loss;
mod multi_gap_loss;
mod random_loss;
mod stream_offsets;

use taran_net::{DatagramFilter, FilterLayer};
use taran_protocol::option::{OptionId, OptionSet};

use arguments::Arguments;
use fixed_loss::FixedLoss;
use multi_gap_loss::MultiGapLoss;
use random_loss::RandomLoss;

use crate::context::Conflict;

/// Maximum interceptors in a list.
const MAX_NAMES: usize = 10;

/// Interceptors named by the options.
#[derive(Debug)]
pub(crate) struct Interceptors {
    incoming: Option<Chain>,
    outgoing: Option<Chain>,
}

/// Interceptors in order.
#[derive(Debug)]
struct Chain(Vec<Box<dyn DatagramFilter>>);

impl DatagramFilter for Chain {
    fn admits(&mut self, datagram: &[u8]) -> bool {
        self.0.iter_mut().all(|filter| filter.admits(datagram))
    }
}

impl Interceptors {
    /// Reads the options.
    pub(crate) fn from_options(options: &OptionSet) -> Result<Self, Conflict> {
        Ok(Self {
            incoming: chain(
                options,
                OptionId::IncomingInterceptors,
                options.udp_channel_incoming_interceptors(),
            )?,
            outgoing: chain(
                options,
                OptionId::OutgoingInterceptors,
                options.udp_channel_outgoing_interceptors(),
            )?,
        })
    }

    /// Returns the interceptors as a network layer, which applies to no transport if there are none.
    pub(crate) fn into_layer(self) -> FilterLayer {
        FilterLayer::new(self.incoming, self.outgoing)
    }
}

fn chain(
    options: &OptionSet,
    option: OptionId,
    names: Option<&str>,
) -> Result<Option<Chain>, Conflict> {
    let names: Vec<&str> = names
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    let conflict = |needed: String| Conflict {
        option,
        value: options.text(option),
        needed,
    };
    if names.len() > MAX_NAMES {
        return Err(conflict(format!(
            "names too many interceptors, at most {MAX_NAMES} are allowed"
        )));
    }
    let mut filters = Vec::with_capacity(names.len());
    for name in names {
        filters.push(match name {
            "loss" => RandomLoss::build(&arguments(options, OptionId::LossArgs)?)?,
            "fixed-loss" => FixedLoss::build(&arguments(options, OptionId::FixedLossArgs)?)?,
            "multi-gap-loss" => {
                MultiGapLoss::build(&arguments(options, OptionId::MultiGapLossArgs)?)?
            }
            other => {
                return Err(conflict(format!(
                    "names an unknown interceptor, {other}: must be loss, fixed-loss or multi-gap-loss, \
                     separated by commas"
                )));
            }
        });
    }
    Ok((!filters.is_empty()).then_some(Chain(filters)))
}

fn arguments(options: &OptionSet, option: OptionId) -> Result<Arguments, Conflict> {
    Arguments::read(option, &options.text(option))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use taran_protocol::frame::{DataHeader, IntoBytes, Nak};
    use taran_protocol::option::Source;

    use super::*;

    const LOSS_ARGS: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS";
    const FIXED_ARGS: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS";
    const GAP_ARGS: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS";
    const INCOMING: &str = "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS";
    const OUTGOING: &str = "AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS";

    fn read(variables: &[(&str, &str)]) -> Result<Interceptors, Conflict> {
        let mut options = OptionSet::driver();
        let variables = variables
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        options.apply(&Source::Environment, variables).unwrap();
        Interceptors::from_options(&options)
    }

    proptest! {
        #[test]
        fn arbitrary_arguments_are_accepted_or_rejected_by_name(
            names in "(loss|fixed-loss|multi-gap-loss|[a-z-]{0,6}|,| ){0,4}",
            arguments in "((rate|seed|term-id|term-offset|length|total-gaps|gap-radix|gap-length|recv-msg-mask)=[0-9a-fx.-]{0,22}[|]){0,4}|\\PC{0,30}",
            datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..4),
        ) {
            let variables = [LOSS_ARGS, FIXED_ARGS, GAP_ARGS].map(|name| (name, arguments.as_str()));
            let variables = [&variables[..], &[(INCOMING, names.as_str())]].concat();
            match read(&variables) {
                Ok(Interceptors { incoming, .. }) => {
                    if let Some(mut chain) = incoming {
                        for datagram in &datagrams {
                            chain.admits(datagram);
                        }
                    }
                }
                Err(conflict) => prop_assert!(conflict.to_string().contains(conflict.option.spec().property)),
            }
        }
    }

    fn incoming(variables: &[(&str, &str)]) -> Chain {
        read(variables).unwrap().incoming.unwrap()
    }

    /// Returns a data frame of `length` bytes.
    fn data(session_id: i32, term_id: i32, offset: i32, length: usize) -> Vec<u8> {
        let mut header = DataHeader::heartbeat(0xC0, session_id, 7, term_id, offset);
        header.header.frame_length = (length as i32).into();
        let mut frame = header.as_bytes().to_vec();
        frame.resize(length, 0);
        frame
    }

    #[test]
    fn empty_lists_intercept_nothing() {
        let none = read(&[(LOSS_ARGS, "rate=1|recv-msg-mask=0xff")]).unwrap();
        assert!(none.incoming.is_none() && none.outgoing.is_none());
        let blank = read(&[(INCOMING, " , ")]).unwrap();
        assert!(blank.incoming.is_none());
    }

    #[test]
    fn random_loss_drops_masked_types_at_rate() {
        let args = "rate=0.20|seed=3735928559|recv-msg-mask=0x2";
        let mut chain = incoming(&[(INCOMING, "loss"), (LOSS_ARGS, args)]);
        let datagram = data(1, 0, 0, 64);
        let passed = (0..10_000).filter(|_| chain.admits(&datagram)).count();
        assert!((7_800..8_200).contains(&passed), "{passed}");
        let nak = Nak {
            header: Nak::header(),
            session_id: 1.into(),
            stream_id: 1.into(),
            term_id: 0.into(),
            term_offset: 0.into(),
            length: 32.into(),
        };
        assert!((0..1_000).all(|_| chain.admits(nak.as_bytes())));
        assert!(chain.admits(&[]) && chain.admits(&[0; 7]));
    }

    #[test]
    fn random_loss_rate_one_drops_all_and_no_arguments_nothing() {
        let mut all = incoming(&[
            (INCOMING, "loss"),
            (LOSS_ARGS, "rate=1.0|recv-msg-mask=0x2"),
        ]);
        let mut nothing = incoming(&[(INCOMING, "loss,fixed-loss")]);
        let datagram = data(1, 0, 0, 64);
        assert!((0..1_000).all(|_| !all.admits(&datagram)));
        assert!((0..1_000).all(|_| nothing.admits(&datagram)));
    }

    /// Retransmissions in reply to a NAK pass.
    #[test]
    fn fixed_loss_drops_range_once_per_session() {
        let args = "term-id=3|term-offset=128|length=128";
        let mut chain = incoming(&[(INCOMING, "fixed-loss"), (FIXED_ARGS, args)]);
        // The first packet seen, not the start of the range, determines where loss begins: everything up to its end is
        // dropped.
        for session_id in [-5, 5] {
            let mut passes = |offset| chain.admits(&data(session_id, 3, offset, 64));
            let lost: Vec<i32> = (0..8).map(|n| n * 64).filter(|o| !passes(*o)).collect();
            assert_eq!(lost, [0, 64, 128, 192]);
            assert!((0..8).all(|n| passes(n * 64)));
        }
        assert!(chain.admits(&data(5, 4, 128, 64)), "another term");
    }

    #[test]
    fn multi_gap_loss_drops_datagrams_touching_gaps_once() {
        let args = "term-id=0|gap-radix=1000|gap-length=64|total-gaps=2";
        let mut chain = incoming(&[(INCOMING, "multi-gap-loss"), (GAP_ARGS, args)]);
        let mut passes = |offset| chain.admits(&data(9, 0, offset, 96));
        // The radix is rounded up to 1024. The last gap is at twice 1000: datagrams that begin beyond 2064 pass.
        let lost: Vec<i32> = (0..40).map(|n| n * 96).filter(|o| !passes(*o)).collect();
        assert_eq!(lost, [960, 1_056, 2_016]);
        assert!((0..40).all(|n| passes(n * 96)));
        assert!(chain.admits(&data(9, 1, 1_024, 128)), "another term");
    }

    #[test]
    fn first_dropping_interceptor_decides() {
        let both = [
            (INCOMING, "fixed-loss, loss"),
            (OUTGOING, "loss"),
            (LOSS_ARGS, "rate=1|recv-msg-mask=2"),
            (FIXED_ARGS, "term-id=0|term-offset=0|length=64"),
        ];
        let mut read = read(&both).unwrap();
        assert_eq!(read.incoming.as_ref().map(|chain| chain.0.len()), Some(2));
        assert!(!read.outgoing.as_mut().unwrap().admits(&data(1, 0, 0, 64)));
    }

    #[test]
    fn invalid_arguments_are_rejected_with_requirement() {
        let many = "loss,".repeat(11);
        let loss = (INCOMING, "loss");
        for (variables, words) in [
            (
                vec![(INCOMING, "los")],
                vec!["incoming.interceptors=los", "fixed-loss"],
            ),
            (vec![(OUTGOING, many.as_str())], vec!["at most 10"]),
            (
                vec![loss, (LOSS_ARGS, "rate=x")],
                vec!["loss.args=rate=x", "rate", "number"],
            ),
            (vec![loss, (LOSS_ARGS, "rate=2")], vec!["rate=2", "0 and 1"]),
            (vec![loss, (LOSS_ARGS, "rate")], vec!["key=value"]),
            (
                vec![loss, (LOSS_ARGS, "rat=1")],
                vec!["rat", "recv-msg-mask"],
            ),
            (
                vec![loss, (LOSS_ARGS, "recv-msg-mask=0xzz")],
                vec!["recv-msg-mask=0xzz"],
            ),
            (
                vec![(INCOMING, "multi-gap-loss")],
                vec!["multi.gap.loss.args=", "gap-radix"],
            ),
            (
                vec![(INCOMING, "fixed-loss"), (FIXED_ARGS, "length=-1")],
                vec!["length=-1"],
            ),
        ] {
            let error = read(&variables).unwrap_err().to_string();
            for word in words {
                assert!(error.contains(word), "{error}");
            }
        }
    }
}
