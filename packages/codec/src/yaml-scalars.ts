import { CST, Lexer } from 'yaml';

/** The members of the library's lexer that its replaced parts use. */
interface LexerState {
  readonly buffer: string;
  readonly pos: number;
  readonly flowLevel: number;
  /** The least indentation of lines that continue what is read. */
  indentNext: number;
  /** Returns where the text of a scalar continues on a line, or -1 if the scalar ends before it. */
  continueScalar(lineStart: number): number;
  pushToIndex(end: number, allowEmpty: boolean): Generator<string, number>;
}

/** A lexeme without meaning, which lets the reader of lexemes pause. */
export const pause = '\0';

/** Number of characters of a plain scalar between two pauses, at most. */
const charactersPerPause = 65_536;

/**
 * Returns the library's lexer, except that it reads plain scalars in steps: the library takes 30 ns
 * for each character, 90 ms for a text of 3 MiB. As in kube-apiserver, quoted scalars and flow
 * collections may continue at any indentation, a question mark or a colon starts no scalar in a
 * flow collection, but a dash does, and a colon ends the name of an anchor or of an alias.
 */
export function createLexer(): Lexer {
  const own = {
    parseFlowCollection,
    parsePlainScalar,
    parseQuotedScalar,
    pushIndicators,
    pushUntil,
  };
  return Object.assign(new Lexer(), own);
}

const libraryFlowCollection = Reflect.get(Lexer.prototype, 'parseFlowCollection');

/** Reads the next part of a flow collection, including the scalar there. */
function* parseFlowCollection(this: LexerState): Generator<string, unknown> {
  const { indentNext } = this;
  this.indentNext = 0;
  const next = yield* libraryFlowCollection.call(this);
  this.indentNext = indentNext;
  return next;
}

const libraryIndicators = Reflect.get(Lexer.prototype, 'pushIndicators');

function* pushIndicators(this: LexerState): Generator<string, number> {
  const { buffer, pos, flowLevel } = this;
  if (flowLevel > 0 && buffer[pos] === '-' && !isSeparator(buffer, pos + 1)) return 0;
  return yield* libraryIndicators.call(this);
}

/** Reads an anchor or an alias, whose name a colon ends, unlike in YAML 1.2. */
function* pushUntil(
  this: LexerState,
  isEnd: (character: string) => boolean,
): Generator<string, number> {
  const first = this.buffer[this.pos];
  if (first !== '&' && first !== '*') return yield* libraryUntil.call(this, isEnd);
  name.lastIndex = this.pos + 1;
  name.test(this.buffer);
  return yield* this.pushToIndex(name.lastIndex, false);
}

const libraryUntil = Reflect.get(Lexer.prototype, 'pushUntil');
const name = /[\w-]*/y;

function* parseQuotedScalar(this: LexerState): Generator<string, 'flow' | 'doc'> {
  const { buffer, pos } = this;
  const close = closingQuote(buffer, pos);
  const content = close < 0 ? '' : buffer.slice(pos, close);
  const marker = content.includes('\n') ? content.search(documentMarker) : -1;
  // Within a line end, the library's lexer would not advance.
  const end = marker < 0 ? close : pos + marker - 1;
  yield* this.pushToIndex(end < 0 ? buffer.length : end + 1, false);
  return this.flowLevel > 0 ? 'flow' : 'doc';
}

/** A line in a scalar that starts or ends a document. */
const documentMarker = /\r?\n(?:---|\.\.\.)(?:[ \t\r\n]|$)/;

/** Returns the index of the quote that ends the scalar that starts at `start`; -1 if none does. */
function closingQuote(text: string, start: number): number {
  const quote = text.charAt(start);
  let end = text.indexOf(quote, start + 1);
  if (quote === "'") {
    while (end >= 0 && text[end + 1] === quote) end = text.indexOf(quote, end + 2);
    return end;
  }
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf(quote, end + 1);
  return end;
}

/** Whether an odd number of backslashes precedes an index. */
function isEscaped(text: string, at: number): boolean {
  let start = at;
  while (text[start - 1] === '\\') start -= 1;
  return (at - start) % 2 === 1;
}

function* parsePlainScalar(this: LexerState): Generator<string, 'flow' | 'doc'> {
  if (this.flowLevel > 0 && (this.buffer[this.pos] === '?' || this.buffer[this.pos] === ':')) {
    yield* this.pushToIndex(this.pos + 1, true);
    return 'flow';
  }
  const end = yield* endOfPlainScalar(this);
  yield CST.SCALAR;
  yield* this.pushToIndex(end, true);
  return this.flowLevel > 0 ? 'flow' : 'doc';
}

/** Characters that belong to a plain scalar wherever they are. */
const common = /[^ \t\r\n:,[\]{}?]+/y;
/** Unlike in YAML 1.2, a question mark is one, and none ends a key behind a colon. */
const flowIndicators = new Set(',[]{}?');

/** Finds the index behind the last character of a plain scalar that is not blank. */
function* endOfPlainScalar(lexer: LexerState): Generator<string, number> {
  const { buffer } = lexer;
  const isFlowIndicator = (at: number) =>
    lexer.flowLevel > 0 && flowIndicators.has(buffer.charAt(at));
  let end = lexer.pos;
  let pauseAt = end + charactersPerPause;
  for (let at = end; at < buffer.length; ) {
    if (at >= pauseAt) {
      pauseAt = at + charactersPerPause;
      yield pause;
    }
    common.lastIndex = at;
    if (common.test(buffer)) {
      end = common.lastIndex;
      at = end;
    } else if (isBlank(buffer, at)) {
      const next = at + (buffer[at] === '\r' ? 2 : 1);
      if (buffer[next] === '#' || isFlowIndicator(next)) break;
      const isLineEnd = buffer[next - 1] === '\n';
      const text = isLineEnd ? lexer.continueScalar(next) : next;
      if (text === -1) break;
      // The last blank of an indentation decides whether `#` starts a comment.
      at = isLineEnd ? Math.max(next, text - 1) : next;
    } else {
      if (isFlowIndicator(at) || (buffer[at] === ':' && isSeparator(buffer, at + 1))) break;
      at += 1;
      end = at;
    }
  }
  return end;
}

