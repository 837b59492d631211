/** An error in an expression at an offset (in UTF-16 units) of its text, or at `nowhere`. */
export interface Issue {
  readonly at: number;
  readonly message: string;
}

/** The offset of an error that has no position. */
export const nowhere = -1;

/** The offset of an error about a part that a syntax error has removed: before the first column. */
export const beforeStart = -0.5;

/** Maximum number of issues that a message shows. */
const shownMax = 100;

/** An expression that cannot be compiled. */
export class CelCompileError extends Error {
  /** In the order of their positions. */
  readonly issues: readonly Issue[];

  /** @param issues in the order in which they were found; the message shows the first of them */
  constructor(source: string, issues: readonly Issue[]) {
    const sorted = issues.slice(0, shownMax).sort((left, right) => left.at - right.at);
    const rest = issues.length - sorted.length;
    const truncated = rest > 0 ? `\n${rest} more errors were truncated` : '';
    super(showIssues(source, sorted) + truncated);
    this.issues = sorted;
  }
}

/** Formats sorted issues like cel-go: position, message, the line, and a caret below it. */
function showIssues(source: string, issues: readonly Issue[]): string {
  const reader = new LineReader(source);
  return issues.map((issue) => showIssue(source, issue, reader)).join('\n');
}

/** Maximum length of a shown line, bytes. */
const lineBytesMax = 16_384;

function showIssue(source: string, { at, message }: Issue, reader: LineReader): string {
  // cel-go has no position in an empty text.
  if (source === '') return `ERROR: <input>:1:0: ${message}`;
  if (at === nowhere) return `ERROR: <input>:-1:0: ${message}`;
  reader.advance(Math.max(0, at));
  const column = at === beforeStart ? 0 : reader.column;
  const shown = `ERROR: <input>:${reader.line}:${column}: ${message}`;
  const { text } = reader;
  if (text === undefined) return shown;
  const caret = isWide(source.slice(Math.max(0, at), reader.end)) ? '\uff3e' : '^';
  return `${shown}\n | ${text}\n | ${reader.dots}${caret}`;
}

/** Finds the lines and columns of ascending offsets in one pass over the source. */
class LineReader {
  /** Number of the line, from 1. */
  line = 1;
  /** Number of the character in the line, from 1. */
  column = 1;
  /** A dot for each character of the line before the offset. */
  dots = '';
  /** Offset of the line's end. */
  end: number;
  /** The line as it is shown; undefined for one that is too long. */
  text: string | undefined;
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
    this.end = this.#lineFrom(0);
  }

  /** Moves to an offset at or after the current one. */
  advance(to: number): void {
    while (this.end < to) {
      this.line += 1;
      this.column = 1;
      this.dots = '';
      this.#at = this.end + 1;
      this.end = this.#lineFrom(this.#at);
    }
    for (const character of this.#source.slice(this.#at, to)) {
      this.column += 1;
      if (this.text !== undefined) this.dots += isWide(character) ? '\uff0e' : '.';
    }
    this.#at = Math.max(this.#at, to);
  }

  #lineFrom(start: number): number {
    const index = this.#source.indexOf('\n', start);
    const end = index < 0 ? this.#source.length : index;
    const text = this.#source.slice(start, end).replaceAll('\t', ' ');
    this.text = Buffer.byteLength(text) > lineBytesMax ? undefined : text;
    return end;
  }
}

/** Whether the first character is outside ASCII. */
function isWide(text: string): boolean {
  return text !== '' && text.charCodeAt(0) > 127;
}
