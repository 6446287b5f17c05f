//! ARCHITECTURE.md says what each dependency is for.

use std::{collections::BTreeSet, error::Error, fs, path::Path, process::Command};

use serde_json::Value;

#[test]
fn each_dependency_has_a_line_and_each_line_a_dependency() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("ARCHITECTURE.md"))?;
    let (_, section) = page.split_once("## Dependencies").ok_or("the section is gone")?;
    let explained = explained(section);
    // The oracle is outside the workspace.
    let used = &used(&root)? | &used(&root.join("agent-providers/oracle"))?;
    assert_eq!(used.difference(&explained).collect::<Vec<_>>(), [""; 0], "used, and not explained");
    assert_eq!(explained.difference(&used).collect::<Vec<_>>(), [""; 0], "explained, and not used");
    Ok(())
}

/// The names in the first column; `a, b (tests)`, `a, b (benches)` and `a, b (oracle)` are two.
fn explained(section: &str) -> BTreeSet<String> {
    let cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let names = cells.flat_map(|cell| cell.split(" (").next().unwrap_or_default().split(", "));
    names.filter(|name| *name != "crate").map(str::to_owned).collect()
}

/// The packages from elsewhere that the crates of a workspace depend on.
fn used(root: &Path) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let mut cargo = Command::new(env!("CARGO"));
    let output =
        cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root).output()?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().ok_or("cargo lists no packages")?;
    let dependencies = packages.iter().filter_map(|package| package["dependencies"].as_array()).flatten();
    let foreign = dependencies.filter(|dependency| dependency["path"].is_null());
    Ok(foreign.filter_map(|dependency| Some(dependency["name"].as_str()?.to_owned())).collect())
}
