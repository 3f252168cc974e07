//! A scene on a plotters backend.

use plotters::prelude::DrawingBackend;

use super::scene::Scene;
use super::theme::Theme;

/// Paints `scene` with `scale` device pixels per logical pixel.
pub fn paint<B: DrawingBackend>(
    scene: &Scene,
    theme: Theme,
    scale: f64,
    backend: &mut B,
) -> Result<(), String> {
    let _ = (scene, theme, scale, backend);
    unimplemented!("chart")
}

/// The scene as an SVG document.
pub fn svg(scene: &Scene, theme: Theme) -> String {
    let _ = (scene, theme);
    unimplemented!("chart")
}
