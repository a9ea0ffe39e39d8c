// The data block: base64 of deflated bytes, which hold JSON and the arrays it refers to.
const ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array };

/** A list of names, cut into lines when the first of them is needed. */
class Texts {
  constructor(bytes, count) {
    this.bytes = bytes;
    this.length = count;
    this.cut = null;
  }

  get lines() {
    if (!this.cut) this.cut = this.length ? new TextDecoder().decode(this.bytes).split("\n") : [];
    return this.cut;
  }

  at(index) {
    return this.lines[index];
  }
}

async function unpack(text) {
  const bytes = await inflate(bytesOf(text.trim()));
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return revived(header, bytes.buffer, Math.ceil((4 + length) / 8) * 8);
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function revived(value, buffer, base) {
  if (Array.isArray(value)) return value.map((item) => revived(item, buffer, base));
  if (value === null || typeof value !== "object") return value;
  if (value.array) return arrayOf(value.array, buffer, base);
  if (value.in) return new Texts(arrayOf(value.in.array, buffer, base), value.texts);
  const entries = Object.entries(value);
  return Object.fromEntries(entries.map(([key, item]) => [key, revived(item, buffer, base)]));
}

function arrayOf([type, offset, count], buffer, base) {
  if (type !== "f8") return new ARRAYS[type](buffer, base + offset, count);
  // Doubles lie as all first bytes, then all second bytes, and so on.
  const planes = new Uint8Array(buffer, base + offset, 8 * count);
  const bytes = new Uint8Array(8 * count);
  for (let plane = 0; plane < 8; plane++) {
    for (let i = 0, from = plane * count; i < count; i++) bytes[8 * i + plane] = planes[from + i];
  }
  return new Float64Array(bytes.buffer);
}
