//! The recorder's side: scanning, reading untrusted records, freeing.
