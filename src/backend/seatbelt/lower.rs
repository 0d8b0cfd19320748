//! Profile → text.
//!
//! Each deny is written twice: as a `require-not` inside each allow that it cuts, and as a deny after all allows. So the text
//! holds in whatever order the kernel applies rules. Both have expressions for other spellings of denied names.

use std::collections::BTreeSet;

use super::denies::Denies;
use super::draft::{Draft, on_sockets};
use super::error::SeatbeltError;
use super::operation::{
    BIND, CHANGE, CREATE, EXEC_ALL, EXISTENCE, INBOUND, IOCTL, LINK, MAP, METADATA, Name, OUTBOUND, READ, READ_ALL,
    READ_DATA, READ_XATTR, SOCKET, UNLINK, WRITE_ALL,
};
use super::parse::LONGEST;
use super::pattern::{Extent, names, spelled_names, spelled_path};
use super::plan::SeatbeltPlan;
use super::spelling::{self, canonical_grant, depth, touches};
use super::statuses::{deny_losses, regime_statuses};
use super::syntax::{End, Filter, Rule, Verdict};
use super::{base, operation};
use crate::backend::Regime;
use crate::backend::clauses::links::Links;
use crate::backend::status::{ClauseStatus, Refusal, metadata, refuse_hosts};
use crate::backend::survey::{Mounts, Survey, SurveyError};
use crate::policy::{AbsPath, Access, Deny, Grant, Operation, Residuals, Right, Scope, Target, UnixSockets};
use crate::profile::{FileReach, Profile};

/// The options of a lowering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether the residual of this backend is permitted: the directories above granted paths can be seen.
    pub residuals: Residuals,
}

/// A plan, and the status of each clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lowered {
    /// The text and its parameters.
    pub plan: SeatbeltPlan,
    /// The status of each clause, and those of the regime itself.
    pub statuses: Vec<ClauseStatus>,
}

/// Surveys what [`lower`] needs to know: whether denied files have other hard links.
pub fn survey(profile: &Profile) -> Result<Survey, SurveyError> {
    let denied = profile.denies.iter().filter_map(|deny| match &deny.target {
        Target::Path(path) => Some(path),
        Target::Pattern { .. } => None,
    });
    Survey::take(denied, |_| false, Mounts::default())
}

/// The plan for a profile, or the reason why there is none.
pub fn lower(profile: &Profile, survey: &Survey, options: &Options) -> Result<Lowered, Refusal> {
    refuse_hosts(&profile.network, Regime::Seatbelt)?;
    let mut statuses = vec![metadata(Regime::Seatbelt, options.residuals)?];
    Links::new(profile, survey).refuse_targets()?;

    let canonical = spelling::canonical(profile);
    let moves = spelling::moves(&canonical);
    let mut lowering = Lowering {
        profile: &canonical,
        denies: Denies::new(&canonical),
        moves: &moves,
        move_denies: Denies::new(&moves),
        ways: spelling::ways(&canonical),
        grants: canonical.grants.iter().map(|grant| &grant.path).collect(),
        draft: Draft::default(),
    };
    lowering.draft.rule(Rule {
        verdict: Verdict::Deny,
        operations: vec![operation::DEFAULT],
        filters: Vec::new(),
    });
    for rule in base::rules(&profile.network).map_err(SeatbeltError::Base)? {
        lowering.draft.rule(rule);
    }
    for grant in &profile.grants {
        let mut losses = Vec::new();
        match canonical_grant(grant) {
            Some(grant) => lowering.grant(&grant, &mut losses),
            None => losses.push("a name that is not UTF-8 cannot be named: nothing here is reachable".to_owned()),
        }
        statuses.push(ClauseStatus::with_losses(grant, &grant.origin, &losses));
    }
    lowering.ancestors();
    lowering.sockets();
    lowering.trailing();
    statuses.extend(profile.denies.iter().map(|deny| {
        let losses = deny_losses(deny, &canonical.grants);
        ClauseStatus::with_losses(deny, &deny.origin, &losses)
    }));
    statuses.extend(regime_statuses(profile));

    let plan = lowering.draft.finish();
    let values = plan
        .parameters
        .iter()
        .map(|parameter| parameter.name.len() + parameter.value.len() + 8);
    let size = plan.text.len() + values.sum::<usize>();
    if size > LONGEST {
        return Err(SeatbeltError::TooLong(size).into());
    }
    Ok(Lowered { plan, statuses })
}

