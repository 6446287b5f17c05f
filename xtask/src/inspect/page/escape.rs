//! Text that is nothing but text in HTML.

use std::fmt;

/// Shows a text so that it is text in an element and in a quoted attribute alike.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            f.write_str(&rest[..at])?;
            f.write_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::Escaped;

    #[test]
    fn nothing_ends_an_element_or_an_attribute() {
        assert_eq!(Escaped("</a é=\"'&amp;").to_string(), "&lt;/a é=&quot;&#39;&amp;amp;");
    }
}
