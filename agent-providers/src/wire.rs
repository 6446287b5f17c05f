//! Tolerant reading of JSON.

use serde::{Deserialize, Deserializer};

/// `null` is the default, too.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}
