//! Reports as text, JSON, `JUnit` XML, Markdown and HTML.

mod hostile;
mod json;
mod odd;
mod renderings;
mod sample;
