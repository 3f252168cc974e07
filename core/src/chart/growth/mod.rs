//! The growth chart: what each run kept, from zero, the peak behind it as a ghost.
//!
//! Runs stand in groups, one per cell, a group where its first run was: that a
//! cell keeps the same in each of its runs is seen at once. On demand the bars are
//! the levels after the runs instead, what each run added on top of what was there.

mod groups;
mod hatch;
mod notes;

use groups::{Bar, Group, Mean, Slot, bars, grouped};
use notes::{Note, note};

use super::axis::{ByteAxis, Sign};
use super::device_view::{DeviceView, end_mark};
use super::label::{Label, MEDIUM, Occupied};
use super::plot::{NO_RUNS, Plot, crisp, say, sheet};
use super::scene::{Anchor, Face, Hit, Point, Rect, Role, Scene, Target};
use super::{Measure, View};
use crate::analyze::Analysis;
use crate::recording::Recording;
use crate::units::ByteDelta;
use crate::wording::count;

const HEIGHT: f64 = 214.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 168.0;
const MAX_TICKS: usize = 4;
/// From the plot's lower edge to the line under a group, and to its two lines of text.
const SPAN: f64 = 6.0;
const NAME: f64 = 23.0;
const COUNT: f64 = 38.0;
/// Between the names of two groups.
const NAME_GAP: f64 = 6.0;

/// The growth chart of the view's device: what each run kept, grouped by cell.
/// Example: [the module](super).
pub fn growth(recording: &Recording, analysis: &Analysis, view: &View) -> Scene {
    let mut scene = sheet(view.width, HEIGHT, Role::Panel);
    let session = DeviceView::new(recording, analysis, view.device);
    let plot = Plot::new(scene.width, TOP, BOTTOM);
    let groups = grouped(&session, &plot, view);
    if session.runs().next().is_none() {
        say(&mut scene, NO_RUNS);
        return scene;
    }
    if groups.is_empty() {
        say(&mut scene, "no run was in this time");
        return scene;
    }
    if groups
        .iter()
        .flat_map(|group| &group.slots)
        .all(|slot| slot.kept.is_none() && !slot.runs_still())
    {
        let sentence = format!(
            "what these runs kept on {} is not known",
            session.device_label()
        );
        say(&mut scene, &sentence);
        return scene;
    }
    let mut chart = Chart {
        axis: axis(&groups, &plot, view),
        plot,
        occupied: Occupied::default(),
        scene,
    };
    chart.draw_bands(&groups, view);
    chart
        .plot
        .draw_axis(&mut chart.scene, &chart.axis, MAX_TICKS);
    // What has one colour is drawn in a row: a page paints it at once.
    for group in &groups {
        chart.draw_ghosts(group);
    }
    for group in &groups {
        chart.draw_bars(group);
    }
    chart.draw_names(&groups);
    let notes: Vec<Note> = groups
        .iter()
        .filter_map(|group| note(&session, group, view.units))
        .collect();
    // The worst first: they have the place.
    for note in notes.iter().filter(|note| note.is_finding) {
        chart.draw_note(note, &groups);
    }
    for note in notes.iter().filter(|note| !note.is_finding) {
        chart.draw_note(note, &groups);
    }
    for group in &groups {
        chart.draw_marks(group);
    }
    chart.scene.description = description(&session, &groups, &notes);
    chart.scene
}

fn axis(groups: &[Group], plot: &Plot, view: &View) -> ByteAxis {
    let slots = || groups.iter().flat_map(|group| &group.slots);
    let low = slots().map(Slot::low).fold(0.0, f64::min);
    let high = slots().map(Slot::top).fold(0.0, f64::max);
    let sign = match view.measure {
        Measure::Kept => Sign::Delta,
        Measure::Level => Sign::Level,
    };
    // Some air, so that the highest bar does not touch what is written over it.
    let range = low * 1.08..=high * 1.08;
    ByteAxis::new(range, plot.bottom, plot.top, sign, view.units)
}

fn description(session: &DeviceView<'_>, groups: &[Group], notes: &[Note]) -> String {
    let n_runs = groups.iter().map(|group| group.slots.len()).sum();
    let of = notes
        .iter()
        .map(|note| format!(" {}: {}.", note.name, note.text));
    format!(
        "What each of {} kept on {}.{}",
        count(n_runs, "run"),
        session.device_label(),
        of.collect::<String>()
    )
}

