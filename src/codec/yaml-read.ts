import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  Composer,
  type Document,
  isAlias,
  isScalar,
  isSeq,
  Lexer,
  type YAMLError as LibraryError,
  LineCounter,
  type ParsedNode,
  Parser,
  type Scalar,
  type YAMLMap,
} from 'yaml';
import { isObject, type JsonObject, type JsonValue, setMember } from '../base/json.ts';
import type { DecodedJson } from './json.ts';
import { YamlError } from './yaml-error.ts';
import { plainScalar } from './yaml-scalar.ts';

/** Lexemes after which other requests get a turn; some milliseconds of work. */
const lexemesPerTurn = 2000;
const nodesMax = 2_000_000;
const duplicatesMax = 100;
/**
 * Collections inside each other, aliases followed. The library recurses and is through with the
 * stack at some 700; it compiles regular expressions down there, for which a spent stack ends the
 * process rather than throw (docs/decisions/nesting-limit.md).
 */
const depthMax = 250;
const tooDeep = () => new YamlError('yaml: exceeded max depth');
const tagPrefix = 'tag:yaml.org,2002:';

type YamlDocument = Document.Parsed<ParsedNode, false>;

/** Parses in slices, as the text may be megabytes; the tree is then walked in one go. */
export async function readYaml(text: string): Promise<DecodedJson> {
  const lines = new LineCounter();
  const documents = await parseDocuments(text, lines);
  const isEmpty = (document: YamlDocument) =>
    document.errors.length === 0 && isBlank(document.contents);
  const [first, ...more] = documents;
  if (first === undefined) return { value: null, duplicates: [] };
  const second = more.find((document) => !isEmpty(document));
  const [error] = first.errors;
  if (error !== undefined) throw syntaxError(error, lines);
  if (second !== undefined) {
    const { line } = lines.linePos(second.range[0]);
    throw new YamlError(`yaml: line ${line}: expected a single document in the stream`);
  }
  return new TreeReader(first, lines).read();
}

function isBlank(node: ParsedNode | null): boolean {
  if (node === null) return true;
  return isScalar(node) && node.value === '' && node.type === 'PLAIN' && node.tag === undefined;
}

/** The document, the scalar and whatever else stands on the parser's stack besides collections. */
const parserFramesMax = 8;

