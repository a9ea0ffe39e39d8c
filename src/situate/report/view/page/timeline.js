// The timeline of one plan: a lane for the ops of each device with its memory below, then a lane
// for each channel in use. The canvas shows the visible part of a scrolled area.
const AXIS = 24;
const GUTTER = 148;
const MAX_CHANNELS = 96;

class Timeline {
  constructor(plan, view, details) {
    Object.assign(this, { plan, view, details });
    this.canvas = el("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "timeline",
      "aria-label": `Timeline of ${plan.label}. Arrow keys move, plus and minus zoom, N and P go from op to op.`,
    });
    this.spacer = el("div", { class: "spacer" });
    this.scroller = el("div", { class: "scroller" }, this.canvas, this.spacer);
    this.element = el("section", { class: "pane" }, this.heading(), this.scroller);
    this.layout();
    this.overlay = new Overlay(this);
    this.controls = new Controls(this);
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
      const row = {
        kind: "device",
        device,
        top,
        bar: Math.round(bar * stretch),
        memory: Math.round(memory * stretch),
      };
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
    if (
      this.canvas.width !== Math.round(width * scale) ||
      this.canvas.height !== Math.round(height * scale)
    ) {
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
    this.painter = new LanePainter(
      this.paint,
      [...fills, this.colors.line],
      Math.floor(this.width),
    );
    this.wirePainter = new LanePainter(
      this.paint,
      [this.colors.accent, this.colors.line],
      Math.floor(this.width),
    );
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
    this.overlay.draw();
    paint.restore();
    this.drawAxis(height);
  }

  visibleRows(height) {
    const top = this.scroller.scrollTop;
    return this.rows.filter((row) => row.top + row.height > top && row.top < top + height);
  }

  /** The class of an item for colours, or that of dimmed bars. */
  classOf(dimmed) {
    const { ops } = this.plan.graph;
    const { view, plan } = this;
    const filters = view.filters.map((division) => [ops[division], view.only[division]]);
    const onlyPath = view.options.path;
    const match = view.match && view.match.plan.graph === plan.graph ? view.match.flags : null;
    if (!filters.length && !onlyPath && !match) return (op) => ops.class[op];
    return (op) => {
      const hidden =
        filters.some(([numbers, only]) => numbers[op] !== only) ||
        (onlyPath && !plan.isCritical[op]) ||
        (match && !match[op]);
      return hidden ? dimmed : ops.class[op];
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
    const box = {
      left: GUTTER,
      top: row.top + row.bar + 2,
      width: Math.floor(this.width),
      height: row.memory,
    };
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
    this.label(
      shareText(device.busy / (plan.makespan || 1)),
      "11px",
      colors.pale,
      GUTTER - 8,
      middle,
      60,
    );
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
    else
      lines.forEach((line, i) =>
        this.label(line, "11px", color, 8, middle - 7 + 14 * i, GUTTER - 16),
      );
  }

  /** A text of at most `room` pixels. */
  label(text, font, color, x, y, room) {
    const { paint } = this;
    paint.font = `${font} system-ui, sans-serif`;
    paint.fillStyle = color;
    const width = paint.measureText(text).width;
    const fitting =
      width > room ? shortened(text, Math.max(3, Math.floor((text.length * room) / width))) : text;
    paint.fillText(fitting, x, y);
  }

  rowOf(device) {
    return this.rows[device];
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
    const [scale, name] =
      TIMES.find(([least]) => Math.abs(tick || step) >= least * 0.999) || TIMES.at(-1);
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
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
}
