// Pointer and keys on a timeline: moving, zooming, pointing at things and choosing them.
class Controls {
  constructor(pane) {
    this.pane = pane;
    this.lane = 0;
    this.listen();
  }

  listen() {
    const { canvas, scroller } = this.pane;
    scroller.addEventListener("scroll", () => this.pane.draw());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("dblclick", (event) =>
      this.pane.view.zoom(0.4, this.pane.time(event.offsetX)),
    );
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.pane.draw()).observe(scroller);
  }

  wheel(event) {
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pane.view.pan((event.deltaX || event.deltaY) / this.pane.width);
    } else if (
      event.ctrlKey ||
      event.metaKey ||
      this.pane.height <= this.pane.scroller.clientHeight + 1
    ) {
      event.preventDefault();
      this.pane.view.zoom(Math.exp(event.deltaY * 0.0015), this.pane.time(event.offsetX));
    }
  }

  press(event) {
    this.pane.canvas.setPointerCapture(event.pointerId);
    this.drag = { x: event.offsetX, from: this.pane.view.from, moved: false };
  }

  move(event) {
    if (this.drag && Math.abs(event.offsetX - this.drag.x) > 3) this.drag.moved = true;
    if (this.drag?.moved) {
      const shift = ((this.drag.x - event.offsetX) / this.pane.width) * this.pane.view.span;
      this.pane.view.show(this.drag.from + shift, this.drag.from + shift + this.pane.view.span);
      this.pane.details.hideTip();
      return;
    }
    this.pane.view.cursor = this.pane.time(event.offsetX);
    this.pane.view.changed();
    const hit = this.hit(event.offsetX, event.offsetY);
    if (hit) this.pane.details.tip(this.pane.plan, hit, event);
    else this.pane.details.hideTip();
  }

  release(event) {
    const dragged = this.drag?.moved;
    this.drag = null;
    if (!dragged) this.pane.details.choose(this.pane.plan, this.hit(event.offsetX, event.offsetY));
  }

  leave() {
    this.pane.view.cursor = null;
    this.pane.view.changed();
    this.pane.details.hideTip();
  }

  /** What lies under a point: an op, a transfer, or the memory of a device at a time. */
  hit(x, y) {
    const top = y + this.pane.scroller.scrollTop;
    const row = this.pane.rows.find((r) => top >= r.top - 2 && top <= r.top + r.height + 2);
    if (!row || x < GUTTER || y < AXIS) return null;
    const time = this.pane.time(x);
    if (row.kind === "device" && top > row.top + row.bar + 1)
      return { kind: "memory", device: row.device, time };
    const lane =
      row.kind === "device"
        ? this.pane.plan.lanes[row.device]
        : this.pane.plan.wires.get(row.channel);
    const share = (top - row.top) / row.bar;
    const found = nearest(
      lane,
      time,
      this.pane.view.span / this.pane.width,
      Math.floor(share * lane.rows),
    );
    if (!found) return null;
    return row.kind === "device" ? { kind: "op", ...found } : { kind: "transfer", ...found };
  }

  key(event) {
    const steps = {
      ArrowLeft: () => this.pane.view.pan(-0.1),
      ArrowRight: () => this.pane.view.pan(0.1),
      ArrowUp: () => this.step(-1),
      ArrowDown: () => this.step(1),
      n: () => this.neighbour(1),
      p: () => this.neighbour(-1),
      Home: () => this.pane.view.fit(),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !steps[event.key]) return;
    event.preventDefault();
    steps[event.key]();
  }

  /** Goes to the device above or below, to the op at the same time. */
  step(by) {
    const count = this.pane.plan.devices.length;
    for (let i = 1; i <= count; i++) {
      const device = (this.lane + by * i + count * count) % count;
      if (!this.pane.plan.lanes[device].items.length) continue;
      this.lane = device;
      const selected = this.selected();
      const time = selected === null ? this.pane.view.from : this.pane.plan.ops.start[selected];
      const lane = this.pane.plan.lanes[device];
      const place = Math.min(lowerBound(lane.start, time), lane.items.length - 1);
      this.choose(lane.items[place]);
      return;
    }
  }

  selected() {
    const { selection } = this.pane.view;
    return selection && selection.plan === this.pane.plan && selection.item < this.pane.plan.n
      ? selection.item
      : null;
  }

  neighbour(by) {
    const selected = this.selected();
    if (selected === null) {
      this.lane = this.lane || -1;
      this.step(this.lane < 0 ? 1 : 0);
      return;
    }
    const lane = this.pane.plan.lanes[this.pane.plan.ops.device[selected]];
    const place = Math.min(
      Math.max(this.pane.plan.places[selected] + by, 0),
      lane.items.length - 1,
    );
    this.choose(lane.items[place]);
  }

  choose(op) {
    this.lane = this.pane.plan.ops.device[op];
    this.scrollTo(this.lane);
    this.pane.view.reveal(this.pane.plan.ops.start[op], this.pane.plan.ops.end[op]);
    this.pane.details.choose(this.pane.plan, { kind: "op", item: op, more: 0 });
  }

  scrollTo(device) {
    const row = this.pane.rowOf(device);
    const { scrollTop, clientHeight } = this.pane.scroller;
    if (row.top < scrollTop + AXIS) this.pane.scroller.scrollTop = row.top - AXIS - 8;
    else if (row.top + row.height > scrollTop + clientHeight) {
      this.pane.scroller.scrollTop = row.top + row.height + 8 - clientHeight;
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
    if (
      away < distance ||
      (away === distance && lane.end[i] - lane.start[i] > lane.end[best] - lane.start[best])
    ) {
      [best, distance] = [i, away];
    }
  }
  if (best < 0 || distance > 2 * pixel) return null;
  const within = lane.within(time - pixel / 2, time + pixel / 2);
  return { item: lane.items[best], more: Math.max(0, within[1] - within[0] - 1) };
}
