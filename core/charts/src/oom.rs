//! Out of memory: who held the device, its end magnified, and the request beyond it.

use super::ChartView;
use super::now::{BarSegment, draw_legend, draw_segment, segments_of_oom};
use gpumem_analyzer::{Analysis, Finding, FindingDetails, OomBreakdown, PartKind};
use gpumem_model::recording::Recording;
use gpumem_model::units::Bytes;
use gpumem_scene::hatch::stripes;
use gpumem_scene::label::{Label, MEDIUM, Occupied};
use gpumem_scene::plot::sheet;
use gpumem_scene::{Anchor, Category, Face, Point, Rect, Role, Scene};

const BAR: f64 = 38.0;
/// Above a bar, for the capacity and its title.
const HEAD: f64 = 20.0;
/// From the first bar to the second, with the lines from one to the other.
const BETWEEN: f64 = 30.0;
/// Below the second bar: the names of parts too narrow for them.
const NAMES: f64 = 18.0;
const REQUEST: f64 = 30.0;
/// The end is magnified if that makes it at least this many times as large.
const WORTH_MAGNIFYING: f64 = 2.0;

/// The chart of an out-of-memory finding; `None` for other findings.
///
/// Two bars on one sheet: the whole device, and its end magnified. It stands where other
/// findings have [`course`](super::course()) and [`outlook`](super::outlook()).
pub fn oom(
    recording: &Recording,
    analysis: &Analysis,
    finding: &Finding,
    view: &ChartView,
) -> Option<Scene> {
    let FindingDetails::OutOfMemory(breakdown) = &finding.details else {
        return None;
    };
    let segments = segments_of_oom(recording, analysis, finding.device, breakdown);
    let in_use = segments.iter().filter(|it| it.category.is_some());
    let used: Bytes = in_use.map(|it| it.size).sum();
    let held: Bytes = segments.iter().map(|it| it.size).sum();
    if held == Bytes::ZERO {
        return None;
    }
    let free = breakdown.free.unwrap_or(held.saturating_sub(used));
    let end = breakdown.wanted.map_or(Bytes::ZERO, |wanted| used + wanted);
    let mut chart = OomChart {
        segments: &segments,
        used,
        limit: used + free,
        end,
        breakdown,
        view,
        scene: sheet(view.width, 0.0, Role::Panel),
    };
    chart.draw(held.max(end));
    let shares = segments
        .iter()
        .map(|it| format!("{} {}", it.name, view.units.size(it.size)));
    chart.scene.description = format!(
        "Who held {} when it ran out: {}.",
        view.units.size(breakdown.room.unwrap_or(held)),
        shares.collect::<Vec<_>>().join(", ")
    );
    Some(chart.scene)
}

struct OomChart<'a> {
    segments: &'a [BarSegment],
    /// What was not free.
    used: Bytes,
    /// How far requests could go.
    limit: Bytes,
    /// How far this one went.
    end: Bytes,
    breakdown: &'a OomBreakdown,
    view: &'a ChartView,
    scene: Scene,
}

