//! What a fix says, and the line it changes.

use proptest::prelude::*;

use super::*;
use gpumem_model::holders::{HolderBranch, Traits};

fn holder(kind: RootKind, path: &str, type_name: &str) -> Holder {
    let name = path.split(['[', '.']).next().unwrap_or_default();
    Holder {
        path: path.to_owned(),
        traits: Traits {
            type_name: type_name.to_owned(),
            ..Traits::default()
        },
        ..Holder::new(kind, name, Bytes::mib(9))
    }
}

fn with_graph(path: &str, scalars: bool) -> Holder {
    let mut holder = holder(RootKind::Variable, path, "list");
    holder.traits.graph = Bytes::mib(8);
    holder.traits.scalars = scalars;
    holder
}

#[track_caller]
fn check(holder: &Holder, source: &str, before: Option<&str>, after: &str) {
    let found = fix(holder, &[source], true).expect("a fix");
    assert_eq!((found.before.as_deref(), &*found.after), (before, after));
}

#[test]
fn a_scalar_is_kept_as_a_number_and_a_tensor_without_its_graph() {
    let line = "    losses.append(model(x, y).sum())  # for the plot";
    let shown = Some("losses.append(model(x, y).sum())");
    let source = format!("for x in data:\n{line}");
    let losses = with_graph("losses[0].grad_fn", true);
    check(
        &losses,
        &source,
        shown,
        "losses.append(model(x, y).sum().item())",
    );
    let losses = with_graph("losses[0].grad_fn", false);
    check(
        &losses,
        &source,
        shown,
        "losses.append(model(x, y).sum().detach())",
    );
    check(
        &with_graph("total.grad_fn", true),
        "total += a * b",
        Some("total += a * b"),
        "total += (a * b).item()",
    );
    check(
        &with_graph("trainer.history[0]", false),
        "self.history.append(out)",
        Some("self.history.append(out)"),
        "self.history.append(out.detach())",
    );
    check(
        &with_graph("runner.trainer.history[0]", false),
        "self.trainer.history.append(out)",
        Some("self.trainer.history.append(out)"),
        "self.trainer.history.append(out.detach())",
    );
    check(
        &with_graph("seen['a']", false),
        "seen[key] = out",
        Some("seen[key] = out"),
        "seen[key] = out.detach()",
    );
    // A variable of the function around a function that a cell has.
    check(
        &with_graph("log.<closure>.seen[0].grad_fn", true),
        "def make():\n    seen = []\n    def log(loss): seen.append(loss)\n    return log",
        Some("seen.append(loss)"),
        "seen.append(loss.item())",
    );
    check(
        &with_graph("mean.<closure>.total.grad_fn", true),
        "    def add(value):\n        nonlocal total\n        total = total + value",
        Some("total = total + value"),
        "total = total + value.item()",
    );
}

#[test]
fn a_hook_that_packs_a_tensor_as_it_is_detaches_it() {
    let nobody = holder(RootKind::HookCycle, "autograd", "Tensor");
    let check = |source: &str, expected: Option<&str>| {
        let found = fix(&nobody, &["y = f(x)", source], false);
        let found = found.map(|it| source.replace(&it.before.expect("a change"), &it.after));
        assert_eq!(found.as_deref(), expected);
    };
    let hooks =
        |pack: &str| format!("with saved_tensors_hooks({pack}, lambda t: t):\n    y = f(x)");
    check(&hooks("lambda t: t"), Some(&hooks("lambda t: t.detach()")));
    check(&hooks("lambda t: t.cpu()"), None);
    check(&hooks("lambda t: (t, 1)"), None);
    check(&hooks("pack"), None);
}

