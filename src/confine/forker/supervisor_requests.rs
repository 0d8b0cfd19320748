//! The forker's requests to its supervisor: record and settle protected names, sample what commands use.

use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::unistd::Pid;

use crate::confine::forker::serve::{Forker, Sampling};
use crate::confine::sys;
use crate::confine::wire::protocol::{
    CommandLimits, Counting, PutBack, StartFailure, Step, SupervisorReply, SupervisorRequest, Watch,
};
use crate::confine::wire::{receive, send};

impl Forker<'_> {
    /// Has the supervisor record protected names.
    pub(crate) fn record(&self) -> Result<(), StartFailure> {
        self.send_request(SupervisorRequest::Snapshot);
        match self.receive_reply() {
            SupervisorReply::Recorded => Ok(()),
            SupervisorReply::Settled(..) => Err(StartFailure::new(Step::Protect, Errno::EPROTO, "")),
            SupervisorReply::Failed(why) => Err(StartFailure::new(Step::Protect, Errno::EIO, why)),
        }
    }

    /// Has the supervisor restore protected names, and returns its report.
    pub(crate) fn settle(&self, watch: Watch) -> PutBack {
        match watch {
            Watch::Nothing => return PutBack::default(),
            Watch::ProtectedNames => self.send_request(SupervisorRequest::Settle),
        }
        match self.receive_reply() {
            SupervisorReply::Settled(put_back) => put_back,
            SupervisorReply::Recorded => PutBack::failed("the supervisor answered out of turn".to_owned()),
            SupervisorReply::Failed(why) => PutBack::failed(why),
        }
    }

    /// Has the supervisor sample a runner's tree, if its limits need that. If this fails, everything is killed.
    pub(crate) fn watch(&mut self, call: u64, runner: Pid, limits: CommandLimits) -> Result<Sampling, StartFailure> {
        match limits.counting {
            Counting::Group => return Ok(Sampling::Off),
            Counting::Namespace | Counting::Sampled if limits.memory.is_none() && limits.processes.is_none() => {
                return Ok(Sampling::Off);
            }
            Counting::Namespace | Counting::Sampled => {}
        }
        match sys::open_pidfd(runner) {
            Ok(pidfd) => {
                let request = SupervisorRequest::Watch { call, limits };
                if send(&self.link, &request, &[pidfd.as_raw_fd()]).is_err() {
                    self.end();
                }
                Ok(Sampling::On)
            }
            Err(errno) => {
                self.lose_everything();
                Err(StartFailure::new(Step::Limits, errno, "a descriptor for the runner"))
            }
        }
    }

    /// Ends the sampling.
    pub(crate) fn unwatch(&self, call: u64, sampling: Sampling) {
        match sampling {
            Sampling::On => self.send_request(SupervisorRequest::Unwatch { call }),
            Sampling::Off => {}
        }
    }

    fn send_request(&self, request: SupervisorRequest) {
        if send(&self.link, &request, &[]).is_err() {
            self.end();
        }
    }

    fn receive_reply(&self) -> SupervisorReply {
        match receive::<SupervisorReply>(&self.link) {
            Ok(Some((reply, _))) => reply,
            Ok(None) | Err(_) => self.end(),
        }
    }
}
