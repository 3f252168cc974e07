use super::*;

/// What of `text` happens to `x`: by its own statements, and by functions with `()` behind their names.
#[track_caller]
fn check(text: &str, expected: &str) {
    let cell = CellText::read(text);
    let words = |uses: &NameUses<'_>| {
        let it = uses.get("x").copied().unwrap_or_default();
        let words = [
            (uses.reads_all, "all"),
            (it.is_read && !it.is_handed_on, "called"),
            (it.is_handed_on, "read"),
            (it.is_read_later, "later"),
            (it.is_bound, "bound"),
            (it.is_deleted, "deleted"),
        ];
        let words = words
            .iter()
            .filter(|(is_it, _)| *is_it)
            .map(|(_, word)| *word);
        words.collect::<Vec<_>>().join(" ")
    };
    let mut found = vec![words(&cell.own)];
    for function in &cell.functions {
        let any_time = if function.runs_at_any_time { "*" } else { "" };
        let words = words(&function.uses);
        if !words.is_empty() {
            found.push(format!("{}{any_time}(): {words}", function.name));
        }
    }
    if cell.runs_other_code {
        found.push("other code".to_owned());
    }
    found.retain(|it| !it.is_empty());
    assert_eq!(found.join(", "), expected, "{text}");
}

#[test]
fn a_name_is_read_bound_or_deleted() {
    for text in [
        "f(x)",
        "y = x",
        "x.y = 1",
        "x[0] = 1",
        "x += 1",
        "print(f'{x}')",
        "for y in x: pass",
        "y[x] = 1",
        "if x:\n    pass",
        "f(a=x)",
        "(\n    1,\n    x,\n)",
        "a = b = x",
        "del x[0]",
        "f(f\"{a[\"x\"]}\")",
        "df.query('a > @x')",
        "sql('select * from x')",
        "assert x == 1",
        "eval('x + 1')",
        "%timeit f(x)",
        "%%time\nf(x)",
        "%%bash\necho $x",
        "!ls {x}",
        "!ls '{x}'",
    ] {
        check(text, "read");
    }
    for text in [
        "x = 1",
        "x, y = 1, 2",
        "a = x = 1",
        "for x in a: pass",
        "import x",
        "import a as x",
        "from a import (\n    x,\n)",
        "with a as x: pass",
        "x: int = 1",
        "def x(): pass",
        "class x: pass",
        "if (x := f()): pass",
    ] {
        check(text, "bound");
    }
    for text in [
        "a.x",
        "f(x=1)",
        "# x",
        "'x'",
        "print('x.pt')",
        "xx",
        "f'x {a}'",
        "torch.save(a, 'x.pt')",
    ] {
        check(text, "");
    }
    check("del x", "deleted");
    check("del y, x", "deleted");
    check("x()", "called");
    check("x = f(x)", "read bound");
}

#[test]
fn a_function_reads_what_is_not_its_own() {
    check("def f(a):\n    return x + a", "f(): read");
    check("def f(a): return x", "f(): read");
    check("def f(x, b=1):\n    return x", "");
    check("def f(*, x: int = 1):\n    return x", "");
    check("def f():\n    x = 1\n    return x", "");
    check("def f():\n    global x\n    x = 1", "f(): bound");
    check("def f(a=x):\n    return a", "read");
    check("def f():\n    return 1\n\ng(x)", "read");
    check("if a:\n    def f():\n        return x", "f(): read");
    check("class A:\n    def f(self):\n        return x", "f*(): read");
    check("class A:\n    y = x", "read");
    check(
        "def f():\n    def g():\n        return x\n    return g",
        "g*(): read",
    );
    check("@a.b\ndef f():\n    return x", "f*(): read");
    check("async def f():\n    return x", "f*(): read");
    check("def f():\n    for a in x:\n        yield a", "f*(): read");
}

#[test]
fn what_runs_later_reads_later() {
    check("f = lambda a: x(a)", "called later");
    check("g = (x[i] for i in a)", "read later");
    check("g = DataLoader(x[i] for i in a)", "read later");
    check("s = sum(x[i] for i in a)", "read");
    check("s = [x[i] for i in a]", "read");
}

#[test]
fn code_that_reads_other_names_may_read_every_one() {
    for text in [
        "eval(code)",
        "globals()['x']",
        "%sql select 1",
        "%%sql\nselect 1",
        "get_ipython()",
    ] {
        assert!(CellText::read(text).own.reads_all, "{text}");
    }
    for text in [
        "model.eval()",
        "%matplotlib inline",
        "%%time\nf()",
        "%gpumem",
        "a % b",
    ] {
        assert!(!CellText::read(text).own.reads_all, "{text}");
    }
    for text in ["exec(code)", "%run a.py", "get_ipython().run_cell('a')"] {
        assert!(CellText::read(text).runs_other_code, "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read(text in "[a-c:=(){}'\"\\[\\]@%. \n\\\\fdeor]{0,60}") {
        CellText::read(&text);
    }
}
