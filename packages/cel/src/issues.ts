/** An error in an expression at an offset (in UTF-16 units) of its text. */
export interface Issue {
  readonly at: number;
  readonly message: string;
}

/** An expression that cannot be compiled. */
export class CelCompileError extends Error {
  readonly issues: readonly Issue[];
  constructor(source: string, issues: readonly Issue[]) {
    super(showIssues(source, issues));
    this.issues = issues;
  }
}

const shownMax = 100;

/** Formats issues like cel-go: position, message, the line, and a caret below it. */
function showIssues(source: string, issues: readonly Issue[]): string {
  const sorted = [...issues].sort((one, other) => one.at - other.at).slice(0, shownMax);
  return sorted.map((issue) => showIssue(source, issue)).join('\n');
}

/** Maximum length of a shown line, bytes. */
const lineBytesMax = 16_384;

function showIssue(source: string, { at, message }: Issue): string {
  const before = source.slice(0, at);
  const lineStart = before.lastIndexOf('\n') + 1;
  const line = before.split('\n').length;
  const passed = [...source.slice(lineStart, at)];
  const shown = `ERROR: <input>:${line}:${passed.length + 1}: ${message}`;
  const end = source.indexOf('\n', lineStart);
  const text = source.slice(lineStart, end < 0 ? undefined : end).replaceAll('\t', ' ');
  if (Buffer.byteLength(text) > lineBytesMax) return shown;
  const dots = passed.map((character) => (isWide(character) ? '\uff0e' : '.')).join('');
  const caret = isWide(source.slice(at, end < 0 ? undefined : end)) ? '\uff3e' : '^';
  return `${shown}\n | ${text}\n | ${dots}${caret}`;
}

/** Characters outside ASCII are treated as wide. */
function isWide(text: string): boolean {
  return text !== '' && text.charCodeAt(0) > 127;
}
