/** A block of a PEM text: its type and the whole of its text. */
export interface PemBlock {
  readonly type: string;
  readonly text: string;
}

const begin = '-----BEGIN ';
const dashes = '-----';
const ending = '-----END ';

/**
 * The PEM blocks of a text that are whole, in their order. What begins one ends with the next end there
 * is, or is none; each end is looked for once, however often a text begins.
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
