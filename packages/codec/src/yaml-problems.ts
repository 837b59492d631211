import { CST } from 'yaml';
import { YamlError } from './decode-limits.ts';
import { closingQuote } from './yaml-scalars.ts';

/** The part of the library's errors that is used. */
export interface LibraryError {
  readonly code: string;
  readonly message: string;
  readonly pos: readonly number[];
}

export const noKey = 'did not find expected key';
const noIndicator = "did not find expected '-' indicator";
export const noContent = 'did not find expected node content';
export const noColon = "could not find expected ':'";
/** The problem of an alias whose name has other characters than letters, digits, `_`, and `-`. */
export const noAlias = 'did not find expected alphabetic or numeric character';
const openText = 'found unexpected end of stream';
const nestedValue = 'mapping values are not allowed in this context';
const nestedKey = 'mapping keys are not allowed in this context';
const noStart = 'did not find expected <document start>';
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
  [/^Missing directives-end/, noStart],
  [/^Implicit map keys need/, noColon],
  [/^A block sequence may not/, noKey],
  [/^Sequence item without/, noIndicator],
  [/^(?:Alias|Anchor) cannot be an empty/, noAlias],
  [/^Plain value cannot start with flow/, noContent],
  [/^Unexpected block-seq-ind/, 'block sequence entries are not allowed in this context'],
  [/^Unexpected , in flow/, noContent],
  [/^Implicit keys of flow seq|1024 chars .* flow seq/, "did not find expected ',' or ']'"],
  [/^Tags and anchors must be separated/, 'did not find expected whitespace or line break'],
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
export function syntaxError(error: LibraryError, text: string): YamlError {
  const [at = 0] = error.pos;
  const found = byMessage.find(([pattern]) => pattern.test(error.message));
  const problem = found?.[1] ?? byCode[error.code] ?? error.message;
  // A nested mapping is noticed at its value.
  const isInFlow = error.code === 'BLOCK_IN_FLOW' && !/[[{,]$/.test(text.slice(0, at).trimEnd());
  const place = isInFlow
    ? { problem: unclosed(text, at), at }
    : placeOf(error.code === 'BLOCK_IN_FLOW' ? noContent : problem, { text, at });
  // The library has counted no lines behind the error.
  const line = text.slice(0, place.at).split('\n').length;
  return errorAt(line + lineAfter(text, place), place.problem);
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
    const start = text.slice(text.lastIndexOf('\n', at - 1) + 1, at);
    if (/^-\s/.test(text.slice(at, at + 2)) || /^ *:\s+$/.test(start))
      return { problem: noKey, at };
    if (/^\?(?:\s|$)/.test(text.slice(at, at + 2))) return { problem: nestedKey, at };
    // Only a plain text that is not aligned with keys above it extends to the next line.
    const isComplete = /[{["']/.test(text[at] ?? '') || alignedAbove(text, at) === 'key';
    if (isComplete) return placeOf(noColon, { text, at });
    const colon = text.slice(at).search(/:(?:\s|$)/);
    return { problem, at: at + Math.max(0, colon) };
  }
  if (problem === noColon) return placeBehindKey(text, at);
  if (problem.startsWith("did not find expected ','")) {
    if (/^\r?\n/.test(text.slice(at, at + 2))) return { problem, at: text.indexOf(':', at) };
    if (/[[{,:]$/.test(before)) return { problem: noContent, at };
  }
  if (problem === noKey && /[\]}]/.test(text[at] ?? '') && /[:?-]$/.test(before)) {
    return { problem: noContent, at };
  }
  const endsPlain = /[^:"'\]}|>-]$/.test(before.slice(-1));
  if (problem === noToken && text[at] === '\t' && endsPlain) {
    return { problem: tabInPlain, at };
  }
  if (problem === noKey && alignedAbove(text, at) === 'item') {
    const line = text.slice(at).split('\n', 1).join('');
    return /^[^\s-].*(?<!:)$/.test(line) && !/:\s/.test(line)
      ? placeBehindKey(text, at)
      : { problem: noIndicator, at };
  }
  return { problem: problem === noIndicator && isUnindented(text, at) ? noKey : problem, at };
}

const tabInPlain = 'found a tab character that violates indentation';
const tabInBlock = 'found a tab character where an indentation space is expected';

/** Blanks before the first line of a block scalar, whose indentation they determine. */
const blanksBefore = /^(?: *\r?\n)* *\t/;

/**
 * Finds tabs where Go's scanner knows only spaces: on the left of lines, and between an item's dash
 * and its content.
 */
export class TabCheck {
  /** Whether a key or an item may follow. */
  #isStart = true;
  /** Whether only blanks follow a plain scalar, which may continue. */
  #isPlain = false;
  #previous = '';

  /**
   * Returns what is wrong with the next lexeme, if it has such a tab.
   * @param top the innermost token that the parser has begun
   */
  misplaced(
    lexeme: string,
    { isFlow, top }: { readonly isFlow: boolean; readonly top: CST.Token | undefined },
  ): { readonly at: number; readonly problem: string } | undefined {
    const previous = this.#previous;
    this.#previous = lexeme;
    if (isLineEnd(lexeme)) this.#isStart = true;
    if (isLineEnd(lexeme) || marks.has(lexeme)) return undefined;
    if (/^[ \t]+$/.test(lexeme) && previous !== CST.SCALAR) {
      const at = lexeme.indexOf('\t');
      if (at < 0 || !this.#isStart || isFlow) return undefined;
      if (!this.#isPlain) return { at, problem: noToken };
      const isOutermost = at === 0 && isLineEnd(previous) && top?.type !== 'document';
      return isOutermost ? { at, problem: tabInPlain } : undefined;
    }
    const isBlock = previous === CST.SCALAR && top?.type === 'block-scalar';
    this.#isStart = isBlock || lexeme === '-' || lexeme === '?';
    this.#isPlain = previous === CST.SCALAR && !isBlock;
    if (!isBlock || top.props.some(hasIndentation)) return undefined;
    const blanks = blanksBefore.exec(lexeme)?.[0];
    return blanks === undefined ? undefined : { at: blanks.length - 1, problem: tabInBlock };
  }
}

const isLineEnd = (lexeme: string): boolean => lexeme === '\n' || lexeme === '\r\n';

const marks: ReadonlySet<string> = new Set([CST.BOM, CST.DOCUMENT, CST.FLOW_END, CST.SCALAR]);

/** Whether a property of a block scalar is a header that states the indentation. */
const hasIndentation = ({ type, source }: CST.Token & { readonly source?: string }): boolean =>
  type === 'block-scalar-header' && /\d/.test(source ?? '');

/** Where Go's library notices that a text on a line is no key. */
function placeBehindKey(text: string, at: number): Place {
  const header = /^[|>](.*)/.exec(text.slice(at, at + headerCharactersMax));
  if (header !== null) {
    const isHeader = /^[-+\d]{0,2}(?:\s|$)/.test(header[1] ?? '');
    return { problem: isHeader ? noKey : 'did not find expected comment or line break', at };
  }
  const isQuoted = /["']/.test(text[at] ?? '');
  if (isQuoted && closingQuote(text, at) < 0) return { problem: openText, at: text.length };
  const column = at - (text.lastIndexOf('\n', at - 1) + 1);
  for (let end = text.indexOf('\n', at); end >= 0; end = text.indexOf('\n', end)) {
    const next = text.slice(end).search(/\S/);
    if (next < 0) return { problem: noColon, at: text.lastIndexOf('\n') + 1 };
    end += next;
    // A plain text continues on lines with more indentation.
    if (isQuoted || end - (text.lastIndexOf('\n', end) + 1) <= column) {
      return { problem: noColon, at: end };
    }
  }
  return { problem: noColon, at: text.length };
}

const headerCharactersMax = 16;

/** The lines of a text that have content, from the last to the first, with their indentation. */
function* linesAbove(
  text: string,
): Generator<{ readonly column: number; readonly isItem: boolean }> {
  for (let end = text.length; end > 0; ) {
    const start = text.lastIndexOf('\n', end - 1) + 1;
    const line = text.slice(start, end);
    if (/^(?:---|\.\.\.)(?:\s|$)/.test(line)) return;
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
const documentStart = /^---(?:[ \t\r]|$)/;
const documentEnd = /^\.\.\.(?:[ \t\r]|$)/;
const noVersion = 'did not find expected version number';

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
    else if (seen.size > 0 && !documentStart.test(content) && !blankLine.test(content)) {
      throw errorAt(line, noStart);
    } else if (!blankLine.test(content)) return;
    if (end < 0) break;
    at = end + 1;
  }
  if (seen.size === 0) return;
  const end = { problem: noStart, at: text.length };
  throw errorAt(line + lineAfter(text, end), end.problem);
}

function checkDirective(
  content: string,
  { line, seen }: { readonly line: number; readonly seen: Set<string> },
): void {
  const refuse = (problem: string) => errorAt(line, problem);
  const [, name = '', rest = ''] = /^%([\w-]*)(.*)$/s.exec(content) ?? [];
  if (name === '') throw refuse('could not find expected directive name');
  if (!/^(?:[ \t\r]|$)/.test(rest)) throw refuse('found unexpected non-alphabetical character');
  if (name !== 'YAML' && name !== 'TAG') throw refuse('found unknown directive name');
  const tag = name === 'TAG' ? /^[ \t]+(\S+)[ \t]+\S+/.exec(rest) : undefined;
  const version = name === 'YAML' ? versionOf(rest, refuse) : undefined;
  const end = rest.slice((version ?? tag)?.[0].length ?? 0);
  if (!/^[ \t\r]*(?:#.*)?$/s.test(end)) throw refuse('did not find expected comment or line break');
  const id = `%${name} ${tag?.[1] ?? ''}`;
  if (seen.has(id)) throw errorAt(line, `found duplicate %${name} directive`);
  seen.add(id);
  const isKnown = Number(version?.[1] ?? 1) === 1 && Number(version?.[2] ?? 1) === 1;
  if (!isKnown) throw new YamlError('yaml: found incompatible YAML document');
}

/** Parses the major and minor version of a `%YAML` directive. */
function versionOf(text: string, refuse: (problem: string) => YamlError): RegExpExecArray {
  const version = /^[ \t]*([0-9]+)\.([0-9]+)/.exec(text);
  if (version !== null) return version;
  const isMajor = /^[ \t]*[0-9]+[^0-9.]/.test(text) || /^[ \t]*[0-9]+$/.test(text);
  throw refuse(isMajor ? "did not find expected digit or '.' character" : noVersion);
}
