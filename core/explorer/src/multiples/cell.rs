//! One chart of many: name and level above, the series in front of the others' middle, what is wrong below.

use crate::multiples::MultiplesView;
use crate::process_page::{BadEnd, LevelBand, PageAxis, PageRow, ProcessPage};
use gpumem_analyzer::Severity;
use gpumem_model::units::Bytes;
use gpumem_scene::label::{Label, MEDIUM};
use gpumem_scene::plot::{crisp, steps};
use gpumem_scene::{Anchor, Face, Point, Rect, Role, Scene};
use gpumem_wording::Sign;

/// The plot lies between name and caption.
const TOP: f64 = 20.0;
const PLOT: f64 = 52.0;
const CAPTION: f64 = 15.0;
/// Around a chart that stands out.
const FRAME: f64 = 4.0;
const DOT: f64 = 5.0;
const SIGN: f64 = 15.0;

/// Draws charts layer by layer: what is of one colour is painted as one path.
pub(super) struct MultiplesDrawing<'a> {
    page: &'a ProcessPage,
    bands: &'a [LevelBand],
    view: &'a MultiplesView<'a>,
    span: f64,
    highest: f64,
}

impl<'a> MultiplesDrawing<'a> {
    pub(super) fn new(
        page: &'a ProcessPage,
        bands: &'a [LevelBand],
        view: &'a MultiplesView<'a>,
    ) -> Self {
        Self {
            page,
            bands,
            view,
            span: page.span.as_f64().max(1.0),
            highest: page.highest().as_f64().max(1.0),
        }
    }

    pub(super) fn draw(&self, scene: &mut Scene, cells: &[(Rect, usize)]) {
        self.frames(scene, cells);
        for (rect, _) in cells {
            self.middle_half(scene, plot_of(*rect));
        }
        for (rect, _) in cells {
            self.median(scene, plot_of(*rect));
        }
        for (rect, _) in cells {
            let plot = plot_of(*rect);
            let y = crisp(plot.y + plot.height);
            let (left, right) = (Point::new(plot.x, y), Point::new(plot.x + plot.width, y));
            scene.rule(left, right, Role::Line, 1.0);
        }
        for (rect, row) in cells {
            self.series(scene, plot_of(*rect), &self.page.rows[*row]);
        }
        for (rect, row) in cells {
            self.labels(scene, *rect, &self.page.rows[*row]);
        }
        self.cursor(scene, cells);
    }

    /// Behind charts that somebody chose or points at.
    fn frames(&self, scene: &mut Scene, cells: &[(Rect, usize)]) {
        for (rect, row) in cells {
            let is_chosen = self.view.chosen.contains(row);
            if is_chosen || self.view.pointed == Some(*row) {
                let sheet = scene.area();
                let (left, top) = ((rect.x - FRAME).max(0.0), (rect.y - FRAME).max(0.0));
                let right = (rect.x + rect.width + FRAME).min(sheet.width);
                let bottom = (rect.y + rect.height + FRAME).min(sheet.height);
                let frame = Rect::new(left, top, right - left, bottom - top);
                scene.fill(frame, Role::Hover, 4.0);
                if is_chosen {
                    let mark = Rect::new(left, top, 3.0, bottom - top);
                    scene.fill(mark, Role::Kept, 0.0);
                }
            }
        }
    }

    fn x(&self, plot: Rect, at: f64) -> f64 {
        plot.x + (at / self.span).clamp(0.0, 1.0) * plot.width
    }

    fn y(&self, plot: Rect, level: Bytes) -> f64 {
        plot.y + plot.height - (level.as_f64() / self.highest).clamp(0.0, 1.0) * plot.height
    }

    fn middle_half(&self, scene: &mut Scene, plot: Rect) {
        for (idx, band) in self.bands.iter().enumerate() {
            let next = self.bands.get(idx + 1);
            let left = self.x(plot, band.at.as_f64());
            let right = next.map_or(plot.x + plot.width, |next| self.x(plot, next.at.as_f64()));
            let (top, bottom) = (self.y(plot, band.high), self.y(plot, band.low));
            let rect = Rect::new(left, top, right - left, (bottom - top).max(1.0));
            scene.fill(rect, Role::Back, 0.0);
        }
    }

    fn median(&self, scene: &mut Scene, plot: Rect) {
        let points = self.bands.iter().map(|band| {
            let x = self.x(plot, band.at.as_f64());
            Point::new(x, self.y(plot, band.median))
        });
        scene.line(points.collect(), Role::BackCap, 1.0, None);
    }

    fn series(&self, scene: &mut Scene, plot: Rect, row: &PageRow) {
        let mut points = steps(row.levels.iter().map(|level| {
            let x = self.x(plot, level.at.as_f64());
            Point::new(x, self.y(plot, level.level))
        }));
        if let Some(last) = points.last().copied() {
            let end = self.x(plot, row.end_of_levels().as_f64());
            points.push(Point::new(end, last.y));
        }
        scene.line(points, level_role(row), 1.5, None);
    }

