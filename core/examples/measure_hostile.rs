#![allow(missing_docs)]
#[allow(unreachable_pub, dead_code)]
#[path = "../tests/hostile/recordings.rs"]
mod recordings;
use gpumem_core::analyze::{Rules, analyze};
use gpumem_core::recording::{Frame, Recording};
use gpumem_core::{chart, format, json, report};
use std::time::Instant;
fn timed<T>(name: &str, body: impl FnOnce() -> T) -> T {
    let t = Instant::now();
    let out = body();
    eprintln!("  {name:>10}: {:.3} s", t.elapsed().as_secs_f64());
    out
}
fn all(recording: &Recording) {
    let bytes = timed("encode", || format::encode(recording));
    let recording = timed("decode", || format::decode(&bytes).unwrap());
    let analysis = timed("analyze", || analyze(&recording, &Rules::default()));
    let text = timed("text", || report::text(&recording, &analysis, 100));
    eprintln!("   text {} lines", text.lines().count());
    let j = timed("json", || json::report_json(&recording, &analysis));
    eprintln!("   json {} MB", j.len() / 1_000_000);
    let scene = timed("scene", || chart::report(&recording, &analysis, 900.0));
    eprintln!("   height {} items {}", scene.height, scene.items.len());
    let s = timed("svg", || chart::svg(&scene, chart::Theme::Light));
    eprintln!("   svg {} kB", s.len() / 1000);
    #[cfg(feature = "bitmap")]
    {
        if scene.height < 20000.0 {
            let p = timed("png", || chart::png(&scene, chart::Theme::Light, 2.0));
            eprintln!("   png {} kB", p.len() / 1000);
        }
    }
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let n: u32 = args[2].parse().unwrap();
    match args[1].as_str() {
        "nested" => all(&timed("build", || recordings::nested(n, true))),
        "falling" => {
            let frames: Vec<Frame> = recordings::falling(n);
            let bytes = format::encode_frames(frames);
            let r = timed("decode", || format::decode(&bytes).unwrap());
            all(&r);
        }
        "crowded" => all(&timed("build", || {
            recordings::crowded(n, args[3].parse().unwrap())
        })),
        "open" => all(&timed("build", || recordings::nested(n, false))),
        "edited" => all(&timed("build", || recordings::edited(n))),
        "cells" => all(&timed("build", || {
            recordings::cells(n, args[3].parse().unwrap())
        })),
        _ => {}
    }
}
