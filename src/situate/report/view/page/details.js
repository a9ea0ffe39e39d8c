// What the pointer is on, and what was clicked: an op, a transfer, or the memory at a time.
const TIP_HOLDERS = 6;
const PANEL_HOLDERS = 40;
const LISTED = 40;

class Details {
  constructor(view, show) {
    this.view = view;
    this.show = show;
    this.box = document.getElementById("tip");
  }

  tip(plan, hit, event) {
    const content = { op: opTip, transfer: transferTip, memory: memoryTip }[hit.kind](plan, hit);
    this.box.replaceChildren(...content);
    this.box.hidden = false;
    const { innerWidth, innerHeight } = window;
    const { width, height } = this.box.getBoundingClientRect();
    const right = event.clientX + 16 + width < innerWidth;
    const left = right ? event.clientX + 16 : event.clientX - width - 12;
    this.box.style.left = `${Math.max(4, left)}px`;
    this.box.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 8))}px`;
  }

  hideTip() {
    this.box.hidden = true;
  }

  /** Selects a hit and shows all about it; null selects nothing. */
  choose(plan, hit) {
    this.hideTip();
    if (!hit) {
      this.view.select(null, null);
      return;
    }
    const item = { op: hit.item, transfer: plan.n + hit.item, memory: null }[hit.kind];
    this.view.select(plan, item);
    const content = { op: opPanel, transfer: transferPanel, memory: memoryPanel }[hit.kind];
    this.show(content(plan, hit, this));
    document.getElementById("spoken").textContent = spoken(plan, hit);
  }

  opLink(plan, op) {
    const open = () => {
      this.view.reveal(plan.ops.start[op], plan.ops.end[op]);
      this.choose(plan, { kind: "op", item: op, more: 0 });
    };
    return el("button", { class: "link", type: "button", onclick: open }, plan.opName(op));
  }
}

const deviceOf = (plan, op) => plan.devices[plan.ops.device[op]].name;

function spoken(plan, hit) {
  if (hit.kind === "memory")
    return `${plan.devices[hit.device].name}: ${sizeText(plan.useAt(hit.device, hit.time))}`;
  if (hit.kind === "transfer") return plan.graph.tensors.name.at(plan.transfers.tensor[hit.item]);
  const seconds = plan.ops.end[hit.item] - plan.ops.start[hit.item];
  return `${plan.opName(hit.item)}, ${timeText(seconds, plan.unit)} on ${deviceOf(plan, hit.item)}`;
}

function opRows(plan, op) {
  const { ops } = plan.graph;
  const [start, end] = [plan.ops.start[op], plan.ops.end[op]];
  const optional = (label, bytes) => (bytes ? [label, sizeText(bytes)] : null);
  return [
    ["operator", plan.text("kind", op)],
    ["module", plan.text("module", op)],
    ["phase", plan.text("phase", op) + (ops.again[op] ? ", runs again" : "")],
    ...DIVISIONS.map((division) =>
      ops[division][op] >= 0 ? [division, String(ops[division][op])] : null,
    ),
    ["device", deviceOf(plan, op)],
    [
      "time",
      `${timeText(end - start, plan.unit)}, from ${timeText(start, plan.unit)} to ${timeText(end, plan.unit)}`,
    ],
    optional("output", plan.outputBytes(op)),
    optional("held for the step", ops.persistent[op]),
    optional("workspace", ops.workspace[op]),
    ops.flops[op]
      ? ["work", `${countText(ops.flops[op])} FLOP in ${plan.text("dtype", op)}`]
      : null,
    ["signature", plan.text("signature", op)],
  ];
}

/** The arguments of a signature such as `aten.mm(f32[8,64], f32[64,10])`. */
function shapesOf(signature) {
  const start = signature.indexOf("(");
  return start < 0 ? "" : signature.slice(start + 1, signature.lastIndexOf(")"));
}

function opTip(plan, { item, more }) {
  const shapes = shapesOf(plan.text("signature", item));
  return [
    el("strong", {}, shortened(plan.opName(item), 80)),
    facts(opRows(plan, item).filter((row) => row && row[0] !== "signature")),
    shapes ? el("p", { class: "pale" }, shortened(shapes, 120)) : null,
    el("p", {}, waitText(plan, item)),
    more > 0
      ? el("p", { class: "pale" }, `and ${plural(more, "more op")} at this pixel: zoom in`)
      : null,
  ].filter(Boolean);
}

/** Why an op starts when it does. */
function waitText(plan, op) {
  const start = plan.ops.start[op];
  const tensor = plan.ops.input[op];
  const ready = tensor < 0 ? 0 : plan.arrival(tensor, plan.ops.device[op]);
  const time = (seconds) => timeText(seconds, plan.unit);
  if (start - ready > 1e-9 * plan.makespan) {
    const place = plan.places[op];
    const lane = plan.lanes[plan.ops.device[op]];
    const before =
      place > 0 ? `, which ran ${shortened(plan.opName(lane.items[place - 1]), 60)}` : "";
    return `Waits ${time(start - ready)} for its device${before}; its inputs are there at ${time(ready)}.`;
  }
  if (tensor < 0) return "Starts at once: it reads no tensor.";
  const producer = plan.graph.tensors.producer[tensor];
  const k = plan.transferTo(tensor, plan.ops.device[op]);
  const from = shortened(plan.opName(producer), 60);
  if (k === undefined) return `Starts when its last input is ready, from ${from}.`;
  const { source, start: begin, end } = plan.transfers;
  const queued = begin[k] - plan.ops.end[producer];
  const queue =
    queued > 1e-9 * plan.makespan ? ` after ${time(queued)} in the channel's queue` : "";
  return (
    `Starts when its last input arrives, from ${from} on ${plan.devices[source[k]].name}: ` +
    `${time(end[k] - begin[k])} on the way${queue}.`
  );
}

