// SPDX-License-Identifier: Apache-2.0
//! Interoperability of weather reports: custom null values, null arrays, types in another package, and a nested group
//! added by a later version.

use std::path::Path;

use serde_json::{Value, json};
use taran_sbe::{compile_file, decode::Decoder};
use taran_sbe_codecs::{weather_v0, weather_v1};

use super::official::{self, class_path};
use super::{read_by_theirs, theirs};

pub(super) const REPORTS: [&str; 2] = ["weather_v0", "weather_v1"];

fn schema(name: &str) -> taran_sbe::model::Schema {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
    let compiled = compile_file(&folder.join(name).with_extension("xml")).unwrap();
    assert_eq!(compiled.warnings, [], "{name}");
    compiled.schema
}

/// Decodes a message with the schema-driven decoder.
fn generic(reader: &str, bytes: &[u8]) -> Value {
    let schema = schema(reader);
    let message = Decoder::new(&schema).message(bytes).unwrap();
    serde_json::to_value(message).unwrap()["fields"].take()
}

#[test]
fn official_decoders_read_our_reports_across_versions() {
    let Some(class_path) = class_path() else {
        return;
    };
    for writer in REPORTS {
        for reader in REPORTS {
            let read = read_by_theirs(class_path, reader, writer);
            let mut expected = vec![
                "usual=Cloudy|level=2|",
                "measured=72623859790382856|temperature=-55|grade=65|pressure=1013.25|gusts=[1.5,NaN,2.5]|hours=[6,-1]",
                "|probe=[1,200,3]|mark=AB|sky=Clear|trend=Falling|wind=(speed=120|trend=Rising|",
                "(hour=6|temperature=-60",
                "(hour=12|temperature=-999",
            ];
            expected.extend(match (reader, writer) {
                ("weather_v0", _) => &["temperature=-999)]"][..],
                (_, "weather_v0") => &["alerts=[]|remark=''"],
                _ => &[
                    "|humidity=80|history=[-1,7]|",
                    "wind=(speed=10000|trend=NULL_VAL|",
                    "wind=(speed=90|trend=Falling|",
                    "alerts=[(trend=Rising|hours=[(hour=3),(hour=4)]|text='Glätte'),(trend=NULL_VAL|hours=[]|text='')]",
                    "|remark='late'",
                ],
            });
            for part in expected {
                assert!(
                    read.contains(part),
                    "{reader} reads {writer}: {part} in {read}"
                );
            }
        }
    }
}

#[test]
fn our_decoders_read_official_reports_across_versions() {
    let Some(class_path) = class_path() else {
        return;
    };
    for writer in REPORTS {
        let bytes = theirs(class_path, writer);
        let read = [
            weather_v0::Message::decode(&bytes).unwrap().to_string(),
            weather_v1::Message::decode(&bytes).unwrap().to_string(),
        ];
        for (reader, read) in read.iter().enumerate() {
            let mut expected = vec![
                "measured: 72623859790382856, temperature: Some(-55), grade: Some(65), pressure: Some(1013.25)",
                "gusts: Some([1.5, NaN, 2.5]), hours: Some([6, -1]), probe: Some([1, 200, 3]), mark: Some(\"AB\")",
                "sky: Some(Clear), trend: Some(Falling), wind: Wind { speed: Some(120), trend: Some(Rising), scale: -1 }",
                "usual: Cloudy, level: 2",
                "readings { hour: 6, temperature: Some(-60)",
                "readings { hour: 12, temperature: None",
            ];
            expected.extend(match (reader, writer) {
                (0, _) => &[][..],
                (_, "weather_v0") => &["humidity: None, history: None", "alerts: [], remark: None"],
                _ => &[
                    "humidity: Some(80), history: Some([-1, 7])",
                    "wind: Some(Wind { speed: None, trend: None, scale: -1 })",
                    "alerts: [alerts { trend: Some(Rising), hours: [hours { hour: 3 }, hours { hour: 4 }], text: \"Glätte\" }, \
                     alerts { trend: None, hours: [], text: \"\" }], remark: Some(\"late\")",
                ],
            });
            for part in expected {
                assert!(
                    read.contains(part),
                    "v{reader} reads {writer}: {part} in {read}"
                );
            }
        }
        let fields = generic("weather_v1", &bytes);
        assert_eq!(fields["hours"], json!([6, null]));
        assert_eq!(fields["gusts"], json!([1.5, null, 2.5]));
        assert_eq!(fields.get("history").is_some(), writer == "weather_v1");
    }
}

#[test]
fn null_values_match_official_codecs() {
    let Some(class_path) = class_path() else {
        return;
    };
    for (name, reader) in ["calm_v0", "calm_v1"].into_iter().zip(REPORTS) {
        assert_eq!(super::ours(name), theirs(class_path, name), "{name}");
        let read = read_by_theirs(class_path, reader, name);
        for part in [
            "|temperature=-999|grade=45|pressure=-1.0|gusts=[NaN,NaN,NaN]|hours=[-1,-1]|probe=[200,200,200]|mark=????",
            "|sky=NULL_VAL|trend=NULL_VAL|wind=(speed=10000|trend=NULL_VAL|",
        ] {
            assert!(read.contains(part), "{part} in {read}");
        }
        let bytes = theirs(class_path, name);
        let shown = weather_v1::Message::decode(&bytes).unwrap().to_string();
        let nothing = "temperature: None, grade: None, pressure: None, gusts: None, hours: None, probe: None, mark: None, \
                       sky: None, trend: None, wind: Wind { speed: None, trend: None, scale: -1 }";
        assert!(shown.contains(nothing), "{shown}");
        let fields = generic(reader, &bytes);
        for field in [
            "temperature",
            "grade",
            "pressure",
            "gusts",
            "hours",
            "probe",
            "mark",
            "sky",
            "trend",
        ] {
            assert_eq!(fields[field], Value::Null, "{field} of {name}");
        }
    }
}

#[test]
fn schema_metadata_matches_official_codecs() {
    let Some(class_path) = class_path() else {
        return;
    };
    let reported = official::metadata(class_path);
    let schema = schema("weather_v1");
    let report = &schema.messages[0];
    let field = |name: &str| {
        let mut fields = report.block.fields.iter();
        fields.find(|field| field.name == name).unwrap()
    };
    let (measured, temperature) = (field("measured"), field("temperature"));
    let taran_sbe::model::TypeKind::Simple(celsius) = &temperature.kind.kind else {
        panic!("{:?}", temperature.kind)
    };
    let ours = [
        measured.epoch.clone().unwrap(),
        measured.time_unit.clone().unwrap(),
        measured.semantic_type.clone().unwrap(),
        temperature.semantic_type.clone().unwrap(),
        format!("{:?}", temperature.presence).to_lowercase(),
        celsius.min.to_string(),
        celsius.max.to_string(),
        schema.version.to_string(),
        schema.semantic_version.clone().unwrap(),
        report.semantic_type.clone().unwrap(),
    ];
    assert_eq!(reported.trim_end(), ours.join(" "));
    let package = temperature.kind.package.as_deref();
    assert_eq!(package, Some("io.taran.weather.v1.units"));
}
