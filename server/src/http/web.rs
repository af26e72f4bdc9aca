//! The built app as static files (server.md §4; web.md §6): precompressed where the build
//! left `.br` and `.gz`, immutable where a name holds a hash, and `index.html` for every
//! address that is a screen.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
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
    scripts: Vec<String>,
}

impl Web {
    /// Finds the app: in the folder that was named, else beside the binary, else where the
    /// build of a clone leaves it. `None`: there is none, and only the API is served.
    ///
    /// # Errors
    /// When the folder that was named holds no `index.html` that can be read.
    pub fn find(named: Option<&Path>) -> Result<Option<Self>, String> {
        if let Some(folder) = named {
            let page = folder.join("index.html");
            let web = Self::open(folder.to_owned());
            return web
                .map(Some)
                .map_err(|error| format!("{}: {error}", page.display()));
        }
        let beside = std::env::current_exe()
            .ok()
            .and_then(|binary| Some(binary.parent()?.join("web")));
        let clone = Some(PathBuf::from("target/web"));
        let usual = [beside, clone].into_iter().flatten();
        Ok(usual.filter_map(|folder| Self::open(folder).ok()).next())
    }

    fn open(folder: PathBuf) -> std::io::Result<Self> {
        let page = std::fs::read_to_string(folder.join("index.html"))?;
        Ok(Self {
            folder,
            scripts: inline_scripts(&page),
        })
    }
}

/// The content security policy: scripts of our own, the wasm loader by its hash, and nothing
/// from anywhere else. Styles may be inline, because the canvas places what it draws.
#[must_use]
pub fn policy(web: Option<&Web>) -> HeaderValue {
    let hashes: String = web
        .iter()
        .flat_map(|web| &web.scripts)
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
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// The texts of the scripts that a page holds itself.
fn inline_scripts(page: &str) -> Vec<String> {
    page.split("<script")
        .skip(1)
        .filter_map(|rest| {
            let (attributes, rest) = rest.split_once('>')?;
            let (text, _) = rest.split_once("</script>")?;
            (!attributes.contains(" src=") && !text.trim().is_empty()).then(|| text.to_owned())
        })
        .collect()
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
    let (parts, _) = request.into_parts();
    let ask = |uri: Uri| {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = parts.method.clone();
        *request.headers_mut() = parts.headers.clone();
        *request.uri_mut() = uri;
        request
    };
    let mut response = serve(&web, ask(parts.uri.clone())).await?;
    // A screen's address has no file; one that looks like a file and has none is an error.
    let looks_like_a_file = path
        .rsplit('/')
        .next()
        .is_some_and(|name| name.contains('.'));
    if response.status() == StatusCode::NOT_FOUND {
        if looks_like_a_file {
            return Err(nothing());
        }
        response = serve(&web, ask(Uri::from_static("/index.html"))).await?;
    }
    let caching = if response.status().is_success() && is_hashed(&path) {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let caching = HeaderValue::from_static(caching);
    response.headers_mut().insert(CACHE_CONTROL, caching);
    Ok(response)
}

async fn serve(web: &Web, request: Request) -> Result<Response, Refusal> {
    let mut files = ServeDir::new(&web.folder)
        .precompressed_br()
        .precompressed_gzip();
    let response = files.try_call(request).await.map_err(|error| {
        tracing::error!(%error, "a file of the app cannot be read");
        Refusal::new(Code::Internal, Code::Internal.sentence())
    })?;
    Ok(response.map(Body::new).into_response())
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
        let web = Web {
            folder: PathBuf::new(),
            scripts: inline_scripts(page),
        };
        let policy = policy(Some(&web));
        let policy = policy.to_str().unwrap();
        let hash = STANDARD.encode(Sha256::digest(b"go()"));
        assert_eq!(policy.matches("sha256-").count(), 1);
        assert!(policy.contains(&format!(
            "script-src 'self' 'wasm-unsafe-eval' 'sha256-{hash}';"
        )));
        assert!(!policy.contains("'unsafe-eval'"));
    }
}