#[test]
fn what_a_method_is_handed_is_changed_where_it_is_handed() {
    let class = "class Run:\n    def log(self, d): self.history.append(dict(d, step=1))";
    let cell = "run.log({\"loss\": loss, \"lr\": 1e-3})";
    let check = |scalars, sources: &[&str], expected: Option<&str>| {
        let holder = with_graph("run.history[0]['loss'].grad_fn", scalars);
        let found = fix(&holder, sources, false).filter(|it| it.before.is_some());
        assert_eq!(found.map(|it| it.after).as_deref(), expected);
    };
    let number = "run.log({\"loss\": loss.item(), \"lr\": 1e-3})";
    check(true, &[cell, class], Some(number));
    let detached = "run.log({\"loss\": loss.detach(), \"lr\": 1e-3})";
    check(false, &[cell, class], Some(detached));
    check(true, &[cell, "run.log({'loss': x})", class], None);
    check(true, &["run.log({'lr': 1e-3})", class], None);
    check(true, &["run.log(loss)", class], None);
}

#[test]
fn what_keeps_the_same_graph_is_changed_with_it() {
    let one_line = "self.sum = self.sum + v; self.vals.append(v)";
    let fixed = "self.sum = self.sum + v.item(); self.vals.append(v.item())";
    let method = format!("class M:\n    def update(self, v): {one_line}");
    for path in ["m.sum.grad_fn", "m.vals[0].grad_fn"] {
        check(&with_graph(path, true), &method, Some(one_line), fixed);
    }
    let lines = "        self.vals.append(v)\n        self.n += 1\n        self.sum += v";
    let method = format!("class M:\n    def update(self, v):\n{lines}\n    def f(self): pass");
    let fixed = lines
        .replace("(v)", "(v.item())")
        .replace("+= v", "+= v.item()");
    check(
        &with_graph("m.sum.grad_fn", true),
        &method,
        Some(lines),
        &fixed,
    );
    // What a function is handed may be a number.
    let found = fix(
        &with_graph("m.sum.grad_fn", false),
        &["m.update(loss)", one_line],
        true,
    );
    let value = "(v.detach() if hasattr(v, 'detach') else v)";
    let fixed = format!("self.sum = self.sum + {value}; self.vals.append({value})");
    assert_eq!(found.map(|it| it.after), Some(fixed));
    // Another function's is another value.
    let method =
        "def update(self, v):\n    self.sum += v\ndef add(self, v):\n    self.vals.append(v)";
    let sum = with_graph("m.sum.grad_fn", true);
    check(&sum, method, Some("self.sum += v"), "self.sum += v.item()");
}

#[test]
fn an_attribute_of_data_is_cleared() {
    let mut logs = holder(RootKind::Variable, "trainer.logs[0]", "list");
    "trainer.logs".clone_into(&mut logs.name);
    check(&logs, "trainer.fit()", None, "trainer.logs.clear()");
    "Tensor".clone_into(&mut logs.traits.type_name);
    assert_eq!(fix(&logs, &["trainer.fit()"], true), None);
}

#[test]
fn the_tensor_in_what_is_kept_is_cut_and_nothing_else() {
    let checks = [
        (
            "best[0].base",
            "best.append(a[:9])",
            "best.append(a[:9].copy())",
        ),
        (
            "history[0][1].grad_fn",
            "history.append((step, loss))",
            "history.append((step, loss.detach()))",
        ),
        (
            "history[0][1][0].grad_fn.<saved>",
            "history.append([step, (loss, f(x, y))])",
            "history.append([step, (loss.detach(), f(x, y))])",
        ),
        (
            "outputs['preds'][0].grad_fn",
            "outputs['preds'].append(pred)",
            "outputs['preds'].append(pred.detach())",
        ),
        (
            "outputs['preds'][0][1].grad_fn",
            "outputs['preds'].append((n, pred))",
            "outputs['preds'].append((n, pred.detach()))",
        ),
        (
            "history[0]['loss'].grad_fn",
            "history.append({'step': n, \"loss\": f(x, y)})",
            "history.append({'step': n, \"loss\": f(x, y).detach()})",
        ),
        (
            "seen['a'][1]",
            "seen[key] = (1, out)",
            "seen[key] = (1, out.detach())",
        ),
    ];
    for (path, line, after) in checks {
        check(&with_graph(path, false), line, Some(line), after);
    }
    // Of several places that one is changed which the path fits.
    let source = "self.logs.append({'n': 1, 'hidden': x})\nself.logs.append(loss)";
    let line = "self.logs.append(loss)";
    let logs = with_graph("trainer.logs[0].grad_fn", false);
    check(&logs, source, Some(line), "self.logs.append(loss.detach())");
    // What is put there has the tensor somewhere inside: it has no `.detach()` itself.
    for (path, line) in [
        ("history[0][1].grad_fn", "history.append(pair)"),
        ("history[0].loss.grad_fn", "history.append(output)"),
        ("history[0][1].grad_fn", "history.append((*pair, loss))"),
        ("history[0]['a'].grad_fn", "history.append({'b': x})"),
        ("history[0].grad_fn", "history.append({'b': x})"),
        (
            "history[0]['a'].grad_fn",
            "history.append({**pair, 'b': x})",
        ),
    ] {
        check(&with_graph(path, false), line, None, "history.clear()");
    }
}