    fn labels(&self, scene: &mut Scene, rect: Rect, row: &PageRow) {
        let (sign, last) = match self.page.axis {
            PageAxis::Time => ("", row.latest),
            PageAxis::Steps => ("+", row.levels.last().map(|it| it.level)),
        };
        let level = match self.view.cursor {
            Some(at) => row.level_at(at),
            None => last,
        };
        let level = match (level, self.view.cursor) {
            (Some(level), _) => format!("{sign}{}", self.view.units.size(level)),
            (None, Some(_)) => "–".to_owned(),
            (None, None) => "?".to_owned(),
        };
        let baseline = rect.y + 12.0;
        let right = Point::new(rect.x + rect.width, baseline);
        let level = Label::new(level, right)
            .anchor(Anchor::End)
            .role(Role::Text);
        let level = level.size(MEDIUM);
        let room = rect.width - level.width() - 8.0;
        let mut left = rect.x;
        if let Some(severity) = row.severity {
            let sign = Label::new(Sign::from(severity).glyph(), Point::new(left, baseline));
            scene.text(sign.role(words_role(severity)).size(MEDIUM));
            left += SIGN;
        }
        let name = Label::new(&row.name, Point::new(left, baseline)).size(MEDIUM);
        let face = if row.severity.is_some() {
            Face::Bold
        } else {
            Face::Sans
        };
        let name = name.face(face).role(Role::Text);
        scene.text(name.fitted((room - (left - rect.x)).max(0.0)));
        scene.text(level);
        let plot = plot_of(rect);
        let below = Point::new(rect.x, plot.y + plot.height + CAPTION);
        let is_ill = row.severity >= Some(Severity::Warning);
        let role = match row.severity {
            Some(severity) if is_ill => words_role(severity),
            _ => Role::Muted,
        };
        let caption = Label::new(row.caption(), below).role(role);
        scene.text(caption.fitted(rect.width));
        self.end_mark(scene, plot, row);
        if row.levels.is_empty() {
            let at = Point::new(plot.x, plot.y + plot.height / 2.0 + 4.0);
            scene.text(Label::new("no levels", at).fitted(plot.width));
        }
    }

    /// Where a process ran out of memory or died.
    fn end_mark(&self, scene: &mut Scene, plot: Rect, row: &PageRow) {
        let Some(end) = row.end else {
            return;
        };
        let last = row.levels.last().map_or(Bytes::ZERO, |point| point.level);
        let x = self.x(plot, row.until.as_f64());
        let y = (self.y(plot, last) + 4.0).clamp(plot.y + 9.0, plot.y + plot.height);
        let role = match end {
            BadEnd::OutOfMemory => Role::LeakText,
            BadEnd::Died => Role::Muted,
        };
        let mark = Label::new("✕", Point::new(x, y))
            .face(Face::Bold)
            .role(role);
        let mark = mark.anchor(Anchor::Middle);
        scene.text(mark.between(plot.x, plot.x + plot.width));
    }

    /// The same instant in all of them.
    fn cursor(&self, scene: &mut Scene, cells: &[(Rect, usize)]) {
        let Some(at) = self.view.cursor else {
            return;
        };
        for (rect, _) in cells {
            let plot = plot_of(*rect);
            let x = crisp(self.x(plot, at.as_f64())).min(plot.x + plot.width);
            let (top, bottom) = (Point::new(x, plot.y), Point::new(x, plot.y + plot.height));
            scene.rule(top, bottom, Role::Muted, 1.0);
        }
        for (rect, row) in cells {
            let plot = plot_of(*rect);
            let row = &self.page.rows[*row];
            if let Some(level) = row.level_at(at) {
                let (x, y) = (self.x(plot, at.as_f64()), self.y(plot, level));
                let half = DOT / 2.0;
                let x = x.clamp(plot.x + half, plot.x + plot.width - half);
                let dot = Rect::new(x - half, y - half, DOT, DOT);
                scene.fill(dot, level_role(row), half);
            }
        }
    }
}

fn plot_of(rect: Rect) -> Rect {
    Rect::new(rect.x, rect.y + TOP, rect.width, PLOT)
}

const fn level_role(row: &PageRow) -> Role {
    match row.severity {
        Some(Severity::Critical) => Role::Leak,
        Some(Severity::Warning) => Role::Watch,
        Some(Severity::Info) | None => Role::Kept,
    }
}

const fn words_role(severity: Severity) -> Role {
    match severity {
        Severity::Critical => Role::LeakText,
        Severity::Warning => Role::Watch,
        Severity::Info => Role::Muted,
    }
}
