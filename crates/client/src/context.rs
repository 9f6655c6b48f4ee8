//! How to connect: directory, time limits, handlers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use taran_core::clock::{Clock, SystemClock};
use taran_core::counters::CountersReader;
use taran_core::memory::{FileStorage, Storage};

use crate::client::Client;
use crate::connect::Connecting;
use crate::error::{ClientError, ConnectError};
use crate::handlers::{HandlerSet, PublicationError};
use crate::image::ImageView;
use crate::life::ClientEnd;

/// Longest client name, in bytes.
const CLIENT_NAME_MAX: usize = 100;

/// How to connect to a media driver, and what to be told about.
///
/// Each option has a default; [`Context::new`] takes those that the environment sets (`AERON_DIR`,
/// `AERON_DRIVER_TIMEOUT`, `AERON_CLIENT_NAME`, …), [`Context::properties`] those of a properties file, and what is set
/// in code counts most, whatever the order of the calls.
///
/// ```no_run
/// use std::time::Duration;
///
/// # fn main() -> Result<(), taran::ConnectError> {
/// let client = taran::Context::new()
///     .aeron_dir("/dev/shm/my-driver")
///     .driver_timeout(Duration::from_secs(2))
///     .client_name("pricing")
///     .on_error(|error| eprintln!("{error}"))
///     .connect()?;
/// # Ok(())
/// # }
/// ```
pub struct Context {
    pub(crate) aeron_dir: Option<PathBuf>,
    pub(crate) driver_timeout: Option<Duration>,
    pub(crate) keepalive: Duration,
    pub(crate) inter_service: Option<Duration>,
    pub(crate) idle_sleep: Option<Duration>,
    pub(crate) pre_touch: Option<bool>,
    pub(crate) client_name: Option<String>,
    pub(crate) invoked: bool,
    pub(crate) cpu: Option<usize>,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) handlers: HandlerSet,
}
