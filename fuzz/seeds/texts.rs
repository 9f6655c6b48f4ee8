// SPDX-License-Identifier: Apache-2.0
//! Texts: channels, property files, tables of names.

use taran_protocol::option::{client_options, driver_options};
use taran_protocol::uri::{Param, vectors};

use crate::Seed;

pub(crate) fn seeds() -> Vec<Seed> {
    let mut seeds: Vec<Seed> = vectors::all()
        .iter()
        .map(|vector| {
            let name = format!("line-{}", vector.line);
            Seed::new("uri", name, vector.channel(40_123, 11))
        })
        .collect();
    for text in [
        "64k",
        "5ns",
        "100ms",
        "tagged,g:3/2,t:5s",
        "min,t:1s",
        "31,-1",
    ] {
        seeds.push(Seed::new("uri", text.replace('/', "-"), text));
    }
    let keys: Vec<String> = Param::ALL
        .iter()
        .map(|spec| format!("{}=1", spec.key))
        .collect();
    seeds.push(Seed::new(
        "uri",
        "keys",
        format!("aeron:ipc?{}", keys.join("|")),
    ));

    // A file for each dozen of options, with the defaults as values.
    let lines: Vec<String> = driver_options()
        .chain(client_options())
        .map(|option| format!("{}={}\n", option.property, option.default))
        .collect();
    for (index, part) in lines.chunks(12).enumerate() {
        seeds.push(Seed::new(
            "options",
            format!("defaults-{index}"),
            part.concat(),
        ));
    }
    seeds.push(Seed::new(
        "options",
        "forms",
        "# comment\n! comment\n a : b\nlong=x\\\n  y\nAERON_MTU_LENGTH=8k\naeron.event.log=0xffff,CMD_IN_ADD_PUBLICATION\n",
    ));
    for (name, table) in [
        ("rows", "a,127.0.0.1,127.0.0.2|b,x|c,localhost,bad.invalid|"),
        ("columns", ",,|,,,|x"),
    ] {
        seeds.push(Seed::new("name_table", name, table));
    }
    seeds
}
