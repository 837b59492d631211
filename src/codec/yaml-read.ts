import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  Composer,
  type Document,
  isScalar,
  Lexer,
  type YAMLError as LibraryError,
  LineCounter,
  type ParsedNode,
  Parser,
} from 'yaml';
import type { DecodedJson } from './json.ts';
import { YamlError } from './yaml-error.ts';
import { depthMax, readTree, tooDeep, treeParsing } from './yaml-tree.ts';

type YamlDocument = Document.Parsed<ParsedNode, false>;

/** Lexemes after which other requests get a turn; some milliseconds of work. */
const lexemesPerTurn = 2000;

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
  const { value, repeated } = readTree(first, lines);
  return { value, duplicates: [], ...(repeated.length === 0 ? {} : { repeated }) };
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
    ...treeParsing,
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
