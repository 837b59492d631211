import type { OutgoingHttpHeaders } from 'node:http';
import type { Credential } from './credentials/credential.ts';
import type { ClientConfig, Impersonation } from './kubeconfig/client-config.ts';

/**
 * The headers of a request: its own, and those that say who asks. An authorization among its own is
 * meant, and stays.
 */
export function requestHeaders(options: {
  readonly config: ClientConfig;
  readonly own: Readonly<Record<string, string | readonly string[]>> | undefined;
  readonly credential: Credential | undefined;
}): OutgoingHttpHeaders {
  const { config, own, credential } = options;
  const headers: OutgoingHttpHeaders = { accept: 'application/json' };
  for (const [name, value] of Object.entries(own ?? {})) {
    headers[name] = typeof value === 'string' ? value : [...value];
  }
  if (config.userAgent !== undefined) headers['user-agent'] ??= config.userAgent;
  const token = config.token?.() || credential?.token;
  if (hasAuthorization(own)) {
    // Whoever sends it has said who asks.
  } else if (token) {
    headers['authorization'] = `Bearer ${token}`;
  } else if (config.basicAuth !== undefined) {
    const { username, password } = config.basicAuth;
    headers['authorization'] = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  }
  if (config.impersonate !== undefined) impersonate(headers, config.impersonate);
  return headers;
}

/** Whether a request brings its own credential. */
export function hasAuthorization(own: Readonly<Record<string, unknown>> | undefined): boolean {
  return Object.keys(own ?? {}).some((name) => name.toLowerCase() === 'authorization');
}

function impersonate(headers: OutgoingHttpHeaders, wanted: Impersonation): void {
  headers['impersonate-user'] = wanted.user;
  if (wanted.uid !== undefined) headers['impersonate-uid'] = wanted.uid;
  if (wanted.groups.length > 0) headers['impersonate-group'] = [...wanted.groups];
  for (const [key, values] of wanted.extra ?? []) {
    if (values.length > 0) headers[`impersonate-extra-${escapeHeaderKey(key)}`] = [...values];
  }
}

/** Percent-encodes what a header's name cannot hold, and the percent sign itself. */
function escapeHeaderKey(key: string): string {
  return [...Buffer.from(key)]
    .map((byte) => {
      const character = String.fromCharCode(byte);
      if (/[-!#$&'*+.^_`|~0-9A-Za-z]/.test(character)) return character;
      return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    })
    .join('');
}
