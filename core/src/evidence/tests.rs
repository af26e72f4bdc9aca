use serde_json::json;

use super::*;
use crate::value::Map;
use crate::value::{canonical, hash, read};

fn schema(document: Value) -> Schema {
    Schema::accept(&document).unwrap()
}

fn anything() -> Schema {
    schema(json!(true))
}

fn secrets(values: &[Value]) -> Secrets {
    let mut secrets = Secrets::default();
    values.iter().for_each(|value| secrets.learn_value(value));
    secrets
}

fn made(schema: &Schema, value: &Value, secrets: &Secrets, room: u64) -> Made {
    make(
        "n/1/success".into(),
        "std.any".into(),
        schema,
        value,
        secrets,
        room,
    )
}

const ROOM: u64 = 1_048_576;

#[test]
fn s5_b106_b108_secrets_are_found_by_value_wherever_a_mapping_carried_them() {
    let secret = "hunter2-ABCDEFGHIJ";
    let secrets = secrets(&[
        json!(secret),
        json!({"user": "u-77", "deep": ["q\"\n\u{1}", 4711]}),
    ]);
    let value = json!({
        "message": format!("{}postgres://u:{secret}@h/db", "x".repeat(180)),
        format!("key {secret}"): [[{"n": secret}]],
        "user": "it was u-77!",
        "number": 4711,
        "near": [47110, 4711.5, "PIN 4711, not 47110 nor 0.4711", "-4711 or x-4711"],
        "rendered": canonical(&json!({"quoted": "q\"\n\u{1}"})),
        "rendered twice": canonical(&json!([canonical(&json!(["q\"\n\u{1}"]))])),
    });
    let hidden = secrets.redact(None, &value);
    assert_eq!(
        hidden,
        json!({
            "message": format!("{}postgres://u:***@h/db", "x".repeat(180)),
            "key ***": [[{"n": "***"}]],
            "user": "it was ***!",
            "number": "***",
            "near": [47110, 4711.5, "PIN ***, not 47110 nor 0.4711", "-*** or x-***"],
            "rendered": r#"{"quoted":"***"}"#,
            "rendered twice": r#"["[\"***\"]"]"#,
        })
    );
    assert_eq!(
        secrets.scrub_text(&format!("a{secret}{secret}b{secret}")),
        "a***b***"
    );
    assert!(!format!("{secrets:?}").contains("hunter2"));
}

#[test]
fn s5_overlapping_secrets_leave_no_piece() {
    let secrets = secrets(&[json!("abcd"), json!("cdef"), json!("efgh"), json!("d")]);
    assert_eq!(secrets.scrub_text("xabcdefghx"), "x***x");
    assert_eq!(secrets.scrub_text("xabdefx"), "xab***efx");
    assert_eq!(secrets.scrub_text("é😀abcd😀"), "é😀***😀");
}

#[test]
fn s5_trivial_values_are_no_secrets_by_value() {
    let learnt = secrets(&[json!(null), json!(true), json!(""), json!([]), json!({})]);
    assert!(learnt.is_empty());
    let value = json!({"a": null, "b": [true, "", [], {}]});
    assert_eq!(learnt.redact(None, &value), value);
    assert!(!secrets(&[json!(0)]).is_empty());
}

#[test]
fn s5_the_order_of_learning_does_not_matter() {
    let (a, b, c) = (json!("abc"), json!(["abcd", 12]), json!({"k": "bc"}));
    let value = json!(["abcd abc bc 12 c", 12, {"bc": 1, "abc": 2, "abcd": 3, "***": 4}]);
    let first = secrets(&[a.clone(), b.clone(), c.clone()]);
    let second = secrets(&[c, a, b]);
    assert_eq!(first, second);
    // One is what the other looks like inside JSON text.
    let (plain, escaped) = (json!("q\"r"), json!("q\\\"r"));
    assert_eq!(
        secrets(&[plain.clone(), escaped.clone()]),
        secrets(&[escaped, plain])
    );
    let hidden = first.redact(None, &value);
    assert_eq!(hidden, second.redact(None, &value));
    // Names that become equal keep their members apart.
    assert_eq!(hidden[2].as_object().unwrap().len(), 4);
}

