import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Exchange, UserInfo } from '@wheelhouse/machinery';
import { InvalidBearerToken, parseBearer } from './bearer.ts';
import type { Authenticator } from './contract.ts';

/** A token and whose it is. */
export interface TokenEntry {
  readonly token: string;
  readonly user: UserInfo;
}

interface Remembered {
  readonly header: string;
  /** Undefined when the token is none of ours. */
  readonly user: UserInfo | undefined;
}

/**
 * Authenticates bearer tokens from a fixed list; the last entry of a token counts. Tokens are kept
 * and looked up as HMACs under a key of this process, so the time a lookup takes says nothing about
 * how near a guess is. A connection remembers its last header and what came of it, which makes a
 * request after the first a string comparison with what the same client sent before.
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
  // One for all: with several authenticators most tokens are foreign to the first, and a stack
  // trace for each of them would be a good part of a request's cost.
  const unknownToken = new InvalidBearerToken();
  const lookUp = (token: string): UserInfo | undefined => {
    const hashed = digest(token);
    const found = users.get(hashed.toString('base64'));
    return found !== undefined && timingSafeEqual(found.digest, hashed) ? found.user : undefined;
  };

  return {
    name: options.name,
    judges: 'tokens',
    authenticate(exchange: Exchange): UserInfo | undefined {
      const header = exchange.header('authorization');
      if (header === undefined) return undefined;
      const memo = exchange.connection.memo;
      let last = memo.get(memoKey) as Remembered | undefined;
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

/**
 * Makes the process' own identity in `system:masters`: a random token for in-process clients and
 * the admin kubeconfig, and the authenticator that knows it.
 */
export function createAdminIdentity(name = 'system:admin'): {
  readonly token: string;
  readonly user: UserInfo;
  readonly authenticator: Authenticator;
} {
  const token = randomBytes(32).toString('base64url');
  const user: UserInfo = { name, uid: '', groups: ['system:masters'], extra: {} };
  return {
    token,
    user,
    authenticator: createStaticTokenAuthenticator({ name: 'admin', entries: [{ token, user }] }),
  };
}
