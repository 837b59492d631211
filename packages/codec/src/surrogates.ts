const backslash = 0x5c;
/** Starts of escapes of surrogates. */
const starts = [Buffer.from('\\ud'), Buffer.from('\\uD')];
/** Takes the place of an escape, which has the same length. */
const replacement = Buffer.from('\\ufffd');
/** Number of bytes that one step reads, in about a millisecond. */
const bytesPerStep = 262_144;

/**
 * Replaces escapes of lone surrogates in a JSON text with U+FFFD, as kube-apiserver does, because
 * UTF-8 cannot represent them. Returns the same buffer if there are none. Works in steps.
 */
export function* pairedSurrogatesSteps(json: Buffer): Generator<void, Buffer> {
  let paired = json;
  let stepEnd = bytesPerStep;
  for (let at = firstEscape(json); at < json.length; ) {
    if (at > stepEnd) {
      yield;
      stepEnd = at + bytesPerStep;
    }
    if (json[at] !== backslash) {
      at += 1;
      continue;
    }
    const unit = codeUnitAt(json, at);
    if (unit === undefined) at += 2;
    else if (isHigh(unit) && isLow(codeUnitAt(json, at + 6))) at += 12;
    else {
      if (isHigh(unit) || isLow(unit)) {
        if (paired === json) paired = Buffer.from(json);
        replacement.copy(paired, at);
      }
      at += 6;
    }
  }
  return paired;
}

/** The index from which to look for surrogates: the length of a text without any. */
function firstEscape(json: Buffer): number {
  if (!json.includes(backslash)) return json.length;
  let first = json.length;
  for (const start of starts) {
    const found = json.indexOf(start);
    if (found >= 0) first = Math.min(first, found);
  }
  // A backslash before the escape may escape its backslash.
  while (json[first - 1] === backslash) first -= 1;
  return first;
}

const isHigh = (unit: number) => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number | undefined) => unit !== undefined && unit >= 0xdc00 && unit < 0xe000;

/** The code unit of an escape such as `\u00e9`; undefined for other text. */
function codeUnitAt(json: Buffer, at: number): number | undefined {
  if (json[at] !== backslash || json[at + 1] !== 0x75) return undefined;
  const digits = json.toString('latin1', at + 2, at + 6);
  return /^[0-9a-fA-F]{4}$/.test(digits) ? Number.parseInt(digits, 16) : undefined;
}
