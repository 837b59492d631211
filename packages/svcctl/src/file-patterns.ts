import { existsSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { compareText } from '@wheelhouse/machinery';
import { CliError } from './io.ts';

/** A character of a class in brackets, and a token of a pattern, as Go's `filepath.Match` has them. */
const classCharacter = '(?:\\\\.|[^\\\\\\]-])';
const token = new RegExp(
  `\\[(\\^?)((?:${classCharacter}(?:-${classCharacter})?)+)\\]|\\\\(.)|([^\\\\[])`,
  'suy',
);

/**
 * Returns the files that a pattern of the command line matches, sorted within each folder: `*`, `?`,
 * and `[a-z]` match within a name, and `\` escapes. Throws CliError for a malformed pattern.
 * @param resolve resolves a path against the working directory
 */
export function matchingFiles(pattern: string, resolve: (file: string) => string): string[] {
  if (!/[*?[\\]/.test(pattern)) return existsSync(resolve(pattern)) ? [pattern] : [];
  const name = nameForm(path.basename(pattern), pattern);
  // No name is empty.
  if (pattern.endsWith('/')) return [];
  const folders = matchingFiles(path.dirname(pattern), resolve);
  return folders.filter(isFolderAt(resolve)).flatMap((folder) =>
    readdirSync(resolve(folder))
      .filter((entry) => name.test(entry))
      .sort(compareText)
      .map((entry) => path.join(folder, entry)),
  );
}

const isFolderAt = (resolve: (file: string) => string) => (folder: string) =>
  statSync(resolve(folder), { throwIfNoEntry: false })?.isDirectory() === true;

/** Converts the last part of a pattern. Throws CliError. */
function nameForm(part: string, pattern: string): RegExp {
  let source = '';
  token.lastIndex = 0;
  while (token.lastIndex < part.length) {
    const match = token.exec(part);
    if (match === null) {
      const quoted = JSON.stringify(pattern);
      throw new CliError(`pattern ${quoted} is not valid: syntax error in pattern`);
    }
    const [, negation = '', members, escaped, plain = ''] = match;
    if (members !== undefined) source += `[${negation}${rangesOf(members)}]`;
    else if (escaped !== undefined) source += literal(escaped);
    else source += plain === '*' ? '.*' : plain === '?' ? '.' : literal(plain);
  }
  return new RegExp(`^${source}$`, 'su');
}

/** Converts the members of a class. A range whose end precedes its start has no characters. */
function rangesOf(members: string): string {
  const ranges = new RegExp(`(${classCharacter})(?:-(${classCharacter}))?`, 'gsu');
  return [...members.matchAll(ranges)]
    .map(([, start = '', end = start]) => [start, end].map(codeOf))
    .filter(([start = 0, end = 0]) => start <= end)
    .map((range) => range.map(escapeOf).join('-'))
    .join('');
}

const codeOf = (character: string): number => character.replace(/^\\(?=.)/su, '').codePointAt(0)!;

const escapeOf = (code: number): string => `\\u{${code.toString(16)}}`;

const literal = (character: string): string => escapeOf(codeOf(character));
