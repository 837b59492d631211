import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { CsvError, csvRecords, type Exchange, type UserInfo } from '@wheelhouse/machinery';
import type { Authenticator } from './contract.ts';
import { InvalidBearerToken, parseBearer } from './credentials.ts';

/** A token and its user. */
interface TokenEntry {
  readonly token: string;
  readonly user: UserInfo;
}

interface CachedVerdict {
  readonly header: string;
  /** Undefined for an unknown token. */
  readonly user: UserInfo | undefined;
}

/**
 * Authenticates bearer tokens from a fixed list; the last entry of a token wins. Tokens are
 * stored and looked up as HMACs under a random key, so the time of a lookup reveals nothing about a
 * token. A connection caches its last header and verdict, so later requests only compare strings.
 */
export function createStaticTokenAuthenticator(options: {
  readonly name: string;
  readonly entries: readonly TokenEntry[];
}): Authenticator {
  const key = randomBytes(32);
  const digest = (token: string): Buffer => createHmac('sha256', key).update(token).digest();
  const users = new Map<string, { digest: Buffer; user: UserInfo }>();
  for (const { token, user } of options.entries) {
    const hashed = digest(token);
    users.set(hashed.toString('base64'), { digest: hashed, user });
  }
  const memoKey = Symbol(options.name);
  // Shared, because most tokens belong to a later authenticator, and a stack trace for each of them
  // would be a considerable part of a request's cost.
  const unknownToken = new InvalidBearerToken();
  const lookUp = (token: string): UserInfo | undefined => {
    const hashed = digest(token);
    const entry = users.get(hashed.toString('base64'));
    return entry !== undefined && timingSafeEqual(entry.digest, hashed) ? entry.user : undefined;
  };

  return {
    name: options.name,
    verifies: 'tokens',
    authenticate(exchange: Exchange): UserInfo | undefined {
      const header = exchange.header('authorization');
      if (header === undefined) return undefined;
      const memo = exchange.connection.memo;
      let last = memo.get(memoKey) as CachedVerdict | undefined;
      if (last === undefined || last.header !== header) {
        const token = parseBearer(header);
        if (token === undefined) return undefined;
        last = { header, user: lookUp(token) };
        memo.set(memoKey, last);
      }
      if (last.user === undefined) throw unknownToken;
      return last.user;
    },
  };
}

/** A token file that cannot be used; the message names file and line, never a token. */
export class TokenFileError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TokenFileError';
  }
}

/**
 * Reads the text of a `--token-auth-file`: token, user name, uid, and optionally a quoted list of
 * groups (AUTHN-3). An empty or repeated token causes only a warning, and the last entry wins.
 * Throws TokenFileError for a malformed line, which aborts startup.
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
    return [...csvRecords(options.text)];
  } catch (error) {
    if (error instanceof CsvError) {
      throw new TokenFileError(`token file '${options.file}': ${error.message}`);
    }
    throw error;
  }
}
