//! temporary
/// x
pub const PROBE: &str = "__probe";
/// x
pub fn probe_main(_: &[std::ffi::OsString]) -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}
/// x
#[derive(Debug)]
pub struct Host;
impl Host {
    /// x
    pub fn quick() -> Self {
        Self
    }
    /// x
    pub fn landlock_regime(&self) -> Result<u32, String> {
        Ok(7)
    }
}
