// The page of searches that are still running: it asks for their state every second.
const PERIOD = 1000;
const CHART = { width: 720, height: 240, left: 80, bottom: 28, top: 12, right: 130 };
const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

async function poll() {
  const notice = document.getElementById("notice");
  try {
    const state = await (await fetch("/state")).json();
    document.getElementById("sections").replaceChildren(...state.sections.map(section));
    const running = state.sections.filter((one) => one.running).length;
    notice.textContent = running
      ? `${plural(running, "search").replace("searchs", "searches")} running`
      : "nothing is running";
    document.body.dataset.state = "shown";
  } catch {
    notice.textContent = "the server has ended; this is the last state";
  }
  setTimeout(poll, PERIOD);
}

function section({ title, note, figures = [], charts = [], workers = [], finalists = [] }) {
  return el(
    "section",
    {},
    el("h2", {}, title),
    note ? el("p", { class: "pale" }, note) : null,
    facts(figures),
    ...charts.map(chart),
    workers.length ? tableOf(["", ""], workers) : null,
    finalists.length ? tableOf(["finalist", "median"], finalists) : null,
  );
}

function chart({ title, unit, lines }) {
  const points = lines.flatMap((line) => line.points);
  if (!points.length) return el("p", { class: "pale" }, "No plan that fits yet.");
  const scale = scaleOf(points);
  const picture = svg("svg", {
    viewBox: `0 0 ${CHART.width} ${CHART.height}`,
    class: "chart",
    role: "img",
    "aria-label": title,
  });
  picture.append(
    ...axes(scale, unit),
    ...lines.filter((line) => line.points.length).flatMap((line, i) => curve(line, i, scale)),
  );
  return el("figure", {}, el("figcaption", {}, title), picture);
}

function scaleOf(points) {
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const [low, high] = [ys.reduce((a, b) => Math.min(a, b)), ys.reduce((a, b) => Math.max(a, b))];
  const room = (high - low || high || 1) * 0.08;
  const last = xs.reduce((a, b) => Math.max(a, b), 1e-9);
  const width = CHART.width - CHART.left - CHART.right;
  const height = CHART.height - CHART.top - CHART.bottom;
  return {
    last,
    low: low - room,
    high: high + room,
    x: (value) => CHART.left + (value / last) * width,
    y: (value) => CHART.top + height * (1 - (value - low + room) / (high - low + 2 * room)),
  };
}

function axes(scale, unit) {
  const right = CHART.width - CHART.right;
  const text = (value) => (unit === "B" ? sizeText(value) : timeText(value, unit));
  const grid = [0.1, 0.5, 0.9].flatMap((share) => {
    const value = scale.low + share * (scale.high - scale.low);
    const y = scale.y(value);
    return [
      svg("line", { x1: CHART.left, x2: right, y1: y, y2: y, class: "grid" }),
      svg("text", { x: CHART.left - 6, y: y + 4, "text-anchor": "end" }, text(value)),
    ];
  });
  const end = svg(
    "text",
    { x: right, y: CHART.height - 8, "text-anchor": "end" },
    threeDigits(scale.last),
  );
  return [...grid, svg("text", { x: CHART.left, y: CHART.height - 8 }, "0"), end];
}

function curve({ name, points, step }, index, scale) {
  const path = points
    .map(([x, y], i) => {
      const [left, top] = [scale.x(x).toFixed(1), scale.y(y).toFixed(1)];
      if (!i) return `M${left},${top}`;
      return step ? `H${left}V${top}` : `L${left},${top}`;
    })
    .join("");
  const [, y] = points.at(-1);
  const dash = index ? "6 4" : "none";
  const right = scale.x(scale.last);
  return [
    svg("path", {
      d: step ? `${path}H${right}` : path,
      fill: "none",
      class: `curve curve${index}`,
      "stroke-dasharray": dash,
    }),
    svg("text", { x: right + 8, y: scale.y(y) + 4 }, name),
  ];
}

document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches
  ? "dark"
  : "light";
poll();
