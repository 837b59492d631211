import { appendAll, itemAt, pacedBytesMin } from '@wheelhouse/machinery';
import {
  Composer,
  CST,
  type Document,
  isCollection,
  LineCounter,
  type ParsedNode,
  Parser,
} from 'yaml';
import { TooManyValues, tooDeep, YamlError, type YamlLimits } from './decode-limits.ts';
import { type OwnBlock, ownBlock, resolveBlock } from './yaml-block-scalars.ts';
import { type Edit, faultAt } from './yaml-cursor.ts';
import { checkDocument } from './yaml-grammar.ts';
import {
  createLexer,
  isLongPlain,
  isLongQuoted,
  pause,
  resolvePlain,
  resolveQuoted,
} from './yaml-scalars.ts';
import { depthMax, type ReadTree, treeParsing, treeSteps } from './yaml-tree.ts';

type YamlDocument = Document.Parsed<ParsedNode, false>;

/** Number of lexemes that one step reads, in several milliseconds. */
const lexemesPerStep = 2000;

/**
 * Decodes the only document of a YAML text, or its first one if the limits say so, in steps,
 * because it may have megabytes. Stops at the first error. Does not depend on Node, so that a
 * browser reads a text like the server.
 * @throws YamlError or TooManyValues
 */
export function* readYamlSteps(marked: string, limits: YamlLimits): Generator<void, ReadTree> {
  const whole = marked.replace(/^\ufeff/, '');
  if (forbidden.test(whole)) throw new YamlError('yaml: control characters are not allowed');
  const text = whole.replace(otherLineEnds, '\n');
  checkLines(text, limits);
  // The library may have been loaded in this turn.
  if (text.length >= pacedBytesMin) yield;
  const { end, edits } = yield* checkDocument(text, limits.valuesMax);
  const lines = new LineCounter();
  if (limits.documents !== 'first' && !blankLines.test(text.slice(end))) {
    const line = text.slice(0, end).split('\n').length;
    throw faultAt(line, 'expected a single document in the stream');
  }
  const reader = new DocumentReader(lines, limits);
  const document = yield* reader.read(edited(text.slice(0, end), edits));
  if (document === undefined) return { value: null, repeated: [] };
  const { rests, texts } = reader;
  return yield* treeSteps({ contents: document.contents, rests, texts }, lines, limits);
}

function edited(text: string, edits: readonly Edit[]): string {
  if (edits.length === 0) return text;
  let [changed, start] = ['', 0];
  for (const { at, text: change } of edits) {
    if (at >= text.length) break;
    changed += text.slice(start, at) + change;
    start = at + (change === ' ' ? 0 : change.length);
  }
  return changed + text.slice(start);
}

/**
 * Parses a text as far as it can be parsed, to find where its parts are. Never throws.
 */
export function parseLeniently(text: string): {
  readonly contents: ParsedNode | null;
  readonly lines: LineCounter;
} {
  const lines = new LineCounter();
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  const composer = new Composer<ParsedNode, false>({ ...treeParsing, lineCounter: lines });
  const tokens = [...createLexer().lex(text)]
    .filter((lexeme) => lexeme !== pause)
    .flatMap((lexeme) => [...parser.next(lexeme)]);
  const documents = [...composer.compose([...tokens, ...parser.end()])];
  return { contents: documents[0]?.contents ?? null, lines };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: YAML forbids them
const forbidden = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]/;
/** Line ends that the parser does not know. */
const otherLineEnds = /\r(?!\n)|\x85/g;

