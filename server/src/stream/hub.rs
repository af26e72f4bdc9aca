//! One notifier per process (server.md §5): whoever commits an event tells the hub, and open
//! streams wake without asking the database once per subscriber.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sluicegate_core::ids::RunId;
use tokio::sync::watch;

/// Wakes the streams of runs that moved.
#[derive(Debug, Default, Clone)]
pub struct Hub {
    runs: Arc<Mutex<HashMap<RunId, watch::Sender<u64>>>>,
}

/// One stream's ear at one run. Dropping the last one of a run forgets the run.
#[derive(Debug)]
pub struct Listener {
    hub: Hub,
    run_id: RunId,
    sequence: Option<watch::Receiver<u64>>,
}

impl Hub {
    /// Says that a run's events up to `sequence` are durable. Costs nothing when nobody
    /// listens.
    pub fn tell(&self, run_id: &RunId, sequence: u64) {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = runs.get(run_id) {
            sender.send_if_modified(|known| {
                let moved = sequence > *known;
                *known = sequence.max(*known);
                moved
            });
        }
    }

    /// Says that something may have been missed: every listener looks.
    pub fn tell_all(&self) {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        for sender in runs.values() {
            sender.send_modify(|_| ());
        }
    }

    /// Begins to listen. What is committed from here on wakes the listener.
    #[must_use]
    pub fn listen(&self, run_id: &RunId) -> Listener {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = runs
            .entry(run_id.clone())
            .or_insert_with(|| watch::channel(0).0);
        Listener {
            hub: self.clone(),
            run_id: run_id.clone(),
            sequence: Some(sender.subscribe()),
        }
    }

    /// How many runs are listened to.
    #[must_use]
    pub fn listened(&self) -> usize {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.len()
    }
}

impl Listener {
    /// Waits until an event beyond the last call was committed.
    pub async fn moved(&mut self) {
        if let Some(sequence) = &mut self.sequence {
            // The hub keeps the sender for as long as somebody listens.
            let _ = sequence.changed().await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut runs = self.hub.runs.lock().unwrap_or_else(PoisonError::into_inner);
        self.sequence = None;
        if runs
            .get(&self.run_id)
            .is_some_and(|sender| sender.receiver_count() == 0)
        {
            runs.remove(&self.run_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_listener_wakes_for_its_own_run_and_not_for_what_it_knows() {
        let hub = Hub::default();
        let (a, b) = (RunId::from("a"), RunId::from("b"));
        let mut listener = hub.listen(&a);
        hub.tell(&a, 3);
        listener.moved().await;
        hub.tell(&a, 3);
        hub.tell(&b, 9);
        let quiet = tokio::time::timeout(Duration::from_millis(20), listener.moved()).await;
        assert!(quiet.is_err(), "nothing new was committed");
        hub.tell(&a, 4);
        listener.moved().await;
    }

    #[tokio::test]
    async fn b069_after_a_gap_every_listener_looks_once() {
        let hub = Hub::default();
        let mut listener = hub.listen(&RunId::from("a"));
        hub.tell_all();
        listener.moved().await;
        let quiet = tokio::time::timeout(Duration::from_millis(20), listener.moved()).await;
        assert!(quiet.is_err(), "it looks once");
    }

    #[tokio::test]
    async fn b088_a_run_that_nobody_listens_to_is_forgotten() {
        let hub = Hub::default();
        let run = RunId::from("a");
        let first = hub.listen(&run);
        let second = hub.listen(&run);
        drop(first);
        assert_eq!(hub.listened(), 1);
        drop(second);
        assert_eq!(hub.listened(), 0);
        hub.tell(&run, 1);
        assert_eq!(hub.listened(), 0);
    }
}
