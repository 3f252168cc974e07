//! Words of Python and of IPython that say more than their name.

/// Words that stand for every name, where they are called.
pub(super) const READ_ALL: [&str; 5] = ["eval", "globals", "locals", "vars", "_getframe"];

/// Words that stand for every name, wherever they are.
pub(super) const NAMESPACES: [&str; 5] = [
    "get_ipython",
    "user_ns",
    "__main__",
    "dump_session",
    "dump_module",
];

/// What runs code that stands elsewhere.
pub(super) const RUN_OTHER_CODE: [&str; 5] = ["exec", "execfile", "run_cell", "run_code", "runpy"];

/// Functions that take code, or a query, as text: names in it are variables.
pub(super) const TAKE_CODE: [&str; 6] = ["eval", "evaluate", "execute", "query", "sql", "timeit"];

/// Calls that use up a generator expression before they return.
pub(super) const EAGER: [&str; 13] = [
    "all",
    "any",
    "dict",
    "frozenset",
    "join",
    "len",
    "list",
    "max",
    "min",
    "set",
    "sorted",
    "sum",
    "tuple",
];

/// Magics that do nothing but what stands behind them, or look at no variable at all.
pub(super) const PLAIN_MAGICS: [&str; 50] = [
    "aimport",
    "alias",
    "autoreload",
    "capture",
    "cat",
    "cd",
    "colors",
    "conda",
    "config",
    "cp",
    "debug",
    "env",
    "gpumem",
    "gpumem_report",
    "hist",
    "history",
    "load_ext",
    "ls",
    "lprun",
    "lsmagic",
    "mamba",
    "matplotlib",
    "memit",
    "mkdir",
    "mprun",
    "mv",
    "page",
    "pdb",
    "pdoc",
    "pfile",
    "pinfo",
    "pip",
    "pprint",
    "precision",
    "prun",
    "psource",
    "pwd",
    "reload_ext",
    "rm",
    "set_env",
    "store",
    "tb",
    "tensorboard",
    "time",
    "timeit",
    "unload_ext",
    "uv",
    "who",
    "whos",
    "xmode",
];

/// Magics whose cells are no Python.
pub(super) const OTHER_LANGUAGES: [&str; 14] = [
    "HTML",
    "SVG",
    "bash",
    "cmd",
    "file",
    "html",
    "javascript",
    "js",
    "latex",
    "markdown",
    "script",
    "sh",
    "svg",
    "writefile",
];

/// Magics that run what stands elsewhere.
pub(super) const RUN_MAGICS: [&str; 8] = [
    "ed", "edit", "load", "loadpy", "macro", "recall", "rerun", "run",
];
