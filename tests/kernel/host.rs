//! The probes on a machine that lacks something: a filter takes it away from the thread that looks.

#[cfg(test)]
mod tests {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    use stockade::backend::Regime;
    use stockade::backend::host::{Host, Probe};

    /// Looks at the host from a thread where one call fails.
    fn quick_without(call: i64, errno: i32) -> Host {
        let looked = std::thread::spawn(move || {
            let rules = [(call, Vec::new())].into_iter().collect();
            let errno = SeccompAction::Errno(errno.unsigned_abs());
            let target = std::env::consts::ARCH.try_into().unwrap();
            let filter = SeccompFilter::new(rules, SeccompAction::Allow, errno, target).unwrap();
            seccompiler::apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
            Host::quick()
        });
        looked.join().unwrap()
    }

    #[test]
    fn a_machine_without_landlock_has_no_regime_and_a_reason() {
        for errno in [libc::ENOSYS, libc::EPERM] {
            let host = quick_without(libc::SYS_landlock_create_ruleset, errno);
            assert_eq!((host.landlock_abi, host.regime()), (None, Regime::None));
            assert!(
                host.landlock_lacks().join(" ").contains("the kernel has no Landlock"),
                "{host:?}"
            );
            assert_eq!(host.seccomp, Probe::Works);
        }
    }

    #[test]
    fn landlock_that_was_not_enabled_at_boot_is_told_apart() {
        let host = quick_without(libc::SYS_landlock_create_ruleset, libc::EOPNOTSUPP);
        assert!(
            host.landlock_lacks().join(" ").contains("not enabled at boot"),
            "{host:?}"
        );
    }

    #[test]
    fn a_layer_that_cannot_be_put_on_is_no_landlock() {
        let host = quick_without(libc::SYS_landlock_restrict_self, libc::E2BIG);
        assert_eq!(host.regime(), Regime::None);
        assert!(matches!(host.landlock, Probe::Fails(_)), "{host:?}");
    }

    #[test]
    fn a_layer_that_is_taken_and_does_nothing_is_found_out() {
        let host = quick_without(libc::SYS_landlock_restrict_self, 0);
        assert_eq!(host.landlock, Probe::Fails("a forbidden open succeeded".to_owned()));
        assert_eq!(host.regime(), Regime::None);
    }

    #[test]
    fn a_machine_without_filters_has_no_regime() {
        let host = quick_without(libc::SYS_seccomp, libc::EINVAL);
        assert_eq!((host.landlock, host.seccomp.works()), (Probe::Works, false));
    }

    #[test]
    fn a_filter_that_is_taken_and_does_nothing_is_found_out() {
        let host = quick_without(libc::SYS_seccomp, 0);
        assert_eq!(host.seccomp, Probe::Fails("a refused call succeeded".to_owned()));
    }

    #[test]
    fn a_machine_with_both_has_the_landlock_regime() {
        let host = Host::quick();
        assert_eq!((host.regime(), host.landlock_lacks()), (Regime::Landlock, vec![]));
    }
}
