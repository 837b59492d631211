import { CST } from 'yaml';
import type { ReportScalarError } from './yaml-scalars.ts';

/** Number of characters of a block scalar that the library resolves in one step. */
const pieceLength = 16_384;

/** A literal or folded scalar whose header was read, and which is resolved here. */
export interface OwnBlock {
  /** The position of its header. */
  readonly offset: number;
  /** The header, such as `|2-`. */
  readonly header: string;
  /** The indentation of the collection that contains it. */
  readonly indent: number;
}

/**
 * Returns the block scalar whose lines are the next lexeme, if it is resolved in pieces because of
 * its length, or if its last line has no end; undefined for other lexemes.
 */
export function ownBlock(stack: readonly CST.Token[], lexeme: string): OwnBlock | undefined {
  const [parent, token] = stack.slice(-2);
  if (lexeme.length <= 2 * pieceLength && lexeme.endsWith('\n')) return undefined;
  if (token?.type !== 'block-scalar') return undefined;
  const [header] = token.props;
  if (parent === undefined || header === undefined) return undefined;
  return {
    offset: token.offset,
    header: 'source' in header ? header.source : '',
    // A scalar may be the whole document.
    indent: 'indent' in parent ? parent.indent : 0,
  };
}

/** The first line with content. */
const contentLine = /^( *)(?!\r?\n)[^ ]/m;

/**
 * Returns the value of a block scalar, of which one step resolves one piece: the library takes 150
 * to 600 ns for each line.
 * @param source the lines of the scalar
 * @param options.offset the position of the lines in their text
 */
export function* resolveBlock(
  source: string,
  options: Omit<OwnBlock, 'offset'> & {
    readonly offset: number;
    readonly onError: ReportScalarError;
  },
): Generator<void, string> {
  const { offset, onError, indent } = options;
  const { mode, digit, chomping } = readHeader(options.header);
  const depth =
    digit === '' ? (contentLine.exec(source)?.[1]?.length ?? 0) : indent + Number(digit);
  const values: string[] = [];
  for (let start = 0; start < source.length; ) {
    const cut = depth === 0 ? undefined : nextCut(source, { start, depth });
    const end = cut?.at ?? source.length;
    // Lines behind the first piece may start with blanks, so their indentation is stated.
    const header = `${mode}${start === 0 ? digit : '1'}${cut === undefined ? chomping : '-'}`;
    const at = offset + start - header.length;
    const token: CST.BlockScalar = {
      type: 'block-scalar',
      offset: at,
      indent: start === 0 ? indent : depth - 1,
      props: [{ type: 'block-scalar-header', offset: at, indent, source: header }],
      source: source.slice(start, end),
    };
    values.push(CST.resolveAsScalar(token, true, onError).value);
    if (cut !== undefined) values.push(mode === '|' ? '\n'.repeat(cut.blanks + 1) : joint(cut));
    start = end;
    yield;
  }
  const value = values.join('');
  // The library ends the last line also if the text does not.
  const isOpen = source.length - (source.lastIndexOf('\n') + 1) > depth;
  return isOpen && value.endsWith('\n') ? value.slice(0, -1) : value;
}

/** The parts of a header; it may have others, which the composer reports. */
function readHeader(header: string) {
  const [digit = ''] = /[1-9]/.exec(header) ?? [];
  const [chomping = ''] = /[-+]/.exec(header) ?? [];
  return { mode: header.startsWith('>') ? '>' : '|', digit, chomping };
}

/** A place before a line with content. */
interface Cut {
  /** The start of the line. */
  readonly at: number;
  /** Number of blank lines before it. */
  readonly blanks: number;
  /** Whether folding keeps the line ends here, because a line is indented more than others. */
  readonly isKept: boolean;
}

/** What a folded scalar has in place of the line ends at a cut. */
const joint = ({ blanks, isKept }: Cut): string =>
  blanks === 0 && !isKept ? ' ' : '\n'.repeat(isKept ? blanks + 1 : blanks);

/**
 * Returns the first place that is at least one piece behind `start`, where a line starts;
 * undefined if the rest is one piece.
 */
function nextCut(
  source: string,
  { start, depth }: { readonly start: number; readonly depth: number },
): Cut | undefined {
  let isKept: boolean | undefined;
  let blanks = 0;
  const last = source.length - pieceLength;
  for (let at = start; at < last; at = source.indexOf('\n', at) + 1) {
    const line = lineAt(source, at, depth);
    if (isKept !== undefined && !line.isBlank && at >= start + pieceLength) {
      return { at, blanks, isKept: isKept || line.isKept };
    }
    if (line.isBlank && !line.isKept) blanks += 1;
    else {
      isKept = line.isKept;
      blanks = 0;
    }
    if (source.indexOf('\n', at) < 0) break;
  }
  return undefined;
}

/** Describes the line at an index; one that is indented more than others is kept, also a blank one. */
function lineAt(source: string, at: number, depth: number) {
  let text = at;
  while (source[text] === ' ') text += 1;
  const character = source[text];
  const isBlank = character === '\n' || (character === '\r' && source[text + 1] === '\n');
  return { isBlank, isKept: text - at > depth || character === '\t' };
}
