// Which theme is found in the pages of the hosts that show a report.

import assert from "node:assert/strict";
import test from "node:test";

const media = { matches: false };
globalThis.matchMedia = () => media;
const { isDark } = await import("./theme.js");

function check({ jpThemeLight, classes = [], theme, system = false }, dark) {
  media.matches = system;
  const isOneOf = (selector) => selector.split(", ").some((name) => classes.includes(name));
  globalThis.document = {
    body: { dataset: { jpThemeLight }, matches: isOneOf },
    documentElement: { hasAttribute: () => theme !== undefined, getAttribute: () => theme },
  };
  assert.equal(isDark(), dark);
}

test("JupyterLab says it in an attribute", () => {
  check({ jpThemeLight: "true", system: true }, false);
  check({ jpThemeLight: "false" }, true);
});

test("VS Code says it in a class", () => {
  check({ classes: [".vscode-dark"] }, true);
  check({ classes: [".vscode-high-contrast"] }, true);
  check({ classes: [".vscode-light"], system: true }, false);
  check({ classes: [".vscode-high-contrast", ".vscode-high-contrast-light"] }, false);
});

test("Colab says it in the page's theme", () => {
  check({ theme: "dark" }, true);
  check({ theme: "light", system: true }, false);
});

test("elsewhere the system decides", () => {
  check({ system: true }, true);
  check({ system: false }, false);
});
