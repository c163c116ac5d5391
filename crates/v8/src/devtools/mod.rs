//! What Chrome DevTools makes of a snapshot.
