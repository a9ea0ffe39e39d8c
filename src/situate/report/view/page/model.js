// A plan with the indices that drawing and questions need, each made when it is first used.

/** The first index in [low, high) whose value is at least `limit`; `high` if there is none. */
function lowerBound(values, limit, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first index whose value is above `limit`. */
function upperBound(values, limit) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Groups of `count` keys: `items.subarray(first[k], first[k + 1])` have key k. */
function grouped(keys, count) {
  const first = new Uint32Array(count + 1);
  for (let i = 0; i < keys.length; i++) first[keys[i] + 1]++;
  for (let k = 0; k < count; k++) first[k + 1] += first[k];
  const next = first.slice();
  const items = new Uint32Array(keys.length);
  for (let i = 0; i < keys.length; i++) items[next[keys[i]]++] = i;
  return { first, items, of: (key) => items.subarray(first[key], first[key + 1]) };
}

function cached(object, name, make) {
  Object.defineProperty(object, name, { value: make(), configurable: true });
  return object[name];
}

/** Bars in order of start, with the rows that overlapping ones need. */
class Lane {
  constructor(items, start, end) {
    this.items = items;
    this.start = Float64Array.from(items, (item) => start[item]);
    this.end = Float64Array.from(items, (item) => end[item]);
    this.reach = this.end.slice();
    for (let i = 1; i < items.length; i++) {
      if (this.reach[i] < this.reach[i - 1]) this.reach[i] = this.reach[i - 1];
    }
    this.rows = 1;
    this.row = this.overlaps() ? this.rowsOfBars() : null;
  }

  overlaps() {
    const slack = 1e-9 * (this.reach.at(-1) || 0);
    for (let i = 1; i < this.start.length; i++) {
      if (this.start[i] < this.reach[i - 1] - slack) return true;
    }
    return false;
  }

  rowsOfBars() {
    const free = [];
    return Uint8Array.from(this.start, (start, i) => {
      let row = free.findIndex((end) => end <= start);
      if (row < 0) row = free.length < 6 ? free.length : 5;
      free[row] = this.end[i];
      this.rows = Math.max(this.rows, row + 1);
      return row;
    });
  }

  /** The range of bars that touch [from, to]. */
  within(from, to) {
    return [lowerBound(this.reach, from), lowerBound(this.start, to)];
  }
}

class Plan {
  constructor(data, graph) {
    Object.assign(this, data);
    this.graph = graph;
    this.n = graph.ops.name.length;
    this.unit = graph.unit;
    this.lanes = this.devices.map((_, d) => this.laneOf(d));
  }

  laneOf(device) {
    const { order, device: of } = this.ops;
    let [low, high] = [0, order.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (of[order[middle]] < device) low = middle + 1;
      else high = middle;
    }
    let end = low;
    while (end < order.length && of[order[end]] === device) end++;
    return new Lane(order.subarray(low, end), this.ops.start, this.ops.end);
  }

  get wires() {
    return cached(this, "wires", () => {
      const { order, channel, start, end } = this.transfers;
      const wires = new Map();
      for (let i = 0, j; i < order.length; i = j) {
        j = i;
        while (j < order.length && channel[order[j]] === channel[order[i]]) j++;
        wires.set(channel[order[i]], new Lane(order.subarray(i, j), start, end));
      }
      return wires;
    });
  }

  /** The place of each op in its lane. */
  get places() {
    return cached(this, "places", () => {
      const places = new Uint32Array(this.n);
      for (const lane of this.lanes)
        lane.items.forEach((op, i) => {
          places[op] = i;
        });
      return places;
    });
  }

  /** Edges by reader, as indices into `readers`, and the tensor of each edge. */
  get edges() {
    return cached(this, "edges", () => {
      const { first, readers } = this.graph.tensors;
      const tensor = new Uint32Array(readers.length);
      for (let t = 0; t + 1 < first.length; t++) tensor.fill(t, first[t], first[t + 1]);
      return { tensor, byReader: grouped(readers, this.n) };
    });
  }

  inputsOf(op) {
    const { tensor, byReader } = this.edges;
    return Array.from(byReader.of(op), (edge) => tensor[edge]);
  }

  get byProducer() {
    return cached(this, "byProducer", () => grouped(this.graph.tensors.producer, this.n));
  }

  outputsOf(op) {
    return Array.from(this.byProducer.of(op));
  }

  readersOf(tensor) {
    const { first, readers } = this.graph.tensors;
    return Array.from(new Set(readers.subarray(first[tensor], first[tensor + 1])));
  }

  get transferIndex() {
    return cached(this, "transferIndex", () => {
      const { tensor, target } = this.transfers;
      const index = new Map();
      for (let k = 0; k < tensor.length; k++)
        index.set(tensor[k] * this.devices.length + target[k], k);
      return index;
    });
  }

  /** The transfer of a tensor to a device; undefined if it needs none. */
  transferTo(tensor, device) {
    return this.transferIndex.get(tensor * this.devices.length + device);
  }

  /** The time at which a tensor is on a device. */
  arrival(tensor, device) {
    const k = this.transferTo(tensor, device);
    if (k !== undefined) return this.transfers.end[k];
    return this.ops.end[this.graph.tensors.producer[tensor]];
  }

  outputBytes(op) {
    const { size, resident } = this.graph.tensors;
    return this.outputsOf(op).reduce((sum, t) => sum + (resident[t] ? 0 : size[t]), 0);
  }

  get byDevice() {
    return cached(this, "byDevice", () => grouped(this.memory.device, this.devices.length));
  }

  /** Times at which a device's memory changes, and the bytes from then on; and those held for the step. */
  get curves() {
    return cached(this, "curves", () => this.devices.map((_, d) => this.curveOf(d)));
  }

  curveOf(device) {
    const { clock, start, end, size } = this.memory;
    const change = new Float64Array(clock.length + 1);
    const touched = new Uint8Array(clock.length + 1);
    for (const i of this.byDevice.of(device)) {
      change[start[i]] += size[i];
      change[end[i]] -= size[i];
      touched[start[i]] = touched[end[i]] = 1;
    }
    const [time, use] = [[], []];
    for (let place = 0, bytes = 0; place < clock.length; place++) {
      if (!touched[place]) continue;
      bytes += change[place];
      time.push(clock[place]);
      use.push(bytes);
    }
    return {
      time: Float64Array.from(time),
      use: Float64Array.from(use),
      held: this.devices[device].held,
    };
  }

  /** The bytes in use on a device at a time. */
  useAt(device, time) {
    const curve = this.curves[device];
    const place = upperBound(curve.time, time) - 1;
    return place >= 0 ? curve.use[place] : 0;
  }

  /** What lies in a device's memory at a time, the largest first. */
  holdersAt(device, time) {
    const { clock, start, end, size } = this.memory;
    const place = upperBound(clock, time) - 1;
    const holders = [];
    for (const i of this.byDevice.of(device)) {
      if (start[i] <= place && place < end[i]) holders.push(i);
    }
    return holders.sort((a, b) => size[b] - size[a]);
  }

  holderName(interval) {
    const { kind, index } = this.memory;
    if (kind[interval] === 3) return "smaller ones together";
    const names = kind[interval] === 1 ? this.graph.tensors.name : this.graph.ops.name;
    return names.at(index[interval]);
  }

  opName(op) {
    return this.graph.ops.name.at(op);
  }

  text(column, op) {
    const { of, texts } = this.graph.ops[column];
    return texts.at(of[op]);
  }

  get isCritical() {
    return cached(this, "isCritical", () => {
      const flags = new Uint8Array(this.n + this.transfers.tensor.length);
      this.path.item.forEach((item, i) => {
        if (this.path.kind[i] < 2) flags[item] = 1;
      });
      return flags;
    });
  }
}
