//! The whole session in a strip, with the part that the timeline above it shows.

use std::cell::LazyCell;

use super::device_view::DeviceView;
use super::m4::m4;
use super::timeline::time_scale;
use super::{ChartView, Pace};
use gpumem_analyzer::Analysis;
use gpumem_model::recording::{Recording, Run};
use gpumem_model::units::{Bytes, Nanos};
use gpumem_scene::plot::sheet;
use gpumem_scene::{Point, Rect, Role, Scene};

const HEIGHT: f64 = 38.0;
const TOP: f64 = 5.0;
const BOTTOM: f64 = 29.0;
const COLUMN: f64 = 0.5;
const MARK: f64 = 2.0;

/// The whole session on the view's device, whatever the view's span: the level at the ends of each run.
/// An ongoing run ends at the recording's latest instant.
pub fn minimap(recording: &Recording, analysis: &Analysis, view: &ChartView) -> Scene {
    let mut scene = sheet(view.width, HEIGHT, Role::Panel);
    let whole = ChartView {
        span: None,
        ..view.clone()
    };
    let session = DeviceView::new(recording, analysis, view.device);
    let scale = time_scale(recording, &whole);
    let now = LazyCell::new(|| recording.last_instant());
    let end = |run: &Run| run.ended.unwrap_or_else(|| *now);
    let points: Vec<(Nanos, Bytes)> = session
        .runs()
        .filter_map(|run| Some((run, session.row(run.idx)?)))
        .flat_map(|(run, row)| {
            let (started, ended) = (run.started, end(run));
            let half = Nanos::new(ended.since(started).get() / 2);
            // It is somewhere between the ends.
            let peak = row.peak.map(|peak| (started + half, peak.low()));
            let begun = row.before.map(|level| (started, level));
            let last = row.after.or(row.so_far).map(|level| (ended, level));
            [begun, peak, last].into_iter().flatten()
        })
        .collect();
    let (left, right) = scale.edges();
    let strip = Rect::new(left, TOP, right - left, BOTTOM - TOP);
    scene.fill(strip, Role::Span, 2.0);
    let highest = points.iter().map(|(_, level)| *level).max();
    let top = highest.unwrap_or_default().as_f64().max(1.0) * 1.1;
    let place = |(at, level): &(Nanos, Bytes)| {
        let share = level.as_f64() / top;
        Point::new(scale.x(*at), BOTTOM - share * (BOTTOM - TOP))
    };
    for run in session.runs() {
        // Findings are visible at a glance.
        if let Some(role) = session.role(run.idx) {
            let x = scale.x(run.started);
            let width = (scale.x(end(run)) - x).max(1.0);
            let mark = Rect::new(x, BOTTOM - MARK, width.min(right - x), MARK);
            scene.fill(mark, role, 0.0);
        }
    }
    scene.line(
        m4(points.iter().map(place), COLUMN),
        Role::Device,
        1.2,
        None,
    );
    scene.description = match view.pace {
        Pace::Runs => "The whole session, its pauses folded.".to_owned(),
        Pace::Clock => "The whole session, by the clock.".to_owned(),
    };
    scene
}

#[cfg(test)]
mod tests {
    use super::super::view;
    use super::*;
    use gpumem_analyzer::testing::{leak, run, session};
    use gpumem_model::recording::Status;
    use gpumem_scene::Item;

    #[test]
    fn it_shows_all_of_the_session_whatever_is_looked_at() {
        let (recording, analysis) = session(&[("a()", &[run(10), run(20), run(30)])]);
        let near = ChartView {
            span: Some((Nanos::millis(4000), Nanos::millis(5000))),
            ..view(880.0)
        };
        let drawn = |view: &ChartView| minimap(&recording, &analysis, view).items;
        assert_eq!(drawn(&near), drawn(&view(880.0)));
    }

    #[test]
    fn a_run_that_goes_on_is_drawn_as_far_as_it_was_heard_of() {
        let drawn = |status| {
            let play = run(480).steps(8).status(status);
            let (recording, mut analysis) = session(&[("a()", &[run(200)]), ("b()", &[play])]);
            analysis.findings.push(leak(&recording, 1, 60));
            minimap(&recording, &analysis, &view(880.0)).items
        };
        assert_eq!(drawn(Status::Running), drawn(Status::Ok));
    }

    #[test]
    fn the_runs_of_a_finding_are_marked() {
        let (recording, mut analysis) = session(&[("a()", &[run(10)]), ("b()", &[run(0)])]);
        analysis.findings.push(leak(&recording, 0, 10));
        let scene = minimap(&recording, &analysis, &view(880.0));
        let is_mark = |item: &&Item| item.role() == Role::Leak;
        assert_eq!(scene.items.iter().filter(is_mark).count(), 1);
    }
}
