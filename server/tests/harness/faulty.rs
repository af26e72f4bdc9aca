//! A way to the database that loses what it is told to lose.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What is lost of the next commit, and the connection with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lose {
    /// The wish: the database never hears of it.
    Wish = 1,
    /// The answer: the database has committed.
    Answer = 2,
}

/// A proxy on a port of its own.
pub(crate) struct Faulty {
    pub(crate) port: u16,
    losing: Arc<AtomicU8>,
}

impl Faulty {
    /// A way to a port of this machine.
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let losing = Arc::new(AtomicU8::new(0));
        let lose = Arc::clone(&losing);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let lose = Arc::clone(&lose);
                tokio::spawn(async move {
                    let database = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                    let _ = carry(client, database, &lose).await;
                });
            }
        });
        Self { port: own, losing }
    }

    /// Loses a part of the next commit.
    pub(crate) fn lose(&self, part: Lose) {
        self.losing.store(part as u8, Ordering::SeqCst);
    }

    /// Whether that has happened.
    pub(crate) fn has_lost(&self) -> bool {
        self.losing.load(Ordering::SeqCst) == 0
    }
}

async fn carry(
    mut client: TcpStream,
    mut database: TcpStream,
    losing: &AtomicU8,
) -> std::io::Result<()> {
    let (mut there, mut back) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            got = client.read(&mut there) => {
                let Some(sent) = there.get(..got?).filter(|sent| !sent.is_empty()) else {
                    return Ok(());
                };
                let commits = sent.windows(7).any(|word| word == b"COMMIT\0");
                let lose = if commits { losing.swap(0, Ordering::SeqCst) } else { 0 };
                if lose == Lose::Wish as u8 {
                    return Ok(());
                }
                database.write_all(sent).await?;
                if lose == Lose::Answer as u8 {
                    let _answer = database.read(&mut back).await?;
                    return Ok(());
                }
            }
            got = database.read(&mut back) => {
                let Some(sent) = back.get(..got?).filter(|sent| !sent.is_empty()) else {
                    return Ok(());
                };
                client.write_all(sent).await?;
            }
        }
    }
}