/** Lines that contain no document. */
const blankLines = /^(?:(?:---|\.\.\.)?[ \t]*(?:#.*)?(?:\r?\n|$))*$/;

/** Throws TooManyValues if a text has too many lines. */
function checkLines(text: string, { linesMax = Number.POSITIVE_INFINITY }: YamlLimits): void {
  let lines = 0;
  for (let at = text.indexOf('\n'); at >= 0 && lines <= linesMax; lines += 1) {
    at = text.indexOf('\n', at + 1);
  }
  if (lines > linesMax) throw new TooManyValues(linesMax, 'lines');
}

/** Upper bound of the entries on the parser's stack besides collections, such as the document. */
const parserFramesMax = 8;

/** Upper bound of the lexemes per value, including indicators, blanks, and line ends. */
const lexemesPerValue = 5;

/** Parses a text with one document, which was checked. */
class DocumentReader {
  readonly #lines: LineCounter;
  readonly #limits: YamlLimits;
  readonly #parser: Parser;
  readonly #composer: Composer<ParsedNode, false>;
  #hasDocument = false;
  #document: YamlDocument | undefined;
  /** Nodes of further pieces of the first document, by the token of the first piece. */
  readonly rests = new Map<unknown, { readonly items: readonly unknown[] }[]>();
  /** The values of scalars that are resolved apart, or what is wrong with them, by their offset. */
  readonly texts = new Map<number, string | YamlError>();
  #error: YamlError | undefined;
  #values = 0;
  #lexemes = 0;

  constructor(lines: LineCounter, limits: YamlLimits) {
    this.#lines = lines;
    this.#limits = limits;
    this.#parser = new Parser(lines.addNewLine);
    this.#composer = this.#newComposer();
  }

  #newComposer(): Composer<ParsedNode, false> {
    const options = { ...treeParsing, keepSourceTokens: true, lineCounter: this.#lines };
    const composer = new Composer<ParsedNode, false>(options);
    // Otherwise, the library collects an error object for each invalid character.
    return Object.assign(composer, { onError: this.#onError });
  }

  /** Returns the document; undefined if the text has none. */
  *read(text: string): Generator<void, YamlDocument | undefined> {
    try {
      this.#lines.addNewLine(0);
      yield* this.#parse(text);
    } catch (error) {
      if (error instanceof RangeError) throw tooDeep();
      throw this.#error ?? error;
    }
    // The library catches some exceptions.
    if (this.#error !== undefined) throw this.#error;
    return this.#document;
  }

  *#parse(text: string): Generator<void, void> {
    let previous = '';
    for (const lexeme of createLexer().lex(text)) {
      if (lexeme === pause) {
        yield;
        continue;
      }
      this.#count(lexeme);
      const style = this.#ownStyle(lexeme, previous);
      for (const part of style === undefined ? [lexeme] : yield* this.#setAside(lexeme, style)) {
        for (const token of this.#parser.next(part)) yield* this.#compose(token);
      }
      if (this.#parser.stack.length > depthMax + parserFramesMax) throw tooDeep();
      previous = lexeme;
      if (this.#lexemes % lexemesPerStep === 0) yield;
    }
    for (const token of this.#parser.end()) yield* this.#compose(token);
    this.#keep(this.#composer.end());
  }

  /** The style of a scalar that is resolved apart from the tree; undefined for other lexemes. */
  #ownStyle(lexeme: string, previous: string): 'quoted' | 'plain' | OwnBlock | undefined {
    if (previous !== CST.SCALAR) return isLongQuoted(lexeme) ? 'quoted' : undefined;
    const { stack } = this.#parser;
    if (stack.at(-1)?.type === 'block-scalar') return ownBlock(stack, lexeme);
    return isLongPlain(lexeme) ? 'plain' : undefined;
  }

  /**
   * Resolves a scalar in steps. Returns the lexemes that take its place in the tree: a short
   * scalar, and blanks, so that all offsets stay the same.
   */
  *#setAside(
    source: string,
    style: 'quoted' | 'plain' | OwnBlock,
  ): Generator<void, readonly string[]> {
    // The lexer has read the whole scalar in this step.
    yield;
    const { offset } = this.#parser;
    for (let at = source.indexOf('\n'); at >= 0; at = source.indexOf('\n', at + 1)) {
      this.#lines.addNewLine(offset + at + 1);
    }
    let fault: YamlError | undefined;
    const onError = (at: number, code: string, message: string) => {
      fault ??= this.#errorOf(at, code, message);
    };
    const place = { offset, onError };
    const isBlock = typeof style === 'object';
    const steps = isBlock
      ? resolveBlock(source, { ...style, ...place })
      : style === 'quoted'
        ? resolveQuoted(source, place)
        : resolvePlain(source, place);
    const value = yield* steps;
    this.texts.set(isBlock ? style.offset : offset, fault ?? value);
    const short = isBlock ? '' : style === 'quoted' ? source.slice(0, 1).repeat(2) : 'x';
    return [short, ' '.repeat(source.length - short.length)].filter((lexeme) => lexeme !== '');
  }

  #count(lexeme: string): void {
    const { valuesMax } = this.#limits;
    this.#lexemes += 1;
    if (isValue(lexeme)) this.#values += 1;
    if (this.#values > valuesMax || this.#lexemes > valuesMax * lexemesPerValue) {
      throw new TooManyValues(valuesMax);
    }
  }

  *#compose(token: CST.Token): Generator<void, void> {
    if (token.type === 'error') throw this.#errorOf(token.offset, token.type, token.message);
    if (token.type === 'document') {
      if (this.#hasDocument) throw this.#errorOf(token.offset, token.type, 'unexpected content');
      this.#hasDocument = true;
      if (this.#lexemes >= lexemesPerStep) {
        yield* this.#composePieces(token);
        return;
      }
    }
    this.#keep(this.#composer.next(token));
  }

  /** Composes a large document in steps. */
  *#composePieces(document: CST.Document): Generator<void, void> {
    const { directives } = this.#composer.streamInfo();
    // Composing a document may reset the directives.
    const initial = directives.clone();
    const cutter = new TreeCutter();
    cutter.cut(document.value);
    this.#keep(this.#composer.next(document));
    for (let rest = cutter.next(); rest !== undefined; rest = cutter.next()) {
      const { of, token } = rest;
      if (cutter.isOver) yield;
      const composer = this.#newComposer();
      Object.assign(composer, { directives: initial.clone() });
      const { offset } = token;
      const none = composer.next({ type: 'document', offset, start: [], value: token });
      for (const { contents } of [...none, ...composer.end()]) {
        if (!isCollection(contents)) continue;
        const nodes = this.rests.get(of);
        if (nodes === undefined) this.rests.set(of, [contents]);
        else nodes.push(contents);
      }
    }
  }

  #keep(documents: Iterable<YamlDocument>): void {
    for (const document of documents) this.#document ??= document;
  }

  /** Called by the composer for an error. */
  readonly #onError = (at: ErrorPlace, code: string, message: string, warning?: boolean): void => {
    if (warning === true || isHarmless(message)) return;
    this.#error ??= this.#errorOf(offsetOf(at), code, message);
    throw this.#error;
  };

  #errorOf(at: number, code: string, message: string): YamlError {
    if (code === 'RESOURCE_EXHAUSTION') return tooDeep();
    const { line } = this.#lines.linePos(at);
    return faultAt(line === 1 ? 0 : line, message);
  }
}

/** The position of an error in the library's forms. */
type ErrorPlace = number | readonly number[] | { readonly offset: number };

function offsetOf(place: ErrorPlace): number {
  if (typeof place === 'number') return place;
  return 'offset' in place ? place.offset : (place[0] ?? 0);
}

/** Whether kube-apiserver's decoder accepts what the library reports. */
const isHarmless = (message: string): boolean =>
  message.startsWith('Comments must be separated') || message.startsWith('Map comment with');

/** Whether a lexeme starts a value. The lexer marks plain scalars with a control character. */
function isValue(lexeme: string): boolean {
  switch (lexeme[0]) {
    case CST.SCALAR:
    case '{':
    case '[':
    case '"':
    case "'":
    case '*':
      return true;
    default:
      return false;
  }
}

type Collection = CST.BlockMap | CST.BlockSequence | CST.FlowCollection;

/** The rest of a collection that was cut. */
interface Rest {
  /** The token of the collection, which keeps its first items. */
  readonly of: CST.Token;
  /** A collection of the same type with the other items. */
  readonly token: Collection;
}

/** Number of tokens in one piece. The library composes them in about a millisecond. */
const tokensPerPiece = 1000;

/**
 * Cuts the syntax tree of a document into pieces, which the library can compose one by one
 * (TRUST-2): it composes the whole tree of a document in one pass. A cut removes the items that
 * follow it from each collection around it.
 */
class TreeCutter {
  /** Rests of collections that were cut, the first in the document last. */
  readonly #rests: Rest[] = [];
  #left = tokensPerPiece;

  /** Cuts the tree behind its first tokens. */
  cut(token: CST.Token | undefined): void {
    if (isCollectionToken(token)) this.#cutAs(token, token);
  }

  /** Removes the next rest, in the order of the document, and cuts it behind its first tokens. */
  next(): Rest | undefined {
    const rest = this.#rests.pop();
    if (rest !== undefined) this.#cutAs(rest.token, rest.of);
    return rest;
  }

  #cutAs(token: Collection, of: CST.Token): void {
    const found: Rest[] = [];
    this.#cut(token, of, found);
    // The innermost rest comes first in the document.
    appendAll(this.#rests, found.reverse());
  }

  /** Whether pieces of enough tokens were cut to pause. If so, restarts the count. */
  get isOver(): boolean {
    if (this.#left > 0) return false;
    this.#left = tokensPerPiece;
    return true;
  }

  /** @param of the token that keeps the first items */
  #cut(token: Collection, of: CST.Token, found: Rest[]): void {
    for (const [index, { start, key, sep, value }] of token.items.entries()) {
      if (this.#left <= 0 && index > 0 && mayCut(token, index)) {
        found.push({ of, token: restOf(token, index) });
        token.items.length = index;
        if (isFlow(token)) token.end = [endOf(token)];
        return;
      }
      this.#left -= 1 + start.length + (sep?.length ?? 0);
      if (isCollectionToken(key)) this.#cut(key, key, found);
      if (isCollectionToken(value)) this.#cut(value, value, found);
    }
  }
}

function isCollectionToken(token: CST.Token | null | undefined): token is Collection {
  return token?.type === 'block-map' || token?.type === 'block-seq' || isFlow(token);
}

const isFlow = (token: CST.Token | null | undefined): token is CST.FlowCollection =>
  token?.type === 'flow-collection';

/** Whether the library reports the same errors if the items from this one on form a collection. */
function mayCut(token: Collection, index: number): boolean {
  if (!isFlow(token)) return true;
  const [before, item] = token.items.slice(index - 1, index + 1);
  const isEmpty = before?.key == null && before?.sep === undefined && before?.value == null;
  return !isEmpty && item?.start[0]?.type === 'comma';
}

function restOf(token: Collection, index: number): Collection {
  const items: CST.CollectionItem[] = token.items.slice(index);
  const { start, key, sep, value } = itemAt(items, 0);
  const offset = (start[0] ?? key ?? sep?.[0] ?? value)?.offset ?? token.offset;
  // The comma before the first item.
  if (isFlow(token)) items[0] = { ...items[0], start: start.slice(1) };
  return { ...token, offset, items } as Collection;
}

/** The bracket or brace that closes a flow collection. */
function endOf({ start, offset, indent }: CST.FlowCollection): CST.SourceToken {
  return start.source === '{'
    ? { type: 'flow-map-end', offset, indent, source: '}' }
    : { type: 'flow-seq-end', offset, indent, source: ']' };
}
