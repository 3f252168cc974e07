//! The picture of a session as PNG.

use gpumem_analyzer::testing::{leak, run, session};
use gpumem_charts::report;
use gpumem_scene::{Theme, png};

#[test]
fn the_picture_of_a_session_fits_a_notebook() {
    let plays: Vec<_> = (0..7).map(|_| run(420).peak(950).sampled(40)).collect();
    let (recording, mut analysis) = session(&[
        ("model = build()", &[run(1200).peak(1250).sampled(30)]),
        ("losses.append(model(batch).sum())", &plays),
        ("validate(model, loader)", &plays),
        ("cache = warm(model)", &[run(600), run(120), run(0), run(0)]),
    ]);
    analysis.findings = (0..4).map(|cell| leak(&recording, cell, 420)).collect();
    let bytes = png(&report(&recording, &analysis, 880.0), Theme::Light, 2.0);
    let base64 = bytes.len().div_ceil(3) * 4;
    assert!(base64 <= 90_000, "{base64} bytes");
    let picture = png::Decoder::new(std::io::Cursor::new(&bytes));
    let reader = picture.read_info().expect("it is a PNG");
    assert_eq!(reader.info().width, 1760);
}
