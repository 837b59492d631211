import { CsvError, parseCsv } from './csv.ts';
import type { TokenEntry } from './static-token.ts';

/** A token file that cannot be used; the message names file and line, never a token. */
export class TokenFileError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TokenFileError';
  }
}

/**
 * Reads the text of a `--token-auth-file`: token, user name, uid and optionally a quoted list of
 * groups (AUTHN-3). An empty or repeated token is only warned of, and the last one counts, as
 * upstream does. Throws TokenFileError at a malformed line, which must stop the start.
 */
export function parseTokenFile(options: {
  readonly file: string;
  readonly text: string;
  readonly warn: (message: string) => void;
}): readonly TokenEntry[] {
  const { file, warn } = options;
  const entries = new Map<string, TokenEntry>();
  readRecords(options).forEach(({ line, fields }, index) => {
    const [token, name, uid, groups] = fields;
    if (token === undefined || name === undefined || uid === undefined) {
      throw new TokenFileError(
        `token file '${file}' line ${line} must have at least 3 columns ` +
          `(token, user name, user uid), found ${fields.length}`,
      );
    }
    const where = `token file '${file}', record number '${index + 1}'`;
    if (token === '') {
      warn(`empty token has been found in ${where}`);
      return;
    }
    if (entries.has(token)) warn(`duplicate token has been found in ${where}`);
    entries.set(token, {
      token,
      user: { name, uid, groups: groups === undefined ? [] : groups.split(','), extra: {} },
    });
  });
  return [...entries.values()];
}

function readRecords(options: { readonly file: string; readonly text: string }) {
  try {
    return parseCsv(options.text);
  } catch (error) {
    if (error instanceof CsvError) {
      throw new TokenFileError(`token file '${options.file}': ${error.message}`);
    }
    throw error;
  }
}
