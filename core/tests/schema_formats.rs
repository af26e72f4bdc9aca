//! The eight formats at their edges (S4), by the documents that define them: RFC 3339 for dates
//! and times, RFC 5321 for addresses, RFC 3986 for URIs, RFC 9562 for UUIDs, RFC 2673 and 4291
//! for IP addresses. What is no text has every format.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what helps a test may stop it"
)]

use serde_json::json;
use sluicegate_core::schema::Schema;

#[track_caller]
fn judge(format: &str, good: &[&str], bad: &[&str]) {
    let schema = Schema::accept(&json!({ "format": format })).unwrap();
    let wrong: Vec<_> = good
        .iter()
        .filter(|text| !schema.is_valid(&json!(text)))
        .map(|text| format!("refused: {text:?}"))
        .chain(
            bad.iter()
                .filter(|text| schema.is_valid(&json!(text)))
                .map(|text| format!("accepted: {text:?}")),
        )
        .collect();
    assert!(wrong.is_empty(), "{format}: {wrong:#?}");
    for text in bad {
        let failures = schema.validate(&json!(text));
        assert_eq!(failures.len(), 1);
        assert_eq!((&*failures[0].path, &*failures[0].keyword), ("", "format"));
    }
    for other in [
        json!(null),
        json!(true),
        json!(1.5),
        json!([""]),
        json!({"": ""}),
    ] {
        assert!(schema.is_valid(&other), "{format}: {other}");
    }
    let example = schema.example().unwrap();
    assert!(schema.is_valid(&example));
    // Asked for as a text, the example is one.
    let text = Schema::accept(&json!({"type": "string", "format": format})).unwrap();
    assert!(text.example().unwrap().is_string());
}

#[test]
fn s4_date() {
    judge(
        "date",
        &[
            "2024-02-29",
            "2000-02-29",
            "2023-02-28",
            "0000-01-01",
            "9999-12-31",
            "2024-01-31",
            "2024-04-30",
            "2024-12-31",
        ],
        &[
            "",
            "2023-02-29",
            "1900-02-29",
            "2100-02-29",
            "2024-02-30",
            "2024-04-31",
            "2024-06-31",
            "2024-09-31",
            "2024-11-31",
            "2024-00-10",
            "2024-13-01",
            "2024-01-00",
            "2024-01-32",
            "24-01-01",
            "02024-01-01",
            "+2024-01-01",
            "-2024-01-01",
            "2024-1-01",
            "2024-01-1",
            "2024/01/01",
            "20240101",
            "2024-W01-1",
            "2024-001",
            " 2024-01-01",
            "2024-01-01 ",
            "2024-01-01\n",
            "2024-01-01T00:00:00Z",
            "２０２４-01-01",
            "2024-०1-01",
        ],
    );
}

const TIMES: &[&str] = &[
    "00:00:00Z",
    "23:59:59Z",
    "12:34:56z",
    "12:34:56.0Z",
    "12:34:56.123456789012Z",
    "12:34:56+00:00",
    "12:34:56-00:00",
    "12:34:56+23:59",
    "12:34:56-23:59",
    "23:59:60Z",
    "23:59:60.999Z",
    "22:59:60-01:00",
    "00:59:60+01:00",
    "15:59:60-08:00",
    "05:29:60+05:30",
];

const NO_TIMES: &[&str] = &[
    "12:34:56",
    "12:34Z",
    "1:34:56Z",
    "12:3:56Z",
    "12:34:5Z",
    "24:00:00Z",
    "23:60:00Z",
    "23:59:61Z",
    "22:59:60Z",
    "23:58:60Z",
    "12:00:60Z",
    "23:59:60+01:00",
    "22:59:60+01:00",
    "12:34:56.Z",
    "12:34:56,5Z",
    "12:34:56+24:00",
    "12:34:56+01:60",
    "12:34:56+0100",
    "12:34:56+01",
    "12:34:56+1:00",
    "12:34:56Z+01:00",
    "12:34:56 Z",
    "12:34:56ZZ",
    "-12:34:56Z",
    "12-34-56Z",
    "123456Z",
    "１2:34:56Z",
    "12:34:56.१Z",
    "12:34:56\u{2212}01:00",
];

#[test]
fn s4_time_with_leap_seconds_and_offsets() {
    judge("time", TIMES, &[NO_TIMES, &["", "T12:34:56Z"]].concat());
}