#[test]
fn what_goes_back_through_its_graph_keeps_it() {
    let total = with_graph("total.grad_fn", true);
    let fixed = fix(&total, &["total += loss\ntotal.backward()"], true);
    assert_eq!(fixed, None);
}

#[test]
fn what_is_read_as_a_tensor_stays_one() {
    let after = |path: &str, sources: &[&str]| {
        fix(&with_graph(path, true), sources, true).map(|it| it.after)
    };
    let detached = |after: &str| Some(after.to_owned());
    let own = "loss = net(x)\nrunning += loss\nprint(f'{running.item() / k:.5f}')";
    let changed = detached("running += loss.detach()");
    assert_eq!(after("running.grad_fn", &[own]), changed);
    let own = "losses.append(loss)";
    let other = "losses = []\ndef curve():\n    return [l.item() for l in losses]";
    let changed = detached("losses.append(loss.detach())");
    assert_eq!(after("losses[0].grad_fn", &[own, other]), changed);
    let other = "loss = torch.stack(losses).sum()\nloss.backward()\nlosses.clear()";
    assert_eq!(after("losses[0].grad_fn", &[own, other]), None);
}

#[test]
fn what_a_cell_reads_stays_on_the_device() {
    let after = |path: &str, sources: &[&str]| {
        let mut kept = holder(RootKind::Variable, path, "list");
        "Tensor".clone_into(&mut kept.traits.tensor_type);
        fix(&kept, sources, true).map(|it| it.after)
    };
    let own = "bank.append(f(x))";
    let moved = Some("bank.append(f(x).cpu())".to_owned());
    assert_eq!(after("bank[0]", &[own, "bank = []", "len(bank)"]), moved);
    let read = "sum((b * w).sum() for b in bank)";
    assert_ne!(after("bank[0]", &[own, read]), moved);
    let leaf = "G.blocks.append(tensor(n, requires_grad=True))";
    assert!(after("G.blocks[0]", &[leaf]).is_none_or(|it| !it.contains(".cpu()")));
}

#[test]
fn errors_keep_the_frames_that_a_cell_needs() {
    let path = "errors[0].__traceback__.tb_frame.<locals>.batch";
    let errors = holder(RootKind::Variable, path, "list");
    let after = |other: &str| {
        let found = fix(&errors, &["errors.append(e)", other], true);
        found.map_or_else(String::new, |it| it.after)
    };
    let without = "errors.append(e.with_traceback(None))";
    assert_eq!(after("print(errors[-1])"), without);
    assert_eq!(after("errors[0].__traceback__"), "errors.clear()");
    let chained = "try:\n    f()\nexcept KeyError as e:\n    raise RuntimeError('no') from e";
    assert_eq!(after(chained), "errors.clear()");
}

