// The timeline of one plan: a lane for the ops of each device with its memory below, then a lane
// for each channel in use. The canvas shows the visible part of a scrolled area.
const AXIS = 24;
const GUTTER = 148;
const MAX_ARROWS = 300;
const MAX_CHANNELS = 96;

class Timeline {
  constructor(plan, view, details) {
    Object.assign(this, { plan, view, details });
    this.canvas = el("canvas", {
      tabindex: "0", role: "application", "aria-roledescription": "timeline",
      "aria-label": `Timeline of ${plan.label}. Arrow keys move, plus and minus zoom, N and P go from op to op.`,
    });
    this.spacer = el("div", { class: "spacer" });
    this.scroller = el("div", { class: "scroller" }, this.canvas, this.spacer);
    this.element = el("section", { class: "pane" }, this.heading(), this.scroller);
    this.lane = 0;
    this.layout();
    this.listen();
    view.subscribe(() => this.draw());
  }

  heading() {
    const { plan } = this;
    const value = plan.figures[0] ? `${plan.figures[0][0]} ${plan.figures[0][1]}` : "";
    const fits = plan.fits ? "" : ` · does not fit: ${plan.over}`;
    return el("h2", { class: plan.fits ? null : "bad" }, `${plan.label} · ${value}${fits}`);
  }

  /** Rows from top to bottom; where a pane has room, those of devices are taller. */
  layout(room = 0) {
    const compact = this.plan.devices.length > 12;
    const [bar, memory, gap] = compact ? [16, 14, 7] : [26, 34, 10];
    const channels = this.busyChannels();
    const least = this.plan.devices.length * (bar + memory + 2 + gap);
    const stretch = Math.min(2.4, Math.max(1, (room - AXIS - 12 - 13 * channels.length) / least));
    this.rows = [];
    let top = AXIS + 4;
    this.plan.devices.forEach((_, device) => {
      const row = { kind: "device", device, top, bar: Math.round(bar * stretch), memory: Math.round(memory * stretch) };
      row.height = row.bar + row.memory + 2;
      this.rows.push(row);
      top += row.height + Math.round(gap * stretch);
    });
    for (const channel of channels) {
      this.rows.push({ kind: "channel", channel, top, bar: 9, height: 9 });
      top += 13;
    }
    this.height = top + 6;
    this.spacer.style.height = `${this.height}px`;
  }

  /** The channels with transfers, in the order of the cluster; the busiest where there are many. */
  busyChannels() {
    const busy = this.plan.channels.busy;
    const used = [...this.plan.wires.keys()].filter((channel) => channel >= 0);
    used.sort((a, b) => busy[b] - busy[a]);
    return used.slice(0, MAX_CHANNELS).sort((a, b) => a - b);
  }

  get width() {
    return Math.max(50, this.scroller.clientWidth - GUTTER - 8);
  }

  x(time) {
    return GUTTER + ((time - this.view.from) / this.view.span) * this.width;
  }

  time(x) {
    return this.view.from + ((x - GUTTER) / this.width) * this.view.span;
  }

