//! The verdict as a part of the picture: the worst finding with its fix, and the next ones in a line each.

use super::super::ChartView;
use gpumem_analyzer::{Analysis, Severity};
use gpumem_heap::{Piece, changed};
use gpumem_model::recording::Recording;
use gpumem_scene::label::{Label, MEDIUM, SMALL};
use gpumem_scene::plot::sheet;
use gpumem_scene::{Anchor, Face, Point, Rect, Role, Scene, text};
use gpumem_wording::{OutputLimits, Presentation, Remedy, Sign, healthy, present_verdict};

/// Where words begin, after the sign.
const LEFT: f64 = 44.0;
const RIGHT: f64 = 16.0;
const TITLE: f64 = 20.0;
const ROW: f64 = 32.0;
const CODE_LINE: f64 = 21.0;
/// Beside the code of a fix: its cell and line.
const PLACE: f64 = 98.0;

/// The panel's content, with the colour of its edge. Its description is what it concludes.
pub(super) fn draw(
    recording: &Recording,
    analysis: &Analysis,
    view: &ChartView,
) -> (Scene, Option<Role>) {
    let mut scene = sheet(view.width, 0.0, Role::Panel);
    let verdicts = analysis.verdicts();
    let worst = verdicts.first();
    let worst = worst.filter(|it| it.first().severity > Severity::Info);
    let first = match worst {
        Some(verdict) => present_verdict(recording, verdict, view.units),
        None => healthy(recording, analysis, view.device, view.units),
    };
    draw_head(&mut scene, &first);
    if let Some(remedy) = &first.remedy {
        draw_remedy(&mut scene, remedy);
    }
    draw_reason(&mut scene, &first.reason().plain());
    scene.height += 14.0;
    let others = verdicts.iter().skip(usize::from(worst.is_some()));
    for verdict in others.take(OutputLimits::PICTURE.n_rows) {
        draw_row(&mut scene, &present_verdict(recording, verdict, view.units));
    }
    (scene, Some(role(&first)))
}

/// The colour of its sign.
fn role(finding: &Presentation) -> Role {
    match finding.sign {
        Sign::Alert => Role::Leak,
        Sign::Watch => Role::Watch,
        Sign::Fine => Role::Ok,
        Sign::Note => Role::Muted,
    }
}

fn draw_head(scene: &mut Scene, finding: &Presentation) {
    let (sign, title) = (finding.sign, finding.title.plain());
    let outlook = finding.outlook.clone().capitalised().plain();
    scene.description = format!("{sign} {title}.");
    if !outlook.is_empty() {
        let outlook = outlook.trim_end_matches('.');
        scene.description = format!("{} {outlook}.", scene.description);
    }
    let sign = Label::new(sign.glyph(), Point::new(18.0, 30.0)).size(TITLE - 2.0);
    scene.text(sign.role(role(finding)));
    scene.height = 6.0;
    let room = scene.width - LEFT - RIGHT;
    for line in text::lines(&title, Face::Bold, TITLE, room, 2) {
        scene.height += 25.0;
        let line = Label::new(line, Point::new(LEFT, scene.height));
        scene.text(line.face(Face::Bold).size(TITLE).role(Role::Text));
    }
    for line in text::lines(&outlook, Face::Sans, 14.0, room, 2) {
        scene.height += 22.0;
        let line = Label::new(line, Point::new(LEFT, scene.height));
        scene.text(line.size(14.0).role(Role::Text));
    }
}

/// Where to change what, with what changes marked.
fn draw_remedy(scene: &mut Scene, remedy: &Remedy) {
    let before = remedy.before.as_deref();
    let [old, new] = changed(before.unwrap_or_default(), &remedy.after);
    let (mark, new) = match remedy.reason {
        Some(_) => ("+", new),
        None => ("", vec![vec![(false, &*remedy.after)]]),
    };
    let sides = [("−", Role::Leak, old), (mark, Role::Ok, new)];
    draw_code(scene, remedy, &sides[usize::from(before.is_none())..]);
}

