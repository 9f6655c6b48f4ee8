// SPDX-License-Identifier: Apache-2.0
//! Faults of the link, as far as the kernel supports them.

use std::process::Command;

use crate::machines::Machine;

/// One incoming datagram in so many is lost.
const ONE_IN: u32 = 100;

/// One outgoing datagram in so many is duplicated.
const TWICE_ONE_IN: u32 = 200;

/// Applies the faults to a machine's end of the link; returns a description of those in effect.
pub(crate) fn apply(machine: &Machine, peers: [&str; 2]) -> String {
    machine.lose(100 / ONE_IN);
    let mut words = format!("loses one datagram in {ONE_IN}");
    let repeats = |family: &str, peer: &str| {
        let script = format!(
            "table {family} twice {{
                chain output {{
                    type filter hook postrouting priority 0
                    {family} daddr {peer} meta l4proto udp numgen random mod {TWICE_ONE_IN} == 0 dup to {peer} device path
                }}
            }}"
        );
        works(machine, "nft", &[&script])
    };
    // Each fault is skipped with a message if it is not supported.
    for (family, peer) in ["ip", "ip6"].into_iter().zip(peers) {
        words.push_str(&if repeats(family, peer) {
            format!(", repeats one in {TWICE_ONE_IN} ({family})")
        } else {
            format!(", repeats none ({family}: no nftables dup here)")
        });
    }
    let delay = "qdisc add dev path root netem delay 200us 100us";
    let delay: Vec<&str> = delay.split(' ').collect();
    words.push_str(if works(machine, "tc", &delay) {
        ", and delays all by 100 to 300 us"
    } else {
        ", and delays none (no netem here)"
    });
    words
}

/// Returns an error if the link has lost nothing, because the run then proves nothing.
///
pub(crate) fn check_losses(machines: [&Machine; 2]) -> Option<String> {
    let all = machines.map(Machine::seen_and_lost);
    all.iter().any(|(_, lost)| *lost == 0).then(|| {
        format!("the cable lost nothing: of those that came and are lost there are {all:?}")
    })
}

fn works(machine: &Machine, program: &str, arguments: &[&str]) -> bool {
    let mut command: Command = machine.command(program);
    let output = command.args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}
