//! J1–J4 against JSONTestSuite, RFC 8785's vectors and RFC 6901's.

use std::collections::BTreeMap;

use serde_json::json;
use sluicegate_core::code::Code;
use sluicegate_core::ids::Hash;
use sluicegate_core::schema::Schema;
use sluicegate_core::value::{self, Pointer, Value};

use super::{data, folder, text};

/// What the suite calls valid and a clause refuses: the file, its code, the clause.
const REFUSED: [(&str, Code, &str); 4] = [
    ("y_number.json", Code::JsonNumberRange, "J1: 2^53"),
    (
        "y_number_real_fraction_exponent.json",
        Code::JsonNumberRange,
        "J1: 2^53",
    ),
    (
        "y_object_duplicated_key.json",
        Code::JsonDuplicateMember,
        "J1: no duplicate member names",
    ),
    (
        "y_object_extreme_numbers.json",
        Code::JsonNumberRange,
        "J1: 2^53",
    ),
];

/// What the suite leaves to the reader: the canonical text, or the code of the refusal.
const LEFT_OPEN: [(&str, Result<&str, Code>); 24] = [
    // J1: a number is read as the nearest double.
    ("i_number_double_huge_neg_exp.json", Ok("[0]")),
    ("i_number_real_underflow.json", Ok("[0]")),
    // J1: one of 2^53 and more is refused.
    ("i_number_huge_exp.json", Err(Code::JsonNumberRange)),
    ("i_number_neg_int_huge_exp.json", Err(Code::JsonNumberRange)),
    (
        "i_number_real_neg_overflow.json",
        Err(Code::JsonNumberRange),
    ),
    ("i_number_too_big_pos_int.json", Err(Code::JsonNumberRange)),
    (
        "i_number_very_big_negative_int.json",
        Err(Code::JsonNumberRange),
    ),
    // J1: no lone surrogates.
    (
        "i_string_1st_surrogate_but_2nd_missing.json",
        Err(Code::JsonLoneSurrogate),
    ),
    (
        "i_string_incomplete_surrogate_and_escape_valid.json",
        Err(Code::JsonLoneSurrogate),
    ),
    (
        "i_string_incomplete_surrogates_escape_valid.json",
        Err(Code::JsonLoneSurrogate),
    ),
    (
        "i_string_invalid_lonely_surrogate.json",
        Err(Code::JsonLoneSurrogate),
    ),
    (
        "i_string_invalid_surrogate.json",
        Err(Code::JsonLoneSurrogate),
    ),
    // J1: UTF-8, and RFC 7493 knows no byte order mark.
    ("i_string_UTF-16LE_with_BOM.json", Err(Code::JsonSyntax)),
    (
        "i_string_UTF-8_invalid_sequence.json",
        Err(Code::JsonSyntax),
    ),
    ("i_string_UTF8_surrogate_U+D800.json", Err(Code::JsonSyntax)),
    ("i_string_invalid_utf-8.json", Err(Code::JsonSyntax)),
    ("i_string_iso_latin_1.json", Err(Code::JsonSyntax)),
    ("i_string_not_in_unicode_range.json", Err(Code::JsonSyntax)),
    (
        "i_string_overlong_sequence_6_bytes.json",
        Err(Code::JsonSyntax),
    ),
    (
        "i_string_overlong_sequence_6_bytes_null.json",
        Err(Code::JsonSyntax),
    ),
    ("i_string_truncated-utf-8.json", Err(Code::JsonSyntax)),
    ("i_string_utf16BE_no_BOM.json", Err(Code::JsonSyntax)),
    ("i_string_utf16LE_no_BOM.json", Err(Code::JsonSyntax)),
    (
        "i_structure_UTF-8_BOM_empty_object.json",
        Err(Code::JsonSyntax),
    ),
];

