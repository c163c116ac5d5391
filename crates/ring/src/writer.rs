//! The agent's side: claiming slots and buffers, waiting when there is none.