#[test]
fn s4_date_time() {
    let joined = |date: &str, times: &[&str]| -> Vec<String> {
        times.iter().map(|time| format!("{date}T{time}")).collect()
    };
    let leap_day = joined("1998-12-31", TIMES);
    let no_times = joined("1998-12-31", NO_TIMES);
    let mut good: Vec<&str> = leap_day.iter().map(String::as_str).collect();
    good.extend([
        "2024-02-29t12:34:56z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999+14:00",
    ]);
    let mut bad: Vec<&str> = no_times.iter().map(String::as_str).collect();
    bad.extend([
        "",
        "2024-02-29",
        "12:34:56Z",
        "2023-02-29T12:34:56Z",
        "2024-02-29 12:34:56Z",
        "2024-02-29T",
        "T12:34:56Z",
        "2024-02-29_12:34:56Z",
        "02024-02-29T12:34:56Z",
        "2024-02-29T12:34:56Z\n",
        " 2024-02-29T12:34:56Z",
        "2024-060T12:34:56Z",
        "20240229T123456Z",
        "2024-02-29T12:34:56Zulu",
        "2024-02-3０T12:34:56Z",
    ]);
    judge("date-time", &good, &bad);
}

#[test]
fn s4_email() {
    let local = format!("{}@example.com", "a".repeat(64));
    judge(
        "email",
        &[
            "a@b.c",
            "joe.bloggs@example.com",
            "te.s.t@example.com",
            "~test@example.com",
            "test~@example.com",
            "a+b=c@example.com",
            "!#$%&'*+-/=?^_`{|}~@example.com",
            "\"joe bloggs\"@example.com",
            "\"joe..bloggs\"@example.com",
            "\"joe@bloggs\"@example.com",
            "\"a\\\"b\"@example.com",
            "joe@[127.0.0.1]",
            "joe@[IPv6:::1]",
            "joe@xn--bcher-kva.example",
            "joe@a-b.example",
            "joe@1.example",
            "joe@localhost",
            &local,
        ],
        &[
            "",
            "@",
            "joe",
            "@example.com",
            "joe@",
            ".joe@example.com",
            "joe.@example.com",
            "joe..bloggs@example.com",
            "joe@bloggs@example.com",
            "joe bloggs@example.com",
            "joe@example .com",
            "joe@-example.com",
            "joe@example-.com",
            "joe@.example.com",
            "joe@example..com",
            "joe@exa_mple.com",
            "joe@invalid=domain.com",
            "joe@[127.0.0.300]",
            "joe@[IPv6:xyz]",
            "joe@[]",
            " joe@example.com",
            "joe@example.com ",
            "joe@example.com\n",
            "Joe <joe@example.com>",
            "\"joe@example.com",
            "joe\"x\"@example.com",
            "jöe@example.com",
            "joe@exämple.com",
        ],
    );
}

#[test]
fn s4_uri() {
    judge(
        "uri",
        &[
            "http://example.com",
            "HTTP://EXAMPLE.COM/",
            "http://foo.bar/?baz=qux#quux",
            "http://foo.com/blah_(wikipedia)_blah#cite-1",
            "http://u:p@example.com:8080/a;b?c=d&e#f",
            "http://-.~_!$&'()*+,;=:%40:80%2f::::::@example.com",
            "http://[::1]:80/",
            "http://[v1.a:b]/",
            "ftp://ftp.is.co.za/rfc/rfc1808.txt",
            "mailto:a@b.c",
            "news:comp.infosystems.www.servers.unix",
            "tel:+1-816-555-1212",
            "urn:oasis:names:x",
            "file:///etc/hosts",
            "a:",
            "a+b-c.1:x",
            "http://example.com/%7Efoo",
            "http://",
            "http://example.com:",
            "http://xn--nw2a.xn--j6w193g/",
            "x://a//b",
            "http://a/?q=?/#/?",
            "about:blank",
            "data:,x",
        ],
        &[
            "",
            "//foo.bar/?baz=qux",
            "/abs",
            "foo",
            "\\\\WINDOWS\\fileshare",
            "http://a b",
            "http:// shouldfail.com",
            ":// should fail",
            "bar,baz:foo",
            "1http://a",
            "-a:b",
            ":a",
            "http://example.com/<>",
            "http://example.com/{}",
            "http://example.com/^",
            "http://a/`",
            "http://a/|",
            "http://a/\\",
            "http://a/\"",
            "http://a/%",
            "http://a/%4",
            "http://a/%zz",
            "http://a/é",
            "http://ƒøø.ßår/",
            "http://[::1",
            "http://::1]/",
            "http://[::g]/",
            "http://[1.2.3.4]/",
            "http://a:80a/",
            "http://a@b@c/",
            "http://a/#b#c",
            " http://a",
            "http://a ",
            "http://a\n",
            "http://a/\u{0}",
            "http://[fe80::1%25eth0]/",
        ],
    );
}