/// What the suite asks to describe: J1 for the refusals, J5 for the numbers, and no
/// normalisation of strings.
const DESCRIBED: [(&str, Result<&str, Code>); 16] = [
    (
        "number_-9223372036854775809.json",
        Err(Code::JsonNumberRange),
    ),
    (
        "number_9223372036854775807.json",
        Err(Code::JsonNumberRange),
    ),
    (
        "number_9223372036854775808.json",
        Err(Code::JsonNumberRange),
    ),
    (
        "number_10000000000000000999.json",
        Err(Code::JsonNumberRange),
    ),
    ("number_1.0.json", Ok("[1]")),
    ("number_1.000000000000000005.json", Ok("[1]")),
    ("number_1000000000000000.json", Ok("[1000000000000000]")),
    ("number_1e-999.json", Ok("[0]")),
    ("number_1e6.json", Ok("[1000000]")),
    (
        "object_key_nfc_nfd.json",
        Ok("{\"e\u{301}\":\"NFD\",\"\u{e9}\":\"NFC\"}"),
    ),
    (
        "object_key_nfd_nfc.json",
        Ok("{\"e\u{301}\":\"NFD\",\"\u{e9}\":\"NFC\"}"),
    ),
    (
        "object_same_key_different_values.json",
        Err(Code::JsonDuplicateMember),
    ),
    (
        "object_same_key_same_value.json",
        Err(Code::JsonDuplicateMember),
    ),
    (
        "string_1_escaped_invalid_codepoint.json",
        Err(Code::JsonLoneSurrogate),
    ),
    ("string_1_invalid_codepoint.json", Err(Code::JsonSyntax)),
    ("string_2_invalid_codepoints.json", Err(Code::JsonSyntax)),
];

/// What the suite calls invalid is no JSON at all, but for what a clause names more narrowly.
fn code_of_the_invalid(name: &str) -> Code {
    match name {
        "n_string_1_surrogate_then_escape.json" => Code::JsonLoneSurrogate,
        // J4: 65 containers are refused before their end is looked for.
        "n_structure_100000_opening_arrays.json" | "n_structure_open_array_object.json" => {
            Code::JsonTooDeep
        }
        _ => Code::JsonSyntax,
    }
}

#[test]
fn j1_json_parsing_suite() {
    let Some(folder) = folder("json-parsing") else {
        return;
    };
    let mut described: BTreeMap<_, _> = LEFT_OPEN.into_iter().chain(DESCRIBED).collect();
    let mut refused: BTreeMap<_, _> = REFUSED.iter().map(|row| (row.0, row)).collect();
    let (mut accepted, mut invalid) = (0, 0);
    for case in data(&folder.join("index.json")).as_array().unwrap() {
        let file = text(&case["file"]);
        let name = file.rsplit('/').next().unwrap();
        let read = value::read_bytes(&std::fs::read(folder.join(file)).unwrap());
        let outcome = read.as_ref().map(value::canonical).map_err(|e| e.code);
        match (text(&case["expect"]), outcome) {
            ("accept", Ok(_)) => accepted += 1,
            ("accept", Err(code)) => {
                let row = refused.remove(name);
                let row = row.unwrap_or_else(|| panic!("{name} is refused: {code}"));
                assert_eq!(code, row.1, "{name}: {}", row.2);
            }
            ("reject", outcome) => {
                assert_eq!(outcome, Err(code_of_the_invalid(name)), "{name}");
                invalid += 1;
            }
            (_, outcome) => {
                let expected = described.remove(name);
                let expected = expected.unwrap_or_else(|| panic!("{name} has no row"));
                assert_eq!(outcome, expected.map(str::to_owned), "{name}");
            }
        }
        // Every refusal but those of syntax names the place (J1).
        if let Err(error) = read {
            assert!(Pointer::parse(&error.pointer).is_ok(), "{name}");
            assert_eq!(
                error.pointer.is_empty(),
                error.code == Code::JsonSyntax,
                "{name}"
            );
        }
    }
    assert!(refused.is_empty() && described.is_empty(), "not met");
    assert_eq!((accepted, invalid), (62, 132));
}

