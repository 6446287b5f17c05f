//! The tokens of a loop's iterations as bars.

use std::fmt::{self, Write};

use agent_core::LoopStep;
use agent_loop::IterationRecord;

use super::tags::path_name;
use crate::inspect::{format, timeline::Timeline};

const HEIGHT: f64 = 84.0;
/// Above the bars, for their numbers.
const HEAD: f64 = 16.0;
/// Below them, for the iterations' numbers.
const FOOT: f64 = 18.0;
/// From one bar to the next.
const STEP: usize = 54;
const BAR: usize = 38;

/// One bar for each iteration: its input below, its output on top. A bar leads to the iteration's events.
pub(super) fn tokens(
    page: &mut String,
    timeline: &Timeline,
    name: &str,
    iterations: &[IterationRecord],
) -> fmt::Result {
    let most = iterations.iter().map(|record| record.usage.total()).max().unwrap_or(0);
    if most == 0 {
        return Ok(());
    }
    let (width, all) = (iterations.len() * STEP, HEAD + HEIGHT + FOOT);
    write!(
        page,
        "<figure><div class=\"scroll\"><svg class=\"chart\" width=\"{width}\" height=\"{all}\" viewBox=\"0 0 {width} {all}\" \
         role=\"group\" aria-label=\"Tokens of each iteration\">",
    )?;
    for (at, record) in iterations.iter().enumerate() {
        let (input, output) = (record.usage.input_tokens, record.usage.output_tokens);
        let (low, high) = (share(input, most), share(output, most));
        let (x, foot) = (at * STEP + (STEP - BAR) / 2, HEAD + HEIGHT);
        let middle = x + BAR / 2;
        let number = at + 1;
        let (input, output) = (format::number(input), format::number(output));
        let place = place(timeline, name, number).map(|place| encoded(&place)).unwrap_or_default();
        write!(
            page,
            "<a href=\"#in={place}\" aria-label=\"Iteration {number}: {input} tokens in, {output} out\">\
             <title>Iteration {number}: {input} in, {output} out</title>\
             <rect class=\"in\" x=\"{x}\" y=\"{:.1}\" width=\"{BAR}\" height=\"{low:.1}\"/>\
             <rect class=\"out\" x=\"{x}\" y=\"{:.1}\" width=\"{BAR}\" height=\"{high:.1}\"/>\
             <text x=\"{middle}\" y=\"{:.1}\">{}</text>\
             <text class=\"dim\" x=\"{middle}\" y=\"{}\">#{number}</text></a>",
            foot - low,
            foot - low - high,
            foot - low - high - 4.0,
            short(record.usage.total()),
            all - 4.0,
        )?;
    }
    page.push_str(
        "</svg></div><figcaption class=\"legend\"><span class=\"in\"></span> tokens in <span class=\"out\"></span> out\
         </figcaption></figure>",
    );
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a bar's height need not tell huge numbers apart")]
fn share(tokens: u64, most: u64) -> f64 {
    tokens as f64 / most as f64 * HEIGHT
}

/// `950`, `1.2k`, `35k`, `1.2M`: what fits over a bar.
#[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..10_000 => format!("{:.1}k", tokens as f64 / 1e3),
        10_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

/// Where this loop's iteration was last: the state knows the last run of a loop only.
fn place(timeline: &Timeline, name: &str, number: usize) -> Option<String> {
    let is_it = |step: &LoopStep| *step.name == *name && step.iteration as usize == number;
    let mut paths = timeline.steps.iter().rev().map(|step| &step.event.path);
    paths.find_map(|path| path.iter().position(is_it).map(|at| path_name(&path[..=at])))
}

/// As the value of a parameter in an address.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect(super::TAKES_ANY);
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_over_bars_are_short() {
        assert_eq!([7, 999, 1_249, 35_900, 1_250_000].map(short), ["7", "999", "1.2k", "35k", "1.2M"]);
    }

    #[test]
    fn an_address_takes_any_name() {
        assert_eq!(encoded("ship #1 › \""), "ship%20%231%20%E2%80%BA%20%22");
    }
}
