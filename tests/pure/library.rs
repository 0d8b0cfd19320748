//! The library as a program that embeds it finds it.

use stockade::{Session, SessionError, TerminalApprover, terminal_size};

#[test]
fn a_program_that_did_not_call_init_first_opens_no_session_and_is_told_which_line_to_add() {
    let directory = tempfile::tempdir().unwrap();
    let approver = Box::new(TerminalApprover::new(terminal_size));
    let error = Session::with_preset("workspace-write", directory.path(), approver).unwrap_err();
    assert!(matches!(error, SessionError::NotInitialized), "{error:?}");
    assert!(error.to_string().contains("`stockade::init();`"), "{error}");
}
