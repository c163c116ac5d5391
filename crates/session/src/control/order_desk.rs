//! Orders to a session that ends with its program, as that of `heapr run`. It has a name and a
//! socket like any other, but accepts no further processes.

use std::sync::mpsc;

use super::claim::NameClaim;
use super::clerk::{Clerk, change, invalid};
use super::listener::Listener;
use super::protocol::{Answer, Order, Request, Update, UpdateReport};
use crate::bell::Letterbox;
use crate::failure::{Failure, FailureKind};
use crate::{Error, Session, SessionName, SessionStatus};

/// Largest number of orders between two rounds.
const ORDERS_PER_ROUND: u32 = 16;

/// Socket by which other processes control a session that this process steps itself. Dropping it
/// frees the name.
#[derive(Debug)]
pub struct OrderDesk {
    clerk: Clerk,
    name: SessionName,
    // Dropped before the listener: a client that is told that the session has ended can take the
    // name.
    _claim: NameClaim,
    _listener: Listener,
}

impl OrderDesk {
    /// Takes a name and starts to answer, without waiting for another holder of the name.
    ///
    /// # Errors
    /// The name is taken, no directory is suitable for its socket, or no thread can start.
    pub fn open(session: &Session, name: SessionName) -> Result<Self, Error> {
        let claim = NameClaim::take(&name)?.ok_or_else(|| Error::SessionExists { name: name.to_string() })?;
        let (orders, receiver) = mpsc::channel();
        let listener = Listener::start(claim.listen()?, Letterbox::new(orders, session.bell()))
            .map_err(|source| Error::Recorder { source })?;
        Ok(Self { clerk: Clerk::new(receiver), name, _claim: claim, _listener: listener })
    }

    /// Carries out orders, and answers finished ones. Called between two rounds.
    pub fn attend(&mut self, session: &mut Session) {
        self.clerk.report_snapshots(session);
        for _ in 0..ORDERS_PER_ROUND {
            let Ok(order) = self.clerk.next_order() else { return };
            let named = |status| SessionStatus { name: self.name.to_string(), ..status };
            let Some(Order { request, answer }) = self.clerk.take(session, order, named) else { continue };
            // The client may have gone.
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

/// Applies an update, except for adding and removing processes.
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
