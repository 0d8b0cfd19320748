//! Filters weakened by hand do not pass.

use super::*;

const JUMP_ANY_BIT: u16 = 0x45;
/// Where a program's way past the refusals begins: the architecture and the number are before it.
const BEHIND_THE_FRAME: usize = 4;

/// Whether the weakened plan is caught by a call of this number.
fn caught(whole: &Lowered, settings: Settings, number: i64) -> bool {
    match whole.validate(settings) {
        Err(SeccompWitness::Weaker { call, .. }) => i64::from(call.nr) == number,
        _ => false,
    }
}

#[test]
fn a_plan_without_one_of_its_filters_is_caught() {
    for settings in all_settings() {
        let whole = Lowered::under(settings);
        for index in 0..whole.own.programs.len() {
            let mut plan = whole.clone();
            plan.own.programs.remove(index);
            assert!(plan.validate(settings).is_err(), "{settings:?} without filter {index}");
        }
        let mut plan = whole.clone();
        plan.own.notify = None;
        assert_eq!(plan.validate(settings).is_err(), settings.role == Role::Command);
    }
}

#[test]
fn a_return_that_allows_instead_of_refusing_is_caught_wherever_it_stands() {
    for settings in [
        strict(Role::Command),
        open(Role::Command),
        strict(Role::Forker),
        open(Role::Forker),
    ] {
        let whole = Lowered::under(settings);
        for (index, program) in whole.own.programs.iter().enumerate() {
            for (at, step) in program.iter().enumerate() {
                if step.code == RETURN && step.k & 0xFFFF_0000 == 0x0005_0000 {
                    let mut plan = whole.clone();
                    plan.own.programs[index][at].k = 0x7FFF_0000;
                    assert!(plan.validate(settings).is_err(), "filter {index}, instruction {at}");
                }
            }
        }
    }
}

#[test]
fn a_changed_constant_is_caught_wherever_it_stands() {
    for settings in [
        strict(Role::Command),
        open(Role::Command),
        strict(Role::Forker),
        open(Role::Forker),
    ] {
        let whole = Lowered::under(settings);
        for (index, program) in whole.own.programs.iter().chain(&whole.own.notify).enumerate() {
            for (at, step) in program.iter().enumerate().filter(|(_, step)| step.code == JUMP_EQUAL) {
                let mut plan = whole.clone();
                let target = plan.own.programs.get_mut(index).or(plan.own.notify.as_mut()).unwrap();
                // A constant moved to where nothing meets it: the equality never holds.
                target[at].k = 0xDEAD_BEEF;
                let weaker = plan.validate(settings);
                // `IsNot` tests turn stricter when their constant goes: they jump away on equality.
                let is_not = step.jt > step.jf;
                // Without the way past them, the call goes through all that judges it.
                let is_way_past = at == BEHIND_THE_FRAME && i64::from(step.k) == shortcut::CALL;
                assert!(
                    weaker.is_err() || is_not || is_way_past,
                    "filter {index}, instruction {at}: {step:?}"
                );
            }
        }
    }
}

#[test]
fn a_dropped_instruction_is_caught_or_changes_nothing() {
    let settings = open(Role::Command);
    let whole = Lowered::under(settings);
    let table = Table::of(settings);
    let calls: Vec<Call> = plain_calls().chain(combined_calls(&table)).collect();
    for (index, program) in whole.own.programs.iter().enumerate() {
        for at in (0..program.len()).step_by(3) {
            let mut plan = whole.clone();
            plan.own.programs[index].remove(at);
            if plan.validate(settings).is_err() {
                continue;
            }
            let filters = read(plan.stack()).unwrap();
            for call in &calls {
                assert!(
                    stacked(&filters, call).at_least(table.answer(call).0),
                    "filter {index} without instruction {at} passed, and lets {call} by"
                );
            }
        }
    }
}

#[test]
fn a_way_past_the_refusals_that_is_wider_than_it_may_be_is_caught() {
    for settings in [strict(Role::Forker), open(Role::Forker)] {
        let whole = Lowered::under(settings);
        let past = whole.own.programs[0][BEHIND_THE_FRAME..].iter();
        let (at, look) = past.enumerate().find(|(_, step)| step.code == JUMP_ANY_BIT).unwrap();
        // One bit less is looked at, another argument is, or none.
        for bit in [0o4000, 0o2000] {
            let mut plan = whole.clone();
            plan.own.programs[0][BEHIND_THE_FRAME + at].k &= !bit;
            assert!(look.k & bit != 0 && caught(&plan, settings, shortcut::CALL), "{bit:o}");
        }
        let mut plan = whole.clone();
        plan.own.programs[0][BEHIND_THE_FRAME + at - 1].k -= 8;
        assert!(caught(&plan, settings, shortcut::CALL));
        let mut plan = whole.clone();
        plan.own.programs[0][BEHIND_THE_FRAME + at].jt = 0;
        assert!(caught(&plan, settings, shortcut::CALL));
    }
}

