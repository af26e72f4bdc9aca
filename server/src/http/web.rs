//! The built app as static files (server.md §4; web.md §6): precompressed where the build
//! left `.br` and `.gz`, immutable where a name holds a hash, and `index.html` for every
//! address that is a screen.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use sluicegate_core::code::Code;
use tower_http::services::ServeDir;

use super::refusal::Refusal;

/// The folder of the built app.
#[derive(Debug, Clone)]
pub struct Web {
    folder: PathBuf,
}

impl Web {
    /// Finds the app: in the folder that was named, else beside the binary, else where the
    /// build of a clone leaves it. `None`: there is none, and only the API is served.
    ///
    /// # Errors
    /// When the folder that was named holds no `index.html`.
    pub fn find(named: Option<&Path>) -> Result<Option<Self>, String> {
        if let Some(folder) = named {
            let page = folder.join("index.html");
            let web = Self::open(folder.to_owned());
            return web
                .map(Some)
                .ok_or_else(|| format!("{}: there is no such file", page.display()));
        }
        let beside = std::env::current_exe()
            .ok()
            .and_then(|binary| Some(binary.parent()?.join("web")));
        let clone = Some(PathBuf::from("target/web"));
        let usual = [beside, clone].into_iter().flatten();
        Ok(usual.filter_map(Self::open).next())
    }

    fn open(folder: PathBuf) -> Option<Self> {
        let found = folder.join("index.html").is_file();
        found.then_some(Self { folder })
    }

    /// The page, under a policy that names its own loader: read anew each time, so that a
    /// build beside a running server is served whole.
    async fn index(&self) -> Result<Response, Refusal> {
        let page = tokio::fs::read_to_string(self.folder.join("index.html"));
        let page = page.await.map_err(unreadable)?;
        let policy = (CONTENT_SECURITY_POLICY, policy(&page));
        let caching = (CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        Ok(([policy, caching], Html(page)).into_response())
    }
}

/// The content security policy of a page: scripts of our own, the wasm loader by its hash,
/// and nothing from anywhere else. Styles may be inline, because the canvas places what it
/// draws.
pub(super) fn policy(page: &str) -> HeaderValue {
    let hashes: String = inline_scripts(page)
        .map(|script| {
            let hash = STANDARD.encode(Sha256::digest(script.as_bytes()));
            format!(" 'sha256-{hash}'")
        })
        .collect();
    let policy = format!(
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'{hashes}; style-src 'self' \
         'unsafe-inline'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; \
         manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    // Nothing in it can be no header; were it so, nothing would be allowed.
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// The texts of the scripts that a page holds itself.
fn inline_scripts(page: &str) -> impl Iterator<Item = &str> {
    page.split("<script").skip(1).filter_map(|rest| {
        let (attributes, rest) = rest.split_once('>')?;
        let (text, _) = rest.split_once("</script>")?;
        (!attributes.contains(" src=") && !text.trim().is_empty()).then_some(text)
    })
}

/// Answers every address that no endpoint has.
pub(super) async fn page(
    Extension(web): Extension<Option<Arc<Web>>>,
    request: Request,
) -> Result<Response, Refusal> {
    let path = request.uri().path().to_owned();
    let nothing = || Refusal::new(Code::RouteNotFound, Code::RouteNotFound.sentence());
    if path == "/api" || path.starts_with("/api/") {
        return Err(nothing());
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(nothing());
    }
    let Some(web) = web else {
        let detail = "the app is not built into this server's folder; see --web";
        return Err(Refusal::new(Code::RouteNotFound, detail));
    };
    if path == "/" || path == "/index.html" {
        return web.index().await;
    }
    let screen = is_screen(&path, request.headers());
    let mut files = ServeDir::new(&web.folder)
        .append_index_html_on_directories(false)
        .precompressed_br()
        .precompressed_gzip();
    let response = files.try_call(request).await.map_err(unreadable)?;
    if response.status() == StatusCode::NOT_FOUND {
        return if screen {
            web.index().await
        } else {
            Err(nothing())
        };
    }
    let caching = if response.status().is_success() && is_hashed(&path) {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let mut response = response.map(Body::new).into_response();
    let caching = HeaderValue::from_static(caching);
    response.headers_mut().insert(CACHE_CONTROL, caching);
    Ok(response)
}

/// Whether an address without a file may be one of the app's screens: a browser goes there
/// by itself, or nothing in it looks like a file. A script that is missing is no screen, but
/// a workflow's key has dots.
fn is_screen(path: &str, headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
        || !path
            .rsplit('/')
            .next()
            .is_some_and(|name| name.contains('.'))
}

fn unreadable(error: std::io::Error) -> Refusal {
    tracing::error!(%error, "a file of the app cannot be read");
    Refusal::new(Code::Internal, Code::Internal.sentence())
}

/// Whether a file's name holds a hash of its contents, as the build writes them:
/// `name-0123456789abcdef.js`, `name-0123456789abcdef_bg.wasm`.
fn is_hashed(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.split(['-', '_', '.'])
        .skip(1)
        .any(|part| part.len() >= 12 && part.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_hash_are_immutable_and_others_are_not() {
        for path in [
            "/app-0123456789abcdef.js",
            "/a/app-0123456789abcdef_bg.wasm",
        ] {
            assert!(is_hashed(path), "{path}");
        }
        for path in [
            "/",
            "/index.html",
            "/decade.css",
            "/app-face.js",
            "/deadbeefdeadbeef",
        ] {
            assert!(!is_hashed(path), "{path}");
        }
    }

    #[test]
    fn the_policy_names_the_loader_by_its_hash() {
        let page = "<script type=\"module\">go()</script><script src=\"/a.js\"></script>";
        let policy = policy(page);
        let policy = policy.to_str().unwrap();
        let hash = STANDARD.encode(Sha256::digest(b"go()"));
        assert_eq!(policy.matches("sha256-").count(), 1);
        assert!(policy.contains(&format!(
            "script-src 'self' 'wasm-unsafe-eval' 'sha256-{hash}';"
        )));
        assert!(!policy.contains("'unsafe-eval'"));
    }

    #[test]
    fn a_screen_may_have_dots_and_a_missing_script_is_none() {
        let of = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            headers
        };
        let page = of("text/html,application/xhtml+xml,*/*;q=0.8");
        assert!(is_screen("/workflows/expenses.review", &page));
        assert!(is_screen("/workflows/abc", &of("*/*")));
        assert!(!is_screen("/app-0123.js", &of("*/*")));
    }
}