struct Lowering<'a> {
    profile: &'a Profile,
    denies: Denies<'a>,
    moves: &'a Profile,
    move_denies: Denies<'a>,
    ways: BTreeSet<AbsPath>,
    grants: BTreeSet<&'a AbsPath>,
    draft: Draft,
}

impl Lowering<'_> {
    /// Adds the rules of one grant, and returns what they do not give of it.
    fn grant(&mut self, grant: &Grant, losses: &mut Vec<String>) {
        let mut lose = |what: &str| losses.push(what.to_owned());
        let writes = grant.rights.has(Right::Write) && grant.max_file_bytes.is_none();
        if grant.rights.has(Right::Write) && !writes {
            lose("a size limit cannot be held for commands: nothing here can be written by them");
        }
        match grant.scope {
            Scope::File => return self.file(grant, writes),
            Scope::Names => {
                if grant.rights.has(Right::Read) && !self.listing(grant) {
                    lose("directories cannot be listed where a part is denied");
                }
                return;
            }
            Scope::Tree => {}
        }
        if grant.rights.has(Right::Read) {
            let cut = self.tree(grant, Operation::Read, Whose::Files);
            if grant.suffixes.is_none() {
                self.allow(&READ, cut);
            } else {
                self.allow(&[READ_DATA, READ_XATTR], cut);
                if !self.listing(grant) {
                    lose("directories cannot be listed where a part is denied");
                }
            }
        }
        if grant.rights.has(Right::Execute) {
            let cut = self.tree(grant, Operation::Execute, Whose::Files);
            self.allow(&[EXEC_ALL, MAP], cut);
        }
        if writes {
            let cut = self.tree(grant, Operation::Write, Whose::Files);
            self.allow(&CHANGE, cut.clone());
            let kept = self.keep_ways(cut, &grant.path);
            self.allow(&[CREATE], kept);
            if grant.rights.has(Right::Read) && grant.suffixes.is_none() {
                let cut = self.tree(grant, Operation::Write, Whose::Moves);
                let kept = self.keep_ways(cut, &grant.path);
                self.allow(&[UNLINK], kept);
            } else {
                lose("entries here cannot be removed or renamed");
            }
        }
    }

    /// Adds the rules of a grant of one file. The denies are applied now, so none is written.
    fn file(&mut self, grant: &Grant, writes: bool) {
        let says = self.profile.prepared()(&grant.path);
        let movable = self.moves.access(Operation::Write, &grant.path) == Access::Full;
        let full = |op: Operation| says.get(op) == Access::Full && grant.gives(op, &grant.path) == Access::Full;
        let Some(literal) = self.draft.literal(&grant.path) else {
            return;
        };
        let writes = writes && full(Operation::Write);
        if full(Operation::Read) {
            let not_directory = Filter::Not(Box::new(Filter::Directory));
            self.allow(&[READ_DATA, READ_XATTR], Some(vec![literal.clone(), not_directory]));
            self.allow(&[METADATA, EXISTENCE], Some(vec![literal.clone()]));
        }
        if full(Operation::Execute) {
            self.allow(&[EXEC_ALL, MAP], Some(vec![literal.clone()]));
        }
        if writes {
            self.allow(&CHANGE, Some(vec![literal.clone()]));
            if !self.ways.contains(&grant.path) {
                self.allow(&[CREATE], Some(vec![literal.clone()]));
                if movable {
                    self.allow(&[UNLINK], Some(vec![literal.clone()]));
                }
            }
            // A terminal needs ioctl. Only a grant of the device itself gives it.
            if full(Operation::Read) && grant.path.as_bytes().starts_with(b"/dev/") {
                self.allow(&[IOCTL], Some(vec![literal]));
            }
        }
    }

    /// Allows listing of directories. It adds nothing and returns `false` where a deny applies there.
    fn listing(&mut self, grant: &Grant) -> bool {
        let near = self.denies.near(&grant.path);
        if near
            .iter()
            .any(|deny| deny.rights.has(Right::Read) && deny.beyond.is_none())
        {
            return false;
        }
        let subpath = self.draft.subpath(&grant.path);
        self.allow(
            &[READ_DATA],
            subpath.clone().map(|subpath| vec![subpath, Filter::Directory]),
        );
        self.allow(&[METADATA, EXISTENCE], subpath.map(|subpath| vec![subpath]));
        true
    }

    fn allow(&mut self, operations: &[Name], parts: Option<Vec<Filter>>) {
        let filter = match parts {
            Some(mut parts) if parts.len() == 1 => parts.pop(),
            Some(parts) => Some(Filter::All(parts)),
            None => None,
        };
        self.draft.add(Verdict::Allow, operations, filter.into_iter().collect());
    }

    /// The filters of a grant for an operation, without what is denied; `None` where nothing is left.
    fn tree(&mut self, grant: &Grant, operation: Operation, whose: Whose) -> Option<Vec<Filter>> {
        let near = match whose {
            Whose::Files => self.denies.near(&grant.path),
            Whose::Moves => self.move_denies.near(&grant.path),
        };
        let near: Vec<&Deny> = near.into_iter().filter(|deny| touches(deny, operation)).collect();
        if near
            .iter()
            .any(|deny| deny.except.is_none() && deny.target.covers(&grant.path))
        {
            return None;
        }
        let mut parts = vec![self.draft.subpath(&grant.path)?];
        if let Some(suffixes) = &grant.suffixes {
            parts.push(self.draft.endings(suffixes)?);
        }
        for deny in near {
            let cuts = self.cuts(deny)?;
            parts.extend(cuts.into_iter().map(|cut| Filter::Not(Box::new(cut))));
        }
        Some(parts)
    }

    /// The filters for all that the deny matches; `None` where they cannot be written.
    fn cuts(&mut self, deny: &Deny) -> Option<Vec<Filter>> {
        let mut cuts = Vec::new();
        match &deny.target {
            Target::Path(path) => {
                cuts.push(self.draft.literal(path)?);
                cuts.push(self.draft.subpath(path)?);
                cuts.extend(self.spelled(path, Extent::Tree)?);
            }
            Target::Pattern { root, pattern } => {
                let above = self.draft.subpath(root)?;
                for text in [names(depth(root), pattern), spelled_names(depth(root), pattern)] {
                    cuts.push(Filter::All(vec![above.clone(), self.draft.regex(text)?]));
                }
            }
        }
        let Some(except) = &deny.except else {
            return Some(cuts);
        };
        let spared = Filter::Not(Box::new(self.draft.endings(except)?));
        let limited = cuts.into_iter().map(|cut| match cut {
            Filter::All(mut parts) => {
                parts.push(spared.clone());
                Filter::All(parts)
            }
            cut => Filter::All(vec![cut, spared.clone()]),
        });
        Some(limited.collect())
    }

    /// The filter for other spellings of the names below the outermost grant around the path; empty where there is no grant.
    fn spelled(&mut self, path: &AbsPath, extent: Extent) -> Option<Vec<Filter>> {
        let outermost = path
            .ancestors()
            .skip(1)
            .filter(|above| self.grants.contains(above))
            .last();
        let Some(outermost) = outermost else {
            return Some(Vec::new());
        };
        let regex = self.draft.regex(spelled_path(depth(&outermost), path, extent))?;
        Some(vec![Filter::All(vec![self.draft.subpath(&outermost)?, regex])])
    }

    /// The same filters without the directories above denied paths.
    fn keep_ways(&mut self, parts: Option<Vec<Filter>>, path: &AbsPath) -> Option<Vec<Filter>> {
        let mut parts = parts?;
        let ways: Vec<AbsPath> = self
            .ways
            .range::<AbsPath, _>(path..)
            .take_while(|way| way.is_within(path))
            .cloned()
            .collect();
        for way in ways {
            let cuts = self.way(&way)?;
            parts.extend(cuts.into_iter().map(|cut| Filter::Not(Box::new(cut))));
        }
        Some(parts)
    }

    fn way(&mut self, way: &AbsPath) -> Option<Vec<Filter>> {
        let literal = self.draft.literal(way)?;
        let spelled = self.spelled(way, Extent::PathOnly)?;
        Some(std::iter::once(literal).chain(spelled).collect())
    }

    /// Allows `stat` of the directories above granted paths.
    fn ancestors(&mut self) {
        let above: BTreeSet<AbsPath> = self.grants.iter().flat_map(|path| path.ancestors().skip(1)).collect();
        let filters = above.iter().filter_map(|path| self.draft.literal(path)).collect();
        self.draft.add(Verdict::Allow, &[METADATA, EXISTENCE], filters);
    }

    fn sockets(&mut self) {
        let family = [Filter::UnixFamily].to_vec();
        match self.profile.unix_sockets {
            UnixSockets::None => {}
            UnixSockets::All => {
                self.draft.add(Verdict::Allow, &[SOCKET], family);
                self.allow(&[OUTBOUND], Some(vec![Filter::Unix(End::Remote, None)]));
                self.allow(&[INBOUND, BIND], Some(vec![Filter::Unix(End::Local, None)]));
            }
            UnixSockets::WithinRoots => {
                self.draft.add(Verdict::Allow, &[SOCKET], family);
                let plain = |grant: &&Grant| {
                    grant.rights.has(Right::Write)
                        && grant.scope == Scope::Tree
                        && grant.suffixes.is_none()
                        && grant.max_file_bytes.is_none()
                };
                for grant in self.profile.grants.iter().filter(plain) {
                    let parts = self.tree(grant, Operation::Write, Whose::Files);
                    let on = |end| {
                        parts
                            .clone()
                            .map(|parts| parts.into_iter().map(|part| on_sockets(part, end)).collect())
                    };
                    self.allow(&[OUTBOUND], on(End::Remote));
                    self.allow(&[INBOUND, BIND], on(End::Local));
                }
            }
        }
    }

    /// Adds each deny after all allows.
    fn trailing(&mut self) {
        for deny in &self.profile.denies {
            let Some(cuts) = self.cuts(deny) else {
                continue;
            };
            let mut names = Vec::new();
            for (operation, more) in [
                (Operation::Read, &[READ_ALL, EXISTENCE][..]),
                (Operation::Write, &[WRITE_ALL, LINK, IOCTL]),
                (Operation::Execute, &[EXEC_ALL, MAP]),
            ] {
                if touches(deny, operation) {
                    names.extend_from_slice(more);
                }
            }
            let writes = touches(deny, Operation::Write);
            if writes && self.profile.unix_sockets == UnixSockets::WithinRoots {
                let on = |end| cuts.iter().cloned().map(|cut| on_sockets(cut, end)).collect();
                self.draft.add(Verdict::Deny, &[OUTBOUND], on(End::Remote));
                self.draft.add(Verdict::Deny, &[INBOUND, BIND], on(End::Local));
            }
            if !names.is_empty() {
                self.draft.add(Verdict::Deny, &names, cuts);
            }
            if !deny.rights.is_empty() && (deny.except.is_some() || !writes) {
                let whole = self.cuts(&Deny {
                    except: None,
                    ..deny.clone()
                });
                self.draft.add(Verdict::Deny, &[UNLINK], whole.unwrap_or_default());
            }
        }
        let ways = self.ways.clone();
        let cuts: Vec<Filter> = ways.iter().filter_map(|way| self.way(way)).flatten().collect();
        self.draft.add(Verdict::Deny, &[CREATE, UNLINK], cuts);
    }
}

/// The profile that a deny comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The profile of files.
    Files,
    /// The profile of moves.
    Moves,
}