impl OomChart<'_> {
    fn draw(&mut self, whole: Bytes) {
        let whole = whole.as_f64();
        // From the cache on, and a quarter more to see what is before it.
        let tail = whole - self.tail().as_f64();
        let from = (self.tail().as_f64() - tail / 4.0).max(0.0);
        let times = whole / (whole - from);
        let first = ByteScale {
            from: 0.0,
            to: whole,
            width: self.scene.width,
        };
        let is_magnified = times >= WORTH_MAGNIFYING;
        self.draw_bar(&first, HEAD, !is_magnified);
        let mut bottom = HEAD + BAR;
        let scale = if is_magnified {
            self.draw_request(&first, (HEAD, BAR));
            let second = ByteScale { from, ..first };
            let top = bottom + BETWEEN + HEAD;
            for (share, x) in [(from, 0.0), (whole, self.scene.width)] {
                let ends = [
                    Point::new(first.x(share), bottom + 3.0),
                    Point::new(x, top - HEAD),
                ];
                self.scene
                    .line(ends.to_vec(), Role::Muted, 1.0, Some((2.0, 3.0)));
            }
            let title = format!("the end of it, {times:.0} times as large");
            let title = Label::new(title, Point::new(0.0, top - 6.0)).size(MEDIUM);
            let title = title.face(Face::Bold).role(Role::Text);
            let room = second.x(self.limit.as_f64()) - 70.0;
            self.scene.text(title.fitted(room));
            self.draw_bar(&second, top, true);
            bottom = top + BAR;
            second
        } else {
            first
        };
        bottom += NAMES;
        if self.end > Bytes::ZERO {
            self.draw_request(&scale, (bottom, REQUEST));
            self.write_request(&scale, bottom);
            bottom += REQUEST;
        }
        let edges = (bottom + 4.0, 0.0);
        let units = self.view.units;
        draw_legend(&mut self.scene, self.segments, (edges, true), units);
    }

    /// Where what the allocator could not use begins.
    fn tail(&self) -> Bytes {
        let kinds = self.segments.iter().filter(|it| it.kind == PartKind::Held);
        kinds.map(|it| it.size).sum()
    }

    /// The parts between the ends of a scale, and the line that requests cannot pass.
    fn draw_bar(&mut self, scale: &ByteScale, top: f64, is_named: bool) {
        let mut taken = Occupied::default();
        if is_named {
            self.draw_beyond(scale, top + BAR, &mut taken);
        }
        let mut left = 0.0;
        for segment in self.segments {
            let right = left + segment.size.as_f64();
            let rect = scale.between(left, right, (top, BAR));
            left = right;
            if rect.width <= 0.0 {
                continue;
            }
            if segment.category.is_none() {
                self.scene.fill(rect, Role::BackCap, 0.0);
                self.scene.fill(rect.inset(1.0), Role::Panel, 0.0);
            }
            let largest = self.breakdown.largest_free;
            let largest = largest.filter(|_| is_named && segment.kind == PartKind::Cache);
            let is_written = match largest {
                Some(largest) => {
                    self.scene.fill(rect, segment.role(), 0.0);
                    self.draw_largest(largest, (scale, rect));
                    false
                }
                None => draw_segment(&mut self.scene, segment, rect, self.view.units),
            };
            if is_named && !is_written && segment.kind != PartKind::Held {
                let size = self.view.units.size(segment.size);
                let largest = largest.map_or_else(String::new, |largest| {
                    format!(", {} in one piece", self.view.units.size(largest))
                });
                let at = Point::new(rect.x, top + BAR + 13.0);
                let label = Label::new(format!("{} {size}{largest}", segment.name), at);
                let label = label.between(0.0, self.scene.width);
                if taken.take(&label) {
                    self.scene.text(label);
                }
            }
        }
        let x = scale.x(self.limit.as_f64());
        let ends = (top - HEAD + 4.0, top + BAR + 4.0);
        self.scene.vertical(x, ends, Role::Text, 1.5);
        let room = self.breakdown.room.unwrap_or(self.limit);
        let words = self.view.units.size(room);
        let label = Label::new(words, Point::new(x - 5.0, top - 6.0)).anchor(Anchor::End);
        let label = label.face(Face::Bold).role(Role::Text).size(MEDIUM);
        self.scene.text(label.between(0.0, self.scene.width));
    }

    /// The missing bytes, below a bar.
    fn draw_beyond(&mut self, scale: &ByteScale, bottom: f64, taken: &mut Occupied) {
        let beyond = self.end.saturating_sub(self.limit);
        let words = match self.breakdown.missing.unwrap_or(beyond) {
            _ if self.end == Bytes::ZERO => return,
            Bytes::ZERO => "enough, but not in one piece".to_owned(),
            missing => format!("{} beyond the end", self.view.units.size(missing)),
        };
        let x = scale.x(self.limit.as_f64());
        let ends = (bottom, bottom + NAMES + 4.0);
        self.scene.vertical(x, ends, Role::Text, 1.5);
        let label = Label::new(words, Point::new(x + 5.0, bottom + 13.0));
        let mut label = label.face(Face::Bold).role(Role::LeakText).size(MEDIUM);
        if x + 5.0 + label.width() > self.scene.width {
            // On the other side of the line.
            label = label.anchor(Anchor::End).between(0.0, x - 5.0);
        }
        taken.take(&label);
        self.scene.text(label);
    }

    /// The largest piece that a request could have, in the middle of the cache.
    fn draw_largest(&mut self, largest: Bytes, (scale, cache): (&ByteScale, Rect)) {
        let width = (scale.x(scale.from + largest.as_f64())).min(cache.width);
        let x = cache.x + (cache.width - width) / 2.0;
        let piece = Rect::new(x, cache.y + 1.0, width, BAR - 2.0);
        self.scene.fill(piece, Role::Category(Category::Cache), 0.0);
        stripes(&mut self.scene, piece, Role::Muted);
        frame(&mut self.scene, piece, Role::Text);
    }

    /// What was wanted: from the end of what was used on.
    fn draw_request(&mut self, scale: &ByteScale, height: (f64, f64)) {
        let rect = scale.between(self.used.as_f64(), self.end.as_f64(), height);
        if rect.width > 0.0 {
            self.scene.fill(rect, Role::Panel, 0.0);
            stripes(&mut self.scene, rect, Role::Leak);
            frame(&mut self.scene, rect, Role::Leak);
        }
    }

    /// `wanted in one piece: 512 MiB`, and how much of it was beyond the end.
    fn write_request(&mut self, scale: &ByteScale, top: f64) {
        let rect = scale.between(self.used.as_f64(), self.end.as_f64(), (top, REQUEST));
        let units = self.view.units;
        let wanted = self.breakdown.wanted.unwrap_or_default();
        let words = format!("wanted in one piece: {}", units.size(wanted));
        let at = Point::new(rect.x + rect.width / 2.0, top + 19.0);
        let label = Label::new(words, at).anchor(Anchor::Middle).size(MEDIUM);
        let label = label.face(Face::Bold).role(Role::LeakText);
        // In what was wanted, or if that is too narrow in front of it.
        let room = label.width() + 16.0;
        let right = if rect.width < room && rect.x > room {
            rect.x - 8.0
        } else {
            self.scene.width - 4.0
        };
        let label = label.between(4.0, right);
        let bounds = label.bounds();
        let behind = Rect::new(bounds.x - 4.0, top + 4.0, bounds.width + 8.0, REQUEST - 8.0);
        self.scene.fill(behind, Role::Panel, 0.0);
        self.scene.text(label);
    }
}

