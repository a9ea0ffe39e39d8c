// What lies over the bars of a timeline: arrows of transfers, the critical path, and the selection.
const MAX_ARROWS = 300;

class Overlay {
  constructor(pane) {
    this.pane = pane;
  }

  draw() {
    if (this.pane.view.options.arrows) this.drawArrows();
    if (this.pane.view.options.path) this.drawPath();
    this.drawSelection();
  }

  drawArrows() {
    const arrows = this.visibleTransfers();
    if (arrows.length > MAX_ARROWS) return;
    const { paint, plan } = this.pane;
    paint.globalAlpha = Math.min(0.9, Math.max(0.4, 6 / Math.sqrt(arrows.length)));
    for (const k of arrows) {
      const dim = this.pane.view.options.path && !plan.isCritical[plan.n + k];
      if (!dim) this.drawArrow(k, this.pane.colors.accent);
    }
    paint.globalAlpha = 1;
  }

  visibleTransfers() {
    const visible = [];
    for (const lane of this.pane.plan.wires.values()) {
      const [first, last] = lane.within(this.pane.view.from, this.pane.view.to);
      if (visible.length + last - first > MAX_ARROWS) return { length: Infinity };
      for (let i = first; i < last; i++) visible.push(lane.items[i]);
    }
    return visible;
  }

  drawArrow(k, color, width = 1) {
    const { source, target, start, end } = this.pane.plan.transfers;
    const [from, to] = [this.pane.rowOf(source[k]), this.pane.rowOf(target[k])];
    const down = to.top > from.top;
    const y = [down ? from.top + from.bar : from.top, down ? to.top : to.top + to.bar];
    arrow(
      this.pane.paint,
      [this.pane.x(start[k]), y[0]],
      [this.pane.x(end[k]), y[1]],
      color,
      width,
    );
  }

  drawPath() {
    const { paint, plan } = this.pane;
    const { item, start, end, kind } = plan.path;
    paint.strokeStyle = this.pane.colors.critical;
    paint.lineWidth = 3;
    paint.beginPath();
    for (let i = 0; i < item.length; i++) {
      if (end[i] < this.pane.view.from || start[i] > this.pane.view.to) continue;
      const transfer = item[i] - plan.n;
      const device = transfer >= 0 ? plan.transfers.target[transfer] : plan.ops.device[item[i]];
      const row = this.pane.rowOf(device);
      const y = row.top + row.bar - 1.5;
      if (kind[i] === 1) {
        const from = this.pane.rowOf(plan.transfers.source[transfer]);
        paint.moveTo(this.pane.x(start[i]), from.top + from.bar - 1.5);
        paint.lineTo(this.pane.x(end[i]), y);
      } else {
        paint.moveTo(this.pane.x(start[i]), y);
        paint.lineTo(this.pane.x(end[i]), y);
      }
    }
    paint.stroke();
    paint.lineWidth = 1;
  }

  drawSelection() {
    const { selection, cursor } = this.pane.view;
    const { paint, colors } = this.pane;
    if (cursor !== null) {
      paint.fillStyle = colors.pale;
      paint.fillRect(
        this.pane.x(cursor),
        AXIS + this.pane.scroller.scrollTop,
        1,
        this.pane.scroller.clientHeight,
      );
    }
    if (!selection || selection.plan !== this.pane.plan) return;
    if (selection.item >= this.pane.plan.n) {
      this.drawArrow(selection.item - this.pane.plan.n, colors.critical, 2.5);
      return;
    }
    for (const tensor of this.pane.plan.inputsOf(selection.item).slice(0, 60)) {
      this.connect(
        this.pane.plan.graph.tensors.producer[tensor],
        selection.item,
        colors.input ?? colors.accent,
      );
    }
    for (const tensor of this.pane.plan.outputsOf(selection.item).slice(0, 60)) {
      for (const reader of this.pane.plan.readersOf(tensor).slice(0, 60))
        this.connect(selection.item, reader, colors.critical);
    }
    this.outline(selection.item, colors.ink, 2);
  }

  connect(producer, reader, color) {
    const { ops } = this.pane.plan;
    const [from, to] = [this.pane.rowOf(ops.device[producer]), this.pane.rowOf(ops.device[reader])];
    this.outline(producer, color, 1.5);
    this.outline(reader, color, 1.5);
    const start = [this.pane.x(ops.end[producer]), from.top + from.bar / 2];
    arrow(
      this.pane.paint,
      start,
      [this.pane.x(ops.start[reader]), to.top + to.bar / 2],
      color,
      1.5,
    );
  }

  outline(op, color, width) {
    const { ops } = this.pane.plan;
    const row = this.pane.rowOf(ops.device[op]);
    const left = this.pane.x(ops.start[op]);
    this.pane.paint.strokeStyle = color;
    this.pane.paint.lineWidth = width;
    this.pane.paint.strokeRect(
      left,
      row.top - 1,
      Math.max(this.pane.x(ops.end[op]) - left, 2),
      row.bar + 2,
    );
    this.pane.paint.lineWidth = 1;
  }
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
