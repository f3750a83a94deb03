//! How far apart two CPUs are.

use crate::generated::tables::DISTANCES;
use crate::layout::Distance;

impl Distance {
    /// All distances, the nearest first.
    pub const ALL: [Distance; DISTANCES.len()] =
        [Distance::Same, Distance::Core, Distance::Llc, Distance::Node, Distance::Across];

    /// The name, as in `policy/distances.def`, in small letters.
    pub fn name(self) -> &'static str {
        DISTANCES[self as usize].0
    }

    /// In words.
    pub fn text(self) -> &'static str {
        DISTANCES[self as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_in_the_order_of_the_table() {
        for (i, (distance, (name, _))) in Distance::ALL.iter().zip(DISTANCES).enumerate() {
            assert_eq!((*distance as usize, format!("{distance:?}").to_lowercase()), (i, (*name).to_owned()));
        }
    }
}
