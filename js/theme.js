// Which theme the page around the report has.

const media = matchMedia("(prefers-color-scheme: dark)");

/** Dark, as JupyterLab, VS Code, Colab or else the system says. */
export function isDark() {
  const { body, documentElement: page } = document;
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
  if (body.matches(".vscode-light, .vscode-high-contrast-light")) return false;
  if (body.matches(".vscode-dark, .vscode-high-contrast")) return true;
  if (page.hasAttribute("theme")) return page.getAttribute("theme") === "dark";
  return media.matches;
}

/** Calls `changed` whenever the theme may be another; returns how to stop. */
export function onThemeChange(changed) {
  const observer = new MutationObserver(changed);
  for (const element of [document.body, document.documentElement]) {
    observer.observe(element, { attributes: true });
  }
  media.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    media.removeEventListener("change", changed);
  };
}
