//! Values of the colour roles.

use crate::Role;
use gpumem_model::named;

/// A colour in sRGB; a [`Theme`] maps roles to these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rgb(pub u8, pub u8, pub u8);

named! {
    /// A set of colours.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Theme {
        /// Dark on light.
        #[default]
        Light = "light",
        /// Light on dark.
        Dark = "dark",
        /// Black on white, for those who ask for more contrast.
        LightContrast = "light-contrast",
        /// White on black, for the same readers.
        DarkContrast = "dark-contrast",
    }
}

impl Theme {
    /// The value of a role.
    pub(super) fn colour(self, role: Role) -> Rgb {
        let [light, dark] = match role {
            Role::Background | Role::Clear => [0xff_ff_ff, 0x11_14_18],
            Role::Panel => [0xff_ff_ff, 0x16_1b_22],
            Role::Text => [0x1f_23_28, 0xe6_ed_f3],
            Role::Muted => [0x59_63_6e, 0x9a_a4_af],
            Role::Line => [0xd8_de_e4, 0x30_36_3d],
            Role::Grid => [0xea_ee_f2, 0x21_26_2d],
            Role::Kept | Role::Process => [0x3f_74_b0, 0x6b_a3_e0],
            Role::KeptFill => [0xea_f1_f8, 0x1f_33_49],
            Role::KeptArea => [0x8f_b1_d8, 0x3d_65_91],
            Role::Back => [0xcb_d9_e9, 0x33_47_5f],
            Role::BackCap => [0x76_90_b0, 0x7d_97_b3],
            Role::CacheArea => [0xef_f3_f7, 0x20_2a_36],
            Role::Leak => [0xc4_43_2b, 0xff_7b_63],
            Role::LeakText => [0xb5_37_1f, 0xff_8e_78],
            Role::LeakFill => [0xf6_d9_d2, 0x5b_2a_20],
            Role::Watch => [0x8f_5f_00, 0xe3_b3_41],
            Role::Ok => [0x1a_7f_37, 0x3f_b9_50],
            Role::Device => [0x8c_95_9f, 0x7d_85_90],
            Role::Hover => [0xee_f3_f9, 0x20_28_35],
            Role::Span => [0xf6_f8_fa, 0x1b_21_29],
            Role::LeakSpan => [0xff_f4_f1, 0x27_18_15],
            Role::OkSpan => [0xda_fb_e1, 0x12_32_1d],
            Role::Word => [0xff_ff_ff, 0x0d_11_17],
            Role::Category(category) => category.colours(),
        };
        let [plain, strong] = match self {
            Self::Light | Self::LightContrast => {
                [light, strong(role, [0x00_00_00, 0xff_ff_ff], light)]
            }
            Self::Dark | Self::DarkContrast => [dark, strong(role, [0xff_ff_ff, 0x00_00_00], dark)],
        };
        Rgb::from_hex(match self {
            Self::Light | Self::Dark => plain,
            Self::LightContrast | Self::DarkContrast => strong,
        })
    }
}

/// The role for more contrast: text and lines in the colour of ink.
fn strong(role: Role, [ink, paper]: [u32; 2], usual: u32) -> u32 {
    match role {
        Role::Background | Role::Panel | Role::Clear => paper,
        Role::Text | Role::Muted | Role::Line => ink,
        Role::Grid => 0x76_76_76,
        _ => usual,
    }
}

impl Rgb {
    const fn from_hex(hex: u32) -> Self {
        let [_, red, green, blue] = hex.to_be_bytes();
        Self(red, green, blue)
    }

    /// Relative luminance as WCAG 2 defines it, from 0 to 1.
    #[cfg(test)]
    fn luminance(self) -> f64 {
        let linear = |channel: u8| match f64::from(channel) / 255.0 {
            c if c <= 0.04045 => c / 12.92,
            c => ((c + 0.055) / 1.055).powf(2.4),
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }
}

#[cfg(test)]
mod tests {
    use crate::category::Category;
    use crate::theme::*;

    #[track_caller]
    fn check(front: Role, behind: &[Role], at_least: f64) {
        use Theme::{Dark, DarkContrast, Light, LightContrast};
        for theme in [Light, Dark, LightContrast, DarkContrast] {
            for &back in behind {
                let [a, b] = [front, back].map(|role| theme.colour(role).luminance() + 0.05);
                let contrast = a.max(b) / a.min(b);
                assert!(
                    contrast >= at_least,
                    "{front:?} on {back:?}, {theme:?}: {contrast:.2}"
                );
            }
        }
    }

    #[test]
    fn text_is_readable_on_what_is_behind_it() {
        let sheets = [Role::Background, Role::Panel];
        for role in [Role::Muted, Role::Kept, Role::Leak, Role::Watch, Role::Ok] {
            check(role, &sheets, 4.5);
        }
        check(Role::Text, &sheets, 7.0);
        check(Role::Text, &[Role::OkSpan], 4.5);
        check(Role::Muted, &[Role::Span, Role::LeakSpan], 4.5);
        check(Role::Leak, &[Role::LeakSpan, Role::Span], 4.5);
        check(Role::Panel, &[Role::Kept, Role::Ok, Role::Muted], 4.5);
        for category in Category::ALL
            .into_iter()
            .filter(|it| *it != Category::Cache)
        {
            check(Role::Word, &[Role::Category(category)], 4.5);
        }
        check(Role::Word, &[Role::Leak, Role::Watch], 4.5);
        check(Role::Text, &[Role::Category(Category::Cache)], 4.5);
        check(Role::LeakText, &[Role::Panel, Role::CacheArea], 4.5);
    }

    #[test]
    fn lines_and_bars_stand_out() {
        for role in [Role::Device, Role::Process, Role::Kept, Role::Leak] {
            check(role, &[Role::Panel], 3.0);
        }
        check(Role::Kept, &[Role::KeptFill, Role::Hover], 3.0);
        check(Role::Leak, &[Role::LeakFill, Role::Hover], 3.0);
        check(Role::BackCap, &[Role::Panel], 3.0);
        for category in Category::ALL
            .into_iter()
            .filter(|it| *it != Category::Cache)
        {
            check(Role::Category(category), &[Role::Panel], 3.0);
        }
    }
}
