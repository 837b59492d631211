/** Where UTF-8 sorts differently from UTF-16: surrogates come after the rest of the first plane. */
function weight(unit: number): number {
  if (unit >= 0xe000) return unit - 0x800;
  return unit >= 0xd800 ? unit + 0x2000 : unit;
}

/** Orders strings by their UTF-8 bytes, as upstream's comparisons do. */
export function compareText(one: string, other: string): number {
  if (one === other) return 0;
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at += 1) {
    const left = one.charCodeAt(at);
    const right = other.charCodeAt(at);
    if (left !== right) return weight(left) - weight(right);
  }
  return one.length - other.length;
}
