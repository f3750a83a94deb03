//! Removing domains that contribute nothing (`cpu_attach_domain`).

use super::Group;
use super::flags::SdFlags;
use super::levels::RawDomain;

/// Drops the superfluous domains of one CPU. What a dropped domain stood for passes to its
/// child, and the group above takes the flags of the domain that it now stands on.
pub(super) fn attach(chain: &mut Vec<RawDomain>, groups: &mut [Group]) {
    let mut index = 0;
    while index + 1 < chain.len() {
        if !parent_is_superfluous(&chain[index], &chain[index + 1]) {
            index += 1;
            continue;
        }
        let parent = chain.remove(index + 1);
        let child = &mut chain[index];
        let child_flags = child.flags;
        child.flags |= parent.flags & SdFlags::PREFER_SIBLING;
        if let Some(&local) = chain.get(index + 1).and_then(|domain| domain.groups.first()) {
            groups[local].flags = child_flags;
        }
    }
    if chain.first().is_some_and(is_superfluous) {
        chain.remove(0);
        if let Some(&local) = chain.first().and_then(|domain| domain.groups.first()) {
            groups[local].flags = SdFlags::empty();
        }
    }
}

/// A domain of one CPU, or one that has nothing to balance between and no wakeup to steer.
fn is_superfluous(domain: &RawDomain) -> bool {
    let balances = domain.groups.len() > 1 && domain.flags.intersects(SdFlags::NEEDS_GROUPS);
    domain.span.len() == 1 || !(balances || domain.flags.contains(SdFlags::WAKE_AFFINE))
}

/// A parent that spans no more than its child and has no flag beyond the child's.
fn parent_is_superfluous(child: &RawDomain, parent: &RawDomain) -> bool {
    if is_superfluous(parent) {
        return true;
    }
    let flags = match parent.groups.len() {
        1 => parent.flags & !SdFlags::NEEDS_GROUPS,
        _ => parent.flags,
    };
    child.span == parent.span && child.flags.contains(flags)
}