  resize() {
    const scale = window.devicePixelRatio || 1;
    const [width, height] = [this.scroller.clientWidth, this.scroller.clientHeight];
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
      this.spacer.style.marginTop = `${-height}px`;
      this.painter = null;
      this.layout(height - 2);
    }
    this.paint = this.canvas.getContext("2d");
    this.paint.setTransform(scale, 0, 0, scale, 0, 0);
    return [width, height];
  }

  prepare() {
    const state = `${this.view.options.patterns} ${document.documentElement.dataset.theme} ${this.width}`;
    if (this.painter && this.state === state) return;
    this.state = state;
    this.colors = themeColors();
    const fills = new Fills(this.paint, this.plan.graph.classes, this.view.options.patterns).styles;
    this.painter = new LanePainter(this.paint, [...fills, this.colors.line], Math.floor(this.width));
    this.wirePainter = new LanePainter(this.paint, [this.colors.accent, this.colors.line], Math.floor(this.width));
  }

  draw() {
    const [width, height] = this.resize();
    this.prepare();
    const { paint, colors } = this;
    paint.fillStyle = colors.back;
    paint.fillRect(0, 0, width, height);
    paint.save();
    paint.translate(0, -this.scroller.scrollTop);
    const visible = this.visibleRows(height);
    for (const row of visible) this.drawRow(row);
    paint.beginPath();
    paint.rect(GUTTER, this.scroller.scrollTop + AXIS, this.width, height);
    paint.clip();
    if (this.view.options.arrows) this.drawArrows();
    if (this.view.options.path) this.drawPath();
    this.drawSelection();
    paint.restore();
    this.drawAxis(height);
  }

  visibleRows(height) {
    const top = this.scroller.scrollTop;
    return this.rows.filter((row) => row.top + row.height > top && row.top < top + height);
  }

  /** The class of an item for colours, or that of dimmed bars. */
  classOf(dimmed) {
    const { class: classes, slice, replica } = this.plan.graph.ops;
    const { view, plan } = this;
    const onlyPath = view.options.path;
    const match = view.match && view.match.plan.graph === plan.graph ? view.match.flags : null;
    if (view.slice === null && view.replica === null && !onlyPath && !match) return (op) => classes[op];
    return (op) => {
      const hidden = (view.slice !== null && slice[op] !== view.slice)
        || (view.replica !== null && replica[op] !== view.replica)
        || (onlyPath && !plan.isCritical[op]) || (match && !match[op]);
      return hidden ? dimmed : classes[op];
    };
  }

  drawRow(row) {
    const { paint, plan, view, colors } = this;
    const box = { left: GUTTER, top: row.top, width: this.width, height: row.bar };
    paint.fillStyle = colors.lane;
    paint.fillRect(box.left, box.top, box.width, box.height);
    paint.save();
    paint.beginPath();
    paint.rect(GUTTER, row.top - 1, this.width, row.height + 2);
    paint.clip();
    if (row.kind === "channel") {
      const dim = this.channelClass();
      this.wirePainter.draw(plan.wires.get(row.channel), box, view, dim);
    } else {
      const dimmed = plan.graph.classes.length;
      const classOf = this.classOf(dimmed);
      this.painter.draw(plan.lanes[row.device], box, view, classOf);
      const ink = (op) => this.inkOf(classOf(op), dimmed);
      drawNames(paint, plan.lanes[row.device], box, view, (op) => plan.opName(op), ink);
      this.drawDeviceMemory(row);
    }
    paint.restore();
    this.drawLabel(row);
  }

  channelClass() {
    const { view, plan } = this;
    return view.options.path ? (k) => (plan.isCritical[plan.n + k] ? 0 : 1) : () => 0;
  }

  inkOf(index, dimmed) {
    if (index === dimmed) return this.colors.pale;
    if (this.plan.graph.classes[index] === "other") return "#000";
    return DARK_COLORS.has(colorOf(index)) && index > 2 ? "#fff" : "#000";
  }

  drawDeviceMemory(row) {
    const { limit } = this.plan.devices[row.device];
    const top = this.memoryTop(row.device);
    const box = { left: GUTTER, top: row.top + row.bar + 2, width: Math.floor(this.width), height: row.memory };
    this.paint.fillStyle = this.colors.lane;
    this.paint.fillRect(box.left, box.top, this.width, box.height);
    drawMemory(this.paint, this.plan.curves[row.device], box, this.view, limit, top, this.colors);
  }

  /** The bytes at a memory chart's top: a device's limit, or less where all use little of theirs. */
  memoryTop(device) {
    const { peak, limit } = this.plan.devices[device];
    const highest = Math.max(...this.plan.devices.map((other) => other.peak), 1);
    return Math.max(1.06 * peak, Math.min(1.06 * (limit ?? Infinity), 1.7 * highest));
  }

  drawLabel(row) {
    const { paint, plan, colors } = this;
    const middle = row.top + row.bar / 2;
    paint.textBaseline = "middle";
    if (row.kind === "channel") {
      this.label(plan.channels.name.at(row.channel), "9px", colors.pale, 8, middle, GUTTER - 16);
      return;
    }
    const device = plan.devices[row.device];
    const small = row.bar < 20;
    this.label(device.name, small ? "600 11px" : "600 12px", colors.ink, 8, middle, GUTTER - 66);
    paint.textAlign = "right";
    this.label(shareText(device.busy / (plan.makespan || 1)), "11px", colors.pale, GUTTER - 8, middle, 60);
    paint.textAlign = "left";
    this.memoryLabel(row, device);
  }

  memoryLabel(row, device) {
    const over = device.limit !== null && device.peak > device.limit;
    const color = over ? this.colors.over : this.colors.pale;
    const limit = device.limit === null ? "" : `of ${sizeText(device.limit)}`;
    const lines = [`${over ? "▲ " : ""}${sizeText(device.peak)}`, limit];
    const middle = row.top + row.bar + 2 + row.memory / 2;
    if (row.memory < 28) this.label(lines.join(" "), "9px", color, 8, middle, GUTTER - 16);
    else lines.forEach((line, i) => this.label(line, "11px", color, 8, middle - 7 + 14 * i, GUTTER - 16));
  }

  /** A text of at most `room` pixels. */
  label(text, font, color, x, y, room) {
    const { paint } = this;
    paint.font = `${font} system-ui, sans-serif`;
    paint.fillStyle = color;
    const width = paint.measureText(text).width;
    const fitting = width > room ? shortened(text, Math.max(3, Math.floor((text.length * room) / width))) : text;
    paint.fillText(fitting, x, y);
  }

  rowOf(device) {
    return this.rows[device];
  }

  drawArrows() {
    const arrows = this.visibleTransfers();
    if (arrows.length > MAX_ARROWS) return;
    const { paint, plan } = this;
    paint.globalAlpha = Math.min(0.9, Math.max(0.4, 6 / Math.sqrt(arrows.length)));
    for (const k of arrows) {
      const dim = this.view.options.path && !plan.isCritical[plan.n + k];
      if (!dim) this.drawArrow(k, this.colors.accent);
    }
    paint.globalAlpha = 1;
  }

  visibleTransfers() {
    const visible = [];
    for (const lane of this.plan.wires.values()) {
      const [first, last] = lane.within(this.view.from, this.view.to);
      if (visible.length + last - first > MAX_ARROWS) return { length: Infinity };
      for (let i = first; i < last; i++) visible.push(lane.items[i]);
    }
    return visible;
  }

  drawArrow(k, color, width = 1) {
    const { source, target, start, end } = this.plan.transfers;
    const [from, to] = [this.rowOf(source[k]), this.rowOf(target[k])];
    const down = to.top > from.top;
    const y = [down ? from.top + from.bar : from.top, down ? to.top : to.top + to.bar];
    arrow(this.paint, [this.x(start[k]), y[0]], [this.x(end[k]), y[1]], color, width);
  }

  drawPath() {
    const { paint, plan } = this;
    const { item, start, end, kind } = plan.path;
    paint.strokeStyle = this.colors.critical;
    paint.lineWidth = 3;
    paint.beginPath();
    for (let i = 0; i < item.length; i++) {
      if (end[i] < this.view.from || start[i] > this.view.to) continue;
      const transfer = item[i] - plan.n;
      const device = transfer >= 0 ? plan.transfers.target[transfer] : plan.ops.device[item[i]];
      const row = this.rowOf(device);
      const y = row.top + row.bar - 1.5;
      if (kind[i] === 1) {
        const from = this.rowOf(plan.transfers.source[transfer]);
        paint.moveTo(this.x(start[i]), from.top + from.bar - 1.5);
        paint.lineTo(this.x(end[i]), y);
      } else {
        paint.moveTo(this.x(start[i]), y);
        paint.lineTo(this.x(end[i]), y);
      }
    }
    paint.stroke();
    paint.lineWidth = 1;
  }

  drawSelection() {
    const { selection, cursor } = this.view;
    const { paint, colors } = this;
    if (cursor !== null) {
      paint.fillStyle = colors.pale;
      paint.fillRect(this.x(cursor), AXIS + this.scroller.scrollTop, 1, this.scroller.clientHeight);
    }
    if (!selection || selection.plan !== this.plan) return;
    if (selection.item >= this.plan.n) {
      this.drawArrow(selection.item - this.plan.n, colors.critical, 2.5);
      return;
    }
    for (const tensor of this.plan.inputsOf(selection.item).slice(0, 60)) {
      this.connect(this.plan.graph.tensors.producer[tensor], selection.item, colors.input ?? colors.accent);
    }
    for (const tensor of this.plan.outputsOf(selection.item).slice(0, 60)) {
      for (const reader of this.plan.readersOf(tensor).slice(0, 60)) this.connect(selection.item, reader, colors.critical);
    }
    this.outline(selection.item, colors.ink, 2);
  }

  connect(producer, reader, color) {
    const { ops } = this.plan;
    const [from, to] = [this.rowOf(ops.device[producer]), this.rowOf(ops.device[reader])];
    this.outline(producer, color, 1.5);
    this.outline(reader, color, 1.5);
    const start = [this.x(ops.end[producer]), from.top + from.bar / 2];
    arrow(this.paint, start, [this.x(ops.start[reader]), to.top + to.bar / 2], color, 1.5);
  }

  outline(op, color, width) {
    const { ops } = this.plan;
    const row = this.rowOf(ops.device[op]);
    const left = this.x(ops.start[op]);
    this.paint.strokeStyle = color;
    this.paint.lineWidth = width;
    this.paint.strokeRect(left, row.top - 1, Math.max(this.x(ops.end[op]) - left, 2), row.bar + 2);
    this.paint.lineWidth = 1;
  }

  drawAxis(height) {
    const { paint, colors, view } = this;
    paint.fillStyle = colors.back;
    paint.fillRect(0, 0, this.scroller.clientWidth, AXIS);
    paint.font = "11px system-ui, sans-serif";
    paint.textBaseline = "middle";
    const step = niceStep(view.span / (this.width / 110));
    for (let tick = Math.ceil(view.from / step) * step; tick <= view.to; tick += step) {
      const x = this.x(tick);
      paint.fillStyle = colors.line;
      paint.fillRect(x, AXIS - 5, 1, 5);
      paint.fillStyle = colors.pale;
      if (x + 44 > this.scroller.clientWidth) continue;
      paint.fillText(this.tickText(Math.abs(tick) < step / 2 ? 0 : tick, step), x + 3, AXIS - 13);
    }
    this.drawOverview();
  }

  tickText(tick, step) {
    if (!this.plan.unit) return number(Number(tick.toPrecision(8)));
    const [scale, name] = TIMES.find(([least]) => Math.abs(tick || step) >= least * 0.999) || TIMES.at(-1);
    const decimals = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / scale) - 1e-9)));
    return `${(tick / scale).toFixed(decimals)} ${name}`;
  }

  /** The visible part of the step, as a bar above the axis. */
  drawOverview() {
    const { paint, colors, view } = this;
    if (view.span > 0.99 * view.total) return;
    const scale = this.width / view.total;
    paint.fillStyle = colors.line;
    paint.fillRect(GUTTER, 0, this.width, 3);
    paint.fillStyle = colors.accent;
    const left = Math.max(0, view.from) * scale;
    paint.fillRect(GUTTER + left, 0, Math.max(3, view.span * scale), 3);
  }

  // Pointer and keys.
  listen() {
    const { canvas, scroller } = this;
    scroller.addEventListener("scroll", () => this.draw());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("dblclick", (event) => this.view.zoom(0.4, this.time(event.offsetX)));
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(scroller);
  }

  wheel(event) {
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.view.pan((event.deltaX || event.deltaY) / this.width);
    } else if (event.ctrlKey || event.metaKey || this.height <= this.scroller.clientHeight + 1) {
      event.preventDefault();
      this.view.zoom(Math.exp(event.deltaY * 0.0015), this.time(event.offsetX));
    }
  }

  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { x: event.offsetX, from: this.view.from, moved: false };
  }

  move(event) {
    if (this.drag && Math.abs(event.offsetX - this.drag.x) > 3) this.drag.moved = true;
    if (this.drag?.moved) {
      const shift = ((this.drag.x - event.offsetX) / this.width) * this.view.span;
      this.view.show(this.drag.from + shift, this.drag.from + shift + this.view.span);
      this.details.hideTip();
      return;
    }
    this.view.cursor = this.time(event.offsetX);
    this.view.changed();
    const hit = this.hit(event.offsetX, event.offsetY);
    if (hit) this.details.tip(this.plan, hit, event);
    else this.details.hideTip();
  }

  release(event) {
    const dragged = this.drag?.moved;
    this.drag = null;
    if (!dragged) this.details.choose(this.plan, this.hit(event.offsetX, event.offsetY));
  }

  leave() {
    this.view.cursor = null;
    this.view.changed();
    this.details.hideTip();
  }

  /** What lies under a point: an op, a transfer, or the memory of a device at a time. */
  hit(x, y) {
    const top = y + this.scroller.scrollTop;
    const row = this.rows.find((r) => top >= r.top - 2 && top <= r.top + r.height + 2);
    if (!row || x < GUTTER || y < AXIS) return null;
    const time = this.time(x);
    if (row.kind === "device" && top > row.top + row.bar + 1) return { kind: "memory", device: row.device, time };
    const lane = row.kind === "device" ? this.plan.lanes[row.device] : this.plan.wires.get(row.channel);
    const share = (top - row.top) / row.bar;
    const found = nearest(lane, time, this.view.span / this.width, Math.floor(share * lane.rows));
    if (!found) return null;
    return row.kind === "device" ? { kind: "op", ...found } : { kind: "transfer", ...found };
  }

  key(event) {
    const steps = {
      ArrowLeft: () => this.view.pan(-0.1), ArrowRight: () => this.view.pan(0.1),
      ArrowUp: () => this.step(-1), ArrowDown: () => this.step(1),
      n: () => this.neighbour(1), p: () => this.neighbour(-1), Home: () => this.view.fit(),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !steps[event.key]) return;
    event.preventDefault();
    steps[event.key]();
  }

  /** Goes to the device above or below, to the op at the same time. */
  step(by) {
    const count = this.plan.devices.length;
    for (let i = 1; i <= count; i++) {
      const device = (this.lane + by * i + count * count) % count;
      if (!this.plan.lanes[device].items.length) continue;
      this.lane = device;
      const selected = this.selected();
      const time = selected === null ? this.view.from : this.plan.ops.start[selected];
      const lane = this.plan.lanes[device];
      const place = Math.min(lowerBound(lane.start, time), lane.items.length - 1);
      this.choose(lane.items[place]);
      return;
    }
  }

  selected() {
    const { selection } = this.view;
    return selection && selection.plan === this.plan && selection.item < this.plan.n ? selection.item : null;
  }

  neighbour(by) {
    const selected = this.selected();
    if (selected === null) {
      this.lane = this.lane || -1;
      this.step(this.lane < 0 ? 1 : 0);
      return;
    }
    const lane = this.plan.lanes[this.plan.ops.device[selected]];
    const place = Math.min(Math.max(this.plan.places[selected] + by, 0), lane.items.length - 1);
    this.choose(lane.items[place]);
  }

  choose(op) {
    this.lane = this.plan.ops.device[op];
    this.scrollTo(this.lane);
    this.view.reveal(this.plan.ops.start[op], this.plan.ops.end[op]);
    this.details.choose(this.plan, { kind: "op", item: op, more: 0 });
  }

  scrollTo(device) {
    const row = this.rowOf(device);
    const { scrollTop, clientHeight } = this.scroller;
    if (row.top < scrollTop + AXIS) this.scroller.scrollTop = row.top - AXIS - 8;
    else if (row.top + row.height > scrollTop + clientHeight) {
      this.scroller.scrollTop = row.top + row.height + 8 - clientHeight;
    }
  }
}

