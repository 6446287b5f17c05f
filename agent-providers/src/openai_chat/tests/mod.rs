//! Chat Completions and what is compatible with it: answers are read, requests are written.

mod answers;
mod requests;
