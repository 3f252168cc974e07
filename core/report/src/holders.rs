//! The holders of a device in words: one line per name, with its branches below it.

use super::{cut, to_text};
use gpumem_heap::Holders;
use gpumem_model::holders::{DeviceHolders, Holder, HolderBranch, Remainder, SharedMemory};
use gpumem_model::printable::printable;
use gpumem_model::units::count_of;

/// The holders as text, at most `width` columns wide; `name` and `device` restrict it to one of them.
pub fn holders(
    holders: &Holders,
    name: Option<&str>,
    device: Option<&str>,
    width: usize,
) -> String {
    let devices = holders.devices.iter();
    let wanted = devices.filter(|it| device.is_none_or(|label| label == it.device));
    let parts: Vec<String> = wanted.filter_map(|it| on_device(it, name, width)).collect();
    match (parts.is_empty(), name) {
        (false, _) => to_text(&parts),
        (true, Some(name)) => format!("{} holds no device memory", printable(name)),
        (true, None) => "no name holds device memory".to_owned(),
    }
}

/// `None` if the name holds nothing on this device.
fn on_device(holders: &DeviceHolders, name: Option<&str>, width: usize) -> Option<String> {
    let is_wanted = |it: &str| name.is_none_or(|name| name == it);
    let roots: Vec<_> = holders
        .roots
        .iter()
        .filter(|it| is_wanted(&it.name))
        .collect();
    let shared = holders.shared.iter();
    let shared: Vec<_> = shared
        .filter(|it| it.names.iter().any(|name| is_wanted(name)))
        .collect();
    if roots.is_empty() && shared.is_empty() {
        return None;
    }
    let mut lines = vec![format!(
        "{}  {} in {}",
        holders.device,
        holders.n_bytes,
        count_of(holders.n_storages, "storage")
    )];
    for root in roots {
        root_lines(root, &mut lines);
    }
    if name.is_none() {
        let names = count_of(holders.more.n, "more name");
        lines.extend(rest(&holders.more, &names).map(|it| format!("  {it}")));
    }
    lines.extend(shared.into_iter().flat_map(shared_lines));
    if name.is_none() {
        let shared = format!("{} more that names share", holders.more_shared.n);
        lines.extend(rest(&holders.more_shared, &shared).map(|it| format!("  {it}")));
    }
    if holders.is_cut {
        lines.push("  … and more: the search reached its limit".to_owned());
    }
    let lines: Vec<_> = lines.iter().map(|line| cut(line, width)).collect();
    Some(lines.join("\n"))
}

fn root_lines(root: &Holder, lines: &mut Vec<String>) {
    let words = root.kind.description().filter(|words| *words != root.name);
    let kind = words.map(|words| format!(" ({words})"));
    let grown = root
        .grown
        .map(|grown| format!(" · {grown} since the last look"));
    let origin = root.origin.describe().map(|words| format!(" · {words}"));
    lines.push(format!(
        "  {:>8}  {}{} · {}{}{}",
        root.retained.to_string(),
        root.name,
        kind.unwrap_or_default(),
        root.what,
        origin.unwrap_or_default(),
        grown.unwrap_or_default(),
    ));
    if root.path != root.name && !root.path.is_empty() {
        lines.push(format!("            {}", root.path));
    }
    branch_lines(&root.branches, &root.more, 1, lines);
}

/// A single branch says no more than the path does, so only what is below it is shown.
fn branch_lines(
    branches: &[HolderBranch],
    more: &Remainder,
    depth: usize,
    lines: &mut Vec<String>,
) {
    let listed = branches.iter().filter(|branch| !branch.step.is_empty());
    let is_alone = branches.len() == 1 && more.n == 0;
    let indent = " ".repeat(10 + 2 * depth);
    for branch in listed {
        let below = if is_alone && branch.n == 1 {
            depth
        } else {
            let HolderBranch {
                step,
                what,
                n_bytes,
                ..
            } = branch;
            lines.push(format!("{indent}{n_bytes}  {step} · {what}"));
            depth + 1
        };
        branch_lines(&branch.branches, &branch.more, below, lines);
    }
    if !branches.is_empty() {
        let branches = format!("{} more", more.n);
        lines.extend(rest(more, &branches).map(|it| format!("{indent}{it}")));
    }
}

fn shared_lines(shared: &SharedMemory) -> [String; 2] {
    let others = if shared.and_others { " and others" } else { "" };
    [
        format!(
            "  {:>8}  {}{others} together · {}",
            shared.n_bytes.to_string(),
            shared.names.join(", "),
            shared.what
        ),
        format!("            {}", shared.path),
    ]
}

