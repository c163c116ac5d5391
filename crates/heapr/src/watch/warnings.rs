//! Incidents of groups that are near their limits.

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

    /// Makes the incident of a group that is near its limit.
    fn warn_of(&mut self, place: usize, trigger: Trigger) {
        let facts = self.facts_of(place, None);
        let largest = facts.facts.processes.first().map(|process| process.pid);
        let Some(process) = self.watched.processes.iter().find(|process| Some(process.pid()) == largest)
        else {
            return;
        };
        let mut incident = Incident {
            schema: SCHEMA.to_owned(),
            kind: Kind::Warning,
            time_unix_ns: unix_ns(),
            process: process.named.clone(),
            cause: Cause { kind: CauseKind::NearLimit, certainty: Certainty::Fact, ..Cause::default() },
            trigger: Some(trigger),
            account: process.account.clone(),
            course: facts.course.clone(),
            group: Some(facts.facts.clone()),
            ..Incident::default()
        };
        if let Some(why) = &process.not_recorded {
            incident.unknown.push(format!("it is not recorded: {why}"));
        }
        self.flush();
        add_holders(&mut incident, &self.recording, &facts.accounts, false);
        tell(&mut incident);
        match self.report.add(incident, &self.recording) {
            Ok(number) => self.watched.groups[place].warning = Some(number),
            Err(error) => warn!("a warning is not kept: {error:#}"),
        }
        heapr_inject::give_back_memory();
    }
}