function opPanel(plan, { item }, details) {
  const inputs = plan.inputsOf(item);
  const outputs = plan.outputsOf(item);
  return [
    el("h3", { class: "name" }, plan.opName(item)),
    el("p", {}, waitText(plan, item)),
    facts(opRows(plan, item)),
    el("h4", {}, plural(inputs.length, "input")),
    listed(inputs, (tensor) => inputItem(plan, item, tensor, details)),
    el("h4", {}, plural(outputs.length, "output")),
    listed(outputs, (tensor) => outputItem(plan, tensor, details)),
  ];
}

function listed(items, make) {
  const more = items.length - LISTED;
  const rows = items.slice(0, LISTED).map((item) => el("li", {}, ...make(item)));
  return el(
    "ul",
    {},
    ...rows,
    more > 0 ? el("li", { class: "pale" }, `and ${number(more)} more`) : null,
  );
}

function inputItem(plan, op, tensor, details) {
  const { name, size, producer } = plan.graph.tensors;
  const k = plan.transferTo(tensor, plan.ops.device[op]);
  const way = k === undefined ? "" : `, from ${plan.devices[plan.transfers.source[k]].name}`;
  const arrives = timeText(plan.arrival(tensor, plan.ops.device[op]), plan.unit);
  return [
    details.opLink(plan, producer[tensor]),
    ` ${shortened(name.at(tensor), 60)}, ${sizeText(size[tensor])}${way}, there at ${arrives}`,
  ];
}

function outputItem(plan, tensor, details) {
  const { name, size } = plan.graph.tensors;
  const readers = plan.readersOf(tensor).slice(0, 8);
  return [
    `${shortened(name.at(tensor), 60)}, ${sizeText(size[tensor])}${readers.length ? ", read by " : ""}`,
    ...readers.flatMap((op, i) => [i ? ", " : "", details.opLink(plan, op)]),
  ];
}

function transferRows(plan, k) {
  const { tensor, source, target, start, end, channel } = plan.transfers;
  const producer = plan.graph.tensors.producer[tensor[k]];
  const queued = Math.max(0, start[k] - plan.ops.end[producer]);
  return [
    ["from", plan.devices[source[k]].name],
    ["to", plan.devices[target[k]].name],
    ["channel", channel[k] >= 0 ? plan.channels.name.at(channel[k]) : ""],
    ["size", sizeText(plan.graph.tensors.size[tensor[k]])],
    ["time", `${timeText(end[k] - start[k], plan.unit)}, from ${timeText(start[k], plan.unit)}`],
    queued > 0 ? ["queued", timeText(queued, plan.unit)] : null,
  ];
}

function transferTip(plan, { item, more }) {
  const name = plan.graph.tensors.name.at(plan.transfers.tensor[item]);
  return [
    el("strong", {}, shortened(name, 80)),
    facts(transferRows(plan, item)),
    more > 0
      ? el("p", { class: "pale" }, `and ${plural(more, "more transfer")} at this pixel`)
      : null,
  ].filter(Boolean);
}

function transferPanel(plan, { item }, details) {
  const tensor = plan.transfers.tensor[item];
  return [
    el("h3", { class: "name" }, plan.graph.tensors.name.at(tensor)),
    facts(transferRows(plan, item)),
    el("h4", {}, "Made by"),
    el("p", {}, details.opLink(plan, plan.graph.tensors.producer[tensor])),
    el("h4", {}, "Read by"),
    listed(plan.readersOf(tensor), (op) => [details.opLink(plan, op), ` on ${deviceOf(plan, op)}`]),
  ];
}

const HOLDER_KINDS = ["held for the step", "tensor", "workspace", "tensors"];

function memoryRows(plan, { device, time }) {
  const { limit, peak } = plan.devices[device];
  const use = plan.useAt(device, time);
  return [
    ["at", timeText(Math.max(0, time), plan.unit)],
    [
      "in use",
      limit === null
        ? sizeText(use)
        : `${sizeText(use)}, ${shareText(use / limit)} of ${sizeText(limit)}`,
    ],
    [
      "peak",
      sizeText(peak) +
        (limit !== null && peak > limit ? `, ${sizeText(peak - limit)} too much` : ""),
    ],
  ];
}

function holderTable(plan, { device, time }, count) {
  const holders = plan.holdersAt(device, time);
  const { size, kind } = plan.memory;
  const rows = holders
    .slice(0, count)
    .map((i) => [shortened(plan.holderName(i), 48), HOLDER_KINDS[kind[i]], sizeText(size[i])]);
  const rest = holders.slice(count).reduce((sum, i) => sum + size[i], 0);
  if (rest) rows.push([`${number(holders.length - count)} more`, "", sizeText(rest)]);
  return tableOf([], rows, [2]);
}

function memoryTip(plan, hit) {
  return [
    el("strong", {}, `Memory of ${plan.devices[hit.device].name}`),
    facts(memoryRows(plan, hit)),
    holderTable(plan, hit, TIP_HOLDERS),
  ];
}

function memoryPanel(plan, hit) {
  return [
    el("h3", {}, `Memory of ${plan.devices[hit.device].name}`),
    facts(memoryRows(plan, hit)),
    holderTable(plan, hit, PANEL_HOLDERS),
  ];
}