#[test]
fn server_7_member_names_whatever_their_case_and_separators() {
    let none = Secrets::default();
    for name in [
        "password",
        "passwd",
        "secret",
        "token",
        "access_token",
        "refresh_token",
        "id_token",
        "authorization",
        "api_key",
        "apikey",
        "client_secret",
        "private_key",
        "cookie",
        "set_cookie",
        "session_id",
        "Password",
        "ACCESS-TOKEN",
        "Set-Cookie",
        "accessToken",
        "API_KEY",
        "sessionId",
        "ApiKey",
    ] {
        for value in [json!("x"), json!(null), json!({"deep": [1]})] {
            let hidden = none.redact(None, &json!({"o": [{name: value}]}));
            assert_eq!(hidden, json!({"o": [{name: "***"}]}));
        }
    }
    for name in [
        "passwords",
        "tokens",
        "max_tokens",
        "my_secret",
        "key",
        "",
        "pass",
        "cookies",
        "pässword",
    ] {
        let value = json!({name: "x"});
        assert_eq!(none.redact(None, &value), value, "{name}");
    }
}

#[test]
fn server_7_b109_recognisable_credentials_in_any_text() {
    let none = Secrets::default();
    for (text, scrubbed) in [
        (
            "Authorization: Bearer sk-test-123",
            "Authorization: Bearer ***",
        ),
        ("bearer  eyJhbGci.eyJzdWIi.c2ln/+=~ end", "bearer  *** end"),
        ("{\"h\":\"Bearer abcdefgh\"}", "{\"h\":\"Bearer ***\"}"),
        ("key=sk-proj-abcDEF123,", "key=***,"),
        ("ghp_0123456789abcdefABCD", "***"),
        ("(xoxb-1234-5678-abcd)", "(***)"),
        ("AKIAIOSFODNN7EXAMPLE", "***"),
        ("sgk_live1234", "***"),
        ("line\\nsk-abcdefgh1", "line\\n***"),
        ("😀sk-abcdefgh1😀", "😀***😀"),
        (
            "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b",
            "a *** b",
        ),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\\nabc", "***"),
        (
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----",
            "***",
        ),
    ] {
        assert_eq!(none.scrub_text(text), scrubbed);
    }
    for text in [
        "risk-assessment-of-tasks",
        "the sk- prefix",
        "bearer of news",
        "AKIA",
        "Bearer",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "-----BEGIN PRIVATE KEY",
        "xoxb-",
        "desk-lamp-with-arm",
        "ghp_short",
    ] {
        assert_eq!(none.scrub_text(text), text);
    }
}

#[test]
fn seed_states_and_reasons_lose_nothing() {
    let secret = secrets(&[json!("hunter2")]);
    let long = "word ".repeat(2_000);
    for (value, room, state, reason, shown) in [
        (json!(null), ROOM, State::Available, None, true),
        (
            json!("hunter2"),
            ROOM,
            State::Redacted,
            Some(Reason::Secret),
            true,
        ),
        (
            json!(long),
            ROOM,
            State::Truncated,
            Some(Reason::SizeLimit),
            true,
        ),
        (
            json!(["hunter2", long]),
            ROOM,
            State::Truncated,
            Some(Reason::Secret),
            true,
        ),
        (
            json!(null),
            3,
            State::Truncated,
            Some(Reason::SizeLimit),
            false,
        ),
        (json!(null), 4, State::Available, None, true),
        (
            json!("hunter2"),
            0,
            State::Truncated,
            Some(Reason::Secret),
            false,
        ),
        (
            json!(long),
            4_095,
            State::Truncated,
            Some(Reason::SizeLimit),
            false,
        ),
        (
            json!(long),
            4_096,
            State::Truncated,
            Some(Reason::SizeLimit),
            true,
        ),
    ] {
        let made = made(&anything(), &value, &secret, room);
        assert_eq!(
            (made.evidence.state, made.evidence.reason),
            (state, reason),
            "{value}"
        );
        assert_eq!(made.preview.is_some(), shown, "{value} {room}");
        assert_eq!(
            made.evidence.original_byte_size,
            canonical(&value).len() as u64
        );
        assert_eq!(made.evidence.hash, Some(hash(&secret.redact(None, &value))));
    }
}

#[test]
fn s5_b106_redaction_comes_before_the_cut() {
    let secret = "hunter2-ABCDEFGHIJ";
    let secrets = secrets(&[json!(secret)]);
    // Wherever the cut falls, no piece of a secret is left at it.
    for padding in 4_060..4_096 {
        let value = json!(format!(
            "{}{secret}{}",
            "x".repeat(padding),
            "y".repeat(100)
        ));
        let preview = canonical(&made(&anything(), &value, &secrets, ROOM).preview.unwrap());
        assert!(!preview.contains("hunt") && preview.len() <= 4_096);
    }
}

