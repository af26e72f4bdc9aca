//! Where the database is, and how a connection to it behaves (server.md §1).

use std::fmt;
use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection};

use super::{fault, nat};
use crate::clock::Clock;
use crate::store::StoreError;
use sluicegate_core::time::Instant;

/// What holds in every connection, whatever the server's own defaults. A commit is durable
/// when it is answered; a process that hangs with a lock in hand loses it before the others
/// lose their leases.
const SESSION: [(&str, &str); 7] = [
    ("synchronous_commit", "on"),
    ("default_transaction_isolation", "read committed"),
    ("statement_timeout", "10s"),
    ("lock_timeout", "8s"),
    ("idle_in_transaction_session_timeout", "10s"),
    ("jit", "off"),
    ("client_min_messages", "warning"),
];

/// The address of a database: `postgres://user:password@host:port/name`. It is shown without
/// its password.
#[derive(Clone)]
pub struct Address {
    url: String,
    options: PgConnectOptions,
}

impl Address {
    pub(super) fn options(&self) -> PgConnectOptions {
        self.options.clone()
    }

    /// The process's clock, set from the database's (W5): several processes then agree on
    /// the time that events carry.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn clock(&self) -> Result<Clock, StoreError> {
        let mut connection = self.options.connect().await.map_err(fault)?;
        let now: i64 = sqlx::query_scalar(
            "select floor(extract(epoch from clock_timestamp()) * 1000)::bigint",
        )
        .fetch_one(&mut connection)
        .await
        .map_err(fault)?;
        connection.close().await.map_err(fault)?;
        Ok(Clock::at(Instant(nat(now))))
    }

    /// Whether a password is in it, which [`Address`]'s text leaves out.
    #[must_use]
    pub fn has_password(&self) -> bool {
        self.to_string() != self.url
    }
}

impl FromStr for Address {
    type Err = ();

    fn from_str(url: &str) -> Result<Self, ()> {
        let ours = url.starts_with("postgres://") || url.starts_with("postgresql://");
        if !ours {
            return Err(());
        }
        let options = PgConnectOptions::from_str(url).map_err(|_| ())?;
        Ok(Self {
            url: url.to_owned(),
            options: options
                .application_name("sluicegate")
                .options(SESSION)
                .disable_statement_logging(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, query) = match self.url.split_once('?') {
            Some((address, query)) => (address, Some(query)),
            None => (self.url.as_str(), None),
        };
        // Before the last @ stand the user and, after a colon, the password.
        match address
            .rsplit_once('@')
            .and_then(|(user, rest)| Some((user.match_indices(':').nth(1)?.0, user, rest)))
        {
            Some((at, user, rest)) => {
                let user = user.get(..at).unwrap_or_default();
                write!(f, "{user}@{rest}")?;
            }
            None => f.write_str(address)?,
        }
        let shown = |pair: &&str| !pair.starts_with("password=");
        let pairs: Vec<&str> = query
            .into_iter()
            .flat_map(|query| query.split('&'))
            .filter(shown)
            .collect();
        match pairs.is_empty() {
            true => Ok(()),
            false => write!(f, "?{}", pairs.join("&")),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url
    }
}

impl Eq for Address {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (url, shown) in [
            ("postgres://u:s3cret@h:1/d", "postgres://u@h:1/d"),
            ("postgres://u@h/d", "postgres://u@h/d"),
            (
                "postgresql://u:a%40b:c@h/d?password=s3cret",
                "postgresql://u@h/d",
            ),
            (
                "postgres://h/d?user=u&password=s3cret&host=/run/x",
                "postgres://h/d?user=u&host=/run/x",
            ),
        ] {
            let address: Address = url.parse().unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(format!("{address:?}"), shown);
            assert_eq!(address.has_password(), url != shown);
        }
        assert!("mysql://u@h/d".parse::<Address>().is_err());
        assert!("h/d".parse::<Address>().is_err());
    }
}