#[test]
fn a_result_that_a_cell_takes_stays_displayed() {
    let output = holder(RootKind::OutputHistory, "Out[3]", "Tensor");
    assert!(fix(&output, &["model(x)", "print(1)"], true).is_some());
    assert_eq!(
        fix(&output, &["model(x)", "norms.append(_.sum())"], true),
        None
    );
}

#[test]
fn what_others_hold_too_is_not_said_to_be_freed() {
    let mut kept = holder(RootKind::Variable, "kept[0]", "list");
    assert!(fix(&kept, &["f()"], true).is_some());
    kept.traits.is_shared = true;
    assert_eq!(fix(&kept, &["f()"], true), None);
}

#[test]
fn a_variable_of_a_module_stays() {
    let kept = holder(RootKind::ModuleGlobal, "tools.cache[3]", "dict");
    assert_eq!(fix(&kept, &["tools.load(3)"], true), None);
}

#[test]
fn what_the_cell_does_not_show_is_said_in_general() {
    let losses = with_graph("losses[0].grad_fn", true);
    for source in [
        "train()",
        "my_losses.append(x)",
        "losses.append(x for x in y)",
    ] {
        check(&losses, source, None, "losses.clear()");
    }
    assert!(fix(&losses, &[], true).is_some());
}

#[test]
fn a_collection_without_graphs_goes_to_host_memory() {
    let kept = |path: &str, tensor_type: &str| {
        let mut kept = holder(RootKind::Variable, path, "list");
        tensor_type.clone_into(&mut kept.traits.tensor_type);
        kept
    };
    let cache = kept("cache['a']", "Tensor");
    let line = "cache[key] = f(x)";
    check(&cache, line, Some(line), "cache[key] = f(x).cpu()");
    // Arrays of others have no such method, and host memory is where the host's are.
    let of_numpy = kept("cache['a']", "ndarray");
    check(&of_numpy, line, None, "cache.clear()");
    let on_host = fix(&cache, &[line], false).expect("a fix");
    assert_eq!(on_host.before, None);
    let inside = kept("cache['a'].args[0]", "Tensor");
    check(&inside, line, None, "cache.clear()");
    let handed = "cache[f'{len(cache)}'] = partial(work, f(x))";
    let moved = "cache[f'{len(cache)}'] = partial(work, f(x).cpu())";
    check(&inside, handed, Some(handed), moved);
    check(&inside, "cache['a'] = partial(work)", None, "cache.clear()");
}

#[test]
fn of_several_keys_the_line_of_the_one_that_grew_changes() {
    let mut logged = holder(RootKind::Variable, "logged['images'][0]", "dict");
    "Tensor".clone_into(&mut logged.traits.tensor_type);
    let cell = "logged['loss'].append(loss(x))\nlogged[\"images\"].append(f(x))";
    let line = "logged[\"images\"].append(f(x))";
    let moved = "logged[\"images\"].append(f(x).cpu())";
    check(&logged, cell, Some(line), moved);
    check(
        &logged,
        "logged['loss'].append(f(x))",
        None,
        "logged.clear()",
    );
}

#[test]
fn a_cache_gets_a_bound() {
    let memo = holder(RootKind::Variable, "embed.<inside>", "_lru_cache_wrapper");
    check(
        &memo,
        "@functools.cache\ndef embed(x): ...",
        Some("@functools.cache"),
        "@functools.lru_cache(maxsize=8)",
    );
    check(
        &memo,
        "from functools import cache\n@cache\ndef embed(x):\n    return f(x)",
        Some("@cache"),
        "from functools import lru_cache\n@lru_cache(maxsize=8)",
    );
    check(&memo, "embed(x)", None, "embed.cache_clear()");
    let of_another = "@cache\ndef tokenize(x): ...\ndef embed(x): ...";
    check(&memo, of_another, None, "embed.cache_clear()");
    let defined = "@functools.cache\ndef embed(x): ...";
    let in_another = fix(&memo, &["embed(x)", defined], true).expect("a fix");
    assert!(
        in_another.elsewhere && in_another.before.is_some(),
        "{in_another:?}"
    );
}

