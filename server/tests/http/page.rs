//! The built app as the browser gets it (server.md §4; web.md §6).

use crate::client::Running;

const PAGE: &str = "<!doctype html><script type=\"module\">go()</script>";

fn with_app() -> Running {
    Running::start_with(|folder| {
        let web = folder.join("web");
        std::fs::create_dir(&web).unwrap();
        std::fs::write(web.join("index.html"), PAGE).unwrap();
        std::fs::write(web.join("app-0123456789abcdef.js"), "plain").unwrap();
        std::fs::write(web.join("app-0123456789abcdef.js.br"), "brotli").unwrap();
        std::fs::write(web.join("mark.svg"), "<svg/>").unwrap();
        Some(web)
    })
}

#[test]
fn every_screen_is_the_page_under_a_policy_with_its_loader() {
    let server = with_app();
    let page = ("accept", "text/html,*/*;q=0.8");
    for path in [
        "/",
        "/index.html",
        "/runs/1",
        "/workflows/expenses.review",
        "/../../etc/passwd",
    ] {
        let answer = server.send("GET", path, &[page], None);
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.text, PAGE);
        assert_eq!(answer.header("cache-control"), "no-cache");
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        let policy = answer.header("content-security-policy");
        let scripts = policy.split(';').nth(1).unwrap();
        assert!(
            scripts.starts_with(" script-src 'self' 'wasm-unsafe-eval' 'sha256-"),
            "{policy}"
        );
    }
    let answer = server.send(
        "GET",
        "/app-fedcba9876543210.js",
        &[("accept", "*/*")],
        None,
    );
    answer.refused(404, "ROUTE_NOT_FOUND");
    server
        .send("GET", "/api/nothing", &[page], None)
        .refused(404, "ROUTE_NOT_FOUND");
}

#[test]
fn files_with_a_hash_are_immutable_and_sent_as_they_were_compressed() {
    let server = with_app();
    let path = "/app-0123456789abcdef.js";
    let packed = server.send("GET", path, &[("accept-encoding", "br, gzip")], None);
    assert_eq!(
        (packed.status, packed.header("content-encoding")),
        (200, "br")
    );
    assert_eq!(
        packed.header("cache-control"),
        "public, max-age=31536000, immutable"
    );
    assert_eq!(packed.header("content-type"), "text/javascript");
    let plain = server.send("GET", path, &[("accept-encoding", "identity")], None);
    assert_eq!(
        (plain.text.as_str(), plain.header("content-encoding")),
        ("plain", "")
    );
    let mark = server.send("GET", "/mark.svg", &[], None);
    assert_eq!(mark.header("cache-control"), "no-cache");
    assert_eq!(mark.header("content-type"), "image/svg+xml");
}