#[test]
fn j2_jcs_files() {
    let Some(folder) = folder("jcs/files") else {
        return;
    };
    let sums = data(&folder.join("sha256.json"));
    let bytes = |part: &str, name: &str| std::fs::read(folder.join(part).join(name)).unwrap();
    for (name, sum) in sums.as_object().unwrap() {
        let file = format!("{name}.json");
        let input = bytes("input", &file);
        let read = value::read_bytes(&input);
        // J1 refuses the large numbers of one file; its canonical form is compared all the same.
        let value: Value = if name == "values" {
            let error = read.unwrap_err();
            assert_eq!(
                (error.code, error.pointer.as_str()),
                (Code::JsonNumberRange, "/numbers/1")
            );
            serde_json::from_slice(&input).unwrap()
        } else {
            read.unwrap()
        };
        let canonical = value::canonical(&value);
        assert_eq!(canonical.as_bytes(), bytes("output", &file), "{name}");
        let hex = String::from_utf8(bytes("outhex", &format!("{name}.txt"))).unwrap();
        let hex: Vec<u8> = hex
            .split_whitespace()
            .map(|byte| u8::from_str_radix(byte, 16).unwrap())
            .collect();
        assert_eq!(canonical.as_bytes(), hex, "{name}");
        assert_eq!(canonical.len() as u64, sum["canonical_bytes"], "{name}");
        assert_eq!(
            value::hash(&value).to_string(),
            format!("sha256:{}", text(&sum["sha256_of_canonical"])),
            "{name}"
        );
    }
    assert_eq!(sums.as_object().unwrap().len(), 4);
}

#[test]
fn j2_derived_hashes() {
    let Some(folder) = folder("jcs") else {
        return;
    };
    let cases = data(&folder.join("derived-sha256.json"));
    let mut outside = BTreeMap::new();
    for case in cases.as_array().unwrap() {
        let file = text(&case["file"]);
        let bytes = std::fs::read(folder.join("..").join(file)).unwrap();
        let value: Value = value::read_bytes(&bytes).unwrap_or_else(|error| {
            *outside.entry(error.code.as_str()).or_insert(0) += 1;
            // The canonical form is that of RFC 8785 for what J1 refuses, too.
            serde_json::from_slice(&bytes).unwrap()
        });
        assert_eq!(
            value::canonical_len(&value) as u64,
            case["canonical_bytes"],
            "{file}"
        );
        let expected = format!("sha256:{}", text(&case["sha256_of_canonical"]));
        let expected = Hash::parse(&expected).unwrap();
        assert_eq!(value::hash(&value), expected, "{file}");
    }
    assert_eq!(cases.as_array().unwrap().len(), 186);
    assert_eq!(outside, BTreeMap::from([("json.number-range", 5)]), "J1");
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
    let appendix = data(&folder.join("rfc8785-appendix-b.json"));
    assert_eq!(appendix.as_array().unwrap().len(), 18);
    for case in appendix.as_array().unwrap() {
        let hex = text(&case["hex_ieee754"]);
        assert_eq!(of_bits(hex).as_deref(), case["expected"].as_str(), "{hex}");
    }
    let lines = std::fs::read_to_string(folder.join("es6-numbers.csv")).unwrap();
    let (mut numbers, mut readable) = (0, 0);
    for line in lines.lines().skip(1) {
        let [_, hex, expected] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        assert_eq!(of_bits(hex).as_deref(), Some(expected), "{hex}");
        // What is below 2^53 reads back as the same double (J1: correctly rounded), all else is
        // refused.
        let double = f64::from_bits(u64::from_str_radix(hex, 16).unwrap());
        match value::read(expected) {
            Ok(value) => {
                assert!(double.abs() < 9_007_199_254_740_992.0, "{expected}");
                assert_eq!(value.as_f64().unwrap(), double, "{expected}");
                assert_eq!(value::canonical(&value), expected);
                readable += 1;
            }
            Err(error) => {
                assert!(double.abs() >= 9_007_199_254_740_992.0, "{expected}");
                assert_eq!(error.code, Code::JsonNumberRange, "{expected}");
            }
        }
        numbers += 1;
    }
    assert_eq!((numbers, readable), (7_000, 4_388));
}

