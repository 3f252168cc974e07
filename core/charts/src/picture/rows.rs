//! What each cell kept, as a part of the picture: the panel of the page without its controls.

use super::super::cells::{CellChart, CellLayout, CellRow, HiddenRows};
use super::super::{CellMeasure, ChartView};
use gpumem_model::severity::Severity;
use gpumem_model::units::ByteDelta;
use gpumem_scene::label::{Label, MEDIUM, SMALL};
use gpumem_scene::plot::sheet;
use gpumem_scene::{Anchor, Face, Point, Rect, Role, Scene};
use gpumem_wording::{OutputLimits, Sign};

const PAD: f64 = 12.0;
const TITLE: f64 = 26.0;
const HEADS: f64 = 18.0;
const REST: f64 = 22.0;
const FOOT: f64 = 6.0;
/// The height of a row, at most.
const MAX_ROW: f64 = 34.0;
const BAR: f64 = 8.0;
const SCALE: f64 = 52.0;
/// In one column, the words of a row stand over its chart.
const WORDS: f64 = 20.0;

/// The rows that fit.
pub(super) fn draw(cells: &CellChart, view: &ChartView, room: f64) -> Scene {
    let layout = CellLayout::new(view.width);
    let mut scene = sheet(view.width, TITLE, Role::Panel);
    let title = Label::new("What each cell kept", Point::new(PAD, 18.0));
    let title = title.face(Face::Bold).size(13.0).role(Role::Text);
    draw_legend(&mut scene, cells, PAD + title.width() + 14.0);
    scene.text(title);
    if !layout.is_narrow() {
        draw_heads(&mut scene, layout, view.measure);
    }
    let mut n_shown = 0;
    for row in cells.rows.iter().take(OutputLimits::PICTURE.n_cells) {
        if scene.height + MAX_ROW + REST > room {
            break;
        }
        draw_row(&mut scene, cells, row, layout, view);
        n_shown += 1;
    }
    let rest = HiddenRows {
        rows: &cells.rows[n_shown..],
        n_cells: cells.rows.len(),
    };
    let words = rest.describe(view.units);
    if !words.is_empty() {
        let left = if layout.is_narrow() { PAD } else { PAD + 22.0 };
        let at = Point::new(left, scene.height + 15.0);
        let label = Label::new(words, at).size(MEDIUM);
        scene.text(label.fitted(scene.width - left - PAD));
        scene.height += REST;
    }
    scene.height += FOOT;
    scene
}

fn draw_legend(scene: &mut Scene, cells: &CellChart, left: f64) {
    let mut x = left;
    let leaks = cells.rows.iter().any(|row| row.is_leak);
    let entries = [
        ("▲ leak", Role::Leak),
        ("kept", Role::Kept),
        ("given back", Role::Back),
    ];
    for (words, role) in entries.into_iter().skip(usize::from(!leaks)) {
        let label = Label::new(words, Point::new(x + 15.0, 18.0));
        if x + 15.0 + label.width() > scene.width - PAD {
            return;
        }
        scene.fill(Rect::new(x, 9.0, 10.0, 10.0), role, 2.0);
        x += 15.0 + label.width() + 13.0;
        scene.text(label);
    }
}

fn draw_heads(scene: &mut Scene, layout: CellLayout, measure: CellMeasure) {
    let y = scene.height + 11.0;
    let (words, total) = match measure {
        CellMeasure::Total => (
            "kept so far, run by run; each row has its own height",
            "total",
        ),
        CellMeasure::PerRun => ("kept by each run; each row has its own height", "last run"),
    };
    let words = Label::new(words, Point::new(layout.chart_left(), y));
    scene.text(words.fitted(layout.chart_width()));
    let at = Point::new(total_right(layout), y);
    scene.text(Label::new(total, at).anchor(Anchor::End));
    if layout.name() == "wide" {
        scene.text(Label::new("to scale", Point::new(scale_left(layout), y)));
    }
    scene.height += HEADS;
}

fn total_right(layout: CellLayout) -> f64 {
    layout.chart_right() + 10.0 + 76.0
}

fn scale_left(layout: CellLayout) -> f64 {
    total_right(layout) + 10.0
}

fn draw_row(
    scene: &mut Scene,
    cells: &CellChart,
    row: &CellRow,
    layout: CellLayout,
    view: &ChartView,
) {
    let chart = cells.row_scene(row, layout.chart_width(), view.measure);
    let (top, height) = (scene.height, chart.height);
    let is_narrow = layout.is_narrow();
    let baseline = if is_narrow {
        top + 14.0
    } else {
        top + height / 2.0 + 4.0
    };
    if let Some((sign, severity)) = row.sign {
        let role = match severity {
            _ if sign == Sign::Alert => Role::Leak,
            Severity::Info => Role::Muted,
            _ => Role::Watch,
        };
        let sign = Label::new(sign.glyph(), Point::new(PAD, baseline));
        scene.text(sign.face(Face::Bold).size(MEDIUM).role(role));
    }
    let names_right = if is_narrow {
        layout.chart_right() - 86.0
    } else {
        layout.chart_left() - 10.0
    };
    let number = row
        .execution_count
        .map_or(String::new(), |n| format!("In [{n}]"));
    let number = Label::new(number, Point::new(names_right, baseline)).anchor(Anchor::End);
    let name_left = PAD + 20.0;
    let name = Label::new(&row.name, Point::new(name_left, baseline));
    let name = name.face(Face::Mono).size(MEDIUM).role(Role::Text);
    scene.text(name.legible_in(names_right - number.width() - 8.0 - name_left));
    scene.text(number);
    let (figure, role) = figure(row, view);
    let right = if is_narrow {
        layout.chart_right()
    } else {
        total_right(layout)
    };
    let total = Label::new(figure, Point::new(right, baseline));
    scene.text(
        total
            .face(Face::Bold)
            .size(MEDIUM)
            .role(role)
            .anchor(Anchor::End),
    );
    if layout.name() == "wide" {
        draw_scale(scene, cells, row, (scale_left(layout), top + height / 2.0));
    }
    if !is_narrow {
        let at = Point::new(scene.width - PAD, baseline);
        scene.text(Label::new(&row.state, at).size(SMALL).anchor(Anchor::End));
    }
    let above = if is_narrow { WORDS } else { 0.0 };
    scene.place(chart, layout.chart_left(), top + above);
    scene.height += height + above;
}

fn figure(row: &CellRow, view: &ChartView) -> (String, Role) {
    let change = match view.measure {
        CellMeasure::Total => Some(row.total),
        CellMeasure::PerRun => row.last,
    };
    let words = change.map_or_else(|| "not known".to_owned(), |it| view.units.change(it));
    let role = match change {
        _ if row.is_leak => Role::LeakText,
        Some(change) if change != ByteDelta::ZERO => Role::Text,
        _ => Role::Muted,
    };
    (words, role)
}

fn draw_scale(scene: &mut Scene, cells: &CellChart, row: &CellRow, (x, y): (f64, f64)) {
    let share = row.total.as_f64() / cells.largest().as_f64().max(1.0);
    if share > 0.0 {
        let role = if row.is_leak { Role::Leak } else { Role::Kept };
        let bar = Rect::new(x, y - BAR / 2.0, (share * SCALE).max(2.0), BAR);
        scene.fill(bar, role, 2.0);
    }
}
