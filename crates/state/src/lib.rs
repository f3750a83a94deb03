//! What every host of the policy starts from: how the policy is set, and its state of a machine.
//!
//! [`Options`] are what users change on a command line, [`domain_options`] and [`policy_system`] make
//! domains and the policy's state of a machine.

mod options;
mod system;

pub use options::Options;
pub use system::{TooLarge, domain_options, kernel_style, policy_system};