#[test]
fn an_exception_is_kept_without_its_frames() {
    let path = "errors[0].__traceback__.tb_frame.<locals>.batch";
    let errors = holder(RootKind::Variable, path, "list");
    let line = "errors.append(e)";
    let after = "errors.append(e.with_traceback(None))";
    check(&errors, line, Some(line), after);
}

#[test]
fn what_a_function_keeps_is_changed_where_the_function_is() {
    let function = "def log(v):\n    losses.append(v)";
    let losses = with_graph("losses[0].grad_fn", true);
    let found = fix(&losses, &["log(loss)", "x = 1", function], true).expect("a fix");
    assert!(found.elsewhere);
    assert_eq!(found.after, "losses.append(float(v))");
    let whole = with_graph("losses[0].grad_fn", false);
    let found = fix(&whole, &["log(loss)", function], true).expect("a fix");
    let after = "losses.append(v.detach() if hasattr(v, 'detach') else v)";
    assert_eq!(found.after, after);
    // Another cell adds to it, too.
    let others = ["losses.append(f(x))", function];
    assert_eq!(fix(&whole, &others, true).expect("a fix").before, None);
    let mut trainer = with_graph("trainer.history[0]", false);
    "Trainer".clone_into(&mut trainer.traits.type_name);
    let class =
        "class Trainer:\n    def fit(self):\n        out = f()\n        self.history.append(out)";
    let found = fix(&trainer, &["trainer.fit()", class], true).expect("a fix");
    assert_eq!(found.after, "self.history.append(out.detach())");
    // A trainer is not thrown away.
    assert_eq!(fix(&trainer, &["trainer.fit()"], true), None);
}

#[test]
fn what_ipython_keeps_has_its_own_cures() {
    let output = holder(RootKind::OutputHistory, "Out[3]", "Tensor");
    check(
        &output,
        "x = f()\nmodel(x)\n",
        Some("model(x)"),
        "model(x);",
    );
    for source in [
        "x = f()",
        "x = f(\n  y\n)",
        "del x",
        "model(x);",
        "if x:\n    y",
    ] {
        check(&output, source, None, "%gpumem release outputs");
    }
    let error = holder(RootKind::Traceback, "sys.last_value", "ValueError");
    check(&error, "", None, "%gpumem release traceback");
    let nobody = holder(RootKind::Unnamed, "unnamed", "");
    assert_eq!(fix(&nobody, &[], true), None);
}

#[test]
fn a_statement_may_span_lines_and_be_nested() {
    let losses = with_graph("losses[0].grad_fn", true);
    check(
        &losses,
        "for x in data:\n    losses.append(\n        model(x)  # the model\n    )\n",
        Some("losses.append(\n        model(x)  # the model\n    )"),
        "losses.append(\n        model(x).item()  # the model\n    )",
    );
    let (cell, line) = (
        "for x in y: n += 1; losses.append(f(x))",
        "losses.append(f(x))",
    );
    check(&losses, cell, Some(line), "losses.append(f(x).item())");
    for (line, after) in [
        (
            "losses.append(f(g(x)[0], (1, 2)) + 1)",
            "losses.append((f(g(x)[0], (1, 2)) + 1).item())",
        ),
        (
            "[losses.append(f(x)) for x in y]",
            "[losses.append(f(x).item()) for x in y]",
        ),
        (
            "losses = [f(x) for x in y]",
            "losses = [f(x).item() for x in y]",
        ),
        (
            "losses[name].append(f(x))",
            "losses[name].append(f(x).item())",
        ),
        (
            "losses.setdefault(k, []).append(await f(x))",
            "losses.setdefault(k, []).append((await f(x)).item())",
        ),
        ("losses[k] += f(x)", "losses[k] += f(x).item()"),
        (
            "losses = losses + f(x) * w",
            "losses = losses + (f(x) * w).item()",
        ),
    ] {
        check(&losses, line, Some(line), after);
    }
}

