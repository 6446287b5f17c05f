//! The ids of runs and events.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use uuid::Uuid;

/// An id that is greater than all that this process made before: a UUID of version 7 (RFC 9562) whose random part is
/// the process's own, counted up (section 6.2, method 2). So a process asks the system for randomness once, not for
/// each event.
pub(crate) fn next() -> Uuid {
    static IDS: LazyLock<Ids> = LazyLock::new(|| Ids::after(Uuid::now_v7()));
    IDS.next()
}

struct Ids {
    /// Random bits. The first is not set (see [`uuid::timestamp::context::ContextV7`]), so that counting does not overflow.
    random: u128,
    count: AtomicU64,
    /// The latest time of an id, in milliseconds since 1970: a clock that is set back does not bring ids back.
    millis: AtomicU64,
}

/// How many of the 74 random bits stand behind the variant; the others stand before it.
const TAIL: u32 = 62;
const HEAD: u32 = 12;

impl Ids {
    /// Ids that follow this one of version 7.
    fn after(first: Uuid) -> Self {
        let first = first.as_u128();
        let random = (bits(first >> 64, HEAD) << TAIL) | bits(first, TAIL);
        Self { random, count: AtomicU64::new(1), millis: AtomicU64::default() }
    }

    fn next(&self) -> Uuid {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = now.as_secs() * 1000 + u64::from(now.subsec_millis());
        let millis = self.millis.fetch_max(now, Relaxed).max(now);
        let random = self.random + u128::from(self.count.fetch_add(1, Relaxed));
        let (version, variant) = (7 << 76, 0b10 << TAIL);
        let (head, tail) = (bits(random >> TAIL, HEAD) << 64, bits(random, TAIL));
        Uuid::from_u128((u128::from(millis) << 80) | version | head | variant | tail)
    }
}

/// The last `count` bits.
fn bits(number: u128, count: u32) -> u128 {
    number & ((1 << count) - 1)
}

#[cfg(test)]
mod tests {
    use super::{AtomicU64, Ids, next};
    use uuid::{Uuid, Variant, Version};

    #[test]
    fn ids_rise_and_are_of_version_7_with_the_time() {
        let before = Uuid::now_v7();
        let ids: Vec<Uuid> = (0..10_000).map(|_| next()).collect();
        let after = Uuid::now_v7();
        assert!(ids.is_sorted_by(|a, b| a < b));
        for id in ids {
            assert_eq!((id.get_version(), id.get_variant()), (Some(Version::SortRand), Variant::RFC4122));
            let millis = |id: Uuid| id.as_u128() >> 80;
            assert!((millis(before)..=millis(after)).contains(&millis(id)), "{id} between {before} and {after}");
        }
    }

    #[test]
    fn ids_rise_where_the_count_carries_and_when_the_clock_is_set_back() {
        let first: Uuid = "01890a5d-ac96-7000-bfff-fffffffffffe".parse().unwrap();
        let ids = Ids { millis: AtomicU64::new(0xffff_ffff_ffff), ..Ids::after(first) };
        let made = [ids.next(), ids.next(), ids.next()].map(|id| id.to_string());
        assert_eq!(
            made,
            [
                "ffffffff-ffff-7000-bfff-ffffffffffff",
                "ffffffff-ffff-7001-8000-000000000000",
                "ffffffff-ffff-7001-8000-000000000001",
            ]
        );
    }
}
