/** A block of a PEM text. */
export interface PemBlock {
  /** The type in its begin line, such as `CERTIFICATE`. */
  readonly type: string;
  /** The block from its begin line to its end line. */
  readonly text: string;
}

const begin = '-----BEGIN ';
const dashes = '-----';
const ending = '-----END ';

/**
 * Returns the complete PEM blocks of a text, in order. A block extends from its begin line to the
 * next end line, which must have the same type. Takes linear time.
 */
export function pemBlocks(text: string): PemBlock[] {
  const blocks: PemBlock[] = [];
  let end = -1;
  for (let from = text.indexOf(begin); from >= 0; from = text.indexOf(begin, from + 1)) {
    const typeEnd = text.indexOf(dashes, from + begin.length);
    if (typeEnd < 0) break;
    const type = text.slice(from + begin.length, typeEnd);
    if (end < typeEnd) end = text.indexOf(ending, typeEnd);
    if (end < 0) break;
    const last = `${ending}${type}${dashes}`;
    if (!text.startsWith(last, end) || type.includes('\n')) continue;
    blocks.push({ type, text: text.slice(from, end + last.length) });
    from = end;
  }
  return blocks;
}

/** Divides a PEM text into pieces of at most `count` blocks; together they are the whole text. */
export function* pemPieces(text: string, count: number): Generator<string, void> {
  for (let from = 0; from < text.length; ) {
    let to = from;
    for (let found = 0; found < count && to >= 0; found += 1) {
      to = text.indexOf(begin, to + begin.length);
    }
    if (to < 0) to = text.length;
    yield text.slice(from, to);
    from = to;
  }
}

/** Matches lines of base64 without headers, blank lines, and spaces. */
const bodyPattern = /^[ \t]*\r?\n((?:[A-Za-z0-9+/=]+[ \t]*\r?\n)*)$/;

/**
 * Returns the bytes of a block without headers; undefined if its base64 is not canonical, so that
 * all PEM parsers agree.
 */
export function pemBytes({ type, text }: PemBlock): Buffer | undefined {
  const body = text.slice(begin.length + type.length + dashes.length, text.lastIndexOf(ending));
  const lines = bodyPattern.exec(body)?.[1];
  if (lines === undefined) return undefined;
  const base64 = lines.replaceAll(/[ \t\r\n]/g, '');
  const bytes = Buffer.from(base64, 'base64');
  return bytes.toString('base64') === base64 ? bytes : undefined;
}

/**
 * Returns the block of a PEM text with exactly one, which other text may surround; undefined if
 * there is none, or if a parser could find another block: because of dashes elsewhere, or of a
 * begin or end marker that is not alone on its line.
 */
export function onlyPemBlock(text: string): PemBlock | undefined {
  const [block, ...more] = pemBlocks(text);
  if (block === undefined || more.length > 0 || text.includes('\0')) return undefined;
  const [before = '', after = '', ...others] = text.split(block.text);
  if (others.length > 0 || before.includes(dashes) || after.includes(dashes)) return undefined;
  const isAlone = (before === '' || before.endsWith('\n')) && /^[ \t]*(\r?\n|$)/.test(after);
  return isAlone ? block : undefined;
}

/** Returns bytes as a PEM block in lines of 64 characters. */
export function pemText(type: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return `${begin}${type}${dashes}\n${lines.join('\n')}\n${ending}${type}${dashes}\n`;
}