#[test]
fn j3_pointers_resolve() {
    let Some(folder) = folder("json-pointer") else {
        return;
    };
    let mut outcomes = BTreeMap::new();
    for case in data(&folder.join("resolve.json")).as_array().unwrap() {
        let (id, pointer) = (text(&case["id"]), text(&case["pointer"]));
        let result = text(&case["result"]);
        *outcomes.entry(result.to_owned()).or_insert(0) += 1;
        match (result, Pointer::parse(pointer)) {
            ("value", Ok(parsed)) => {
                assert_eq!(parsed.read(&case["doc"]), Some(&case["value"]), "{id}");
                assert_eq!(parsed.to_string(), pointer, "{id}");
            }
            ("missing", Ok(parsed)) => assert_eq!(parsed.read(&case["doc"]), None, "{id}"),
            ("error", Err(error)) => assert_eq!(error.code, Code::JsonPointerInvalid, "{id}"),
            (_, parsed) => panic!("{id}: {result}, but {parsed:?}"),
        }
    }
    let counts = [("error", 1), ("missing", 23), ("value", 33)];
    assert_eq!(outcomes, counts.map(|(k, n)| (k.to_owned(), n)).into());
}

/// A fragment is a pointer in another writing, which a `$ref` has (S1).
#[test]
fn j3_s1_pointers_in_fragments() {
    let Some(folder) = folder("json-pointer") else {
        return;
    };
    let cases = data(&folder.join("uri_fragment.json"));
    assert_eq!(cases.as_array().unwrap().len(), 8);
    for case in cases.as_array().unwrap() {
        let (pointer, fragment) = (text(&case["pointer"]), text(&case["fragment"]));
        let parsed = Pointer::parse(pointer).unwrap();
        assert_eq!(
            parsed.read(&case["doc"]),
            Some(&case["value"]),
            "{fragment}"
        );
        let [name] = parsed.tokens() else {
            continue;
        };
        // The same name as that of a definition, reached by the same fragment.
        let below = fragment.strip_prefix('#').unwrap();
        let schema = json!({"$defs": {name: {"const": 7}}, "$ref": format!("#/$defs{below}")});
        let schema = Schema::accept(&schema).unwrap_or_else(|e| panic!("{fragment}: {e:?}"));
        assert!(schema.is_valid(&json!(7)) && !schema.is_valid(&json!(8)));
    }
}

#[test]
fn j3_pointer_syntax() {
    let Some(folder) = folder("json-pointer") else {
        return;
    };
    let (mut absolute, mut relative) = (0, 0);
    for case in data(&folder.join("syntax.json")).as_array().unwrap() {
        let pointer = text(&case["text"]);
        let parsed = Pointer::parse(pointer);
        let valid = if case["kind"] == "json-pointer" {
            absolute += 1;
            case["valid"] == true
        } else {
            // J3: a relative pointer is no pointer, whatever its own syntax says.
            relative += 1;
            pointer.is_empty() || pointer.starts_with('/')
        };
        assert_eq!(parsed.is_ok(), valid, "{pointer:?}");
        match parsed {
            Ok(parsed) => assert_eq!(parsed.to_string(), pointer),
            Err(error) => assert_eq!(error.code, Code::JsonPointerInvalid, "{pointer:?}"),
        }
    }
    assert_eq!((absolute, relative), (24, 13));
}

/// A patch that only tests is a question of pointers and of equality (J3, J5); of the others,
/// every well-formed pointer parses.
#[test]
fn j3_j5_patches_that_test() {
    let Some(folder) = folder("json-pointer/json-patch-tests") else {
        return;
    };
    let (mut answered, mut pointers) = (0, 0);
    for file in ["tests.json", "spec_tests.json"] {
        for case in data(&folder.join(file)).as_array().unwrap() {
            let operations = case["patch"].as_array().unwrap();
            let tests = operations.iter().all(|one| one["op"] == "test");
            let holds = |one: &Value| {
                let pointer = Pointer::parse(one["path"].as_str()?).ok()?;
                (pointer.read(&case["doc"])? == one.get("value")?).then_some(())
            };
            if tests && !operations.is_empty() {
                let all = operations.iter().all(|one| holds(one).is_some());
                assert_eq!(all, case.get("error").is_none(), "{case}");
                answered += 1;
            }
            let names = operations
                .iter()
                .flat_map(|one| [&one["path"], &one["from"]]);
            for name in names.filter_map(Value::as_str) {
                pointers += 1;
                let valid = name.is_empty() || name.starts_with('/');
                assert_eq!(Pointer::parse(name).is_ok(), valid, "{name:?}");
            }
        }
    }
    assert_eq!((answered, pointers), (15, 96));
}
