// The static picture that stands above the live report.

const PNG = "data:image/png;base64,";

/** The picture whose base64 ends with `tail`, among the outputs around `element`. */
export function findPicture(element, tail) {
  for (let around = element.parentElement; around; around = around.parentElement) {
    for (const image of around.querySelectorAll(`img[src^="${PNG}"]`)) {
      if (tail && image.src.replace(/%0A|\s/g, "").endsWith(tail)) return output(image, element);
    }
    if (around.matches(".jp-OutputArea, .output_wrapper, .jp-Cell")) return null;
  }
  return null;
}

/** The largest box that holds the picture but not the report: its prompt goes with it. */
function output(image, report) {
  let box = image;
  while (box.parentElement && !box.parentElement.contains(report)) box = box.parentElement;
  return box;
}
