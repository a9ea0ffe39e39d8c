// Colours after Okabe and Ito, each with a pattern, so that classes differ without colour too.
const PALETTE = ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#0072b2", "#d55e00", "#f0e442"];
const OTHER = "#9aa0a6";
const DARK_COLORS = new Set(["#0072b2", "#d55e00", "#009e73"]);
const HATCHES = ["", "/", ".", "\\", "x", "-", "|"];
const TILE = 8;

const colorOf = (index) => PALETTE[index % PALETTE.length];

/** Fill styles of a canvas by index: plain colours, or colours with a pattern. */
class Fills {
  constructor(context, labels, patterned) {
    this.context = context;
    this.styles = labels.map((label, i) => this.style(label, i, patterned));
  }

  style(label, index, patterned) {
    const color = label === "other" ? OTHER : colorOf(index);
    const hatch = HATCHES[(index + Math.floor(index / PALETTE.length)) % HATCHES.length];
    return patterned && hatch && label !== "other" ? patternOf(this.context, color, hatch) : color;
  }
}

function patternOf(context, color, hatch) {
  const scale = window.devicePixelRatio || 1;
  const tile = document.createElement("canvas");
  tile.width = tile.height = TILE * scale;
  paintTile(tile.getContext("2d"), color, hatch, scale);
  const pattern = context.createPattern(tile, "repeat");
  // The context draws in CSS pixels, the tile has those of the device.
  pattern.setTransform(new DOMMatrix().scale(1 / scale));
  return pattern;
}

function paintTile(paint, color, hatch, scale = 1) {
  paint.scale(scale, scale);
  paint.fillStyle = color;
  paint.fillRect(0, 0, TILE, TILE);
  paint.strokeStyle = paint.fillStyle = "rgba(0, 0, 0, 0.28)";
  paint.lineWidth = 1;
  paint.beginPath();
  if ("/x".includes(hatch)) diagonals(paint, 1);
  if ("\\x".includes(hatch)) diagonals(paint, -1);
  if (hatch === "-") {
    paint.moveTo(0, 4);
    paint.lineTo(TILE, 4);
  }
  if (hatch === "|") {
    paint.moveTo(4, 0);
    paint.lineTo(4, TILE);
  }
  paint.stroke();
  if (hatch === ".") {
    paint.fillRect(1, 1, 1.5, 1.5);
    paint.fillRect(5, 5, 1.5, 1.5);
  }
}

function diagonals(paint, direction) {
  for (const shift of [-TILE, 0, TILE]) {
    paint.moveTo(shift, direction > 0 ? TILE : 0);
    paint.lineTo(shift + TILE, direction > 0 ? 0 : TILE);
  }
}

/** A small square of the legend, with its pattern. */
function swatch(index, label, patterned) {
  const canvas = el("canvas", { width: 14, height: 14, class: "swatch", "aria-hidden": "true" });
  const paint = canvas.getContext("2d");
  paint.fillStyle = new Fills(paint, [...Array(index).fill(""), label], patterned).styles[index];
  paint.fillRect(0, 0, 14, 14);
  return canvas;
}

/** Colours of the style sheet's theme, for canvases. */
function themeColors() {
  const style = getComputedStyle(document.documentElement);
  const names = [
    "back",
    "lane",
    "ink",
    "pale",
    "line",
    "accent",
    "critical",
    "live",
    "held",
    "over",
  ];
  return Object.fromEntries(
    names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
  );
}
