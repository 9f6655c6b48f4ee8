// SPDX-License-Identifier: Apache-2.0
//! `taran fix` with dictionaries and logs in files and on standard input.

use std::fs;
use std::path::PathBuf;

use crate::process::{Directory, Outcome, run, taran};

fn fix(directory: &Directory, arguments: &[&str]) -> Outcome {
    let mut command = taran(&["fix"]);
    run(command.args(arguments).current_dir(directory.path()))
}

/// Returns a path of a dictionary of `taran-fix`.
fn dictionary(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../fix/dictionary")
        .join(name);
    path.display().to_string()
}

/// Order with `|` in place of SOH.
const ORDER: &str = "8=FIX.4.4|9=118|35=D|34=2|49=A|52=20240102-03:04:05.678|56=B|11=id|453=1|448=P|447=D|452=1|55=S|54=1|\
    60=20240102-03:04:05|38=100|40=1|10=071|";

#[test]
fn check_reports_every_problem_with_its_position() {
    let directory = Directory::new("fix-check");
    directory.file(
        "broken.xml",
        "<fix major='4' minor='4'>\n<messages><message name='M' msgtype='m'>\n <field name='A'/>\n <field name='B'/>\n\
        </message></messages></fix>",
    );
    directory.file("text.xml", "no XML");
    let good = fix(
        &directory,
        &[
            "check",
            &dictionary("FIX44.xml"),
            &dictionary("FIX44_orchestra.xml"),
        ],
    );
    good.assert_code(0).assert_silent();
    assert_eq!(
        good.stdout.matches("FIX 4.4, 16 messages").count(),
        2,
        "{}",
        good.stdout
    );
    let broken = fix(&directory, &["check", "broken.xml"]);
    broken.assert_code(1);
    assert_eq!(
        broken.stdout,
        "broken.xml:3:2: field \"A\" is not defined\nbroken.xml:4:2: field \"B\" is not defined\nbroken.xml: 2 problems\n"
    );
    let json = fix(
        &directory,
        &["check", "--json", "broken.xml", "text.xml", "absent.xml"],
    );
    json.assert_code(1);
    let documents: Vec<serde_json::Value> = json
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(documents[0]["problems"][1]["line"], 4);
    assert_eq!(documents[1]["problems"].as_array().map(Vec::len), Some(1));
    assert_eq!(documents[2]["problems"].as_array().map(Vec::len), Some(1));
}

#[test]
fn describe_prints_messages_and_fields() {
    let directory = Directory::new("fix-describe");
    directory.file("unused", "");
    let fix44 = dictionary("FIX44.xml");
    let all = fix(&directory, &["describe", &fix44]);
    all.assert_code(0);
    assert!(
        all.stdout.contains("D    NewOrderSingle\n"),
        "{}",
        all.stdout
    );
    let some = fix(
        &directory,
        &["describe", &fix44, "NewOrderSingle", "54", "j"],
    );
    some.assert_code(0);
    for text in ["ClOrdID", "Side (54), CHAR", "BusinessMessageReject (j)"] {
        assert!(some.stdout.contains(text), "{}", some.stdout);
    }
    let absent = fix(&directory, &["describe", &fix44, "Nothing"]);
    absent.assert_code(1);
    assert!(
        absent.stderr.contains("no message or field Nothing"),
        "{}",
        absent.stderr
    );
    let transport = dictionary("FIXT11.xml");
    let fix50 = fix(
        &directory,
        &[
            "describe",
            "--transport",
            &transport,
            &dictionary("FIX50SP2.xml"),
            "Logon",
        ],
    );
    fix50.assert_code(0);
    assert!(
        fix50.stdout.contains("DefaultApplVerID"),
        "{}",
        fix50.stdout
    );
}

