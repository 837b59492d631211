/** A block of a PEM text: its type and the whole of its text. */
export interface PemBlock {
  readonly type: string;
  readonly text: string;
}

const begin = '-----BEGIN ';
const dashes = '-----';

/** The PEM blocks of a text that are whole, in their order. */
export function pemBlocks(text: string): PemBlock[] {
  const blocks: PemBlock[] = [];
  for (let from = text.indexOf(begin); from >= 0; from = text.indexOf(begin, from + 1)) {
    const typeEnd = text.indexOf(dashes, from + begin.length);
    if (typeEnd < 0) break;
    const type = text.slice(from + begin.length, typeEnd);
    const ending = `-----END ${type}${dashes}`;
    const end = text.indexOf(ending, typeEnd);
    if (end < 0 || type.includes('\n')) continue;
    blocks.push({ type, text: text.slice(from, end + ending.length) });
    from = end;
  }
  return blocks;
}
