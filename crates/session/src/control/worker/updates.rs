//! Updates of a session: answered when their attaches and detaches are done, while the session
//! continues to record.

use std::sync::mpsc::Sender;

use super::remarks::children_remark;
use super::{Purpose, Worker};
use crate::control::clerk::change;
use crate::control::target_thread::Job;
use crate::control::{Answer, Update, UpdateReport};
use crate::failure::Failure;
use crate::{Error, InjectError};

/// Update that is not answered yet.
#[derive(Debug)]
pub(super) struct PendingUpdate {
    /// Number of attaches and detaches that are not done yet.
    pub(super) left_count: usize,
    pub(super) report: UpdateReport,
    flush: bool,
    with_children: bool,
    answer: Sender<Answer>,
}

impl Worker {
    pub(super) fn update(&mut self, update: &Update, answer: Sender<Answer>) {
        let not_sampled = change(&mut self.session, update);
        let mut report = UpdateReport { not_sampled, ..UpdateReport::default() };
        let mut jobs = Vec::new();
        for &pid in &update.remove_pids {
            self.attached.retain(|&attached| attached != pid);
            // A process of another session cannot be let go by this one.
            if self.session.recorder().knows(pid) {
                jobs.push(Job::Detach { pid });
            } else {
                let error = Error::from(InjectError::NotAttached { pid });
                report.failed.push((pid, Failure::from(&error)));
            }
        }
        for &pid in &update.add_pids {
            if self.session.recorder().records(pid) && !update.remove_pids.contains(&pid) {
                let error = Error::AlreadyRecorded { pid };
                report.failed.push((pid, Failure::from(&error)));
            } else {
                jobs.push(Job::Attach { pid, preload: self.session.preload() });
            }
        }
        self.update_count += 1;
        let number = self.update_count;
        let pending = PendingUpdate {
            left_count: jobs.len(),
            report,
            flush: update.flush,
            with_children: update.with_children,
            answer,
        };
        let is_done = pending.left_count == 0;
        self.updates.insert(number, pending);
        jobs.into_iter().for_each(|job| self.push(job, Purpose::Update(number)));
        if is_done {
            self.answer_update(number);
        }
    }

    /// Attaches to earlier children of an attached process, if requested. Returns a remark if they
    /// are left out.
    pub(super) fn update_children(&mut self, number: u64, pid: u32, children: Vec<u32>) -> String {
        let is_at = |pid: u32| self.targets.as_ref().is_some_and(|targets| targets.is_at(pid));
        let children: Vec<u32> = children.into_iter().filter(|&child| !is_at(child)).collect();
        let Some(update) = self.updates.get_mut(&number) else { return String::new() };
        if !update.with_children {
            return children_remark(pid, &children).map(|remark| format!("; {remark}")).unwrap_or_default();
        }
        update.left_count += children.len();
        for child in children {
            let preload = self.session.preload();
            self.push(Job::Attach { pid: child, preload }, Purpose::Update(number));
        }
        String::new()
    }

    /// Answers an update whose jobs are all done.
    pub(super) fn answer_update(&mut self, number: u64) {
        let Some(update) = self.updates.remove(&number) else { return };
        if update.flush {
            self.session.flush();
        }
        // The client may have gone.
        let _ = update.answer.send(Answer::Updated(update.report));
    }
}
