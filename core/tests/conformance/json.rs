//! J1–J4 against JSONTestSuite, RFC 8785's vectors and RFC 6901's.

use sluicegate_core::code::Code;
use sluicegate_core::ids::Hash;
use sluicegate_core::value::{self, Pointer, Value};

use super::{data, folder, text};

/// Why a text that the suite accepts is refused here: the clause, by its code.
fn refused_by_a_clause(code: Code) -> bool {
    matches!(
        code,
        // J1: "no duplicate member names"; "magnitude is 2^53 or more … is refused".
        Code::JsonDuplicateMember | Code::JsonNumberRange
    )
}

#[test]
fn j1_json_parsing_suite() {
    let Some(folder) = folder("json-parsing") else {
        return;
    };
    let (mut accepted, mut refused) = (0, 0);
    for case in data(&folder.join("index.json")).as_array().unwrap() {
        let file = text(&case["file"]);
        let bytes = std::fs::read(folder.join(file)).unwrap();
        let outcome = value::read_bytes(&bytes);
        match (text(&case["expect"]), &outcome) {
            ("accept", Err(error)) => assert!(
                refused_by_a_clause(error.code),
                "{file} is refused: {} {error}",
                error.code
            ),
            ("reject", Ok(_)) => panic!("{file} is accepted"),
            _ => {}
        }
        match outcome {
            Ok(_) => accepted += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(accepted > 50 && refused > 100, "{accepted} and {refused}");
}

#[test]
fn j1_json_transform_suite() {
    let Some(folder) = folder("json-parsing/test_transform") else {
        return;
    };
    let read = |file: &str| value::read_bytes(&std::fs::read(folder.join(file)).unwrap());
    let code = |file: &str| read(file).unwrap_err().code;
    // J1: no double of 2^53 or more, no duplicates, no lone surrogates, UTF-8 only.
    assert_eq!(
        code("number_-9223372036854775809.json"),
        Code::JsonNumberRange
    );
    assert_eq!(
        code("number_9223372036854775807.json"),
        Code::JsonNumberRange
    );
    assert_eq!(
        code("number_10000000000000000999.json"),
        Code::JsonNumberRange
    );
    assert_eq!(
        code("object_same_key_different_values.json"),
        Code::JsonDuplicateMember
    );
    assert_eq!(
        code("object_same_key_same_value.json"),
        Code::JsonDuplicateMember
    );
    assert_eq!(
        code("string_1_escaped_invalid_codepoint.json"),
        Code::JsonLoneSurrogate
    );
    assert_eq!(code("string_1_invalid_codepoint.json"), Code::JsonSyntax);
    // J5: equal numbers, and no normalisation of strings.
    let canonical = |file: &str| value::canonical(&read(file).unwrap());
    assert_eq!(canonical("number_1.0.json"), "[1]");
    assert_eq!(canonical("number_1.000000000000000005.json"), "[1]");
    assert_eq!(canonical("number_1e-999.json"), "[0]");
    assert_eq!(canonical("number_1e6.json"), "[1000000]");
    assert_eq!(
        read("object_key_nfc_nfd.json")
            .unwrap()
            .as_object()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn j2_jcs_files() {
    let Some(folder) = folder("jcs/files") else {
        return;
    };
    for name in ["french", "structures", "unicode", "values"] {
        let file =
            |part: &str| std::fs::read(folder.join(part).join(format!("{name}.json"))).unwrap();
        // J1 refuses the large numbers of this file; its numbers are tested by their bits below.
        if name == "values" {
            assert_eq!(
                value::read_bytes(&file("input")).unwrap_err().code,
                Code::JsonNumberRange
            );
            let value: Value = serde_json::from_slice(&file("input")).unwrap();
            assert_eq!(
                value::canonical(&value).as_bytes(),
                file("output"),
                "{name}"
            );
            continue;
        }
        let value = value::read_bytes(&file("input")).unwrap();
        assert_eq!(
            value::canonical(&value).as_bytes(),
            file("output"),
            "{name}"
        );
    }
}

#[test]
fn j2_derived_hashes() {
    let Some(folder) = folder("jcs") else {
        return;
    };
    let mut hashed = 0;
    for case in data(&folder.join("derived-sha256.json"))
        .as_array()
        .unwrap()
    {
        let file = text(&case["file"]);
        let Ok(bytes) = std::fs::read(folder.join("..").join(file)) else {
            continue;
        };
        match value::read_bytes(&bytes) {
            Ok(value) => {
                hashed += 1;
                assert_eq!(
                    value::canonical_len(&value) as u64,
                    case["canonical_bytes"].as_u64().unwrap(),
                    "{file}"
                );
                let expected = format!("sha256:{}", text(&case["sha256_of_canonical"]));
                assert_eq!(
                    value::hash(&value),
                    Hash::parse(&expected).unwrap(),
                    "{file}"
                );
            }
            // J1 and J4.
            Err(error) => assert!(
                refused_by_a_clause(error.code)
                    || matches!(error.code, Code::JsonTooDeep | Code::JsonLoneSurrogate),
                "{file}: {error}"
            ),
        }
    }
    assert!(hashed > 100, "{hashed}");
}

/// The canonical text of the double with these bits, which need not be in the range of J1.
fn of_bits(hex: &str) -> Option<String> {
    let double = f64::from_bits(u64::from_str_radix(hex, 16).unwrap());
    serde_json::Number::from_f64(double).map(|number| value::canonical(&Value::Number(number)))
}

#[test]
fn j2_numbers_of_rfc_8785() {
    let Some(folder) = folder("jcs") else {
        return;
    };
    for case in data(&folder.join("rfc8785-appendix-b.json"))
        .as_array()
        .unwrap()
    {
        let hex = text(&case["hex_ieee754"]);
        assert_eq!(of_bits(hex).as_deref(), case["expected"].as_str(), "{hex}");
    }
    let lines = std::fs::read_to_string(folder.join("es6-numbers.csv")).unwrap();
    let mut numbers = 0;
    for line in lines.lines().skip(1) {
        let [_, hex, expected] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        assert_eq!(of_bits(hex).as_deref(), Some(expected), "{hex}");
        // What is below 2^53 reads back as the same double (J1: correctly rounded).
        if let Ok(value) = value::read(expected) {
            assert_eq!(
                value.as_f64().unwrap(),
                expected.parse::<f64>().unwrap(),
                "{expected}"
            );
            assert_eq!(value::canonical(&value), expected);
        }
        numbers += 1;
    }
    assert!(numbers > 5_000, "{numbers}");
}

#[test]
fn j3_pointers_resolve() {
    let Some(folder) = folder("json-pointer") else {
        return;
    };
    for case in data(&folder.join("resolve.json")).as_array().unwrap() {
        let (id, pointer) = (text(&case["id"]), text(&case["pointer"]));
        let found = Pointer::parse(pointer)
            .ok()
            .and_then(|pointer| pointer.read(&case["doc"]).cloned());
        let expected = (case["result"] == "value").then(|| case["value"].clone());
        assert_eq!(found, expected, "{id} {pointer:?}");
    }
    for case in data(&folder.join("uri_fragment.json")).as_array().unwrap() {
        let pointer = Pointer::parse(text(&case["pointer"])).unwrap();
        assert_eq!(
            pointer.read(&case["doc"]),
            Some(&case["value"]),
            "{}",
            case["id"]
        );
    }
}

#[test]
fn j3_pointer_syntax() {
    let Some(folder) = folder("json-pointer") else {
        return;
    };
    let mut judged = 0;
    for case in data(&folder.join("syntax.json")).as_array().unwrap() {
        if case["kind"] == "json-pointer" {
            let pointer = text(&case["text"]);
            assert_eq!(
                Pointer::parse(pointer).is_ok(),
                case["valid"].as_bool().unwrap(),
                "{pointer:?}"
            );
            judged += 1;
        }
    }
    assert!(judged > 10, "{judged}");
}
