// Which theme the page around the report has.

const dark = matchMedia("(prefers-color-scheme: dark)");
const strong = [matchMedia("(prefers-contrast: more)"), matchMedia("(forced-colors: active)")];

/** `light` or `dark`, with `-contrast` if the reader prefers more contrast. */
export function themeName() {
  const name = isDark() ? "dark" : "light";
  return wantsContrast() ? `${name}-contrast` : name;
}

/** The theme of VS Code, by the data of its page or else by a class. */
const KINDS = ["high-contrast-light", "high-contrast", "light", "dark"].map((it) => `vscode-${it}`);
function vsCodeKind({ body }) {
  return body.dataset.vscodeThemeKind ?? KINDS.find((kind) => body.matches(`.${kind}`));
}

/** Dark, as JupyterLab, VS Code, Colab or else the system says. */
export function isDark() {
  const { body, documentElement: page } = document;
  if (strong[1].matches) return dark.matches;
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
  const kind = vsCodeKind(document);
  if (kind) return !kind.endsWith("light");
  if (page.hasAttribute("theme")) return page.getAttribute("theme") === "dark";
  return dark.matches;
}

function wantsContrast() {
  const isStrong = vsCodeKind(document)?.includes("high-contrast");
  return isStrong || strong.some((media) => media.matches);
}

/** Calls `changed` whenever the theme may be another; returns how to stop. */
export function onThemeChange(changed) {
  const observer = new MutationObserver(changed);
  for (const element of [document.body, document.documentElement]) {
    observer.observe(element, { attributes: true });
  }
  const media = [dark, ...strong];
  for (const query of media) query.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    for (const query of media) query.removeEventListener("change", changed);
  };
}
