// Which theme is found in the pages of the hosts that show a report.

import assert from "node:assert/strict";
import test from "node:test";

const media = { matches: false };
const contrast = { matches: false };
const never = { matches: false };
globalThis.matchMedia = (query) => {
  if (query.includes("contrast")) return contrast;
  return query.includes("forced") ? never : media;
};
const { isDark, themeName } = await import("./theme.js");

function check({ jpThemeLight, vscodeThemeKind, classes = [], theme, system = false }, dark) {
  media.matches = system;
  const isOneOf = (selector) => selector.split(", ").some((name) => classes.includes(name));
  globalThis.document = {
    body: { dataset: { jpThemeLight, vscodeThemeKind }, matches: isOneOf },
    documentElement: { hasAttribute: () => theme !== undefined, getAttribute: () => theme },
  };
  assert.equal(isDark(), dark);
}

test("JupyterLab says it in an attribute", () => {
  check({ jpThemeLight: "true", system: true }, false);
  check({ jpThemeLight: "false" }, true);
});

test("VS Code says it in a class and in its page's data", () => {
  check({ classes: [".vscode-dark"] }, true);
  check({ classes: [".vscode-high-contrast"] }, true);
  check({ classes: [".vscode-light"], system: true }, false);
  check({ classes: [".vscode-high-contrast", ".vscode-high-contrast-light"] }, false);
  check({ vscodeThemeKind: "vscode-light", system: true }, false);
  check({ vscodeThemeKind: "vscode-high-contrast" }, true);
});

test("Colab says it in the page's theme", () => {
  check({ theme: "dark" }, true);
  check({ theme: "light", system: true }, false);
});

test("the reader's preference for more contrast is followed", () => {
  check({ classes: [".vscode-high-contrast"] }, true);
  assert.equal(themeName(), "dark-contrast");
  check({}, false);
  assert.equal(themeName(), "light");
  contrast.matches = true;
  assert.equal(themeName(), "light-contrast");
  contrast.matches = false;
});

test("elsewhere the system decides", () => {
  check({ system: true }, true);
  check({ system: false }, false);
});
