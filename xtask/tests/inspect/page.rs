//! The page for the browser.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use agent_core::{Event, JsonlStore};
use tempfile::TempDir;

use crate::{refused, sample, shown};

/// The page of a session's file.
fn page(dir: &Path, session: &Path) -> (PathBuf, String) {
    let printed = shown(dir, &[session.to_str().unwrap(), "--html", "page.html"]);
    assert_eq!(printed, "wrote page.html\n");
    let path = dir.join("page.html");
    let html = fs::read_to_string(&path).unwrap();
    (path, html)
}

/// What a browser makes of the page at this hash; none, and a line that says so, if there is no browser.
fn seen(page: &Path, hash: &str) -> Option<String> {
    let Some(chromium) = chromium() else {
        println!("skipped: there is no chromium on PATH, and CHROMIUM names none");
        return None;
    };
    let profile = TempDir::new().unwrap();
    let flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--dump-dom",
    ];
    let mut command = Command::new(chromium);
    command.args(flags).arg(format!("--user-data-dir={}", profile.path().display()));
    let output = command.arg(format!("file://{}{hash}", page.display())).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

fn chromium() -> Option<PathBuf> {
    if let Some(named) = env::var_os("CHROMIUM") {
        return Some(named.into());
    }
    let path = env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name))).find(|program| program.is_file())
}

/// The numbers of the events that are shown.
fn events(dom: &str) -> Vec<usize> {
    let mut numbers = Vec::new();
    for article in dom.split("<article class=\"event").skip(1) {
        let tag = article.split('>').next().unwrap();
        let number = tag.split("id=\"e").nth(1).unwrap().split('"').next().unwrap();
        if !tag.contains("hidden") {
            numbers.push(number.parse().unwrap());
        }
    }
    numbers
}

#[tokio::test(start_paused = true)]
async fn a_page_needs_nothing_else() {
    let dir = TempDir::new().unwrap();
    let session = sample::haiku(dir.path()).await;
    let (_, html) = page(dir.path(), &session);
    assert_eq!(events(&html), (1..=18).collect::<Vec<_>>(), "all is there without the script");
    for outside in ["http:", "https:", " src=", "@import", "url(", " style=", "<link", "javascript:"] {
        assert!(!html.contains(outside), "{outside}");
    }
    let handlers = html.split('<').filter(|tag| tag.split('>').next().is_some_and(|tag| tag.contains(" on")));
    assert_eq!(handlers.count(), 0, "handlers in attributes are what its policy forbids");
    let policy = html.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    let kept = |part: &str| if part.contains("sha256-") { "[hash]".to_owned() } else { part.to_owned() };
    let policy: Vec<String> = policy.replace("&#39;", "'").split(' ').map(kept).collect();
    insta::assert_snapshot!(policy.join(" "), @"default-src 'none'; style-src [hash] script-src [hash] base-uri 'none'; form-action 'none'");
}

#[tokio::test(start_paused = true)]
async fn each_event_s_json_is_in_its_page() {
    let dir = TempDir::new().unwrap();
    for session in [sample::haiku(dir.path()).await, sample::nested(dir.path()).await] {
        let (_, html) = page(dir.path(), &session);
        let texts = html.split("JSON</summary><pre>").skip(1).map(|rest| rest.split("</pre>").next().unwrap());
        let events: Vec<Event> = texts.map(|text| serde_json::from_str(&unescaped(text)).unwrap()).collect();
        assert_eq!(events, JsonlStore::read_file(&session).unwrap().1);
    }
}

fn unescaped(text: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    entities.iter().fold(text.to_owned(), |text, (entity, c)| text.replace(entity, c))
}

#[tokio::test(start_paused = true)]
async fn what_a_session_says_is_text_in_its_page() {
    let dir = TempDir::new().unwrap();
    let session = sample::hostile(dir.path()).await;
    let (path, html) = page(dir.path(), &session);
    for (tag, times) in
        [("<script", 1), ("</script", 1), ("<style", 1), ("<img", 0), ("<h1", 1), ("<i>", 0), ("<u>", 0)]
    {
        assert_eq!(html.matches(tag).count(), times, "{tag}");
    }
    assert!(html.contains("&lt;/script&gt;&lt;/pre&gt;&lt;script&gt;document.title=&#39;owned&#39;&lt;/script&gt;"));
    if let Some(dom) = seen(&path, "") {
        assert!(dom.contains("<title>&lt;h1&gt;&amp;\"evil · session</title>"), "the script of a text ran");
        let all = events(&html);
        assert_eq!(events(&dom), all);
        assert!(dom.contains(&format!("{0} of {0} events</output>", all.len())), "the page's own script ran");
    }
}

#[tokio::test(start_paused = true)]
async fn a_browser_shows_the_events_that_the_address_asks_for() {
    let dir = TempDir::new().unwrap();
    let session = sample::haiku(dir.path()).await;
    let (path, _) = page(dir.path(), &session);
    let filters = ["#kind=call", "#author=refine&repeats=1", "#in=refine%20%233", "#q=SPLASH", "#e7"];
    let mut lines = Vec::new();
    for hash in filters {
        let Some(dom) = seen(&path, hash) else { return };
        let count = dom.split("</output>").next().unwrap().rsplit('>').next().unwrap();
        lines.push(format!("{hash:30} {count}: {:?}", events(&dom)));
    }
    insta::assert_snapshot!(lines.join("\n"), @"
    #kind=call                     3 of 18 events: [3, 7, 11]
    #author=refine&repeats=1       1 of 18 events: [10]
    #in=refine%20%233              5 of 18 events: [11, 12, 16, 17, 18]
    #q=SPLASH                      1 of 18 events: [17]
    #e7                            18 of 18 events: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]
    ");
}

#[tokio::test(start_paused = true)]
async fn a_page_never_replaces_a_session() {
    let dir = TempDir::new().unwrap();
    let session = sample::haiku(dir.path()).await;
    let before = fs::read(&session).unwrap();
    insta::assert_snapshot!(refused(dir.path(), &["haiku.jsonl", "--html", "haiku.jsonl"]), @"error: write page `haiku.jsonl`: that is a session file's name; take one that ends in `.html`");
    assert_eq!(fs::read(&session).unwrap(), before);
}