#[test]
fn s4_uuid() {
    judge(
        "uuid",
        &[
            "2eb8aa08-aa98-11ea-b4aa-73b441d16380",
            "2EB8AA08-AA98-11EA-B4AA-73B441D16380",
            "2eb8aa08-AA98-11ea-B4Aa-73B441D16380",
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "98d80576-482e-427f-8434-7f86890ab222",
            "99c17cbb-656f-f64a-940f-1a4568f03487",
        ],
        &[
            "",
            "2eb8aa08-aa98-11ea-b4aa-73b441d1638",
            "2eb8aa08-aa98-11ea-b4aa-73b441d163800",
            "2eb8aa08aa9811eab4aa73b441d16380",
            "2eb8-aa08-aa98-11ea-b4aa73b44-1d16380",
            "2eb8aa08-aa98-11ea-73b441d16380",
            "{2eb8aa08-aa98-11ea-b4aa-73b441d16380}",
            "urn:uuid:2eb8aa08-aa98-11ea-b4aa-73b441d16380",
            "2eb8aa08-aa98-11ea-b4ga-73b441d16380",
            "2eb8aa08_aa98-11ea-b4aa-73b441d16380",
            "2eb8aa08-aa98-11ea-b4aa-73b441d1638０",
            " 2eb8aa08-aa98-11ea-b4aa-73b441d16380",
            "2eb8aa08-aa98-11ea-b4aa-73b441d16380\n",
            "2eb8aa0-8aa98-11ea-b4aa-73b441d16380",
        ],
    );
}

#[test]
fn s4_ipv4() {
    judge(
        "ipv4",
        &[
            "0.0.0.0",
            "255.255.255.255",
            "192.168.0.1",
            "87.10.0.1",
            "127.0.0.1",
        ],
        &[
            "",
            "127.0.0.0.1",
            "256.256.256.256",
            "127.0",
            "127.0.1",
            "0x7f000001",
            "2130706433",
            "087.10.0.1",
            "01.2.3.4",
            "1.2.3.04",
            "1.2.3.4.",
            ".1.2.3.4",
            "1..3.4",
            "1.2.3.-4",
            "1.2.3.+4",
            "1.2.3.4 ",
            " 1.2.3.4",
            "1.2.3.4\n",
            "1.2.3.4/24",
            "1.2.3.0x4",
            "1২7.0.0.1",
            "1.2.3.1000",
            "::1",
        ],
    );
}

#[test]
fn s4_ipv6() {
    judge(
        "ipv6",
        &[
            "::",
            "::1",
            "1::",
            "1::8",
            "::abef",
            "::abcd:ef12",
            "12345::".get(1..).unwrap(),
            "2001:db8::1",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "1:d6::42",
            "::ffff:192.168.0.1",
            "1::d6:192.168.0.1",
            "1:2::192.168.0.1",
            "::1.2.3.4",
            "1:2:3:4:5:6:1.2.3.4",
            "ABCD:EF01:2345:6789:abcd:ef01:2345:6789",
        ],
        &[
            "",
            ":",
            ":::",
            "12345::",
            "1:1:1:1:1:1:1:1:1",
            "1:2:3:4:5:6:7",
            "::laptop",
            "1::d6::42",
            ":2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7:",
            ":2:3:4::8",
            "1:2:3:4:5:::8",
            "1:2:3:4:5:6:7::8:9",
            "fe80::a%eth1",
            "fe80::a/64",
            "[::1]",
            "::1 ",
            " ::1",
            "::1\n",
            "1::2:192.168.256.1",
            "1::2:192.168.ff.1",
            "::ffff:192.168.0",
            "1.2.3.4",
            "1.2.3.4::",
            "100:100:100:100:100:100:255.255.255.255.255",
            "1:2:3:4:1.2.3.4",
            "100:100:100:100:100:100:100:255.255.255.255",
            "::1২:1",
            "-1::",
            "::+1",
            "::01.2.3.4",
            "::g",
            "1:2:3:4:5:6:7:8::",
        ],
    );
}
