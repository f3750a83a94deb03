//! What every host of the policy starts from: the policy's settings, and its state of a machine.
//!
//! [`Options`] are the changes that users make on a command line; [`domain_options`] and
//! [`policy_system`] create the domains and the policy's state of a machine.

mod options;
mod system;

pub use options::Options;
pub use system::{TooLarge, domain_options, kernel_style, policy_system};
