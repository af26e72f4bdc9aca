//! One connection that follows a run (server.md §5; seed A "Event stream and resume").
//!
//! A task reads the store and fills a small channel; a reader that does not empty it in time
//! is cut off, and its last `id` is where it resumes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame};
use sluicegate_core::ids::{RunId, TenantId};
use sluicegate_core::run::RunStatus;
use tokio::sync::{mpsc, watch};

use super::cursor::{Cursors, Purpose};
use super::hub::{Hub, Listener};
use super::{REPLAY, frame};
use crate::store::{Store, StoreError, StoredEvent};

/// Silence is never longer than this.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a reader may leave a frame untaken.
const PATIENCE: Duration = Duration::from_secs(30);
/// Frames that wait for a slow reader.
const WAITING: usize = 16;

/// What a connection follows.
#[derive(Clone)]
pub struct Follow {
    /// Where the events are.
    pub store: Arc<dyn Store>,
    /// Who says that there are more.
    pub hub: Hub,
    /// Makes the ids.
    pub cursors: Cursors,
    /// The tenant.
    pub tenant: TenantId,
    /// The run.
    pub run_id: RunId,
    /// The last sequence that the reader has.
    pub after: u64,
    /// Turns true when the server stops.
    pub closing: watch::Receiver<bool>,
}

/// What an event's `id` holds.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventCursor {
    /// The tenant.
    pub tenant_id: TenantId,
    /// The run.
    pub run_id: RunId,
    /// The event.
    pub sequence: u64,
}

/// The body of a stream.
pub fn follow(following: Follow) -> Body {
    let (frames, channel) = mpsc::channel(WAITING);
    // Listening begins before the first read, so nothing falls between the two.
    let listener = following.hub.listen(&following.run_id);
    tokio::spawn(send(following, listener, frames));
    Body::new(Frames { channel })
}

/// Why a connection ends before the run does. The reader resumes at its last id.
struct Cut;

async fn send(mut following: Follow, mut listener: Listener, frames: mpsc::Sender<Bytes>) {
    let _ = run(&mut following, &mut listener, &frames).await;
}

async fn run(
    following: &mut Follow,
    listener: &mut Listener,
    frames: &mpsc::Sender<Bytes>,
) -> Result<(), Cut> {
    put(frames, frame::RETRY.to_owned()).await?;
    let mut end = None;
    loop {
        // One more than a page: to know whether more remain.
        let mut events = following.read(REPLAY + 1).await.map_err(|_| Cut)?;
        let more = events.len() > REPLAY as usize;
        events.truncate(REPLAY as usize);
        for event in &events {
            put(frames, following.frame(event)?).await?;
            following.after = event.sequence;
            if let Some(status) = ended(&event.event_type) {
                end = Some((event.sequence, status));
            }
        }
        if more {
            return put(frames, frame::replay_boundary(following.after)).await;
        }
        if end.is_none() {
            end = following.end_before().await?;
        }
        if let Some((sequence, status)) = end {
            return put(frames, frame::complete(sequence, status.as_str())).await;
        }
        following.wait(listener, frames).await?;
    }
}

impl Follow {
    async fn read(&self, limit: u32) -> Result<Vec<StoredEvent>, StoreError> {
        self.store
            .events_after(&self.tenant, &self.run_id, self.after, limit)
            .await
    }

    fn frame(&self, event: &StoredEvent) -> Result<String, Cut> {
        let cursor = EventCursor {
            tenant_id: self.tenant.clone(),
            run_id: self.run_id.clone(),
            sequence: event.sequence,
        };
        let id = self.cursors.make(Purpose::Events, &cursor).ok_or(Cut)?;
        let full = event.full(&self.tenant, &self.run_id);
        Ok(frame::event(&id, &event.event_type, &full))
    }

    /// The end of a run whose terminal event the reader had before it came.
    async fn end_before(&self) -> Result<Option<(u64, RunStatus)>, Cut> {
        let row = self
            .store
            .run_row(&self.tenant, &self.run_id)
            .await
            .map_err(|_| Cut)?
            .row;
        // A run that has just ended has events that were not sent yet: read them first.
        if !row.status.is_terminal() || row.last_sequence > self.after {
            return Ok(None);
        }
        terminal_sequence(&*self.store, &self.tenant, &self.run_id, row.last_sequence)
            .await
            .map_err(|_| Cut)
            .map(|sequence| Some((sequence, row.status)))
    }

    /// Waits for a reason to read again: an event, or the heartbeat, which is also the safety
    /// net for an event that nobody told of.
    async fn wait(
        &mut self,
        listener: &mut Listener,
        frames: &mpsc::Sender<Bytes>,
    ) -> Result<(), Cut> {
        tokio::select! {
            () = listener.moved() => Ok(()),
            () = tokio::time::sleep(HEARTBEAT) => put(frames, frame::HEARTBEAT.to_owned()).await,
            () = frames.closed() => Err(Cut),
            () = closed(&mut self.closing) => Err(Cut),
        }
    }
}

/// The sequence of a finished run's terminal event: only retention may follow it (O5).
///
/// # Errors
/// Those of the store.
pub(crate) async fn terminal_sequence(
    store: &dyn Store,
    tenant: &TenantId,
    run_id: &RunId,
    last: u64,
) -> Result<u64, StoreError> {
    let mut before = last.saturating_sub(1);
    loop {
        let events = store.events_after(tenant, run_id, before, REPLAY).await?;
        if let Some(event) = events.iter().find(|e| ended(&e.event_type).is_some()) {
            return Ok(event.sequence);
        }
        if before == 0 {
            return Err(StoreError::Corrupt("a run without its end".to_owned()));
        }
        before = before.saturating_sub(u64::from(REPLAY));
    }
}

/// The status that a terminal event gives.
fn ended(event_type: &str) -> Option<RunStatus> {
    match event_type {
        "run.succeeded" => Some(RunStatus::Succeeded),
        "run.failed" => Some(RunStatus::Failed),
        "run.refused" => Some(RunStatus::Refused),
        "run.cancelled" => Some(RunStatus::Cancelled),
        _ => None,
    }
}

/// Waits until the server stops.
async fn closed(closing: &mut watch::Receiver<bool>) {
    // A sender that is gone means the same.
    let _ = closing.wait_for(|closing| *closing).await;
}

async fn put(frames: &mpsc::Sender<Bytes>, frame: String) -> Result<(), Cut> {
    let sent = frames.send_timeout(Bytes::from(frame), PATIENCE).await;
    sent.map_err(|_| Cut)
}

/// The reading side of the channel as a body.
struct Frames {
    channel: mpsc::Receiver<Bytes>,
}

impl HttpBody for Frames {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = self.channel.poll_recv(context);
        next.map(|frame| frame.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn b088_a_reader_that_takes_nothing_is_cut_off() {
        let (frames, _untaken) = mpsc::channel(1);
        put(&frames, frame::RETRY.to_owned()).await.ok().unwrap();
        let begun = tokio::time::Instant::now();
        assert!(put(&frames, frame::HEARTBEAT.to_owned()).await.is_err());
        assert_eq!(begun.elapsed(), PATIENCE);
    }

    #[tokio::test]
    async fn b088_a_reader_that_went_away_ends_the_stream_at_once() {
        let (frames, channel) = mpsc::channel(1);
        drop(channel);
        assert!(put(&frames, frame::RETRY.to_owned()).await.is_err());
    }
}
