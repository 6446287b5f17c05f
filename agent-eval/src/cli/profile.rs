//! Profiles: settings with a name, in `.config/agent-eval.toml`.

use std::{collections::BTreeMap, ops::Range, path::Path};

use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeTable, DeValue, Deserializer},
};

use super::{
    codes::{Fault, Outcome},
    settings::{Settings, Verdicts},
};
use crate::{
    load::{read_text, unknown_name},
    text::{listed, nearest},
};

/// Where profiles are, in the project's folder.
pub(super) const FILE: &str = ".config/agent-eval.toml";
/// The profile that all others stand on.
const DEFAULT: &str = "default";

/// Settings with a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Profile {
    pub(super) settings: Settings,
    pub(super) verdicts: Verdicts,
}

impl Profile {
    /// All profiles, each alone.
    pub(super) fn all(root: &Path) -> Outcome<BTreeMap<String, Self>> {
        let path = root.join(FILE);
        if path.exists() { profiles(&path) } else { Ok(BTreeMap::new()) }
    }

    /// The profile of this name, over the one named `default`. Without a name, `default` alone, if there is one.
    pub(super) fn read(root: &Path, name: Option<&str>) -> Outcome<Self> {
        let path = root.join(FILE);
        let mut profiles = Self::all(root)?;
        let default = profiles.get(DEFAULT).cloned().unwrap_or_default();
        let Some(name) = name.filter(|name| *name != DEFAULT) else { return Ok(default) };
        let Some(profile) = profiles.remove(name) else {
            let known = profiles.keys().map(String::as_str);
            let hint = match nearest(name, known.clone()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if profiles.is_empty() => format!("write `[profile.{name}]` into it"),
                None => format!("known are {}", listed(known)),
            };
            return Err(Fault::setup(format!("use the profile `{name}`: {} has none; {hint}", path.display())));
        };
        Ok(Self { settings: profile.settings.or(default.settings), verdicts: profile.verdicts.or(default.verdicts) })
    }
}

/// All profiles of a file.
fn profiles(path: &Path) -> Outcome<BTreeMap<String, Profile>> {
    let file = File { name: path.display().to_string(), text: read_text(path)? };
    let root = DeTable::parse(&file.text).map_err(|error| file.fault(&error))?;
    let mut profiles = BTreeMap::new();
    for (key, value) in root.into_inner() {
        if key.get_ref() != "profile" {
            let what = format!("unknown table `{}`; write `[profile.NAME]`", key.get_ref());
            return Err(file.at(key.span(), &what));
        }
        for (name, profile) in file.table(value)?.into_inner() {
            profiles.insert(name.get_ref().to_string(), file.profile(file.table(profile)?)?);
        }
    }
    Ok(profiles)
}

/// A message about a type, as one would say it.
fn in_words(message: &str) -> String {
    let number = ["a nonzero u32", "usize", "u32", "u64"].iter().find(|number| message.ends_with(**number));
    let text = number.map(|number| format!("{}a whole number", message.trim_end_matches(number)));
    text.unwrap_or_else(|| message.replace("a sequence", "a list"))
}

struct File {
    name: String,
    text: String,
}

impl File {
    fn table<'a>(&self, value: Spanned<DeValue<'a>>) -> Outcome<Spanned<DeTable<'a>>> {
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Ok(Spanned::new(span, table)),
            other => {
                Err(self.at(span, &format!("expected a table, found {}; write `[profile.NAME]`", other.type_str())))
            }
        }
    }

    /// How a run goes and what is judged of it are told apart here, and not in the file.
    fn profile(&self, table: Spanned<DeTable<'_>>) -> Outcome<Profile> {
        let span = table.span();
        let (verdicts, settings) =
            table.into_inner().into_iter().partition(|(key, _)| Verdicts::KEYS.contains(&key.get_ref().as_ref()));
        Ok(Profile {
            settings: self.read(Spanned::new(span.clone(), settings))?,
            verdicts: self.read(Spanned::new(span, verdicts))?,
        })
    }

    fn read<T: DeserializeOwned>(&self, table: Spanned<DeTable<'_>>) -> Outcome<T> {
        T::deserialize(Deserializer::from(table)).map_err(|error| self.fault(&error))
    }

    fn fault(&self, error: &toml::de::Error) -> Fault {
        let what = unknown_name(error.message(), &Verdicts::KEYS).unwrap_or_else(|| in_words(error.message()));
        self.at(error.span().unwrap_or(0..0), &what)
    }

    fn at(&self, span: Range<usize>, what: &str) -> Fault {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
        Fault::setup(format!("{}:{line}:{column}: {what}", self.name))
    }
}
