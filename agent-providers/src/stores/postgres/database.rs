//! Which database it is, connections to it, and what goes wrong with them.

use std::{error::Error as StdError, fmt, io, num::NonZeroUsize, time::Duration};

use agent_core::{Error, ErrorKind, Result};
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType};
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{Secret, transport::tls};

/// A pool of connections to one database. Its `Display` tells which one, without user and password.
#[derive(Clone)]
pub(super) struct Database {
    pool: Pool,
    name: String,
}

impl Database {
    pub(super) fn new(url: &Secret, connections: NonZeroUsize, wait: Duration) -> Result<Self> {
        // The error may quote parts of the URL, so it is not kept.
        let mut config: Config = url.expose().parse().map_err(|_| {
            let context = "read the URL of a PostgreSQL database: it is none; write postgres://USER:PASSWORD@HOST/DATABASE, \
                           with %XX for special characters, and sslmode=disable, prefer or require, if any";
            Error::new(ErrorKind::Invalid, context)
        })?;
        if config.get_application_name().is_none() {
            config.application_name(env!("CARGO_PKG_NAME"));
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(wait);
        }
        let connect = MakeRustlsConnect::new(tls::config(config.get_ssl_mode() != SslMode::Disable)?);
        let name = name(&config);
        let recycling_method = RecyclingMethod::Fast;
        let manager = Manager::from_config(config, connect, ManagerConfig { recycling_method });
        let pool = Pool::builder(manager)
            .max_size(connections.get())
            .wait_timeout(Some(wait))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::new(ErrorKind::Store, "set up a pool of connections").with_source(error))?;
        Ok(Self { pool, name })
    }

    /// A connection that nobody else uses.
    pub(super) async fn connection(&self) -> Result<Object> {
        self.pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => {
                let why = if error.to_string().contains("TLS") {
                    "; check the URL's `sslmode`, and who signed its certificate"
                } else {
                    ""
                };
                told(format!("connect to {self}{why}"), error)
            }
            PoolError::Timeout(TimeoutType::Wait) => {
                let context = format!(
                    "wait for a connection to {self}: all {} are in use; try again, or raise `connections`",
                    self.pool.status().max_size
                );
                Error::new(ErrorKind::Store, context).transient()
            }
            other => Error::new(ErrorKind::Store, format!("connect to {self}")).with_source(other).transient(),
        })
    }

    pub(super) fn failed(&self, attempt: &str, error: tokio_postgres::Error) -> Error {
        told(format!("{attempt} in {self}"), error)
    }

    /// Of an append it matters that nobody knows whether it happened.
    pub(super) fn failed_append(&self, attempt: &str, error: tokio_postgres::Error) -> Error {
        let unknown = ": the connection broke, so this may have happened or not; load again before the next try";
        let why = if is_cut(&error) { unknown } else { "" };
        told(format!("{attempt} in {self}{why}"), error)
    }
}

fn told(context: String, error: tokio_postgres::Error) -> Error {
    let passes = is_transient(&error);
    let told = Error::new(ErrorKind::Store, context).with_source(error);
    if passes { told.transient() } else { told }
}

fn is_connection(error: &tokio_postgres::Error) -> bool {
    error.is_closed() || error.source().is_some_and(<dyn StdError>::is::<io::Error>)
}

/// Whether the connection broke, or the server ended it, so that the answer is not known.
fn is_cut(error: &tokio_postgres::Error) -> bool {
    is_connection(error) || error.code().is_some_and(|code| code.code().starts_with("57P"))
}

/// Whether the same may succeed later: the connection broke, or the server is busy, starting or stopping.
/// The classes: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn is_transient(error: &tokio_postgres::Error) -> bool {
    let passing = |code: &str| matches!(&code[..2], "08" | "40" | "53" | "55" | "57");
    is_connection(error) || error.code().is_some_and(|code| passing(code.code()))
}

fn name(config: &Config) -> String {
    let database = config.get_dbname().or(config.get_user()).unwrap_or("the default one");
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    });
    let hosts: Vec<_> = hosts.collect();
    let port = config.get_ports().first().map(|port| format!(":{port}")).unwrap_or_default();
    format!("database `{database}` at {}{port}", hosts.join(", "))
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
