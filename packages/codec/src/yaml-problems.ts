import type { LineCounter } from 'yaml';
import { YamlError } from './yaml-error.ts';

/** The part of the library's errors that is used. */
export interface LibraryError {
  readonly code: string;
  readonly message: string;
  readonly pos: readonly number[];
}

const noKey = 'did not find expected key';
const noIndicator = "did not find expected '-' indicator";
const noContent = 'did not find expected node content';
const noColon = "could not find expected ':'";
/** The problem of an alias whose name has other characters than letters, digits, `_`, and `-`. */
export const noAlias = 'did not find expected alphabetic or numeric character';
const openText = 'found unexpected end of stream';
const nestedValue = 'mapping values are not allowed in this context';
const nestedKey = 'mapping keys are not allowed in this context';
const noToken = 'found character that cannot start any token';

/** Problems that Go's parser finds, which counts lines from zero; its scanner counts from one. */
const parserProblem =
  /^did not find expected (?:key|'|node|<)|^found (?:undefined tag handle|duplicate)/;

/**
 * Returns an error at a line, which is counted from one. Like Go's library, the message does not
 * name the first line, and the line that it names for errors of the parser is the one before.
 */
export function errorAt(line: number, problem: string): YamlError {
  const shown = parserProblem.test(problem) ? line - 1 : line;
  return new YamlError(line === 1 ? `yaml: ${problem}` : `yaml: line ${shown}: ${problem}`);
}

/** kube-apiserver's messages by the library's codes. */
const byCode: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: noToken,
  BAD_SCALAR_START: noToken,
  BLOCK_AS_IMPLICIT_KEY: nestedValue,
  MULTILINE_IMPLICIT_KEY: nestedValue,
  BAD_DQ_ESCAPE: 'found unknown escape character',
  BAD_INDENT: noKey,
  MULTIPLE_ANCHORS: noKey,
  MULTIPLE_TAGS: noKey,
  UNEXPECTED_TOKEN: noKey,
};

/** kube-apiserver's messages by the beginning of the library's, where the code is not enough. */
const byMessage: readonly (readonly [RegExp, string])[] = [
  [/^Missing closing/, openText],
  [/^Missing directives-end/, 'did not find expected <document start>'],
  [/^Implicit map keys need/, noColon],
  [/^A block sequence may not/, noKey],
  [/^Sequence item without/, noIndicator],
  [/^(?:Alias|Anchor) cannot be an empty/, noAlias],
  [/^Plain value cannot start with flow/, noContent],
  [/^Unexpected block-seq-ind/, 'block sequence entries are not allowed in this context'],
  [/^Unexpected , in flow/, noContent],
  [/^Could not resolve tag/, 'found undefined tag handle'],
  [/^Missing , (?:or : )?between flow map/, "did not find expected ',' or '}'"],
  [/^Missing , (?:or : )?between flow seq/, "did not find expected ',' or ']'"],
  [/^Block scalar header/, 'did not find expected comment or line break'],
  [/end with a }$/, "did not find expected ',' or '}'"],
  [/end with a ]$/, "did not find expected ',' or ']'"],
];

/** The beginning of a line that ends a quoted text, although it has no closing quote. */
const documentMarker = /^\r?\n(?:---|\.\.\.)/;

/** Whether kube-apiserver's decoder accepts what the library reports. */
export const isHarmless = ({ message }: Pick<LibraryError, 'message'>): boolean =>
  message.startsWith('Comments must be separated');

