use crate::bitmap::palette::N_COLOURS;
use crate::bitmap::*;
use crate::label::Label;
use crate::plot::sheet;
use crate::{Face, Point, Rect, Role, text};

fn painted(item: Item) -> Bitmap {
    let scene = Scene {
        width: 60.0,
        height: 40.0,
        items: vec![item],
        ..Scene::default()
    };
    let mut bitmap = Bitmap::new(scene.device_size(1.0));
    paint(&scene, Theme::Light, 1.0, &mut bitmap).expect("memory takes every pixel");
    bitmap
}

/// Left, top, right and bottom of what is not background, in pixels.
#[track_caller]
fn check(item: Item, expected: [usize; 4]) {
    let bitmap = painted(item);
    let background = Theme::Light.colour(Role::Background);
    let is_drawn = |idx: &usize| bitmap.pixels[*idx] != background;
    let drawn = || (0..bitmap.pixels.len()).filter(is_drawn);
    let (xs, ys) = (
        || drawn().map(|idx| idx % 60),
        || drawn().map(|idx| idx / 60),
    );
    let found = [
        xs().min().expect("something is drawn"),
        ys().min().expect("something is drawn"),
        xs().max().expect("something is drawn") + 1,
        ys().max().expect("something is drawn") + 1,
    ];
    assert_eq!(found, expected);
}

#[test]
fn shapes_cover_their_pixels() {
    let role = Role::Text;
    let rect = Rect::new(10.0, 12.0, 20.0, 8.0);
    check(
        Item::Fill {
            rect,
            role,
            radius: 0.0,
        },
        [10, 12, 30, 20],
    );
    check(
        Item::Fill {
            rect,
            role,
            radius: 3.0,
        },
        [10, 12, 30, 20],
    );
    let line = |points: &[(f64, f64)]| Item::Line {
        points: points.iter().map(|&(x, y)| Point::new(x, y)).collect(),
        role,
        width: 1.0,
        dash: None,
    };
    check(line(&[(5.0, 10.5), (50.0, 10.5)]), [5, 10, 50, 11]);
    check(line(&[(20.5, 5.0), (20.5, 30.0)]), [20, 5, 21, 30]);
    check(
        line(&[(10.0, 10.0), (20.0, 20.0), (30.0, 10.0)]),
        [9, 9, 31, 21],
    );
}

#[test]
fn letters_stand_on_their_baseline() {
    // 7.29 px of capital letter at 10 px, in DejaVu.
    let letter = Label::new("H", Point::new(20.0, 30.0)).role(Role::Text);
    check(Item::Text(letter.size(10.0)), [20, 22, 27, 30]);
}

#[test]
fn the_table_of_widths_is_that_of_the_fonts() {
    for face in [Face::Sans, Face::Bold, Face::Mono] {
        let font = font(face);
        let units = font.units_per_em().expect("it has an em");
        for letter in (' '..='~').chain(['…', '▲', '◆', '○', '·', '−', '±', '×', '■'])
        {
            let glyph = font.glyph_id(letter);
            assert_ne!(glyph.0, 0, "{letter:?} is not in {face:?}");
            let advance = f64::from(font.h_advance_unscaled(glyph) / units) * 1000.0;
            let measured = text::width(&letter.to_string(), face, 1000.0);
            let is_exact = letter.is_ascii() || letter == '…';
            let over = measured - advance;
            assert!(
                over >= -110.0 && (over <= 0.5 || !is_exact),
                "{letter:?}: {over}"
            );
        }
    }
}

#[test]
fn flat_colours_are_exact_and_few() {
    let mut scene = sheet(400.0, 200.0, Role::Panel);
    let roles = [Role::Kept, Role::KeptFill, Role::Back];
    for (n, role) in roles.into_iter().enumerate() {
        let x = 100.0 * n as f64;
        scene.fill(Rect::new(x, 20.0, 80.0, 100.0), role, 4.0);
        scene.text(Label::new("+420 MiB a run", Point::new(x, 150.0)));
    }
    let mut bitmap = Bitmap::new(scene.device_size(2.0));
    paint(&scene, Theme::Light, 2.0, &mut bitmap).expect("memory takes every pixel");
    let flat = flat_colours(&scene, Theme::Light);
    let palette = Palette::new(&bitmap.pixels, &flat);
    assert!(palette.0.len() <= N_COLOURS);
    for role in [Role::Panel, Role::Kept, Role::KeptFill, Role::Back] {
        assert!(palette.0.contains(&Theme::Light.colour(role)), "{role:?}");
    }
}
