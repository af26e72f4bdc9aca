//! `serve` and `config`: the server and its settings in force (server.md §1).

use tokio::signal::unix::{SignalKind, signal};

use super::Answer;
use super::fault::Fault;
use super::output::{Output, message};
use crate::config::{Arguments, Remote, Settings};
use crate::serve;

pub(super) fn config(arguments: &Arguments, output: &mut Output) -> Result<Answer, Fault> {
    let settings = settings(arguments)?;
    let remote = Remote::resolve(&arguments.remote(), &environment)
        .map_err(|error| Fault::new(message(&error.to_string())))?;
    output.line(settings.to_string())?;
    output.line(remote.to_string())?;
    Ok(Answer::Yes)
}

pub(super) fn serve(arguments: &Arguments, output: &mut Output) -> Result<Answer, Fault> {
    let settings = settings(arguments)?;
    tracing_subscriber::fmt()
        .with_max_level(settings.log)
        .with_writer(std::io::stderr)
        .with_ansi(output.colours())
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::new(error.to_string()))?;
    let served = runtime.block_on(served(&settings, output));
    // What is still blocked on a disk does not hold the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    served
}

async fn served(settings: &Settings, output: &mut Output) -> Result<Answer, Fault> {
    let fault = |error: std::io::Error| Fault::new(error.to_string());
    // Listened for from the beginning: a stop during the start is not lost.
    let mut terminate = signal(SignalKind::terminate()).map_err(fault)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(fault)?;
    let started = serve::start(settings)
        .await
        .map_err(|error| Fault::new(error.to_string()))?;
    match &started.reached {
        None => output.line("working; other processes answer")?,
        Some(reached) => {
            output.line(format!("listening on http://{}", reached.address))?;
            if !reached.app_found {
                output.line("the app is not built: only the API is served (see --web)")?;
            }
        }
    }
    if let Some(first) = &started.first {
        output.line(format!("API key, shown this once: {}", first.api_key))?;
    }
    if let Some(reached) = &started.reached {
        output.line(format!("sign in, once: {}", reached.sign_in))?;
    }
    output.flush()?;
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    started.run(stop).await.map_err(fault)?;
    Ok(Answer::Yes)
}

fn settings(arguments: &Arguments) -> Result<Settings, Fault> {
    Settings::resolve(arguments, &environment)
        .map_err(|error| Fault::new(message(&error.to_string())))
}

/// A variable of the environment.
pub(super) fn environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}
