// The cluster: devices on a circle with their busy time and memory, and links as wide as their load.
const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function clusterPicture(plan) {
  const count = plan.devices.length;
  const radius = count > 1 ? Math.max(105, count * 13) : 0;
  const size = 2 * radius + 110;
  const at = (d) => {
    const angle = (2 * Math.PI * d) / count - Math.PI / 2;
    return [size / 2 + radius * Math.cos(angle), size / 2 + radius * Math.sin(angle)];
  };
  const picture = svg("svg", {
    viewBox: `0 0 ${size} ${size}`,
    class: "cluster",
    role: "img",
    "aria-label": `${plural(count, "device")} and the loads of their links; the table below has the figures`,
  });
  picture.append(
    ...linkLines(plan, at),
    ...plan.devices.map((device, d) => deviceNode(plan, device, d, at(d), count)),
  );
  return el("div", {}, picture, deviceTable(plan), linkTable(plan));
}

const linkShare = (plan, row) => {
  const { channel, seconds } = plan.links;
  const busy = channel[row] >= 0 ? plan.channels.busy[channel[row]] : seconds[row];
  return busy / (plan.makespan || 1);
};

function linkLines(plan, at) {
  const { source, target } = plan.links;
  return Array.from(source, (from, row) => {
    const [[x0, y0], [x1, y1]] = [at(from), at(target[row])];
    // The two directions of a pair bend to different sides.
    const bend = [(x0 + x1) / 2 + (y1 - y0) * 0.1, (y0 + y1) / 2 - (x1 - x0) * 0.1];
    const share = linkShare(plan, row);
    const line = svg("path", {
      d: `M${x0},${y0} Q${bend[0]},${bend[1]} ${x1},${y1}`,
      fill: "none",
      class: "wire",
      "stroke-width": (0.8 + 9 * Math.min(1, share)).toFixed(2),
    });
    line.append(svg("title", {}, linkText(plan, row)));
    return line;
  });
}

function linkText(plan, row) {
  const { source, target, bytes, count } = plan.links;
  const names = `${plan.devices[source[row]].name} to ${plan.devices[target[row]].name}`;
  return `${names}: ${plural(count[row], "transfer")}, ${sizeText(bytes[row])}, busy ${shareText(linkShare(plan, row))}`;
}

function deviceNode(plan, device, d, [x, y], count) {
  const radius = count > 16 ? 19 : 30;
  const share = Math.min(1, device.busy / (plan.makespan || 1));
  const around = 2 * Math.PI * radius;
  const over = device.limit !== null && device.peak > device.limit;
  const ring = svg("circle", {
    cx: x,
    cy: y,
    r: radius,
    fill: "none",
    stroke: colorOf(d),
    "stroke-width": 6,
    "stroke-dasharray": `${share * around} ${around}`,
    transform: `rotate(-90 ${x} ${y})`,
  });
  const name = device.name.length > 8 || count > 12 ? String(d) : device.name;
  const texts = [name, shareText(share)].map((text, i) =>
    svg(
      "text",
      { x, y: y + (i ? 10 : -3), "text-anchor": "middle", class: i ? "small" : "strong" },
      text,
    ),
  );
  const warning = over
    ? [svg("text", { x, y: y + 22, "text-anchor": "middle", class: "small over" }, "▲ full")]
    : [];
  return svg(
    "g",
    {},
    svg("circle", { cx: x, cy: y, r: radius, class: "node" }),
    ring,
    ...texts,
    ...warning,
    svg(
      "title",
      {},
      `${device.name} ${device.model}: busy ${shareText(share)}, peak ${sizeText(device.peak)}`,
    ),
  );
}

function deviceTable(plan) {
  const rows = plan.devices.map((device, d) => [
    el("span", {}, deviceMark(d), ` ${device.name}`),
    number(device.ops),
    shareText(device.busy / (plan.makespan || 1)),
    sizeText(device.peak),
    device.limit === null ? "none" : sizeText(device.limit),
  ]);
  return tableOf(["device", "ops", "busy", "peak memory", "limit"], rows, [1, 2, 3, 4]);
}

function linkTable(plan) {
  const { source, target, bytes, count, seconds } = plan.links;
  const order = Array.from(source, (_, row) => row)
    .sort((a, b) => seconds[b] - seconds[a])
    .slice(0, 24);
  if (!order.length) return el("p", {}, "No tensor crosses devices.");
  const rows = order.map((row) => [
    `${plan.devices[source[row]].name} → ${plan.devices[target[row]].name}`,
    number(count[row]),
    sizeText(bytes[row]),
    timeText(seconds[row], plan.unit),
    shareText(linkShare(plan, row)),
  ]);
  return tableOf(["link", "transfers", "bytes", "time", "channel busy"], rows, [1, 2, 3, 4]);
}
