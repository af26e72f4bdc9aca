//! A reader of event streams as the HTML standard describes one, over a plain socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::client::Running;

/// One dispatched event. Comments are dropped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Frame {
    pub(crate) id: Option<String>,
    pub(crate) event: String,
    pub(crate) data: String,
    pub(crate) retry: Option<u64>,
}

impl Frame {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

/// An open stream.
pub(crate) struct Stream {
    head: String,
    body: BufReader<TcpStream>,
}

impl Stream {
    pub(crate) fn open(server: &Running, run: &str, headers: &[(&str, &str)]) -> Self {
        Self::at(server, &format!("runId={run}"), headers)
    }

    pub(crate) fn after(server: &Running, run: &str, sequence: u64) -> Self {
        Self::at(
            server,
            &format!("runId={run}&afterSequence={sequence}"),
            &[],
        )
    }

    fn at(server: &Running, query: &str, headers: &[(&str, &str)]) -> Self {
        let mut socket = TcpStream::connect(server.address).unwrap();
        let wait = std::time::Duration::from_secs(30);
        socket.set_read_timeout(Some(wait)).unwrap();
        // HTTP/1.0 has no chunks, so the body is the stream itself.
        let mut head = format!(
            "GET /api/workflow-runs/events?{query} HTTP/1.0\r\nauthorization: Bearer {}\r\n",
            server.key
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        socket.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let mut body = BufReader::new(socket);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(body.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.contains(" 200 OK"), "{head}");
        assert!(!head.contains("content-length") && !head.contains("content-encoding"));
        Self { head, body }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map_or("", |(_, value)| value)
    }

    /// Everything until the server closes.
    pub(crate) fn whole(mut self) -> Vec<Frame> {
        let mut text = String::new();
        self.body.read_to_string(&mut text).unwrap();
        frames(&text)
    }

    /// Frames with data until one of this event.
    pub(crate) fn until(&mut self, event: &str) -> Vec<Frame> {
        let mut text = String::new();
        loop {
            assert_ne!(self.body.read_line(&mut text).unwrap(), 0, "{text}");
            if text.ends_with("\n\n") {
                let frames = frames(&text);
                if frames.last().is_some_and(|frame| frame.event == event) {
                    return frames;
                }
            }
        }
    }
}

/// The dispatched events of a stream; a block without data dispatches nothing.
fn frames(text: &str) -> Vec<Frame> {
    assert!(
        text.is_empty() || text.ends_with("\n\n"),
        "a cut block: {text}"
    );
    let block = |block: &str| {
        let mut frame = Frame::default();
        for line in block.lines() {
            match line.split_once(": ") {
                _ if line.starts_with(':') => {}
                Some(("id", value)) => frame.id = Some(value.to_owned()),
                Some(("event", value)) => value.clone_into(&mut frame.event),
                Some(("data", value)) => value.clone_into(&mut frame.data),
                Some(("retry", value)) => frame.retry = Some(value.parse().unwrap()),
                other => assert_eq!(other, None, "an unknown field"),
            }
        }
        frame
    };
    let blocks = text.split("\n\n").map(block);
    blocks.filter(|frame| !frame.data.is_empty()).collect()
}
