//! What a worker asks its keeper: to record and settle protected names, and to sample what commands use.

use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::unistd::Pid;

use super::protocol::{CommandLimits, Counting, KeeperReply, KeeperRequest, PutBack, StartFailure, Step, Watch};
use super::sys;
use super::wire::{receive, send};
use super::worker::{Sampling, Worker};

impl Worker<'_> {
    /// Has the keeper record protected names.
    pub(super) fn record(&self) -> Result<(), StartFailure> {
        self.tell(KeeperRequest::Snapshot);
        match self.answer() {
            KeeperReply::Recorded => Ok(()),
            KeeperReply::Settled(..) => Err(StartFailure::new(Step::Protect, Errno::EPROTO, "")),
            KeeperReply::Failed(why) => Err(StartFailure::new(Step::Protect, Errno::EIO, why)),
        }
    }

    /// Has the keeper put back what is protected; what that was, and why the rest could not be.
    pub(super) fn settle(&self, watch: Watch) -> PutBack {
        match watch {
            Watch::Nothing => return PutBack::default(),
            Watch::ProtectedNames => self.tell(KeeperRequest::Settle),
        }
        match self.answer() {
            KeeperReply::Settled(put_back) => put_back,
            KeeperReply::Recorded => PutBack::failed("the keeper answered out of turn".to_owned()),
            KeeperReply::Failed(why) => PutBack::failed(why),
        }
    }

    /// Has the keeper sample a runner's tree, if that is bounded; where it cannot, everything is killed.
    pub(super) fn watch(&mut self, call: u64, runner: Pid, limits: CommandLimits) -> Result<Sampling, StartFailure> {
        match limits.counting {
            Counting::Group => return Ok(Sampling::Off),
            Counting::Namespace | Counting::Sampled if limits.memory.is_none() && limits.processes.is_none() => {
                return Ok(Sampling::Off);
            }
            Counting::Namespace | Counting::Sampled => {}
        }
        match sys::open_pidfd(runner) {
            Ok(pidfd) => {
                let request = KeeperRequest::Watch { call, limits };
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

    /// Has the keeper sample it no more.
    pub(super) fn unwatch(&self, call: u64, sampling: Sampling) {
        match sampling {
            Sampling::On => self.tell(KeeperRequest::Unwatch { call }),
            Sampling::Off => {}
        }
    }

    fn tell(&self, request: KeeperRequest) {
        if send(&self.link, &request, &[]).is_err() {
            self.end();
        }
    }

    fn answer(&self) -> KeeperReply {
        match receive::<KeeperReply>(&self.link) {
            Ok(Some((reply, _))) => reply,
            Ok(None) | Err(_) => self.end(),
        }
    }
}