#[test]
fn server_7_previews_are_json_of_at_most_4_kib_and_say_most() {
    let big = "é\"\n\u{1}😀".repeat(4_000);
    let deep = (0..60).fold(json!(big), |inner, _| json!([inner]));
    let wide: Map<String, Value> = (0..3_000).map(|i| (format!("m{i:04}"), json!(i))).collect();
    for value in [
        json!(big),
        json!({"id": "claim-7", "note": big, "status": "open"}),
        json!((0..5_000).collect::<Vec<_>>()),
        json!(vec![json!({"id": 1, "text": big}); 3]),
        json!({"zz": 1, "k".repeat(9_000): 2}),
        Value::Object(wide),
        json!({"…": big, "a": [big, big, {"b": big}]}),
        deep,
    ] {
        let preview = made(&anything(), &value, &Secrets::default(), ROOM)
            .preview
            .unwrap();
        let text = canonical(&preview);
        assert!(text.len() <= 4_096, "{}", text.len());
        assert!(text.contains('…'), "a cut is marked: {text}");
        assert_eq!(read(&text).as_ref(), Ok(&preview));
    }
    let claim = json!({"id": "claim-7", "note": big, "status": "open", "text": big});
    let preview = made(&anything(), &claim, &Secrets::default(), ROOM)
        .preview
        .unwrap();
    assert_eq!(
        (&preview["id"], &preview["status"]),
        (&json!("claim-7"), &json!("open"))
    );
    let (note, text) = (
        canonical(&preview["note"]).len(),
        canonical(&preview["text"]).len(),
    );
    assert!(
        note.abs_diff(text) < 20 && note > 1_900,
        "shared evenly: {note} {text}"
    );
    let numbers = json!((0..5_000).collect::<Vec<_>>());
    let preview = made(&anything(), &numbers, &Secrets::default(), ROOM)
        .preview
        .unwrap();
    let items = preview.as_array().unwrap();
    assert_eq!(items[..3], [json!(0), json!(1), json!(2)]);
    assert_eq!(
        items.last(),
        Some(&json!(format!("… {} more", 5_001 - items.len())))
    );
}

#[test]
fn server_7_exactly_4_kib_is_whole() {
    for (length, state) in [(4_094, State::Available), (4_095, State::Truncated)] {
        let made = made(
            &anything(),
            &json!("x".repeat(length)),
            &Secrets::default(),
            ROOM,
        );
        assert_eq!(made.evidence.state, state);
    }
}

#[test]
fn a6_counted_is_at_most_one_preview() {
    assert_eq!(
        [0, 4_095, 4_096, 65_536].map(counted),
        [0, 4_095, 4_096, 4_096]
    );
}

/// Quadratic searching would take minutes here: nested secrets, many near misses.
#[test]
fn s5_redaction_is_linear() {
    let nested: Vec<_> = (1..300).map(|n| json!("a".repeat(n))).collect();
    let learnt = secrets(&[json!(nested)]);
    assert!(learnt.scrub_text(&"a".repeat(200_000)) == "***");
    let learnt = secrets(&[json!(format!("{}b", "a".repeat(30_000)))]);
    let text = "a".repeat(200_000);
    assert!(learnt.scrub_text(&text) == text);
    for text in [
        "-----BEGIN PRIVATE KEY".repeat(20_000),
        "-----BEGIN X-----".repeat(20_000),
        "bearer ".repeat(50_000),
        "sk-".repeat(100_000),
        "1e1.".repeat(50_000),
    ] {
        let _ = secrets(&[json!(12)]).scrub_text(&text);
    }
}

#[test]
fn run_2_absent_evidence_has_no_hash_and_no_payload() {
    let evidence = absent("std.text".into());
    assert_eq!(
        serde_json::to_value(&evidence).unwrap(),
        json!({"version": 1, "state": "absent", "schemaId": "std.text", "originalByteSize": 0, "reason": "not-emitted"})
    );
    let made = made(&anything(), &json!(null), &Secrets::default(), ROOM);
    assert_eq!(
        serde_json::to_value(&made.evidence).unwrap(),
        json!({"version": 1, "state": "available", "schemaId": "std.any", "payloadId": "n/1/success",
            "hash": hash(&json!(null)).to_string(), "originalByteSize": 4})
    );
    assert_eq!(made.preview, Some(json!(null)));
}
#[test]
fn s5_secrets_are_found_by_place_whatever_they_are() {
    let schema = schema(json!({
        "type": "object",
        "properties": {
            "a": {"allOf": [{"writeOnly": true}]},
            "list": {"type": "array", "items": {"properties": {"pin": {"writeOnly": true}}}},
        },
    }));
    let value = json!({"a": null, "b": 1, "list": [{"pin": 7, "x": true}, {"pin": {"k": []}}]});
    let none = Secrets::default();
    let hidden = none.redact(Some(&schema), &value);
    assert_eq!(
        hidden,
        json!({"a": "***", "b": 1, "list": [{"pin": "***", "x": true}, {"pin": "***"}]})
    );
    assert_eq!(none.redact(None, &value), value);
}