/** Whether a blank is at an index. A carriage return before a line end is part of it. */
function isBlank(text: string, at: number): boolean {
  const character = text[at];
  if (character === '\r') return text[at + 1] === '\n';
  return character === ' ' || character === '\t' || character === '\n';
}

/** Whether what follows a colon, at an index, makes it the end of a key. */
const isSeparator = (text: string, at: number): boolean =>
  at >= text.length || text[at] === '\r' || isBlank(text, at);

/** Number of characters of a flow scalar that the library resolves in one step. */
const pieceLength = 16_384;

/** A quoted scalar, with its quotes, that is resolved in pieces because of its length. */
export const isLongQuoted = (lexeme: string): boolean =>
  lexeme.length > 2 * pieceLength && (lexeme[0] === '"' || lexeme[0] === "'");

/** A plain scalar of many lines; the library takes 100 to 300 ns for each line. */
export const isLongPlain = (lexeme: string): boolean =>
  lexeme.length > 2 * pieceLength && lexeme.includes('\n');

/** An error that the library reports about a scalar. */
export type ReportScalarError = (offset: number, code: string, message: string) => void;

/**
 * Returns the value of a quoted scalar, of which one step resolves one piece: the library takes up
 * to 120 ns for each character.
 * @param offset the position of the scalar in its text
 */
export function* resolveQuoted(
  source: string,
  { offset, onError }: { readonly offset: number; readonly onError: ReportScalarError },
): Generator<void, string> {
  const [quote = '"'] = source;
  const type = quote === '"' ? 'double-quoted-scalar' : 'single-quoted-scalar';
  const values: string[] = [];
  for (let start = 1; start < source.length; ) {
    const end = cutBehind(source, start);
    // Only the last piece has a quote at its end, or lacks it.
    const piece = quote + source.slice(start, end) + (end < source.length ? quote : '');
    const token = { type, offset: offset + start - 1, indent: 0, source: piece } as const;
    values.push(valueAsInJson(piece) ?? joined(CST.resolveAsScalar(token, true, onError).value));
    start = end;
    yield;
  }
  return values.join('');
}

/** Does the work of `resolveQuoted` for a plain scalar. */
export function* resolvePlain(
  source: string,
  { offset, onError }: { readonly offset: number; readonly onError: ReportScalarError },
): Generator<void, string> {
  const values: string[] = [];
  for (let start = 0; start < source.length; ) {
    const { end, next, fold } = cutOfPlain(source, start);
    const piece = source.slice(start, end);
    const token = { type: 'scalar', offset: offset + start, indent: 0, source: piece } as const;
    // Only the first character may be one that starts another kind of scalar.
    const report = start === 0 ? onError : () => {};
    values.push(joined(CST.resolveAsScalar(token, true, report).value), fold);
    start = next;
    yield;
  }
  return values.join('');
}

/** A line end that becomes one blank, with the indentation of the next line. */
const foldedLineEnd = /\r?\n[ \t]*(?=[^ \t\r\n])/y;

/** Where a piece of a plain scalar ends, where the next one starts, and what is between them. */
function cutOfPlain(source: string, start: number): { end: number; next: number; fold: string } {
  for (let end = start + pieceLength; end < source.length; end += 1) {
    if (isSpace(source, end - 1)) continue;
    if (!isSpace(source, end)) return { end, next: end, fold: '' };
    foldedLineEnd.lastIndex = end;
    if (foldedLineEnd.test(source)) return { end, next: foldedLineEnd.lastIndex, fold: ' ' };
  }
  return { end: source.length, next: source.length, fold: '' };
}

const isSpace = (text: string, at: number): boolean => text[at] === '\r' || isBlank(text, at);

/** Returns the value of a piece that is a string of JSON too, which V8 decodes ten times faster. */
function valueAsInJson(piece: string): string | undefined {
  if (!piece.startsWith('"')) return undefined;
  try {
    return JSON.parse(piece) as string;
  } catch {
    return undefined;
  }
}

/**
 * Makes V8 join a text that consists of a part for each character; it would otherwise join those of
 * all pieces at once.
 */
function joined(text: string): string {
  text.charCodeAt(0);
  return text;
}

/**
 * Returns where the first piece of the rest of a quoted scalar ends: before a character that is
 * neither blank, because blanks depend on what follows them, nor part of an escape sequence.
 */
function cutBehind(source: string, start: number): number {
  const mark = source[0] === '"' ? '\\' : "'";
  let at = start + pieceLength;
  for (; at < source.length - pieceLength; at += 1) {
    const character = source[at];
    if (character === mark) {
      // Marks pair up from the start of their run.
      let run = at;
      while (run > start && source[run - 1] === mark) run -= 1;
      if ((at - run) % 2 === 0) return at;
    } else if (character !== '\r' && !isBlank(source, at) && !followsEscape(source, at)) return at;
  }
  return source.length;
}

/** The characters of `\U0001f600` behind its backslash. */
const escapeLength = 9;

/** Whether a character may be part of an escape sequence. */
const followsEscape = (source: string, at: number): boolean =>
  source[0] === '"' && source.slice(Math.max(1, at - escapeLength), at).includes('\\');