fn draw_reason(scene: &mut Scene, reason: &str) {
    if reason.is_empty() {
        return;
    }
    scene.height += 4.0;
    let room = scene.width - LEFT - RIGHT;
    for line in text::lines(reason, Face::Sans, 13.0, room, 2) {
        scene.height += 18.0;
        scene.text(Label::new(line, Point::new(LEFT, scene.height)).size(13.0));
    }
}

/// One side of a fix: what stands before its lines, its colour, and the lines in pieces.
type FixSide<'a> = (&'a str, Role, Vec<Vec<Piece<'a>>>);

fn draw_code(scene: &mut Scene, remedy: &Remedy, sides: &[FixSide<'_>]) {
    let n_lines = sides
        .iter()
        .map(|(_, _, lines)| lines.len().min(OutputLimits::PICTURE.n_code_lines));
    let n_beside = 1 + usize::from(remedy.line.is_some());
    let n_lines = n_lines.sum::<usize>().max(n_beside);
    let top = scene.height + 12.0;
    let height = n_lines as f64 * CODE_LINE + 14.0;
    let frame = Rect::new(LEFT, top, scene.width - LEFT - RIGHT, height);
    scene.fill(frame, Role::Line, 6.0);
    scene.fill(frame.inset(1.0), Role::Panel, 5.0);
    let beside = Rect::new(LEFT + 1.0, top + 1.0, PLACE, height - 2.0);
    scene.fill(beside, Role::Span, 5.0);
    scene.height = top + 2.0;
    let at = Point::new(LEFT + 12.0, top + 22.0);
    let cell = Label::new(&remedy.place, at).face(Face::Bold).size(MEDIUM);
    scene.text(cell.role(Role::Text).fitted(PLACE - 14.0));
    if let Some(line) = &remedy.line {
        scene.text(Label::new(line, Point::new(at.x, at.y + CODE_LINE)).size(MEDIUM));
    }
    for (mark, role, lines) in sides {
        for pieces in lines.iter().take(OutputLimits::PICTURE.n_code_lines) {
            scene.height += CODE_LINE;
            draw_code_line(scene, (mark, *role), pieces);
        }
    }
    scene.height = top + height;
}

fn draw_code_line(scene: &mut Scene, (mark, role): (&str, Role), pieces: &[Piece<'_>]) {
    let mut at = Point::new(LEFT + PLACE + 14.0, scene.height);
    let mark = Label::new(mark, at).face(Face::Mono).size(13.0);
    scene.text(mark.role(role));
    at.x += 18.0;
    let right = scene.width - RIGHT - 10.0;
    for (is_changed, code) in pieces {
        let code = Label::new(code, at).face(Face::Mono).size(13.0);
        let code = code.fitted((right - at.x).max(0.0));
        let is_new = *is_changed && role == Role::Ok;
        if is_new && !code.is_empty() {
            let behind = Rect::new(at.x - 1.0, at.y - 13.0, code.width() + 2.0, 18.0);
            scene.fill(behind, Role::OkSpan, 3.0);
        }
        at.x += code.width();
        let role = if role == Role::Leak {
            Role::Muted
        } else {
            Role::Text
        };
        scene.text(code.role(role));
    }
}

/// A finding in a line.
fn draw_row(scene: &mut Scene, finding: &Presentation) {
    let line = scene.height + 0.5;
    scene.horizontal(line, (4.0, scene.width - 1.0), Role::Line, 1.0);
    let baseline = scene.height + 21.0;
    let sign = Label::new(finding.sign.glyph(), Point::new(20.0, baseline));
    scene.text(sign.size(13.0).role(role(finding)));
    let at = Point::new(scene.width - RIGHT, baseline);
    let place = Label::new(finding.place.as_deref().unwrap_or_default(), at);
    let place = place.size(MEDIUM).anchor(Anchor::End);
    let room = at.x - place.width() - SMALL - LEFT;
    scene.text(place);
    let row = Label::new(finding.row.plain(), Point::new(LEFT, baseline)).size(13.0);
    scene.text(row.role(Role::Text).fitted(room));
    scene.height += ROW;
}
