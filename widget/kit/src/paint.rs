//! A scene on a canvas of its own size.

use gpumem_scene as scene;
use gpumem_scene::{Scene, Theme};
use wasm_bindgen::UnwrapThrowExt;
use web_sys::{Element, HtmlCanvasElement};

use crate::canvas::{Canvas, Faces};
use crate::dom::{or_throw, set_style};

/// Paints a scene on a canvas, which takes its size.
pub fn paint_scene(
    canvas: &HtmlCanvasElement,
    scene: &Scene,
    theme: Theme,
    scale: f64,
    faces: &Faces,
) {
    set_style(canvas, "width", &px(scene.width));
    set_style(canvas, "height", &px(scene.height));
    let canvas = Canvas::new(canvas, scene.device_size(scale), faces);
    let mut canvas = canvas.expect_throw("the page gives no drawing context");
    scene::paint(scene, theme, scale, &mut canvas).expect_throw("the canvas takes every scene");
}

/// A length of the style sheet.
pub fn px(length: f64) -> String {
    format!("{length:.2}px")
}

/// The faces that the page's style gives text and code.
pub fn faces(root: &Element) -> Faces {
    let window = web_sys::window().expect_throw("no window");
    let style = or_throw(window.get_computed_style(root)).expect_throw("no style");
    let face = |name: &str, otherwise: &str| {
        let found = style.get_property_value(name).unwrap_or_default();
        if found.trim().is_empty() {
            otherwise.to_owned()
        } else {
            found
        }
    };
    Faces {
        sans: face("font-family", "sans-serif"),
        mono: face("--mono", "monospace"),
    }
}
