// SPDX-License-Identifier: Apache-2.0
//! FIX dictionaries, messages, and scripts for the session machine.

use crate::Seed;

const DICTIONARIES: [(&str, &str); 3] = [
    (
        "quickfix",
        "<fix type='FIX' major='4' minor='4'><header><field name='BeginString' required='Y'/></header><trailer/>\
        <messages><message name='Order' msgtype='D' msgcat='app'><field name='Id' required='Y'/>\
        <component name='Parties' required='N'/></message></messages>\
        <components><component name='Parties'><group name='NoParties' required='N'><field name='Party' required='N'/>\
        <field name='RawDataLen' required='N'/><field name='RawData' required='N'/></group></component></components>\
        <fields><field number='8' name='BeginString' type='STRING'/><field number='11' name='Id' type='CHAR'>\
        <value enum='1' description='ONE'/></field><field number='453' name='NoParties' type='NUMINGROUP'/>\
        <field number='448' name='Party' type='STRING'/><field number='95' name='RawDataLen' type='LENGTH'/>\
        <field number='96' name='RawData' type='DATA'/></fields></fix>",
    ),
    (
        "orchestra",
        "<f:repository xmlns:f='http://fixprotocol.io/2020/orchestra/repository' version='FIX.4.4'><f:codeSets>\
        <f:codeSet name='SideSet' type='char'><f:code name='Buy' value='1'/></f:codeSet></f:codeSets><f:fields>\
        <f:field id='54' name='Side' type='SideSet'/><f:field id='453' name='NoParties' type='NumInGroup'/>\
        <f:field id='448' name='Party' type='String'/></f:fields><f:groups><f:group id='1' name='Parties'>\
        <f:numInGroup id='453'/><f:fieldRef id='448' presence='required'/></f:group></f:groups><f:messages>\
        <f:message name='Order' msgType='D'><f:structure><f:fieldRef id='54'/><f:groupRef id='1'/></f:structure>\
        </f:message></f:messages></f:repository>",
    ),
    (
        "cycle",
        "<fix major='4' minor='2'><components><component name='A'><component name='A'/></component></components></fix>",
    ),
];

const FIELDS: [(&str, &str); 6] = [
    (
        "order",
        "11=i|55=S|54=1|60=20240102-03:04:05|38=1|40=1|44=1.5",
    ),
    (
        "parties",
        "11=i|453=2|448=P|447=D|802=1|523=s|803=1|448=Q|55=S|54=1|60=20240102-03:04:05|38=1|40=1",
    ),
    ("data", "11=i|354=3|355=a|b|5001=x|58="),
    ("report", "37=o|17=e|150=0|39=0|54=1|151=5|14=0|6=0|55=S"),
    (
        "market",
        "262=r|268=2|279=0|269=0|270=1.5|271=5|279=1|269=1",
    ),
    (
        "frames",
        "8=FIX.4.4|9=5|35=0|10=163|8=FIX.4.4|9=9|35=0|34=1|10=000|8=FIXT.1.1|9=5|35=0|10=000|",
    ),
];

const SESSIONS: [(&str, &str); 5] = [
    (
        "acceptor",
        "0c\n>A|34=1|98=0|108=5\n>D|34=2|11=x\n>1|34=3|112=t\n>2|34=4|7=1|16=0\n 1\n 0\ns\n>5|34=5",
    ),
    (
        "gap",
        "4c\n>A|34=1|98=0|108=5\n>0|34=9\n>2|34=10|7=1|16=0\n>4|34=2|43=Y|122=20260101-00:00:00|123=Y|36=9\n>0|34=11",
    ),
    (
        "initiator",
        "1c\n>A|34=1|98=0|108=30\ns\nt~\nt~\nl\n>5|34=2\nc\n>A|34=4|98=0|108=30|789=2\n 1\n 1",
    ),
    (
        "reset",
        "0c\n>A|34=1|98=0|108=0\nr\n>0|34=2|112=1\ns\n>A|34=1|98=0|108=0|141=Y\ns\nd\nc",
    ),
    (
        "garbled",
        "@c\n>A|34=1|98=0|108=0\n=8=FIX.4.4\n=9=70\n>0|34=2\n>0|34=3\na\nx",
    ),
];

pub(crate) fn seeds() -> Vec<Seed> {
    let mut seeds: Vec<Seed> = DICTIONARIES
        .into_iter()
        .map(|(name, text)| Seed::new("fix_dictionary", name, text))
        .collect();
    let fields = FIELDS
        .into_iter()
        .map(|(name, text)| Seed::new("fix_messages", name, text.replace('|', "\x01")));
    seeds.extend(fields);
    let sessions = SESSIONS
        .into_iter()
        .map(|(name, text)| Seed::new("fix_session", name, text));
    seeds.extend(sessions);
    seeds
}
