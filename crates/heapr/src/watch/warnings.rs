//! Incidents of groups and processes that are near their limits.

use heapr_incident::{Cause, CauseKind, Certainty, Incident, Kind, SCHEMA, Trigger, tell, unix_ns};

use super::held::add_holders;
use super::watcher::Watcher;

impl Watcher {
    /// Judges a group's climb, and tells it once.
    pub(super) fn judge(&mut self, place: usize) {
        let group = &self.watched.groups[place];
        let folder = &group.folder;
        let of_group = self.watched.processes.iter().filter(|process| process.group.as_ref() == Some(folder));
        let rss_bytes = of_group.map(|process| process.named.rss_bytes.unwrap_or(0)).sum();
        let state = group.state(rss_bytes);
        if let Some(trigger) = self.watched.groups[place].climb.judge(&self.rules, &state) {
            self.warn_of(place, trigger);
        }
    }

    /// Judges the limits that processes have by themselves.
    pub(super) fn judge_own_limits(&mut self) {
        for place in 0..self.watched.processes.len() {
            let process = &mut self.watched.processes[place];
            let Some((of, percent, amount)) = process.judge_own(&self.rules) else { continue };
            let group = self.watched.group_of(&self.watched.processes[place]);
            let trigger = Trigger::OwnLimit { of, percent, limit_bytes: amount.limit_bytes };
            self.add_warning(place, group, CauseKind::NearOwnLimit, trigger);
        }
    }

    /// Makes the incident of a group that is near its limit.
    fn warn_of(&mut self, group: usize, trigger: Trigger) {
        let largest = self.facts_of(group, None).facts.processes.first().map(|process| process.pid);
        let place = self.watched.processes.iter().position(|process| Some(process.pid()) == largest);
        if let Some(place) = place {
            self.add_warning(place, Some(group), CauseKind::NearLimit, trigger);
        }
    }

    /// Makes the incident of a process, and of its group.
    fn add_warning(&mut self, place: usize, group: Option<usize>, kind: CauseKind, trigger: Trigger) {
        let facts = group.map(|group| self.facts_of(group, None)).unwrap_or_default();
        let has_group = group.is_some();
        let process = &self.watched.processes[place];
        let mut incident = Incident {
            schema: SCHEMA.to_owned(),
            kind: Kind::Warning,
            time_unix_ns: unix_ns(),
            process: process.named.clone(),
            cause: Cause { kind, certainty: Certainty::Fact, ..Cause::default() },
            trigger: Some(trigger),
            account: process.account.clone(),
            course: facts.course.clone(),
            group: has_group.then(|| facts.facts.clone()),
            ..Incident::default()
        };
        if let Some(why) = &process.not_recorded {
            incident.unknown.push(format!("it is not recorded: {why}"));
        }
        let of_space = process.mapped.map(|space| space.limit_bytes.saturating_sub(space.used_bytes));
        let mut accounts = facts.accounts;
        if !has_group {
            accounts.extend(process.account.clone());
        }
        if !kind.is_of_group() {
            accounts.retain(|account| account.pid == incident.process.pid);
        }
        self.flush();
        add_holders(&mut incident, self.recorded(), &accounts, false);
        let group_facts = &facts.facts;
        let of_group =
            group_facts.limit_bytes.map(|limit| limit.saturating_sub(group_facts.usage_bytes.unwrap_or(0)));
        let left = [of_group, of_space].into_iter().flatten().min();
        if self.begin_full(incident.process.pid, left) {
            incident.cause.evidence.push("all allocations are recorded from then on, for a while".to_owned());
        }
        tell(&mut incident);
        match (self.report.add(incident, &self.recording), group.filter(|_| kind.is_of_group())) {
            (Ok(number), Some(group)) => self.watched.groups[group].warning = Some(number),
            // The death of another process does not tell it.
            (Ok(number), None) => self.watched.processes[place].warning = Some(number),
            (Err(error), _) => warn!("a warning is not kept: {error:#}"),
        }
        heapr_inject::give_back_memory();
    }
}