#[test]
fn what_a_comprehension_makes_is_changed_in_each() {
    let check = |path: &str, line: &str, after: &str| {
        check(&with_graph(path, false), line, Some(line), after);
    };
    check(
        "kept[3][0].grad_fn",
        "kept.append([f(x) * 2 for x in xs if x])",
        "kept.append([(f(x) * 2).detach() for x in xs if x])",
    );
    check(
        "kept[3]['w'][0].grad_fn",
        "kept.append({'w': [f(x) for x in xs], 'n': 1})",
        "kept.append({'w': [f(x).detach() for x in xs], 'n': 1})",
    );
    check(
        "kept[3]['w'].grad_fn",
        "kept.append({k: f(k) for k in ks})",
        "kept.append({k: f(k).detach() for k in ks})",
    );
    // The other of the two is a tensor, too.
    let mut pairs = with_graph("kept[3][0].grad_fn", false);
    pairs.traits.n_tensors = 8;
    let branch = |n| HolderBranch {
        n,
        n_bytes: Bytes::mib(9),
        ..HolderBranch::default()
    };
    pairs.branches = vec![branch(4)];
    let found = fix(&pairs, &["kept.append([f(x), g(x)])"], true);
    assert_eq!(found.and_then(|it| it.before), None);
    pairs.branches = vec![branch(8)];
    let found = fix(&pairs, &["kept.append([f(x), 3])"], true);
    assert_eq!(
        found.expect("a fix").after,
        "kept.append([f(x).detach(), 3])"
    );
}

#[test]
fn what_is_not_one_value_is_not_touched() {
    let losses = with_graph("losses[0].grad_fn", true);
    for source in [
        "losses.append(*x)",
        "losses.append(f(x)for x in y)",
        "losses.append(x := f(y))",
        "losses.append(lambda: f(x))",
        "losses.append(x, y)",
        "losses = losses + a if b else c",
        "losses == a",
        "train(losses=f(x))",
        "'losses.append(f(x))'",
        "# losses.append(f(x))",
        "losses.append(f(x)",
        "losses[0], x = a, b",
    ] {
        check(&losses, source, None, "losses.clear()");
    }
}

#[test]
fn a_displayed_expression_may_go_over_several_lines() {
    let output = holder(RootKind::OutputHistory, "Out[3]", "Tensor");
    let cell = "model(\n    x,  # one\n)  # shown";
    let shown = "model(\n    x,  # one\n)";
    check(&output, cell, Some(shown), &format!("{shown};"));
}

#[test]
fn a_name_is_freed_where_it_is_bound_anew() {
    let after = |source: &str| fix_of_rerun("model", source).map(|fix| fix.after);
    let changed = |line: &str| Some(format!("model = None\n{line}"));
    assert_eq!(after("x = 1\nmodel = f(x)  # new"), changed("model = f(x)"));
    assert_eq!(
        after("model = f(\n    x\n)"),
        changed("model = f(\n    x\n)")
    );
    // It needs the old one, or is another name.
    for source in [
        "model = f(model)",
        "model == x",
        "model2 = f()",
        "model.x = f()",
    ] {
        assert_eq!(after(source), None);
    }
}

/// What `after` has more than `before` is a call behind a value, with brackets around it or not.
fn differs_by_a_call(before: &str, after: &str) -> bool {
    [".item()", ".detach()", ".cpu()"].iter().any(|call| {
        after.match_indices(call).any(|(at, _)| {
            let (opening, rest) = (&after[..at], &after[at + call.len()..]);
            let is_bare = format!("{opening}{rest}") == before;
            let inside = opening.strip_suffix(')').unwrap_or_default();
            is_bare
                || inside.match_indices('(').any(|(open, _)| {
                    let (ahead, value) = (&inside[..open], &inside[open + 1..]);
                    format!("{ahead}{value}{rest}") == before
                })
        })
    })
}

