//! What `make bindings` writes from `policy/`; see `policy/README.md`.

pub mod layout;
#[allow(unreachable_pub)]
pub(crate) mod native;
#[allow(unreachable_pub)]
pub(crate) mod tables;
