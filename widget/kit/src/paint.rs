//! A scene on a canvas of its own size.

use gpumem_core::chart::{self, Scene, Theme};
use wasm_bindgen::JsValue;
use web_sys::{Element, HtmlCanvasElement};

use crate::canvas::{Canvas, Faces};
use crate::dom::Dom;

/// Paints a scene on a canvas of its own size.
#[inline]
pub fn paint_scene(
    canvas: &HtmlCanvasElement,
    scene: &Scene,
    theme: Theme,
    scale: f64,
    faces: &Faces,
) -> Dom<()> {
    let canvas = Canvas::of(canvas, scene.device_size(scale), faces);
    let mut canvas = canvas.ok_or("the page gives no drawing context")?;
    let painted = chart::paint(scene, theme, scale, &mut canvas);
    Ok(painted.map_err(|error| JsValue::from(error.to_string()))?)
}

/// A length of the style sheet.
#[inline]
pub fn px(length: f64) -> String {
    format!("{length:.2}px")
}

/// The faces that the page's style gives text and code.
#[inline]
pub fn faces(root: &Element) -> Dom<Faces> {
    let window = web_sys::window().ok_or("no window")?;
    let style = window.get_computed_style(root)?.ok_or("no style")?;
    let face = |name: &str, otherwise: &str| {
        let found = style.get_property_value(name).unwrap_or_default();
        if found.trim().is_empty() {
            otherwise.to_owned()
        } else {
            found
        }
    };
    Ok(Faces {
        sans: face("font-family", "sans-serif"),
        mono: face("--mono", "monospace"),
    })
}
