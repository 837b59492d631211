const backslash = 0x5c;
/** Starts of escapes of surrogates. */
const starts = [Buffer.from('\\ud'), Buffer.from('\\uD')];
/** U+FFFD as an escape, which is as long as the one that it replaces. */
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
    const half = surrogateAt(json, at);
    if (half === undefined) at += 2;
    else if (half === 'high' && surrogateAt(json, at + 6) === 'low') at += 12;
    else {
      if (paired === json) paired = Buffer.from(json);
      replacement.copy(paired, at);
      at += 6;
    }
  }
  return paired;
}

/** The index of the first escape that may be of a surrogate; the length of a text without any. */
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

/** The half of a pair that an escape such as `\ud83d` stands for; undefined for other text. */
function surrogateAt(json: Buffer, at: number): 'high' | 'low' | undefined {
  const isEscape =
    json[at] === backslash && json[at + 1] === 0x75 && hexDigit(json[at + 2]) === 0xd;
  if (!isEscape || hexDigit(json[at + 4]) < 0 || hexDigit(json[at + 5]) < 0) return undefined;
  const digit = hexDigit(json[at + 3]);
  if (digit < 8) return undefined;
  return digit < 0xc ? 'high' : 'low';
}

/** The value of a hexadecimal digit; -1 for other characters. */
function hexDigit(character = 0): number {
  if (character >= 0x30 && character <= 0x39) return character - 0x30;
  const letter = character | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
