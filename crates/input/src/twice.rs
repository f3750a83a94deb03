//! Lists in which nothing may stand twice.

/// The first of a list that has stood there before.
pub fn twice<T: PartialEq>(list: &[T]) -> Option<&T> {
    list.iter().enumerate().find(|(index, one)| list[..*index].contains(one)).map(|(_, one)| one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_is_found() {
        assert_eq!(twice::<u8>(&[]), None);
        assert_eq!(twice(&[1, 2, 3]), None);
        assert_eq!(twice(&[1, 2, 3, 2, 1]), Some(&2));
    }
}
