// One lane of bars. Bars too narrow for a pixel are added up in pixel columns: the colours of a
// column have the shares of time that their classes take in it, so an idle device shows.
const WIDE = 2;
const LEAST_SHARE = 0.14;
const MERGED = 0.3;

class LanePainter {
  /**
   * @param paint the canvas context, in CSS pixels
   * @param fills fill styles by class; the last one is for bars that a filter dims
   */
  constructor(paint, fills, width) {
    this.paint = paint;
    this.fills = fills;
    this.classes = fills.length;
    this.columns = new Float32Array(width * this.classes);
    this.used = new Uint8Array(width);
    this.width = width;
  }

  /** Draws the bars of `lane` between times; `classOf` gives the class of an item. */
  draw(lane, box, view, classOf) {
    const scale = box.width / view.span;
    const [first, last] = lane.within(view.from, view.to);
    const wide = Array.from({ length: this.classes }, () => []);
    this.columns.fill(0);
    this.used.fill(0);
    for (let i = first; i < last; i++) {
      const left = (lane.start[i] - view.from) * scale;
      const right = (lane.end[i] - view.from) * scale;
      if (right < 0) continue;
      const kind = classOf(lane.items[i]);
      if (right - left >= WIDE) wide[kind].push(left, right, lane.row ? lane.row[i] : 0);
      else this.add(left, right, kind);
    }
    this.drawColumns(box);
    this.drawWide(box, wide, lane.rows);
    return last - first;
  }

  add(left, right, kind) {
    const column = Math.max(0, Math.floor(left));
    if (column >= this.width) return;
    this.used[column] = 1;
    const here = Math.min(right, column + 1) - left;
    this.columns[column * this.classes + kind] += Math.max(here, 1e-6);
    if (right > column + 1 && column + 1 < this.width) {
      this.used[column + 1] = 1;
      this.columns[(column + 1) * this.classes + kind] += right - column - 1;
    }
  }

  /** Each class in turn, on top of the classes before it; equal neighbours are one rectangle. */
  drawColumns(box) {
    const { paint, classes, width } = this;
    const heights = this.columnScales(box.height);
    const level = new Float32Array(width);
    for (let kind = 0; kind < classes; kind++) {
      paint.fillStyle = this.fills[kind];
      let run = null;
      for (let column = 0; column < width; column++) {
        const height = this.used[column]
          ? this.columns[column * classes + kind] * heights[column]
          : 0;
        const bottom = level[column];
        level[column] += height;
        if (run && Math.abs(height - run.height) < MERGED && Math.abs(bottom - run.bottom) < MERGED)
          continue;
        if (run) this.drawRun(box, run, column);
        run = height > 0 ? { column, height, bottom } : null;
      }
      if (run) this.drawRun(box, run, width);
    }
  }

  /** Pixels of height for each pixel of width that a column's bars cover. */
  columnScales(height) {
    return Float32Array.from(this.used, (used, column) => {
      if (!used) return 0;
      let total = 0;
      for (let k = 0; k < this.classes; k++) total += this.columns[column * this.classes + k];
      return (Math.min(Math.max(total, LEAST_SHARE), 1) / total) * height;
    });
  }

  drawRun(box, { column, height, bottom }, end) {
    this.paint.fillRect(
      box.left + column,
      box.top + box.height - bottom - height,
      end - column,
      height,
    );
  }

  drawWide(box, wide, rows) {
    const { paint } = this;
    const height = box.height / rows;
    wide.forEach((bars, kind) => {
      paint.fillStyle = this.fills[kind];
      for (let i = 0; i < bars.length; i += 3) {
        const left = Math.max(bars[i], -1);
        const right = Math.min(bars[i + 1], box.width + 1);
        // Wide bars give up a pixel, so that neighbours of one colour can be told apart.
        const gap = right - left > 4 ? 1 : 0;
        paint.fillRect(
          box.left + left,
          box.top + bars[i + 2] * height,
          right - left - gap,
          height - (rows > 1 ? 1 : 0),
        );
      }
    });
  }
}

/** Names in bars that are wide enough for them, the widest first. */
function drawNames(paint, lane, box, view, nameOf, inkOf) {
  const scale = box.width / view.span;
  const [first, last] = lane.within(view.from, view.to);
  if (last - first > 4000 || lane.rows > 1) return;
  paint.font = "11px system-ui, sans-serif";
  paint.textBaseline = "middle";
  for (let i = first; i < last; i++) {
    const left = Math.max(0, (lane.start[i] - view.from) * scale);
    const right = Math.min(box.width, (lane.end[i] - view.from) * scale);
    const room = Math.floor((right - left - 8) / 6.2);
    if (room < Math.min(nameOf(lane.items[i]).length, 10)) continue;
    paint.fillStyle = inkOf(lane.items[i]);
    paint.fillText(
      shortened(nameOf(lane.items[i]), room),
      box.left + left + 4,
      box.top + box.height / 2,
    );
  }
}

/** The memory of a device under the line of its limit; the part above the limit stands out. */
function drawMemory(paint, curve, box, view, limit, top, colors) {
  const bottom = box.top + box.height;
  const y = (bytes) => bottom - box.height * (bytes / top);
  const end = box.left + Math.min(box.width, (view.total - view.from) * (box.width / view.span));
  const area = memoryArea(curve, box, view, y, end);
  paint.fillStyle = colors.live;
  paint.fill(area);
  const held = y(Math.min(curve.held, limit ?? Infinity));
  paint.fillStyle = colors.held;
  paint.fillRect(box.left, held, Math.max(0, end - box.left), bottom - held);
  if (limit === null || limit > top) return;
  paint.save();
  paint.beginPath();
  paint.rect(box.left, box.top, box.width, y(limit) - box.top);
  paint.clip();
  paint.fillStyle = colors.over;
  paint.fill(area);
  paint.restore();
  drawLimit(paint, box, y(limit), colors.ink);
}

function memoryArea(curve, box, view, y, end) {
  const area = new Path2D();
  area.moveTo(box.left, y(0));
  memoryColumns(curve, box.width, view).forEach((bytes, x) => {
    if (box.left + x > end) return;
    area.lineTo(box.left + x, y(bytes));
    area.lineTo(Math.min(box.left + x + 1, end), y(bytes));
  });
  area.lineTo(end, y(0));
  return area;
}

function drawLimit(paint, box, y, color) {
  paint.strokeStyle = color;
  paint.setLineDash([5, 3]);
  paint.beginPath();
  paint.moveTo(box.left, y + 0.5);
  paint.lineTo(box.left + box.width, y + 0.5);
  paint.stroke();
  paint.setLineDash([]);
}

/** The most bytes in use within each pixel column. */
function memoryColumns(curve, width, view) {
  const columns = new Float64Array(Math.ceil(width));
  const pixel = view.span / width;
  let place = upperBound(curve.time, view.from) - 1;
  for (let x = 0; x < columns.length; x++) {
    const end = view.from + (x + 1) * pixel;
    let bytes = place >= 0 ? curve.use[place] : 0;
    while (place + 1 < curve.time.length && curve.time[place + 1] < end) {
      place++;
      if (curve.use[place] > bytes) bytes = curve.use[place];
    }
    columns[x] = bytes;
  }
  return columns;
}
