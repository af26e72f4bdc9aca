//! Whether the server is alive and ready (server.md §4).

use axum::extract::State;

use super::App;
use super::refusal::Refusal;

pub(super) async fn alive() -> &'static str {
    "alive\n"
}

pub(super) async fn ready(State(app): State<App>) -> Result<&'static str, Refusal> {
    app.store.ready().await?;
    Ok("ready\n")
}
