// Numbers as text, and elements of the page whose content is always text, never markup.
const TIMES = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
  [1e-9, "ns"],
];
const SIZES = [
  [2 ** 40, "TiB"],
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
];
const COUNTS = [
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

function threeDigits(value) {
  const size = Math.abs(value);
  const decimals = size > 0 && size < 1000 ? 2 - Math.floor(Math.log10(size)) : 0;
  const digits = Math.min(Math.max(decimals, 0), 3);
  return value.toLocaleString("en", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

function timeText(value, unit) {
  if (!unit) return value.toLocaleString("en", { maximumSignificantDigits: 6 });
  if (Math.abs(value) < 5e-13) return "0 s";
  const [scale, name] = TIMES.find(([least]) => Math.abs(value) >= least) || TIMES.at(-1);
  return `${threeDigits(value / scale)} ${name}`;
}

function sizeText(bytes) {
  const scale = SIZES.find(([least]) => Math.abs(bytes) >= least);
  return scale ? `${threeDigits(bytes / scale[0])} ${scale[1]}` : `${Math.round(bytes)} B`;
}

function countText(count) {
  const scale = COUNTS.find(([least]) => Math.abs(count) >= least);
  return scale ? `${threeDigits(count / scale[0])} ${scale[1]}` : String(Math.round(count));
}

const shareText = (share) => `${(100 * share).toFixed(1)} %`;
const number = (count) => count.toLocaleString("en");
const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

/** A name of at most `width` characters, with an ellipsis in its middle. */
function shortened(name, width) {
  if (name.length <= width) return name;
  const tail = Math.floor((width - 1) / 2);
  return `${name.slice(0, width - 1 - tail)}…${name.slice(name.length - tail)}`;
}

/** An element; strings among the children become text. */
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A table with a heading row; columns in `right` hold numbers. */
function tableOf(headings, rows, right = []) {
  const cell = (tag) => (text, i) => {
    const scope = tag === "th" ? "col" : null;
    const child = text instanceof Node ? text : document.createTextNode(text);
    return el(tag, { class: right.includes(i) ? "right" : null, scope }, child);
  };
  const head = headings.length ? el("thead", {}, el("tr", {}, ...headings.map(cell("th")))) : null;
  const body = rows.map((row) => el("tr", {}, ...row.map(cell("td"))));
  return el("table", {}, head, el("tbody", {}, ...body));
}

/** Rows of a label and a value. */
function facts(rows) {
  const kept = rows.filter((row) => row && row[1] !== "" && row[1] !== null);
  return el(
    "dl",
    {},
    ...kept.flatMap(([label, value]) => [
      el("dt", {}, label),
      el("dd", {}, value instanceof Node ? value : String(value)),
    ]),
  );
}