struct Chart {
    plot: Plot,
    axis: ByteAxis,
    occupied: Occupied,
    scene: Scene,
}

impl Chart {
    /// Behind everything: the runs that are pointed at or selected, and what answers to the pointer.
    fn draw_bands(&mut self, groups: &[Group], view: &View) {
        let top = self.plot.top - 16.0;
        for group in groups {
            for (idx, slot) in group.slots.iter().enumerate() {
                let left = group.slot_left(idx);
                let rect = Rect::new(left, top, group.slot_width, self.plot.bottom - top);
                if view.is_selected(slot.run) {
                    self.scene.fill(rect, Role::Hover, 0.0);
                }
                let target = Target::Run(slot.run);
                self.scene.hits.push(Hit { rect, target });
            }
        }
    }

    /// Behind the bars: how high their runs rose.
    fn draw_ghosts(&mut self, group: &Group) {
        let zero = self.axis.y(0.0);
        for bar in bars(group).filter(|bar| bar.peak > 0.0) {
            let top = self.axis.y(bar.peak);
            let ghost = Rect::new(bar.left, top, bar.width, zero - top);
            self.scene.fill(ghost, Role::Ghost, bar.radius());
        }
    }

    fn draw_bars(&mut self, group: &Group) {
        let zero = self.axis.y(0.0);
        for bar in bars(group) {
            self.draw_bar(&bar, zero);
        }
        if let Some(mean) = &group.mean {
            self.draw_mean(group, mean);
        }
        let y = self.plot.bottom + SPAN;
        let role = if group.role == Some(Role::Kept) {
            Role::Line
        } else {
            group.role.unwrap_or(Role::Line)
        };
        self.scene.rule(
            Point::new(group.left, y),
            Point::new(group.right(), y),
            role,
            3.0,
        );
    }

    /// The runs of a cell are one series: what each keeps on the average, and at
    /// its right end the interval of 95 % in which that lies.
    fn draw_mean(&mut self, group: &Group, mean: &Mean) {
        let y = |bytes: ByteDelta| self.axis.y(bytes.as_f64());
        let is_inside = |y: &f64| (self.plot.top..=self.plot.bottom).contains(y);
        // The rate of runs whose own levels are not known may lie far off.
        let Some(middle) = Some(y(mean.value)).filter(is_inside) else {
            return;
        };
        let role = group.role.unwrap_or(Role::Muted);
        let ends = vec![
            Point::new(group.left, middle),
            Point::new(group.right(), middle),
        ];
        self.scene.line(ends, role, 1.5, Some((4.0, 3.0)));
        let Some((low, high)) = mean.interval.map(|(low, high)| (y(low), y(high))) else {
            return;
        };
        if low - high < 3.0 || !is_inside(&low) || !is_inside(&high) {
            return;
        }
        let x = crisp(group.right() - 0.5);
        self.scene
            .rule(Point::new(x, high), Point::new(x, low), role, 1.0);
        for y in [low, high].map(crisp) {
            let cap = [Point::new(x - 3.0, y), Point::new(x + 3.0, y)];
            self.scene.rule(cap[0], cap[1], role, 1.0);
        }
    }

    fn draw_bar(&mut self, bar: &Bar, zero: f64) {
        let radius = bar.radius();
        if bar.is_zero() {
            let y = zero - 1.0;
            let ends = [Point::new(bar.left, y), Point::new(bar.left + bar.width, y)];
            self.scene.rule(ends[0], ends[1], Role::Ok, 3.0);
        }
        if bar.high > 0.0 {
            let top = self.axis.y(bar.high).min(zero - 2.0);
            let kept = Rect::new(bar.left, top, bar.width, zero - top);
            if bar.is_open {
                hatch::hatch(&mut self.scene, kept, bar.role);
            } else {
                self.scene.fill(kept, bar.role, radius);
            }
        }
        if bar.base > 0.0 {
            let top = self.axis.y(bar.base);
            let base = Rect::new(bar.left, top, bar.width, zero - top);
            self.scene.fill(base, Role::Base, 0.0);
        }
        if bar.low < 0.0 {
            let bottom = self.axis.y(bar.low).max(zero + 2.0);
            let given = Rect::new(bar.left, zero, bar.width, bottom - zero);
            self.scene.fill(given, Role::Ok, radius);
        }
    }