#[test]
fn diff_reports_compatibility_in_its_exit_code() {
    let directory = Directory::new("fix-diff");
    let fix44 = dictionary("FIX44.xml");
    let text = fs::read_to_string(&fix44).expect("readable");
    directory.file(
        "more.xml",
        &text.replace(
            "<value enum=\"1\" description=\"BUY\"/>",
            "<value enum=\"1\" description=\"BUY\"/><value enum=\"Z\" description=\"NEW\"/>",
        ),
    );
    let equal = fix(
        &directory,
        &["diff", &fix44, &dictionary("FIX44_orchestra.xml")],
    );
    equal.assert_code(0);
    assert_eq!(equal.stdout, "equal\n");
    let more = fix(&directory, &["diff", &fix44, "more.xml"]);
    more.assert_code(0);
    assert!(
        more.stdout.contains("value Z (NEW) added") && more.stdout.ends_with("\ncompatible\n"),
        "{}",
        more.stdout
    );
    let less = fix(&directory, &["diff", "--json", "more.xml", &fix44]);
    less.assert_code(3);
    let document: serde_json::Value = serde_json::from_str(&less.stdout).expect("JSON");
    assert_eq!(document["compatible"], false);
    fix(&directory, &["diff", &fix44, "absent.xml"]).assert_code(1);
}

#[test]
fn generate_writes_code_or_nothing() {
    let directory = Directory::new("fix-generate");
    directory.file("broken.xml", "<fix/>");
    let fix44 = dictionary("FIX44.xml");
    let written = fix(
        &directory,
        &[
            "generate",
            &fix44,
            "--messages",
            "D,8",
            "-o",
            "src/fix44.rs",
        ],
    );
    written.assert_code(0);
    let code = fs::read_to_string(directory.path().join("src/fix44.rs")).expect("written");
    assert!(code.contains("pub mod new_order_single {") && !code.contains("pub mod news {"));
    let again = fix(
        &directory,
        &["generate", &fix44, "--messages", "D,8", "-o", "again.rs"],
    );
    again.assert_code(0);
    assert_eq!(
        fs::read_to_string(directory.path().join("again.rs")).expect("written"),
        code
    );
    fix(
        &directory,
        &["generate", &fix44, "--messages", "zz", "-o", "x.rs"],
    )
    .assert_code(2);
    fix(&directory, &["generate", "broken.xml", "-o", "x.rs"]).assert_code(1);
    assert!(!directory.path().join("x.rs").exists());
}

#[test]
fn decode_prints_names_masks_passwords_and_reports_defects() {
    let directory = Directory::new("fix-decode");
    let fix44 = dictionary("FIX44.xml");
    let logon = "8=FIX.4.4|9=73|35=A|34=1|49=A|52=20240102-03:04:05|56=B|98=0|108=30|553=user|554=secret|10=000|";
    directory.file(
        "fix.log",
        &format!(
            "12:00 in {ORDER}\n12:01 {}\nnoise\n",
            ORDER.replace("54=1", "54=1^").replace('^', "")
        ),
    );
    directory.file("logon.log", logon);
    directory.file("empty.log", "nothing\n");
    let decoded = fix(&directory, &["decode", "-d", &fix44, "fix.log"]);
    decoded.assert_code(0).assert_silent();
    assert_eq!(
        decoded.stdout.matches("NewOrderSingle (D)").count(),
        2,
        "{}",
        decoded.stdout
    );
    assert!(
        decoded
            .stdout
            .contains("54     Side                     1 BUY"),
        "{}",
        decoded.stdout
    );
    assert!(
        decoded.stdout.contains("    [1] 448    PartyID"),
        "{}",
        decoded.stdout
    );
    let one = fix(
        &directory,
        &[
            "decode",
            "--brief",
            "--where",
            "55=S",
            "--type",
            "D",
            "--session",
            "B",
            "fix.log",
        ],
    );
    one.assert_code(0);
    assert_eq!(one.stdout.lines().count(), 2);
    let other = fix(
        &directory,
        &["decode", "--json", "--where", "55=T", "fix.log"],
    );
    other.assert_code(0);
    assert_eq!(other.stdout, "");
    let json = fix(&directory, &["decode", "--json", "-d", &fix44, "logon.log"]);
    json.assert_code(1);
    assert!(
        !json.stdout.contains("secret") && json.stdout.contains("******"),
        "{}",
        json.stdout
    );
    let document: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(document["name"], "Logon");
    assert!(
        document["problems"][0]
            .as_str()
            .is_some_and(|text| text.starts_with("garbled"))
    );
    fix(&directory, &["decode", "empty.log"]).assert_code(1);
    fix(&directory, &["decode", "--where", "x", "fix.log"]).assert_code(2);
    fix(&directory, &["decode", "absent.log"]).assert_code(1);
}