/** The item of a lane at a time, or the one closest to it within two pixels. */
function nearest(lane, time, pixel, row) {
  const [first, last] = lane.within(time - 2 * pixel, time + 2 * pixel);
  let [best, distance] = [-1, Infinity];
  for (let i = first; i < last; i++) {
    if (lane.row && lane.row[i] !== row) continue;
    const away = time < lane.start[i] ? lane.start[i] - time : Math.max(0, time - lane.end[i]);
    if (away < distance || (away === distance && lane.end[i] - lane.start[i] > lane.end[best] - lane.start[best])) {
      [best, distance] = [i, away];
    }
  }
  if (best < 0 || distance > 2 * pixel) return null;
  const within = lane.within(time - pixel / 2, time + pixel / 2);
  return { item: lane.items[best], more: Math.max(0, within[1] - within[0] - 1) };
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
}

function arrow(paint, [x0, y0], [x1, y1], color, width) {
  const angle = Math.atan2(y1 - y0, x1 - x0);
  paint.strokeStyle = paint.fillStyle = color;
  paint.lineWidth = width;
  paint.beginPath();
  paint.moveTo(x0, y0);
  paint.lineTo(x1, y1);
  paint.stroke();
  paint.beginPath();
  paint.moveTo(x1, y1);
  for (const turn of [-0.4, 0.4]) {
    paint.lineTo(x1 - 6 * Math.cos(angle + turn), y1 - 6 * Math.sin(angle + turn));
  }
  paint.fill();
  paint.lineWidth = 1;
}
