//! The engine and its reports, with agents that play scripts.

mod gates;
mod judges;
mod look;
mod loops;
mod pages;
mod reports;
mod resume;
mod running;
mod scale;
mod score;
mod support;
mod traps;
