//! Which sets of features are checked.

use serde_json::Value;

use crate::command::Cargo;

/// A lint of each crate alone, as its users build it: in a workspace build the features that other members ask of a
/// shared dependency hide what a crate forgot to ask for itself.
pub(crate) fn lints() -> Result<Vec<Cargo>, String> {
    let metadata = Cargo::new("metadata --no-deps --format-version 1 --quiet").output()?;
    let metadata: Value =
        serde_json::from_slice(&metadata).map_err(|error| format!("read cargo's metadata: {error}"))?;
    let packages = metadata["packages"].as_array().ok_or("read cargo's metadata: it lists no packages")?;
    Ok(packages.iter().flat_map(lints_of).collect())
}

fn lints_of(package: &Value) -> Vec<Cargo> {
    let name = package["name"].as_str().unwrap_or_default();
    let features = package["features"].as_object();
    let features: Vec<&str> = features
        .into_iter()
        .flat_map(|features| features.keys())
        .map(String::as_str)
        .filter(|f| *f != "default")
        .collect();
    let mut sets = Vec::new();
    if !features.is_empty() {
        sets.push(" --no-default-features".to_owned());
    }
    // A crate's only feature is all of them.
    if features.len() > 1 {
        sets.extend(features.iter().map(|feature| format!(" --no-default-features --features {feature}")));
    }
    sets.push(" --all-features --all-targets".to_owned());
    sets.into_iter().map(|set| Cargo::new(&format!("clippy -p {name}{set} -- -D warnings"))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::lints_of;

    fn lints(features: &serde_json::Value) -> Vec<String> {
        lints_of(&json!({ "name": "a", "features": features })).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_crate_without_features_is_linted_once() {
        assert_eq!(lints(&json!({})), ["cargo clippy -p a --all-features --all-targets -- -D warnings"]);
    }

    #[test]
    fn an_only_feature_is_linted_off_and_on() {
        assert_eq!(
            lints(&json!({ "default": ["x"], "x": [] })),
            [
                "cargo clippy -p a --no-default-features -- -D warnings",
                "cargo clippy -p a --all-features --all-targets -- -D warnings",
            ]
        );
    }

    #[test]
    fn each_of_several_features_is_linted_alone() {
        assert_eq!(
            lints(&json!({ "default": ["x"], "x": [], "y": [] })),
            [
                "cargo clippy -p a --no-default-features -- -D warnings",
                "cargo clippy -p a --no-default-features --features x -- -D warnings",
                "cargo clippy -p a --no-default-features --features y -- -D warnings",
                "cargo clippy -p a --all-features --all-targets -- -D warnings",
            ]
        );
    }
}