fn is_sound(source: &str, fix: &Fix) -> bool {
    let Some(before) = &fix.before else {
        return true;
    };
    let rest = fix.after.strip_prefix(&**before);
    let goes_on = rest.is_some_and(|rest| rest == ";" || rest.starts_with('\n'));
    let goes_before = fix.after.strip_suffix(&**before) == Some("losses = None\n");
    source.contains(&**before) && (goes_on || goes_before || differs_by_a_call(before, &fix.after))
}

proptest! {
    #[test]
    fn any_text_is_read_and_what_is_shown_of_it_stands_there(
        noise in prop::collection::vec(".*", 0..3),
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..16),
        scalars in any::<bool>(),
        graph in any::<bool>(),
    ) {
        let source = pieces.concat() + &noise.join("\n");
        let mut losses = with_graph("losses[0].grad_fn", scalars);
        if !graph {
            losses.traits.graph = Bytes::ZERO;
        }
        let output = holder(RootKind::OutputHistory, "Out[3]", "Tensor");
        let fixes = [
            fix(&losses, &[&source], graph),
            fix(&output, &[&source], graph),
            fix_of_rerun("losses", &source),
        ];
        for fix in fixes.into_iter().flatten() {
            prop_assert!(is_sound(&source, &fix), "{fix:?} of {source:?}");
        }
    }
}

/// What cells are made of, to be put together in any order.
const PIECES: &[&str] = &[
    "losses",
    "losses.append(",
    "losses += ",
    "losses = ",
    "losses[",
    "x",
    "f(",
    "(",
    ")",
    "]",
    "[",
    "{",
    "}",
    "'",
    "\"",
    "\"\"\"",
    "#",
    "\n",
    "    ",
    ";",
    ",",
    " for x in y",
    ".",
    "=",
    "+",
    "\\",
    "if x: ",
    "1",
    "ü",
    "lambda: ",
    " if x else y",
    "\r\n",
    ":",
    "await ",
];

#[test]
fn cells_do_not_name_what_a_library_s_object_has_inside() {
    let jobs = holder(RootKind::Variable, "jobs.queue[0]['x']", "Queue");
    let of_library = "import queue\njobs = queue.Queue()\njobs.put({'x': x})";
    assert_eq!(uses(&jobs, &[of_library]), Uses::None);
    let of_cell = "rows = list(jobs.queue)";
    assert_eq!(uses(&jobs, &[of_library, of_cell]), Uses::Whole);
}

#[test]
fn what_has_no_graph_is_not_gone_back_through() {
    let mut history = holder(RootKind::Variable, "trainer.history[0].logits", "Trainer");
    let cell = "loss.backward()\nself.history.append(Record(loss.item(), logits.detach()))\n\
                return self.history[-1].loss";
    assert_eq!(uses(&history, &[cell]), Uses::None);
    history.traits.graph = Bytes::mib(4);
    assert_eq!(uses(&history, &[cell]), Uses::GoesBack);
}

#[test]
fn keys_may_have_dots() {
    let of_layers = holder(RootKind::Variable, "log['0.weight'][3]", "defaultdict");
    let cell = "log[name].append(g)\nprint({k: v[-1].norm() for k, v in log.items()})";
    assert_eq!(uses(&of_layers, &[cell]), Uses::None);
    let of_tensors = holder(RootKind::Variable, "log['0.weight']", "dict");
    assert_eq!(uses(&of_tensors, &[cell]), Uses::Whole);
}

#[test]
fn texts_and_comments_use_nothing() {
    let tasks = holder(RootKind::Variable, "gateway.tasks[0]", "Gateway");
    let cell = "self.tasks.add(task)  # the loop holds tasks weakly\nprint(len(gw.tasks), 'tasks')";
    assert_eq!(uses(&tasks, &[cell]), Uses::None);
    let shown = format!("{cell}\nprint(f'{{sum(it.done() for it in gw.tasks)}} of them')");
    assert_eq!(uses(&tasks, &[&shown]), Uses::Whole);
}
