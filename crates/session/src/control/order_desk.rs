//! Orders to a session that ends with its program, `heapr run`'s: it has a name and a socket as any
//! other, and no process but its own.

use std::sync::mpsc;

use super::claim::NameClaim;
use super::clerk::{Clerk, change, invalid};
use super::listener::Listener;
use super::protocol::{Answer, Order, Request, Update, UpdateReport};
use crate::bell::Letterbox;
use crate::failure::{Failure, FailureKind};
use crate::{Error, Session, SessionName, SessionStatus};

/// Orders taken between two rounds.
const ORDERS_PER_ROUND: u32 = 16;

/// Where other processes can ask a session that this one steps itself. When it is dropped the name
/// is free again.
#[derive(Debug)]
pub struct OrderDesk {
    clerk: Clerk,
    name: SessionName,
    // (The name first: who is told that there is no such session can take it.)
    _claim: NameClaim,
    _listener: Listener,
}

impl OrderDesk {
    /// Takes a name, and answers to it from now on. Waits for nobody who has it.
    ///
    /// # Errors
    /// Somebody has the name, or there is no place for its socket, or no thread.
    pub fn open(session: &Session, name: SessionName) -> Result<Self, Error> {
        let claim = NameClaim::take(&name)?.ok_or_else(|| Error::SessionExists { name: name.to_string() })?;
        let (orders, receiver) = mpsc::channel();
        let listener = Listener::start(claim.listen()?, Letterbox::new(orders, session.bell()))
            .map_err(|source| Error::Recorder { source })?;
        Ok(Self { clerk: Clerk::new(receiver), name, _claim: claim, _listener: listener })
    }

    /// Carries out what was ordered, and answers what is done. To be called between two rounds.
    pub fn attend(&mut self, session: &mut Session) {
        self.clerk.report_snapshots(session);
        for _ in 0..ORDERS_PER_ROUND {
            let Ok(order) = self.clerk.next_order() else { return };
            let named = |status| SessionStatus { name: self.name.to_string(), ..status };
            let Some(Order { request, answer }) = self.clerk.take(session, order, named) else { continue };
            // Who asked may have gone.
            let _ = answer.send(match request {
                Request::Update(update) => Answer::Updated(changed(session, &update)),
                _ => invalid(
                    "the session is `heapr run`'s and ends with its program: end the program, or press Ctrl-C there"
                        .to_owned(),
                ),
            });
        }
    }
}

/// What is recorded, of the processes that there are.
fn changed(session: &mut Session, update: &Update) -> UpdateReport {
    let mut report = UpdateReport { not_sampled: change(session, update), ..UpdateReport::default() };
    let message = "`heapr run` records its program and what that starts: use `heapr start --pid`";
    for &pid in update.add_pids.iter().chain(&update.remove_pids) {
        report.failed.push((pid, Failure::new(FailureKind::Invalid, message.to_owned())));
    }
    if update.flush {
        session.flush();
    }
    report
}