    /// The names of the cells and of their runs, each in the width up to the next group. Where
    /// groups are narrower than a name, that of a cell with a finding goes on under the others.
    fn draw_names(&mut self, groups: &[Group]) {
        let plot = self.plot;
        let edges = groups.iter().map(|group| group.left).skip(1);
        let edges: Vec<f64> = edges.chain([plot.right]).collect();
        let is_narrow = |idx: usize| name(&plot, &groups[idx], edges[idx]).is_empty();
        let stands_out = |idx: usize| groups[idx].role.is_some_and(|role| role != Role::Kept);
        let mut free_from = f64::NEG_INFINITY;
        for (idx, group) in groups.iter().enumerate() {
            if group.left < free_from {
                continue;
            }
            free_from = edges[idx];
            if stands_out(idx) && is_narrow(idx) {
                let gives_way = |other: &usize| is_narrow(*other) && !stands_out(*other);
                let others = (idx + 1..groups.len()).take_while(gives_way);
                free_from = edges[others.last().unwrap_or(idx)];
            }
            self.scene.text(name(&plot, group, free_from));
            let at = Point::new(group.left, plot.bottom + COUNT);
            let count = group.counts().into_iter().map(|text| Label::new(text, at));
            let fits = |label: &Label| label.width() <= free_from - group.left - NAME_GAP;
            if let Some(label) = count.into_iter().find(fits) {
                self.scene.text(label);
            }
        }
    }

    /// Over the bars that are under it, on the first line that is free.
    fn draw_note(&mut self, note: &Note, groups: &[Group]) {
        let label = |y: f64| {
            let face = if note.is_finding {
                Face::Bold
            } else {
                Face::Sans
            };
            let label = Label::new(&note.text, Point::new(note.middle, y))
                .anchor(Anchor::Middle)
                .face(face)
                .role(note.role);
            let label = if note.is_finding {
                label.size(MEDIUM)
            } else {
                label
            };
            label
                .fitted(self.plot.width())
                .between(self.plot.left, self.plot.right)
        };
        let extent = label(0.0).bounds();
        let (left, right) = (extent.x, extent.x + extent.width);
        let over = groups
            .iter()
            .flat_map(bars)
            .filter(|bar| bar.left < right && left < bar.left + bar.width)
            .map(|bar| self.axis.y(bar.high.max(bar.peak)))
            .fold(self.plot.bottom, f64::min);
        for line in 0..3_u8 {
            let label = label(over - 6.0 - 15.0 * f64::from(line));
            if label.bounds().y >= 2.0 && self.occupied.take(&label) {
                self.scene.text(label);
                return;
            }
        }
    }

    /// Over the bars of runs that did not end well, or not yet.
    fn draw_marks(&mut self, group: &Group) {
        for (idx, slot) in group.slots.iter().enumerate() {
            let Some((mark, role)) = end_mark(slot.status, group.slot_width) else {
                continue;
            };
            let left = group.slot_left(idx);
            let top = self.axis.y(slot.top());
            let at = Point::new(left + group.slot_width / 2.0, top - 4.0);
            let mark = Label::new(mark, at)
                .anchor(Anchor::Middle)
                .face(Face::Bold)
                .size(MEDIUM)
                .role(role);
            if self.occupied.take(&mark) {
                self.scene.text(mark);
            }
            if slot.runs_still() {
                let y = crisp(self.axis.y(0.0)) - 1.0;
                let ends = vec![Point::new(left, y), Point::new(left + group.slot_width, y)];
                self.scene.line(ends, Role::Process, 2.0, Some((3.0, 3.0)));
            }
        }
    }
}

/// A group's name under its bars, in the width up to `end`.
fn name(plot: &Plot, group: &Group, end: f64) -> Label {
    Label::new(&group.name, Point::new(group.left, plot.bottom + NAME))
        .face(Face::Mono)
        .role(Role::Text)
        .legible_in(end - group.left - NAME_GAP)
}

#[cfg(test)]
mod tests;