fn frame(scene: &mut Scene, rect: Rect, role: Role) {
    let (left, top) = (rect.x + 0.5, rect.y + 0.5);
    let (right, bottom) = (rect.x + rect.width - 0.5, rect.y + rect.height - 0.5);
    let (from, to) = (Point::new(left, top), Point::new(right, bottom));
    let corners = [
        from,
        Point::new(right, top),
        to,
        Point::new(left, bottom),
        from,
    ];
    scene.line(corners.to_vec(), role, 1.5, None);
}

/// Bytes to places.
#[derive(Clone, Copy)]
struct ByteScale {
    from: f64,
    to: f64,
    width: f64,
}

impl ByteScale {
    fn x(&self, n_bytes: f64) -> f64 {
        (n_bytes - self.from) / (self.to - self.from) * self.width
    }

    /// As far as it is on the scale.
    fn between(&self, from: f64, to: f64, (top, height): (f64, f64)) -> Rect {
        let left = self.x(from).max(0.0);
        let right = self.x(to).min(self.width);
        Rect::new(left, top, (right - left).max(0.0), height)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::view;
    use super::*;
    use gpumem_analyzer::testing::{leak, run, session};
    use gpumem_analyzer::{FindingKind, OomPart, OomShare};
    use gpumem_model::holders::RootKind;
    use gpumem_model::recording::OomHolder;
    use gpumem_scene::draw_log::{assert_sound, draw_log, texts};

    /// What a device of 16 GiB was filled with, in MiB.
    struct Filled<'a> {
        tensors: u64,
        names: &'a [(&'a str, RootKind, u64)],
        cache: u64,
        context: u64,
        free: u64,
        wanted: u64,
    }

    fn drawn(filled: &Filled<'_>, width: f64) -> Option<Scene> {
        let (recording, mut analysis) = session(&[
            ("model = build()", &[run(1200).held_by("model", "Net")]),
            ("losses.append(f(x))", &[run(420).held_by("losses", "list")]),
        ]);
        let mut finding = leak(&recording, 1, 420);
        analysis.findings.push(finding.clone());
        let names = filled.names.iter().map(|(name, kind, used)| OomHolder {
            name: (*name).to_owned(),
            kind: *kind,
            used: Bytes::mib(*used),
            n_storages: 1,
        });
        let parts = [
            (OomPart::Tensors, filled.tensors),
            (OomPart::Cache, filled.cache),
            (OomPart::Context, filled.context),
            (OomPart::Free, filled.free),
        ];
        let parts = parts.map(|(part, size)| OomShare {
            part,
            size: Bytes::mib(size),
        });
        finding.kind = FindingKind::OutOfMemory;
        finding.details = FindingDetails::OutOfMemory(Box::new(OomBreakdown {
            wanted: Some(Bytes::mib(filled.wanted)).filter(|it| *it > Bytes::ZERO),
            free: Some(Bytes::mib(filled.free)),
            room: Some(Bytes::gib(16)),
            missing: Some(Bytes::mib(filled.wanted.saturating_sub(filled.free))),
            largest_free: Some(Bytes::mib(filled.cache / 2)),
            parts: parts
                .into_iter()
                .filter(|it| it.size > Bytes::ZERO)
                .collect(),
            holders: names.collect(),
            ..OomBreakdown::default()
        }));
        oom(&recording, &analysis, &finding, &view(width))
    }

    const USUAL: Filled<'_> = Filled {
        tensors: 15_574,
        names: &[
            ("model", RootKind::Variable, 6_000),
            ("losses", RootKind::Variable, 4_000),
            ("", RootKind::OutputHistory, 288),
        ],
        cache: 244,
        context: 420,
        free: 146,
        wanted: 512,
    };

    #[test]
    fn who_held_what_and_what_was_wanted_beyond_it() {
        let scene = drawn(&USUAL, 940.0).expect("it is known");
        assert_sound(&scene);
        let log = draw_log(&scene);
        // Stripes are many.
        let lines = log.lines().filter(|line| !line.ends_with(", 2 points"));
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn names_below_the_bar_stand_above_the_legend_without_a_request() {
        let narrow = Filled {
            tensors: 0,
            names: &[("losses", RootKind::Variable, 0)],
            cache: 0,
            context: 1,
            free: 6,
            wanted: 0,
        };
        let scene = drawn(&narrow, 300.0).expect("it is known");
        assert!(texts(&scene).contains(&"context and libraries 1 MiB"));
        assert_sound(&scene);
    }

    #[test]
    fn what_is_large_enough_is_not_magnified() {
        let wanted = Filled {
            wanted: 12_000,
            free: 9_000,
            tensors: 6_720,
            names: &[],
            ..USUAL
        };
        let scene = drawn(&wanted, 940.0).expect("it is known");
        let shown = texts(&scene);
        assert!(
            !shown.iter().any(|it| it.contains("times as large")),
            "{shown:?}"
        );
        for words in [
            "in tensors",
            "wanted in one piece: 11.7 GiB",
            "2.93 GiB beyond the end",
        ] {
            assert!(shown.contains(&words), "{words}: {shown:?}");
        }
        assert_eq!(
            drawn(
                &Filled {
                    tensors: 0,
                    cache: 0,
                    context: 0,
                    free: 0,
                    ..wanted
                },
                600.0
            ),
            None
        );
    }

    proptest! {
        #[test]
        fn every_one_is_sound(
            (tensors, named, cache, context) in (0_u64..16_000, 0_u64..16_000, 0_u64..9_000, 0_u64..900),
            (free, wanted) in (0_u64..9_000, 0_u64..99_000),
            width in 300.0..1600.0_f64,
        ) {
            let names: &[_] = &[("losses", RootKind::Variable, named)];
            let filled = Filled { tensors, names, cache, context, free, wanted };
            if let Some(scene) = drawn(&filled, width) {
                assert_sound(&scene);
            }
        }
    }
}
