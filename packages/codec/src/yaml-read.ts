import { nextTurn } from '@wheelhouse/machinery';
import {
  Composer,
  CST,
  type Document,
  isScalar,
  Lexer,
  LineCounter,
  type ParsedNode,
  Parser,
} from 'yaml';
import type { DecodedJson } from './json.ts';
import { TooManyValues } from './json-limits.ts';
import { YamlError, type YamlLimits } from './yaml-error.ts';
import { depthMax, tooDeep, treeParsing, treeSteps } from './yaml-tree.ts';

type YamlDocument = Document.Parsed<ParsedNode, false>;

/** Number of lexemes that one turn reads, in several milliseconds. */
const lexemesPerTurn = 2000;

/**
 * Parses a text over several turns of the event loop, because it may have megabytes. Stops at the
 * first error, and when the value is no longer needed.
 * @throws YamlError or TooManyValues
 */
export async function readYaml(text: string, limits: YamlLimits): Promise<DecodedJson> {
  const lines = new LineCounter();
  const documents = await new StreamReader(lines, limits).read(text);
  const [first, ...more] = documents;
  if (first === undefined) return { value: null, duplicates: [] };
  const second = more.find((document) => !isBlank(document.contents));
  const [error] = first.errors;
  if (error !== undefined) throw syntaxError(error, lines);
  if (second !== undefined) throw secondDocument(second.range[0], lines);
  const { value, repeated } = await inTurns(treeSteps(first, lines, limits), limits);
  return { value, duplicates: [], ...(repeated.length === 0 ? {} : { repeated }) };
}

/** Runs one step in each turn of the event loop. */
async function inTurns<Result>(work: Iterator<void, Result>, limits: YamlLimits): Promise<Result> {
  for (let step = work.next(); ; step = work.next()) {
    if (step.done === true) return step.value;
    await nextTurnIfWanted(limits);
  }
}

async function nextTurnIfWanted({ isWanted }: YamlLimits): Promise<void> {
  await nextTurn();
  if (isWanted?.() === false) throw new YamlError('yaml: no longer needed');
}

function isBlank(node: ParsedNode | null): boolean {
  if (node === null) return true;
  return isScalar(node) && node.value === '' && node.type === 'PLAIN' && node.tag === undefined;
}

function secondDocument(offset: number, lines: LineCounter): YamlError {
  const { line } = lines.linePos(offset);
  return new YamlError(`yaml: line ${line}: expected a single document in the stream`);
}

/** Upper bound of the entries on the parser's stack besides collections, such as the document. */
const parserFramesMax = 8;
const documentsMax = 100;

/** Upper bound of the lexemes per value, including indicators, blanks, and line ends. */
const lexemesPerValue = 5;

/** Parses the documents of a text up to the first error. */
class StreamReader {
  readonly #lines: LineCounter;
  readonly #limits: YamlLimits;
  readonly #parser: Parser;
  readonly #composer: Composer<ParsedNode, false>;
  readonly #documents: YamlDocument[] = [];
  /** The offsets at which the parsed documents start. */
  readonly #starts: number[] = [];
  #error: YamlError | undefined;
  #values = 0;
  #lexemes = 0;

