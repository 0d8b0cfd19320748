//! The file servers of a confinement.

use std::ffi::OsString;
use std::os::fd::OwnedFd;

use crate::confine::error::ConfineError;
use crate::confine::files::FileServer;
use crate::confine::io::InputKind;
use crate::confine::parent::confinement::{Confinement, Launch};
use crate::confine::parent::running::Running;
use crate::confine::wire::protocol::{CommandLimits, Watch, Work};

impl Confinement {
    /// The server for read-only operations; started at the first use, or when it was lost.
    pub async fn file_server(&mut self) -> Result<FileServer, ConfineError> {
        if let Some((server, running)) = &mut self.files
            && !server.is_over()
            && !running.has_ended()
        {
            return Ok(server.clone());
        }
        let (server, running) = self.start_file_server(Watch::Nothing).await?;
        self.files = Some((server.clone(), running));
        Ok(server)
    }

    /// Starts a server for one caller.
    pub async fn start_file_server(&mut self, watch: Watch) -> Result<(FileServer, Running), ConfineError> {
        let (server, theirs) = FileServer::pair()?;
        let null = || {
            let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
            null.map(OwnedFd::from).map_err(ConfineError::Spawn)
        };
        let launch = Launch {
            work: Work::Files(watch),
            environment: Vec::new(),
            directory: OsString::from("/"),
            limits: CommandLimits::default(),
            streams: [theirs, null()?, null()?],
            input: InputKind::Pipe,
        };
        let running = self.launch(launch).await?;
        Ok((server, running))
    }
}
