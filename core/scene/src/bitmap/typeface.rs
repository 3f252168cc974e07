//! The bundled fonts.

use std::sync::LazyLock;

use ab_glyph::FontRef;
use plotters_backend::{BackendTextStyle, FontFamily, FontStyle};

#[derive(Debug, Clone, Copy)]
pub(super) enum Typeface {
    Sans,
    Bold,
    Mono,
}

impl Typeface {
    pub(super) fn new(style: &impl BackendTextStyle) -> Self {
        match (style.family(), style.style()) {
            (FontFamily::Monospace, _) => Self::Mono,
            (_, FontStyle::Bold) => Self::Bold,
            _ => Self::Sans,
        }
    }

    pub(super) fn font(self) -> &'static FontRef<'static> {
        static FONTS: LazyLock<[FontRef<'static>; 3]> = LazyLock::new(|| {
            let files: [&'static [u8]; 3] = [
                include_bytes!("../fonts/sans.ttf"),
                include_bytes!("../fonts/bold.ttf"),
                include_bytes!("../fonts/mono.ttf"),
            ];
            files.map(|file| FontRef::try_from_slice(file).expect("a bundled font is a font"))
        });
        &FONTS[self as usize]
    }
}