/** Returns an error of the library with kube-apiserver's message, if that is known. */
export function syntaxError(
  error: LibraryError,
  { text, lines }: { readonly text: string; readonly lines: LineCounter },
): YamlError {
  const [at = 0] = error.pos;
  const found = byMessage.find(([pattern]) => pattern.test(error.message));
  const problem = found?.[1] ?? byCode[error.code] ?? error.message;
  // A nested mapping is noticed at its value.
  const isInFlow = error.code === 'BLOCK_IN_FLOW' && !/[[{,]$/.test(text.slice(0, at).trimEnd());
  const place = isInFlow
    ? { problem: unclosed(text, at), at }
    : placeOf(error.code === 'BLOCK_IN_FLOW' ? noContent : problem, { text, at });
  return errorAt(lines.linePos(place.at).line + lineAfter(text, place), place.problem);
}

/** 1 for a problem at the end of a text whose last line is open, which Go's scanner ends, else 0. */
const lineAfter = (text: string, { problem, at }: Place): number =>
  at < text.length || text.endsWith('\n') || problem === openText ? 0 : 1;

interface Place {
  readonly problem: string;
  readonly at: number;
}

/** Where Go's library notices a problem, and how it words the problem there. */
function placeOf(
  problem: string,
  { text, at }: { readonly text: string; readonly at: number },
): Place {
  const before = text.slice(0, at).trimEnd();
  if (problem === openText && documentMarker.test(text.slice(at, at + 6))) {
    return { problem: 'found unexpected document indicator', at: text.indexOf('\n', at) + 1 };
  }
  if (problem === nestedValue) {
    if (/^-\s/.test(text.slice(at, at + 2))) return { problem: noKey, at };
    if (/^\?(?:\s|$)/.test(text.slice(at, at + 2))) return { problem: nestedKey, at };
    // Only a plain text that is not aligned with keys above it extends to the next line.
    const isComplete = /[{["']/.test(text[at] ?? '') || alignedAbove(text, at) === 'key';
    if (isComplete) return placeOf(noColon, { text, at });
    const colon = text.slice(at).search(/:(?:\s|$)/);
    return { problem, at: at + Math.max(0, colon) };
  }
  if (problem === noColon) {
    const lineEnd = text.indexOf('\n', at);
    const next = lineEnd < 0 ? -1 : text.slice(lineEnd).search(/\S/);
    return { problem, at: next < 0 ? text.length : lineEnd + next };
  }
  if (problem.startsWith("did not find expected ','") && /[[{,:]$/.test(before)) {
    return { problem: noContent, at };
  }
  if (problem === noKey && /[\]}]/.test(text[at] ?? '') && /[:?-]$/.test(before)) {
    return { problem: noContent, at };
  }
  const endsPlain = /[^:"'\]}|>-]$/.test(before.slice(-1));
  if (problem === noToken && text[at] === '\t' && endsPlain) {
    return { problem: 'found a tab character that violates indentation', at };
  }
  if (problem === noKey && alignedAbove(text, at) === 'item') return { problem: noIndicator, at };
  return { problem: problem === noIndicator && isUnindented(text, at) ? noKey : problem, at };
}

/** The lines of a text that have content, from the last to the first, with their indentation. */
function* linesAbove(
  text: string,
): Generator<{ readonly column: number; readonly isItem: boolean }> {
  for (let end = text.length; end > 0; ) {
    const start = text.lastIndexOf('\n', end - 1) + 1;
    const line = text.slice(start, end);
    const column = line.search(/[^ ]/);
    const content = line.slice(column).trimEnd();
    if (content !== '' && !content.startsWith('#')) {
      yield { column, isItem: content === '-' || content.startsWith('- ') };
    }
    end = start - 1;
  }
}

/**
 * What is above the first word of a line, at a position in it, in its column: a list item, a key, or
 * nothing.
 */
function alignedAbove(text: string, at: number): 'item' | 'key' | undefined {
  const start = text.lastIndexOf('\n', at - 1) + 1;
  if (!/^ *\S*$/.test(text.slice(start, at))) return undefined;
  const indentation = text.slice(start).search(/[^ ]/);
  for (const { column, isItem } of linesAbove(text.slice(0, start))) {
    if (column > indentation) continue;
    if (column < indentation) return undefined;
    return isItem ? 'item' : 'key';
  }
  return undefined;
}

/** Whether the list above a line has the column of the mapping that contains it. */
function isUnindented(text: string, at: number): boolean {
  const column = text.slice(at).search(/[^ ]/);
  let list = -1;
  for (const line of linesAbove(text.slice(0, at).trimEnd())) {
    if (list < 0) {
      if (line.isItem && line.column < column) list = line.column;
    } else if (!line.isItem && line.column <= list) return line.column === list;
  }
  return false;
}

/** What the innermost flow collection around a position lacks; brackets in texts count, too. */
function unclosed(text: string, at: number): string {
  let depth = 0;
  for (let index = at - 1; index >= 0; index -= 1) {
    const character = text[index];
    if (character === '}' || character === ']') depth += 1;
    if (character !== '{' && character !== '[') continue;
    if (depth === 0) return `did not find expected ',' or '${character === '{' ? '}' : ']'}'`;
    depth -= 1;
  }
  return noContent;
}

/** The lines before a document that are neither directives nor its content. */
const blankLine = /^[ \t]*(?:#.*)?\r?$/;
const documentEnd = /^\.\.\.(?:[ \t\r]|$)/;
const versionDirective = /^%YAML[ \t]+([0-9]+\.[0-9]+)[ \t\r]*(?:#.*)?$/;
const tagDirective = /^%TAG[ \t]+(\S+)/;

/**
 * Checks the directives before the first document as kube-apiserver's decoder does, which knows
 * only version 1.1.
 * @throws YamlError
 */
export function checkDirectives(text: string): void {
  const seen = new Set<string>();
  let line = 1;
  for (let at = text.startsWith('\ufeff') ? 1 : 0; ; line += 1) {
    const end = text.indexOf('\n', at);
    const content = text.slice(at, end < 0 ? text.length : end);
    if (documentEnd.test(content)) throw errorAt(line, noContent);
    if (content.startsWith('%')) checkDirective(content, { line, seen });
    else if (!blankLine.test(content)) return;
    if (end < 0) break;
    at = end + 1;
  }
  if (seen.size === 0) return;
  const end = { problem: 'did not find expected <document start>', at: text.length };
  throw errorAt(line + lineAfter(text, end), end.problem);
}

function checkDirective(
  content: string,
  { line, seen }: { readonly line: number; readonly seen: Set<string> },
): void {
  const [name = ''] = content.split(/[ \t\r]/, 1);
  if (name !== '%YAML' && name !== '%TAG') {
    throw new YamlError('yaml: found unknown directive name');
  }
  const version = versionDirective.exec(content)?.[1];
  if (name === '%YAML' && version === undefined) {
    throw new YamlError('yaml: did not find expected version number');
  }
  const id = name === '%YAML' ? name : `${name} ${tagDirective.exec(content)?.[1] ?? ''}`;
  if (seen.has(id)) throw errorAt(line, `found duplicate ${name} directive`);
  seen.add(id);
  if (version !== undefined && version !== '1.1') {
    throw new YamlError('yaml: found incompatible YAML document');
  }
}
