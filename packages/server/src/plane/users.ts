import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { UserInfo } from '@wheelhouse/machinery';
import { writeAdminKubeconfig } from '../compose/authentication/admin-kubeconfig.ts';
import { bearerToken } from '../gates/authn/bearer.ts';
import type { Authenticator } from '../gates/authn/contract.ts';

const tokenBytes = 32;

/** The users that a test adds to its plane while that runs. */
export class PlaneUsers {
  readonly #byToken = new Map<string, UserInfo>();
  readonly #tokens = new Map<string, string>();
  readonly authenticator: Authenticator = {
    name: 'plane-users',
    authenticate: (exchange) => {
      const token = this.#byToken.size === 0 ? undefined : bearerToken(exchange);
      return token === undefined ? undefined : this.#byToken.get(token);
    },
  };

  /** The user's token: a random one, which stays when the groups change. */
  add(name: string, groups: readonly string[]): string {
    if (name === '') throw new Error('a user needs a name');
    const token = this.#tokens.get(name) ?? randomBytes(tokenBytes).toString('base64url');
    this.#tokens.set(name, token);
    this.#byToken.set(token, { name, uid: '', groups: [...groups], extra: {} });
    return token;
  }
}

/** Writes the kubeconfig of a user under a name that any user's name gives. */
export function writeUserKubeconfig(options: {
  readonly directory: string;
  readonly name: string;
  readonly token: string;
  readonly url: string;
  readonly caPem: string;
}): string {
  const { directory, name, token, url, caPem } = options;
  const folder = join(directory, 'users');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${encodeURIComponent(name)}.kubeconfig`);
  const authority = caPem === '' ? {} : { caPem };
  writeAdminKubeconfig({ path, server: url, ...authority, credential: { token }, context: name });
  return path;
}