#[test]
fn s5_the_hash_is_over_the_redacted_form() {
    let schema = schema(json!({"properties": {"s": {"writeOnly": true}}}));
    let evidence = |secret: &str| {
        let value = json!({"s": secret, "open": 1});
        let mut secrets = Secrets::default();
        secrets.learn(&schema, &value);
        made(&schema, &value, &secrets, ROOM)
    };
    let (one, other) = (evidence("alpha"), evidence("omega"));
    assert_eq!(one, other);
    assert_eq!(
        one.evidence.hash,
        Some(hash(&json!({"s": "***", "open": 1})))
    );
    assert_eq!(one.preview, Some(json!({"s": "***", "open": 1})));
}

#[test]
fn s5_long_secrets_are_found_whole_and_where_they_overlap() {
    let long = "ab".repeat(4_000);
    let secrets = secrets(&[json!(long)]);
    assert_eq!(secrets.scrub_text(&format!("x {long} y")), "x *** y");
    assert_eq!(
        secrets.scrub_text(&format!("x {long}abab{long} y")),
        "x *** y"
    );
    let cut = format!("x {} y", &long[2..]);
    assert_eq!(secrets.scrub_text(&cut), cut);
    let quoted = format!("{}\"", "q".repeat(5_000));
    let text = canonical(&json!({ "s": quoted }));
    let secrets = self::secrets(&[json!(quoted)]);
    assert_eq!(secrets.scrub_text(&text), r#"{"s":"***"}"#);
}

#[test]
fn s5_learning_what_is_known_changes_nothing_in_any_order() {
    let (one, other) = (json!("a\"b"), json!("a\\\"b"));
    assert_eq!(
        secrets(&[one.clone(), other.clone()]),
        secrets(&[other.clone(), one.clone(), other])
    );
}

#[test]
fn s5_many_large_secrets_are_hidden_in_bounded_time() {
    let start = std::time::Instant::now();
    let mut secrets = Secrets::default();
    let values: Vec<_> = (0..20)
        .map(|i| format!("{i}{}", "\\\"".repeat(16_000)))
        .collect();
    for value in &values {
        for _ in 0..3 {
            secrets.learn_value(&json!(value));
            assert_eq!(
                secrets.redact(None, &json!([value, "open"])),
                json!(["***", "open"])
            );
        }
    }
    assert!(
        start.elapsed() < std::time::Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn s5_more_secrets_than_can_be_searched_hide_every_text() {
    let many: Vec<_> = (0..20_000).map(|i| json!(format!("secret-{i}"))).collect();
    let mut secrets = secrets(&many);
    assert!(!secrets.is_empty());
    assert_eq!(secrets.scrub_text("open"), "***");
    assert_eq!(
        secrets.redact(None, &json!(["open", 1, ""])),
        json!(["***", 1, ""])
    );
    secrets.learn_value(&json!("more"));
    assert_eq!(
        secrets,
        self::secrets(&many.iter().rev().cloned().collect::<Vec<_>>())
    );
}

#[test]
fn s5_a_secret_object_is_hidden_with_its_names_wherever_it_stands() {
    let marked = schema(json!({"properties": {"keys": {"writeOnly": true}}}));
    let keys = json!({"live-token": {"scope": "all"}, "n": 1});
    let mut secrets = Secrets::default();
    secrets.learn(&marked, &json!({"keys": keys, "scope": "other"}));
    let copied = json!({"copy": keys, "text": format!("use {}!", canonical(&keys)), "inner": keys["live-token"]});
    assert_eq!(
        secrets.redact(None, &copied),
        json!({"copy": MARK, "text": format!("use {MARK}!"), "inner": MARK})
    );
    // A name alone is no secret, or a common one would hide every other.
    let other = json!({"scope": "read", "n": {"scope": true}});
    assert_eq!(secrets.redact(None, &other), other);
}

#[test]
fn s5_a_secret_is_found_as_a_token_of_a_pointer() {
    let secrets = secrets(&[json!("a/b~c")]);
    assert_eq!(
        secrets.scrub_text("at /x/a~1b~0c/y"),
        format!("at /x/{MARK}/y")
    );
    let quoted = canonical(&json!("/a~1b~0c"));
    assert_eq!(secrets.scrub_text(&quoted), format!("\"/{MARK}\""));
}
