// Moves the keyboard through the blocks of a map, and reads the one at hand below it.

const ALONG = { ArrowLeft: -1, ArrowRight: 1 };
const ACROSS = { ArrowUp: -1, ArrowDown: 1 };
const BLOCK = "[role=option]";

/** Goes to another block; says whether the key meant one. */
export function walkBlocks({ target, key }) {
  const block = target.closest?.(BLOCK);
  if (!block) return false;
  const map = block.closest("[role=listbox]");
  const blocks = [...map.querySelectorAll(BLOCK)];
  let next;
  if (key in ALONG) next = blocks[blocks.indexOf(block) + ALONG[key]];
  else if (key in ACROSS) next = nearest(block, [...map.children], ACROSS[key]);
  else if (key === "Home") next = blocks[0];
  else if (key === "End") next = blocks.at(-1);
  else return false;
  next?.focus();
  return true;
}

/** The block of the shelf above or below that is closest to this one's middle. */
function nearest(block, shelves, aside) {
  const shelf = shelves[shelves.indexOf(block.closest(".shelf")) + aside];
  const middle = (it) => {
    const { left, width } = it.getBoundingClientRect();
    return left + width / 2;
  };
  const distance = (it) => Math.abs(middle(it) - middle(block));
  const blocks = [...(shelf?.querySelectorAll(BLOCK) ?? [])];
  return blocks.sort((a, b) => distance(a) - distance(b))[0];
}

/** Reads the block that is pointed at; where it is none, what can be done. */
export function readBlock({ target }) {
  const map = target.closest?.("[role=listbox]");
  if (!map) return;
  const line = map.nextElementSibling;
  line.textContent = target.closest(BLOCK)?.ariaLabel ?? line.dataset.hint;
}

/** The keyboard is at a block: it comes back to it, and it is read. */
export function stayAtBlock(event) {
  const block = event.target.closest?.(BLOCK);
  if (!block) return;
  for (const other of block.closest("[role=listbox]").querySelectorAll(BLOCK)) {
    other.tabIndex = other === block ? 0 : -1;
    other.ariaSelected = `${other === block}`;
  }
  readBlock(event);
}
