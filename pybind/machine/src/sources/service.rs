//! CUDA's multi-process service (MPS), which may let a process have only a part of a device.

use std::env;
use std::path::PathBuf;

use gpumem_model::units::Bytes;

use super::SourceDevice;

/// What the service lets this process have of a device, where one runs here.
pub(super) fn limit(found: &SourceDevice) -> Option<Bytes> {
    let limits = env::var("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT").ok()?;
    let pipes = env::var_os("CUDA_MPS_PIPE_DIRECTORY").unwrap_or_else(|| "/tmp/nvidia-mps".into());
    // Without a service the variable limits nothing.
    if !PathBuf::from(pipes).join("control").exists() {
        return None;
    }
    let ordinal = found.label.strip_prefix("cuda:")?;
    let of_device = limits.split(',').filter_map(|part| {
        let (device, limit) = part.split_once('=')?;
        let device = device.trim();
        let is_it = device == ordinal || device == found.key.as_str();
        is_it.then(|| bytes(limit))?
    });
    of_device.min()
}

/// `512M`, `1G`, also as `512MB`.
fn bytes(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let n_digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(n_digits);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "G" | "GB" => 30,
        "M" | "MB" => 20,
        _ => return None,
    };
    let n_bytes = number.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    Some(Bytes::new(n_bytes))
}
