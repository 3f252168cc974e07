//! `nvidia-smi` as far as `tests/cuda` asks it: the columns of GPUs or of processes that
//! `--query-gpu=…` or `--query-compute-apps=…` name, of the GPU that `--id=…` names.

#![cfg_attr(not(target_os = "linux"), no_main)]
#![cfg(target_os = "linux")]

use std::process::ExitCode;

use played_machine::{Device, State, gpus, processes};

fn main() -> ExitCode {
    let options: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| options.iter().find_map(|it| it.strip_prefix(name));
    let state = State::now();
    let is_selected = |device: &Device| option("--id=").is_none_or(|id| device.uuid(&state) == id);
    for device in gpus(&state).filter(is_selected) {
        if let Some(columns) = option("--query-gpu=") {
            println!("{}", row(columns, |column| of_gpu(&state, device, column)));
        } else if let Some(columns) = option("--query-compute-apps=") {
            for process in processes(&state, device, "computing") {
                let figure = |column: &str| match column {
                    "pid" => process.pid.to_string(),
                    "used_gpu_memory" => mib(process.used),
                    _ => unsupported(),
                };
                println!("{}", row(columns, figure));
            }
        } else {
            println!("{}", device.name(&state));
        }
    }
    ExitCode::SUCCESS
}

fn row(columns: &str, figure: impl Fn(&str) -> String) -> String {
    let figures: Vec<String> = columns.split(',').map(figure).collect();
    figures.join(", ")
}

fn of_gpu(state: &State, device: Device, column: &str) -> String {
    match column {
        "index" => device.gpu.to_string(),
        "uuid" => device.uuid(state),
        "name" => device.name(state),
        "memory.total" => mib(device.total(state)),
        "memory.used" => mib(device.used(state)),
        _ => unsupported(),
    }
}

fn mib(n_bytes: u64) -> String {
    match n_bytes {
        u64::MAX => "[N/A]".to_owned(),
        n_bytes => (n_bytes >> 20).to_string(),
    }
}

fn unsupported() -> String {
    "[Not Supported]".to_owned()
}