#[test]
fn a_comparison_of_all_64_bits_is_caught() {
    let settings = strict(Role::Forker);
    let mut plan = Lowered::under(settings);
    let condition = seccompiler::SeccompCondition::new(
        1,
        seccompiler::SeccompCmpArgLen::Qword,
        seccompiler::SeccompCmpOp::Eq,
        0x5412,
    );
    let rule = seccompiler::SeccompRule::new(vec![condition.unwrap()]).unwrap();
    let rules = [(libc::SYS_ioctl, vec![rule])].into_iter().collect();
    let wide = lower::compile(rules, seccompiler::SeccompAction::Errno(1), &[libc::SYS_ioctl].into()).unwrap();
    // The low half is still compared, so only the high bits tell the two apart.
    for program in &mut plan.own.programs {
        for step in program
            .iter_mut()
            .filter(|step| step.code == JUMP_EQUAL && step.k == 0x5412)
        {
            step.k = 0xDEAD_BEEF;
        }
    }
    plan.own.programs.push(wide);
    assert!(caught(&plan, settings, libc::SYS_ioctl));
}

#[test]
fn a_notification_turned_into_permission_is_caught() {
    let settings = strict(Role::Command);
    let mut plan = Lowered::under(settings);
    for step in plan.own.notify.as_mut().unwrap() {
        if step.code == RETURN && step.k == 0x7FC0_0000 {
            step.k = 0x7FFC_0000;
        }
    }
    assert!(matches!(
        plan.validate(settings),
        Err(SeccompWitness::Weaker {
            table: Verdict::Notify,
            ..
        })
    ));
}

#[test]
fn a_command_s_filters_are_worth_nothing_without_the_forker_s() {
    for settings in all_settings()
        .into_iter()
        .filter(|settings| settings.role == Role::Command)
    {
        let whole = Lowered::under(settings);
        let mut weak = whole.clone();
        for step in weak.behind.as_mut().unwrap().programs.iter_mut().flatten() {
            if step.code == RETURN {
                step.k = 0x7FFF_0000;
            }
        }
        assert!(weak.validate(settings).is_err(), "{settings:?}");
        let alone = Stack::of_forker(&whole.own);
        assert_eq!(validate(alone, settings), Err(SeccompWitness::Listener(Role::Command)));
        // A listener of the forker's would hear before the broker's.
        let mut deaf = whole;
        deaf.behind.as_mut().unwrap().notify = deaf.own.notify.clone();
        assert_eq!(deaf.validate(settings), Err(SeccompWitness::Listener(Role::Command)));
    }
}

#[test]
fn a_refusal_of_the_forker_s_that_allows_instead_is_caught_behind_a_command_s_as_well() {
    for settings in [strict(Role::Command), open(Role::Command)] {
        let whole = Lowered::under(settings);
        for (at, step) in whole.behind.as_ref().unwrap().programs[0].iter().enumerate() {
            if step.code == RETURN && step.k & 0xFFFF_0000 == 0x0005_0000 {
                let mut plan = whole.clone();
                plan.behind.as_mut().unwrap().programs[0][at].k = 0x7FFF_0000;
                assert!(plan.validate(settings).is_err(), "instruction {at}");
            }
        }
    }
}

#[test]
fn a_witness_says_the_call_and_both_answers() {
    let settings = strict(Role::Command);
    let mut plan = Lowered::under(settings);
    plan.own.programs.clear();
    let witness = plan.validate(settings).unwrap_err().to_string();
    assert!(witness.contains("allow by the filters, error"), "{witness}");
}

#[test]
fn a_malformed_program_is_refused_with_what_is_wrong() {
    let ret = Instruction {
        code: RETURN,
        jt: 0,
        jf: 0,
        k: 0x7FFF_0000,
    };
    let step = |code, jt, jf, k| Instruction { code, jt, jf, k };
    let refused = |program: Program| Filter::read(&program).map(|_| ()).unwrap_err();
    assert_eq!(refused(vec![]), Malformed::Empty);
    assert_eq!(refused(vec![ret; 4097]), Malformed::TooLong(4097));
    assert_eq!(refused(vec![ret, step(0x20, 0, 0, 0)]), Malformed::NoReturn);
    assert_eq!(
        refused(vec![step(JUMP_EQUAL, 0, 1, 0), ret]),
        Malformed::BadJump { at: 0 }
    );
    assert_eq!(
        refused(vec![step(0x05, 0, 0, u32::MAX), ret]),
        Malformed::BadJump { at: 0 }
    );
    assert_eq!(
        refused(vec![step(0x20, 0, 0, 64), ret]),
        Malformed::BadLoad { at: 0, offset: 64 }
    );
    assert_eq!(
        refused(vec![step(0x20, 0, 0, 2), ret]),
        Malformed::BadLoad { at: 0, offset: 2 }
    );
    assert_eq!(
        refused(vec![step(0x16, 0, 0, 0), ret]),
        Malformed::Unknown { at: 0, code: 0x16 }
    );
    assert_eq!(
        refused(vec![step(RETURN, 0, 0, 0x1234_0000), ret]),
        Malformed::BadReturn {
            at: 0,
            value: 0x1234_0000
        }
    );
    let plain = vec![ret];
    assert!(Filter::read(&plain).is_ok());
}
