import { readdirSync, statSync } from 'node:fs';
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
  if (!/[*?[\\]/.test(pattern)) return exists(resolve(pattern)) ? [pattern] : [];
  const name = nameForm(path.basename(pattern), pattern);
  const folders = matchingFiles(path.dirname(pattern), resolve);
  return folders.filter(isFolderAt(resolve)).flatMap((folder) =>
    readdirSync(resolve(folder))
      .filter((entry) => name.test(entry))
      .sort(compareText)
      .map((entry) => path.join(folder, entry)),
  );
}

const exists = (file: string): boolean => statSync(file, { throwIfNoEntry: false }) !== undefined;

const isFolderAt = (resolve: (file: string) => string) => (folder: string) =>
  statSync(resolve(folder), { throwIfNoEntry: false })?.isDirectory() === true;

/** Converts the last part of a pattern. Throws CliError. */
function nameForm(part: string, pattern: string): RegExp {
  const literal = (text: string) => `\\u{${text.codePointAt(0)!.toString(16)}}`;
  let source = '';
  token.lastIndex = 0;
  while (token.lastIndex < part.length) {
    const match = token.exec(part);
    if (match === null) {
      const quoted = JSON.stringify(pattern);
      throw new CliError(`pattern ${quoted} is not valid: syntax error in pattern`);
    }
    const [, negation = '', members, escaped, plain = ''] = match;
    const characters = new RegExp(`${classCharacter}|-`, 'gsu');
    if (members !== undefined) {
      const range = members.replace(characters, (text) =>
        text === '-' ? text : literal(text.replace(/^\\/, '')),
      );
      source += `[${negation}${range}]`;
    } else if (escaped !== undefined) source += literal(escaped);
    else source += plain === '*' ? '.*' : plain === '?' ? '.' : literal(plain);
  }
  return new RegExp(`^${source}$`, 'su');
}
