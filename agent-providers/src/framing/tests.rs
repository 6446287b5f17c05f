use super::{Frame, FrameError, Framing, JsonLines, LONGEST_FRAME, Sse};

fn frames(mut framing: impl Framing, chunks: &[&[u8]]) -> Result<Vec<Frame>, FrameError> {
    let mut out = Vec::new();
    for chunk in chunks {
        framing.push(chunk, &mut out)?;
    }
    framing.end(&mut out)?;
    Ok(out)
}

fn frame(event: Option<&str>, data: &str) -> Frame {
    Frame { event: event.map(str::to_owned), data: data.into(), unclosed: false }
}

fn unclosed(event: Option<&str>, data: &str) -> Frame {
    Frame { unclosed: true, ..frame(event, data) }
}

#[test]
fn every_line_end_ends_a_line_wherever_chunks_are_cut() {
    let expected = Ok(vec![frame(Some("a"), "1\n2"), frame(None, "3")]);
    for end in ["\n", "\r", "\r\n"] {
        let text = "event: a\ndata: 1\ndata: 2\n\ndata: 3\n\n".replace('\n', end);
        for cut in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(cut);
            assert_eq!(frames(Sse::default(), &[head, tail]), expected, "{end:?} cut at {cut}");
        }
        let bytes = text.bytes().map(|byte| [byte]).collect::<Vec<_>>();
        let chunks = bytes.iter().map(|byte| &byte[..]).collect::<Vec<_>>();
        assert_eq!(frames(Sse::default(), &chunks), expected, "{end:?} in single bytes");
    }
}

#[test]
fn comments_and_other_fields_are_no_data() {
    let text = b"\xEF\xBB\xBF: hello\nid: 1\nretry: 5\ndata:x\nwhatever\nevent:  two spaces\n:\n\n\n\nid: 2\n\n";
    assert_eq!(frames(Sse::default(), &[text]), Ok(vec![frame(Some(" two spaces"), "x")]));
}

#[test]
fn a_byte_order_mark_counts_only_at_the_start() {
    let text = "\u{feff}data: a\n\ndata: \u{feff}b\n\n".as_bytes();
    assert_eq!(frames(Sse::default(), &[text]), Ok(vec![frame(None, "a"), frame(None, "\u{feff}b")]));
    for cut in 0..4 {
        let (head, tail) = text.split_at(cut);
        assert_eq!(frames(Sse::default(), &[head, tail]).unwrap().len(), 2);
    }
}

#[test]
fn a_last_event_without_its_blank_line_counts_and_is_marked() {
    assert_eq!(frames(Sse::default(), &[b"event: e\ndata: a\n"]), Ok(vec![unclosed(Some("e"), "a")]));
    assert_eq!(frames(Sse::default(), &[b"data: a"]), Ok(vec![unclosed(None, "a")]));
    assert_eq!(frames(Sse::default(), &[b"event: e\n"]), Ok(vec![]));
}

#[test]
fn characters_may_be_cut_and_other_bytes_are_an_error() {
    let text = "data: –\n\n".as_bytes();
    let (head, tail) = text.split_at(7);
    assert_eq!(frames(Sse::default(), &[head, tail]), Ok(vec![frame(None, "–")]));
    assert_eq!(frames(Sse::default(), &[b"data: \xff\n\n"]), Err(FrameError::NotUtf8));
    assert_eq!(frames(JsonLines::default(), &[b"\xff\n"]), Err(FrameError::NotUtf8));
}

#[test]
fn json_lines_are_lines_that_are_not_blank() {
    let chunks: [&[u8]; 3] = [b"\xEF\xBB\xBF{\"a\":", b"1}\r", b"\n \n\n{}\n[1"];
    let expected = vec![frame(None, "{\"a\":1}"), frame(None, "{}"), unclosed(None, "[1")];
    assert_eq!(frames(JsonLines::default(), &chunks), Ok(expected));
}

#[test]
fn a_frame_that_never_ends_is_an_error() {
    let line = vec![b'x'; LONGEST_FRAME / 4];
    let one_line = [&b"data: "[..], &line, &line, &line, &line];
    assert_eq!(frames(Sse::default(), &one_line), Err(FrameError::TooLong));
    assert_eq!(frames(JsonLines::default(), &one_line), Err(FrameError::TooLong));
    let many_lines =
        [&b"data: "[..], &line, b"\ndata: ", &line, b"\ndata: ", &line, b"\ndata: ", &line, b"\ndata: x\n"];
    assert_eq!(frames(Sse::default(), &many_lines), Err(FrameError::TooLong));
}
