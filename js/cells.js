// From a finding to its cell in the notebook around the report.

const LIT_MILLIS = 1500;

/** Shows the ways to cells that are in the page, also after the view made new ones. */
export function linkCells(root, host) {
  const link = () => {
    for (const button of root.querySelectorAll("[data-action=cell]")) {
      button.hidden = !cellOf(host, button.dataset.argument);
    }
  };
  const observer = new MutationObserver(link);
  observer.observe(root.querySelector(".verdict"), { childList: true, subtree: true });
  return { link, stop: () => observer.disconnect() };
}

/** Brings a cell into view, and lights it for a moment. */
export function goToCell(host, number) {
  const cell = cellOf(host, number);
  if (!cell) return;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  cell.scrollIntoView({ block: "center", behavior: still ? "auto" : "smooth" });
  const lit = { outline: "2px solid #0969da", outlineOffset: "-2px" };
  cell.animate([lit, lit], LIT_MILLIS);
}

/** The cell of that number in JupyterLab's or Jupyter Notebook's page. */
function cellOf(host, number) {
  const prompts = host.closest(".jp-Notebook")?.querySelectorAll(".jp-InputPrompt") ?? [];
  const found = [...prompts].find((prompt) => prompt.textContent.trim() === `[${number}]:`);
  return found?.closest(".jp-Cell");
}
