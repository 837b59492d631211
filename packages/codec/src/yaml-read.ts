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
import { TooManyValues } from './too-many-values.ts';
import { YamlError } from './yaml-error.ts';
import type { YamlLimits } from './yaml-limits.ts';
import { depthMax, tooDeep, treeParsing, treeSteps } from './yaml-tree.ts';

type YamlDocument = Document.Parsed<ParsedNode, false>;

/** Lexemes after which other requests get a turn; some milliseconds of work. */
const lexemesPerTurn = 2000;

/**
 * Parses in slices, as the text may be megabytes, and walks the tree in slices. Ends at the first
 * error, and where nobody wants the value any more. Rejects with YamlError, and TooManyValues.
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

/** Runs work in turns of the event loop, one step each: the steps are some milliseconds long. */
async function inTurns<Result>(work: Iterator<void, Result>, limits: YamlLimits): Promise<Result> {
  for (let step = work.next(); ; step = work.next()) {
    if (step.done === true) return step.value;
    await nextTurnIfWanted(limits);
  }
}

async function nextTurnIfWanted({ isWanted }: YamlLimits): Promise<void> {
  await nextTurn();
  if (isWanted?.() === false) throw new YamlError('yaml: no longer wanted');
}

function isBlank(node: ParsedNode | null): boolean {
  if (node === null) return true;
  return isScalar(node) && node.value === '' && node.type === 'PLAIN' && node.tag === undefined;
}

function secondDocument(offset: number, lines: LineCounter): YamlError {
  const { line } = lines.linePos(offset);
  return new YamlError(`yaml: line ${line}: expected a single document in the stream`);
}

/** The document, the scalar and whatever else stands on the parser's stack besides collections. */
const parserFramesMax = 8;
const documentsMax = 100;

/** Lexemes for each value: indicators, blanks and ends of lines stand around it. */
const lexemesPerValue = 5;

/** Reads the documents of one text as far as the first error, which is then the first one's. */
class StreamReader {
  readonly #lines: LineCounter;
  readonly #limits: YamlLimits;
  readonly #parser: Parser;
  readonly #composer: Composer<ParsedNode, false>;
  readonly #documents: YamlDocument[] = [];
  /** Where documents begin, as far as the parser has read them. */
  readonly #starts: number[] = [];
  #refusal: YamlError | undefined;
  #values = 0;
  #lexemes = 0;

  constructor(lines: LineCounter, limits: YamlLimits) {
    this.#lines = lines;
    this.#limits = limits;
    this.#parser = new Parser(lines.addNewLine);
    this.#composer = new Composer<ParsedNode, false>({ ...treeParsing, lineCounter: lines });
    // The library collects errors, one object for each bad character.
    Object.assign(this.#composer, { onError: this.#refuse });
  }

  async read(text: string): Promise<readonly YamlDocument[]> {
    try {
      this.#lines.addNewLine(0);
      for (const lexeme of new Lexer().lex(text)) {
        this.#count(lexeme);
        if (this.#takeAll(this.#parser.next(lexeme)) === 'failed') return this.#documents;
        if (this.#parser.stack.length > depthMax + parserFramesMax) throw tooDeep();
        if (this.#lexemes % lexemesPerTurn === 0) await nextTurnIfWanted(this.#limits);
      }
      this.#takeAll(this.#parser.end());
      this.#take(this.#composer.end());
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

  /** Composes documents of tokens; `failed` at the first one that is an error. */
  #takeAll(tokens: Iterable<CST.Token>): 'ready' | 'failed' {
    for (const token of tokens) {
      if (token.type === 'document') this.#starts.push(token.offset);
      this.#take(this.#composer.next(token));
      if (token.type !== 'error') continue;
      // A document that is composed already has the error; else the composer has kept it.
      this.#take(this.#composer.end());
      const [error] = this.#composer.streamInfo().errors;
      if (this.#documents.length === 0 && error !== undefined) {
        throw syntaxError(error, this.#lines);
      }
      return 'failed';
    }
    return 'ready';
  }

  #take(found: Iterable<YamlDocument>): void {
    for (const document of found) this.#documents.push(document);
    if (this.#documents.length > documentsMax) {
      throw new YamlError('yaml: too many documents in the stream');
    }
  }

  /** Called by the composer with what is wrong with a document. */
  readonly #refuse = (at: ErrorPlace, code: string, message: string, warning?: boolean): void => {
    if (warning === true) return;
    // The library catches what is thrown inside of it, and reports that in turn.
    this.#refusal ??= this.#refusalOf({ code, message, pos: [offsetOf(at)] });
    throw this.#refusal;
  };

  #refusalOf(error: SyntaxFault): YamlError {
    const [, second] = this.#starts;
    if (second !== undefined) return secondDocument(second, this.#lines);
    const [earlier] = this.#composer.streamInfo().errors;
    return syntaxError(earlier ?? error, this.#lines);
  }
}

/** What of the library's errors is told. */
interface SyntaxFault {
  readonly code: string;
  readonly message: string;
  readonly pos: readonly number[];
}

/** How the library says where an error is. */
type ErrorPlace = number | readonly number[] | { readonly offset: number };

function offsetOf(place: ErrorPlace): number {
  if (typeof place === 'number') return place;
  return 'offset' in place ? place.offset : (place[0] ?? 0);
}

/** Whether a lexeme begins a value. The lexer puts a control character ahead of plain scalars. */
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

/** The library's codes in upstream's words, where there are such words; its own text otherwise. */
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

function syntaxError(error: SyntaxFault, lines: LineCounter): YamlError {
  if (error.code === 'RESOURCE_EXHAUSTION') return tooDeep();
  const { line } = lines.linePos(error.pos[0] ?? 0);
  return new YamlError(`yaml: line ${line}: ${problems[error.code] ?? error.message}`);
}
