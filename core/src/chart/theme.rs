//! Values of the colour roles.

use super::scene::Role;

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// A set of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// Dark on light.
    #[default]
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    /// The value of a role.
    pub fn colour(self, role: Role) -> Rgb {
        let _ = role;
        unimplemented!("chart")
    }
}
