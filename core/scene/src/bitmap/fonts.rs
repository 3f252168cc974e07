//! The bundled fonts.

use std::sync::LazyLock;

use ab_glyph::FontRef;
use plotters_backend::{BackendTextStyle, FontFamily, FontStyle};

use crate::Face;

pub(super) fn face_of(style: &impl BackendTextStyle) -> Face {
    match (style.family(), style.style()) {
        (FontFamily::Monospace, _) => Face::Mono,
        (_, FontStyle::Bold) => Face::Bold,
        _ => Face::Sans,
    }
}

/// The font of a face.
pub(super) fn font(face: Face) -> &'static FontRef<'static> {
    /// In the order of [`Face`].
    static FONTS: LazyLock<[FontRef<'static>; 3]> = LazyLock::new(|| {
        let files: [&'static [u8]; 3] = [
            include_bytes!("../fonts/sans.ttf"),
            include_bytes!("../fonts/bold.ttf"),
            include_bytes!("../fonts/mono.ttf"),
        ];
        files.map(|file| FontRef::try_from_slice(file).expect("a bundled font is a font"))
    });
    &FONTS[face as usize]
}