/// `… and 3 more names, 12 MiB`; nothing if there are no more.
fn rest(rest: &Remainder, what: &str) -> Option<String> {
    (rest.n > 0).then(|| format!("… and {what}, {}", rest.n_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_model::holders::{HolderOrigin, RootKind};
    use gpumem_model::units::{ByteDelta, Bytes};

    fn losses() -> Holder {
        Holder {
            grown: Some(ByteDelta::new(100 << 20)),
            path: "losses[0].grad_fn".to_owned(),
            what: "list of 3 tensors, each with its graph".to_owned(),
            branches: vec![HolderBranch {
                step: "[0] … [2]".to_owned(),
                what: "3 tensors, each with its graph".to_owned(),
                n: 3,
                n_bytes: Bytes::mib(300),
                branches: Vec::new(),
                more: Remainder::default(),
            }],
            ..Holder::new(RootKind::Variable, "losses", Bytes::mib(300))
        }
    }

    fn out() -> Holder {
        Holder {
            origin: HolderOrigin {
                since: Some(3),
                line: None,
            },
            path: "Out[3]".to_owned(),
            what: "Tensor float32[1024]".to_owned(),
            ..Holder::new(RootKind::OutputHistory, "Out[3]", Bytes::mib(20))
        }
    }

    fn net() -> Holder {
        let branch = |step: &str, n_bytes, branches| HolderBranch {
            step: step.to_owned(),
            what: "parameter float32[1024]".to_owned(),
            n: 1,
            n_bytes: Bytes::mib(n_bytes),
            branches,
            more: Remainder::default(),
        };
        let layers = vec![
            branch(".head", 6, vec![branch("", 6, Vec::new())]),
            branch(".body", 4, Vec::new()),
        ];
        Holder {
            path: "net.layers.head".to_owned(),
            what: out().what,
            branches: vec![branch(".layers", 10, layers)],
            ..Holder::new(RootKind::Variable, "net", Bytes::mib(10))
        }
    }

    #[test]
    fn a_name_does_not_steer_the_terminal() {
        let mut found = device();
        found.devices[0].roots[0].name = "a\u{1b}[2J\u{202e}b".to_owned();
        let text = holders(&found, None, None, 80);
        assert!(
            text.contains("300 MiB  a [2Jb · list of 3 tensors"),
            "{text}"
        );
    }

    #[test]
    fn the_line_that_allocated_it_is_shown_if_known() {
        let mut root = out();
        root.origin.line = Some("In [3], line 2".to_owned());
        let mut lines = Vec::new();
        root_lines(&root, &mut lines);
        assert_eq!(
            lines,
            [
                "    20 MiB  Out[3] (displayed result) · Tensor float32[1024] · allocated in In [3], line 2"
            ]
        );
    }

    #[test]
    fn a_sole_branch_says_no_more_than_the_path() {
        let mut lines = Vec::new();
        root_lines(&net(), &mut lines);
        assert_eq!(
            lines,
            [
                "    10 MiB  net · Tensor float32[1024]",
                "            net.layers.head",
                "            6 MiB  .head · parameter float32[1024]",
                "            4 MiB  .body · parameter float32[1024]",
            ]
        );
    }

    fn device() -> Holders {
        let sharing = SharedMemory {
            names: vec!["model".to_owned(), "ema".to_owned()],
            and_others: true,
            n_bytes: Bytes::mib(8),
            path: "model.head.weight".to_owned(),
            what: "4 parameters".to_owned(),
            part: None,
        };
        Holders {
            devices: vec![DeviceHolders {
                device: "cuda:0".to_owned(),
                n_bytes: Bytes::mib(329),
                n_storages: 9,
                roots: vec![losses(), out()],
                more: Remainder {
                    n: 2,
                    n_bytes: Bytes::mib(1),
                },
                shared: vec![sharing],
                is_cut: true,
                ..DeviceHolders::default()
            }],
        }
    }

    fn check(name: Option<&str>, device_label: Option<&str>, expected: &[&str]) {
        let text = holders(&device(), name, device_label, 80);
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn each_name_has_a_line_and_the_way_to_its_largest_object() {
        check(
            None,
            None,
            &[
                "cuda:0  329 MiB in 9 storages",
                "   300 MiB  losses · list of 3 tensors, each with its graph · +100 MiB since th…",
                "            losses[0].grad_fn",
                "            300 MiB  [0] … [2] · 3 tensors, each with its graph",
                "    20 MiB  Out[3] (displayed result) · Tensor float32[1024] · since In [3]",
                "  … and 2 more names, 1 MiB",
                "     8 MiB  model, ema and others together · 4 parameters",
                "            model.head.weight",
                "  … and more: the search reached its limit",
            ],
        );
    }

    #[test]
    fn one_name_or_device_is_shown_alone() {
        check(
            Some("Out[3]"),
            Some("cuda:0"),
            &[
                "cuda:0  329 MiB in 9 storages",
                "    20 MiB  Out[3] (displayed result) · Tensor float32[1024] · since In [3]",
                "  … and more: the search reached its limit",
            ],
        );
        check(
            Some("ema"),
            None,
            &[
                "cuda:0  329 MiB in 9 storages",
                "     8 MiB  model, ema and others together · 4 parameters",
                "            model.head.weight",
                "  … and more: the search reached its limit",
            ],
        );
        check(Some("nobody"), None, &["nobody holds no device memory"]);
        check(None, Some("cuda:1"), &["no name holds device memory"]);
    }
}