async function parseDocuments(text: string, lines: LineCounter): Promise<YamlDocument[]> {
  const parser = new Parser(lines.addNewLine);
  const composer = new Composer<ParsedNode, false>({
    schema: 'failsafe',
    version: '1.1',
    resolveKnownTags: false,
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
    lineCounter: lines,
  });
  const documents: YamlDocument[] = [];
  const take = (found: Iterable<YamlDocument>) => {
    for (const document of found) documents.push(document);
    if (documents.length > 100) throw new YamlError('yaml: too many documents in the stream');
  };
  try {
    lines.addNewLine(0);
    let count = 0;
    for (const lexeme of new Lexer().lex(text)) {
      for (const token of parser.next(lexeme)) take(composer.next(token));
      if (parser.stack.length > depthMax + parserFramesMax) throw tooDeep();
      count += 1;
      if (count % lexemesPerTurn === 0) await nextTurn();
    }
    for (const token of parser.end()) take(composer.next(token));
    take(composer.end());
  } catch (error) {
    if (error instanceof RangeError) throw tooDeep();
    throw error;
  }
  return documents;
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

function syntaxError(error: LibraryError, lines: LineCounter): YamlError {
  if (error.code === 'RESOURCE_EXHAUSTION') return tooDeep();
  const { line } = lines.linePos(error.pos[0]);
  return new YamlError(`yaml: line ${line}: ${problems[error.code] ?? error.message}`);
}

/** Makes JSON of the tree, bounding what aliases may multiply. */
class TreeReader {
  readonly #document: YamlDocument;
  readonly #lines: LineCounter;
  readonly #duplicates: string[] = [];
  readonly #aliasesOpen = new Set<string>();
  readonly #anchors = new Map<string, ParsedNode>();
  #nodes = 0;
  #aliasNodes = 0;
  #depth = 0;

  constructor(document: YamlDocument, lines: LineCounter) {
    this.#document = document;
    this.#lines = lines;
  }

  read(): DecodedJson {
    try {
      const value = this.#value(this.#document.contents);
      const told = this.#duplicates;
      return { value, duplicates: [], ...(told.length === 0 ? {} : { repeated: told }) };
    } catch (error) {
      if (error instanceof RangeError) throw tooDeep();
      throw error;
    }
  }

  #value(node: ParsedNode | null): JsonValue {
    this.#count();
    if (node === null) return null;
    if (isAlias(node)) return this.#alias(node.source);
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node);
    if (isScalar(node)) return this.#scalar(node);
    if (this.#depth === depthMax) throw tooDeep();
    this.#depth += 1;
    const value = isSeq(node)
      ? node.items.map((item) => this.#value(item as ParsedNode))
      : this.#map(node);
    this.#depth -= 1;
    return value;
  }

  /** The share of nodes that aliases may make falls as the document grows, as upstream has it. */
  #count(): void {
    this.#nodes += 1;
    if (this.#aliasesOpen.size > 0) this.#aliasNodes += 1;
    if (this.#nodes > nodesMax) throw new YamlError('yaml: too many values');
    if (this.#nodes <= 100 || this.#aliasNodes <= 1000) return;
    const large = Math.min(1, Math.max(0, (this.#nodes - 400_000) / 3_600_000));
    if (this.#aliasNodes / this.#nodes > 0.99 - 0.89 * large) {
      throw new YamlError('yaml: document contains excessive aliasing');
    }
  }

  #alias(name: string): JsonValue {
    const node = this.#anchors.get(name);
    if (node === undefined) throw new YamlError(`yaml: unknown anchor '${name}' referenced`);
    if (this.#aliasesOpen.has(name)) {
      throw new YamlError(`yaml: anchor '${name}' value contains itself`);
    }
    this.#aliasesOpen.add(name);
    try {
      return this.#value(node);
    } finally {
      this.#aliasesOpen.delete(name);
    }
  }

  #scalar(node: Scalar): JsonValue {
    const text = String(node.value);
    const tag = node.tag?.startsWith(tagPrefix) ? node.tag.slice(tagPrefix.length) : undefined;
    if (tag === 'binary') return this.#binary(text);
    const isPlain = node.type === 'PLAIN' && node.tag === undefined;
    if (!isPlain && (tag === undefined || tag === 'str' || tag === 'timestamp')) return text;
    const value = plainScalar(text);
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw new YamlError(`json: unsupported value: ${goFloat(value)}`);
    }
    if (tag === undefined || fitsTag(tag, value)) return value;
    const is = `!!${tagOf(value)} \`${text.slice(0, 64)}\``;
    throw new YamlError(`yaml: line ${this.#lineOf(node)}: cannot decode ${is} as a !!${tag}`);
  }

  #binary(text: string): string {
    const bytes = Buffer.from(text, 'base64');
    if (bytes.toString('base64').replace(/=+$/, '') !== text.replace(/[\s=]+/g, '')) {
      throw new YamlError('yaml: !!binary value contains invalid base64 data');
    }
    return bytes.toString('utf8');
  }

  #map(node: YAMLMap): JsonObject {
    const result: JsonObject = {};
    const merged: JsonObject[] = [];
    for (const pair of node.items) {
      const key = pair.key as ParsedNode | null;
      const value = pair.value as ParsedNode | null;
      if (isMergeKey(key)) {
        merged.push(...this.#mergeSources(value));
        continue;
      }
      const name = this.#key(key);
      if (Object.hasOwn(result, name)) this.#duplicate(key, name);
      setMember(result, name, this.#value(value));
    }
    for (const source of merged) {
      for (const [name, value] of Object.entries(source)) {
        if (!Object.hasOwn(result, name)) setMember(result, name, value as JsonValue);
      }
    }
    return result;
  }

  /** Earlier sources win over later ones, the map's own members over all. */
  #mergeSources(node: ParsedNode | null): JsonObject[] {
    const value = this.#value(node);
    const sources = Array.isArray(value) ? value : [value];
    if (!sources.every(isObject)) {
      throw new YamlError('yaml: map merge requires map or sequence of maps as the value');
    }
    return sources;
  }

  /** Keys of other types as the strings upstream makes of them: `on:` is `true`, `1:` is `1`. */
  #key(node: ParsedNode | null): string {
    const value = this.#value(node);
    if (typeof value === 'string') return value;
    if (value === null || typeof value === 'object') {
      const type = value === null ? '%!s(<nil>)' : Array.isArray(value) ? 'slice' : 'map';
      throw new YamlError(`yaml: unsupported map key of type: ${type}`);
    }
    return String(value);
  }

  #duplicate(node: ParsedNode | null, name: string): void {
    if (this.#duplicates.length >= duplicatesMax) return;
    const line = node === null ? 0 : this.#lineOf(node);
    this.#duplicates.push(`line ${line}: key ${JSON.stringify(name)} already set in map`);
  }

  #lineOf(node: { range?: readonly number[] | null | undefined }): number {
    return this.#lines.linePos(node.range?.[0] ?? 0).line;
  }
}

function isMergeKey(node: ParsedNode | null): boolean {
  if (!isScalar(node) || node.value !== '<<') return false;
  return node.tag === `${tagPrefix}merge` || (node.tag === undefined && node.type === 'PLAIN');
}

function tagOf(value: JsonValue): string {
  if (value === null) return 'null';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'string') return 'str';
  return typeof value === 'bigint' || Number.isInteger(value) ? 'int' : 'float';
}

/** Tags of no meaning here do not judge; an integer will do as a float. */
function fitsTag(tag: string, value: JsonValue): boolean {
  if (!['null', 'bool', 'int', 'float'].includes(tag)) return true;
  return tagOf(value) === tag || (tag === 'float' && tagOf(value) === 'int');
}

function goFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  return value > 0 ? '+Inf' : '-Inf';
}
