import type { LineCounter } from 'yaml';
import { YamlError } from './yaml-error.ts';

/** The part of the library's errors that is used. */
export interface LibraryError {
  readonly code: string;
  readonly message: string;
  readonly pos: readonly number[];
}

/** kube-apiserver's messages by the library's codes. */
const byCode: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: 'found character that cannot start any token',
  BAD_SCALAR_START: 'found character that cannot start any token',
  BLOCK_AS_IMPLICIT_KEY: 'mapping values are not allowed in this context',
  MULTILINE_IMPLICIT_KEY: "could not find expected ':'",
  BAD_DQ_ESCAPE: 'found unknown escape character',
  BAD_INDENT: 'did not find expected key',
  MULTIPLE_ANCHORS: 'did not find expected key',
  MULTIPLE_TAGS: 'did not find expected key',
  UNEXPECTED_TOKEN: 'did not find expected key',
};

/** kube-apiserver's messages by the beginning of the library's, where the code is not enough. */
const byMessage: readonly (readonly [RegExp, string])[] = [
  [/^Missing closing/, 'found unexpected end of stream'],
  [/^Missing directives-end/, 'did not find expected <document start>'],
  [/^Implicit map keys need/, "could not find expected ':'"],
  [/^Unexpected block-seq-ind/, 'block sequence entries are not allowed in this context'],
  [/^Unexpected , in flow/, 'did not find expected node content'],
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
  const { line } = lines.linePos(at);
  const isOpen = error.message.startsWith('Missing closing');
  if (isOpen && documentMarker.test(text.slice(at, at + 6))) {
    return new YamlError(`yaml: line ${line + 1}: found unexpected document indicator`);
  }
  const found = byMessage.find(([pattern]) => pattern.test(error.message));
  const isInFlow = error.code === 'BLOCK_IN_FLOW';
  const problem = isInFlow ? unclosed(text, at) : (found?.[1] ?? byCode[error.code]);
  return new YamlError(`yaml: line ${line}: ${problem ?? error.message}`);
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
  return 'did not find expected node content';
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
    if (documentEnd.test(content)) throw problem('did not find expected node content', line);
    if (content.startsWith('%')) checkDirective(content, { line, seen });
    else if (!blankLine.test(content)) return;
    if (end < 0) break;
    at = end + 1;
  }
  if (seen.size > 0) throw problem('did not find expected <document start>', line);
}

const problem = (what: string, line: number) => new YamlError(`yaml: line ${line}: ${what}`);

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
  if (seen.has(id)) throw problem(`found duplicate ${name} directive`, line);
  seen.add(id);
  if (version !== undefined && version !== '1.1') {
    throw new YamlError('yaml: found incompatible YAML document');
  }
}