  constructor(lines: LineCounter, limits: YamlLimits) {
    this.#lines = lines;
    this.#limits = limits;
    this.#parser = new Parser(lines.addNewLine);
    this.#composer = new Composer<ParsedNode, false>({ ...treeParsing, lineCounter: lines });
    // Otherwise, the library collects an error object for each invalid character.
    Object.assign(this.#composer, { onError: this.#onError });
  }

  async read(text: string): Promise<readonly YamlDocument[]> {
    try {
      this.#lines.addNewLine(0);
      for (const lexeme of new Lexer().lex(text)) {
        this.#count(lexeme);
        if (this.#compose(this.#parser.next(lexeme)) === 'done') return this.#documents;
        if (this.#parser.stack.length > depthMax + parserFramesMax) throw tooDeep();
        if (this.#lexemes % lexemesPerTurn === 0) await nextTurnIfWanted(this.#limits);
      }
      // Composing a large document takes long, so it has a turn of the event loop to itself.
      if (this.#lexemes >= lexemesPerTurn) await nextTurnIfWanted(this.#limits);
      this.#compose(this.#parser.end());
      this.#add(this.#composer.end());
      if (this.#lexemes >= lexemesPerTurn) await nextTurnIfWanted(this.#limits);
    } catch (error) {
      if (error instanceof RangeError) throw tooDeep();
      throw error;
    }
    return this.#documents;
  }

  #count(lexeme: string): void {
    const { valuesMax } = this.#limits;
    this.#lexemes += 1;
    if (isValue(lexeme)) this.#values += 1;
    if (this.#values > valuesMax || this.#lexemes > valuesMax * lexemesPerValue) {
      throw new TooManyValues(valuesMax);
    }
  }

  /**
   * Composes documents from tokens; returns `done` at the first error, or after the first document.
   */
  #compose(tokens: Iterable<CST.Token>): 'ready' | 'done' {
    for (const token of tokens) {
      if (token.type === 'document') this.#starts.push(token.offset);
      this.#add(this.#composer.next(token));
      if (token.type === 'document' && this.#limits.documents === 'first') {
        this.#add(this.#composer.end());
        return 'done';
      }
      if (token.type !== 'error') continue;
      // The error is in a composed document, or else in the composer.
      this.#add(this.#composer.end());
      const [error] = this.#composer.streamInfo().errors;
      if (this.#documents.length === 0 && error !== undefined) {
        throw syntaxError(error, this.#lines);
      }
      return 'done';
    }
    return 'ready';
  }

  #add(documents: Iterable<YamlDocument>): void {
    for (const document of documents) this.#documents.push(document);
    if (this.#documents.length > documentsMax) {
      throw new YamlError('yaml: too many documents in the stream');
    }
  }

  /** Called by the composer for an error. */
  readonly #onError = (at: ErrorPlace, code: string, message: string, warning?: boolean): void => {
    if (warning === true) return;
    // The library catches exceptions and reports them as errors.
    this.#error ??= this.#firstError({ code, message, pos: [offsetOf(at)] });
    throw this.#error;
  };

  #firstError(error: LibraryError): YamlError {
    const [, second] = this.#starts;
    if (second !== undefined) return secondDocument(second, this.#lines);
    const [earlier] = this.#composer.streamInfo().errors;
    return syntaxError(earlier ?? error, this.#lines);
  }
}

/** The part of the library's errors that is used. */
interface LibraryError {
  readonly code: string;
  readonly message: string;
  readonly pos: readonly number[];
}

/** The position of an error in the library's forms. */
type ErrorPlace = number | readonly number[] | { readonly offset: number };

function offsetOf(place: ErrorPlace): number {
  if (typeof place === 'number') return place;
  return 'offset' in place ? place.offset : (place[0] ?? 0);
}

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

/** kube-apiserver's messages by the library's codes. */
const problems: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: 'found character that cannot start any token',
  BAD_SCALAR_START: 'found character that cannot start any token',
  BLOCK_AS_IMPLICIT_KEY: 'mapping values are not allowed in this context',
  MULTILINE_IMPLICIT_KEY: "could not find expected ':'",
  BAD_DQ_ESCAPE: 'found unknown escape character',
  BAD_INDENT: 'did not find expected key',
  BLOCK_IN_FLOW: 'did not find expected node content',
  UNEXPECTED_TOKEN: 'did not find expected key',
};

/** Returns the error with kube-apiserver's message, or else the library's. */
function syntaxError(error: LibraryError, lines: LineCounter): YamlError {
  if (error.code === 'RESOURCE_EXHAUSTION') return tooDeep();
  const { line } = lines.linePos(error.pos[0] ?? 0);
  return new YamlError(`yaml: line ${line}: ${problems[error.code] ?? error.message}`);
}
