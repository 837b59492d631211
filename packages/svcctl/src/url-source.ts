import { STATUS_CODES } from 'node:http';
import { createHttpClient, environmentProxy } from '@wheelhouse/client';
import { CliError } from './io.ts';
import type { Session } from './session.ts';

/** Maximum number of times that a URL is requested, and the delay between them. */
const attemptsMax = 3;
const retryMs = 1000;
const redirectsMax = 10;

/** Whether `-f` names a URL rather than a file. */
export const isUrl = (name: string): boolean => /^https?:\/\//.test(name);

/**
 * Reads the body at a URL, without the credentials of the cluster. Follows redirects, and tries
 * again after an error of the server or the network. Rejects with CliError or ConnectionError.
 */
export async function readUrl(session: Session, url: string): Promise<string> {
  const hasBadEscape = /%(?![\da-f]{2})/i.test(url.replace(/\?.*/s, ''));
  if (!URL.canParse(url) || hasBadEscape) {
    throw new CliError(`the URL passed to filename ${JSON.stringify(url)} is not valid`);
  }
  let failure: unknown;
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    if (attempt > 0) await session.pause(retryMs);
    try {
      const { status, body } = await getFollowing(session, new URL(url));
      if (status === 200) return body.toString();
      failure = new CliError(
        `unable to read URL ${JSON.stringify(url)}, server reported ${status} ` +
          `${STATUS_CODES[status] ?? ''}, status code=${status}`,
      );
      if (status < 500) break;
    } catch (error) {
      if (session.io.signal.aborted || error instanceof CliError) throw error;
      failure = error;
    }
  }
  throw failure;
}

/** The credentials in a URL, which are sent to its server only. */
function authorizationOf({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {};
  const decoded = `${username}:${password}`.replace(/%([\da-f]{2})/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  return { authorization: `Basic ${Buffer.from(decoded, 'latin1').toString('base64')}` };
}

/** Sends GET. Rejects with CliError for too many redirects, and with ConnectionError. */
async function getFollowing(
  session: Session,
  start: URL,
): Promise<{ readonly status: number; readonly body: Buffer }> {
  let url = start;
  for (let redirects = 0; redirects <= redirectsMax; redirects += 1) {
    const server = url.origin;
    const client = createHttpClient({ server, proxyUrl: environmentProxy(url, session.io.env) });
    try {
      const path = `${url.pathname}${url.search}`;
      const { signal } = session.io;
      const response = await client.request({
        method: 'GET',
        path,
        headers: { accept: '*/*', ...authorizationOf(url) },
        signal,
      });
      const { location } = response.headers;
      if (response.status < 300 || response.status > 399 || location === undefined) return response;
      url = new URL(location, url);
    } finally {
      client.close();
    }
  }
  throw new CliError(`Get ${JSON.stringify(start.href)}: stopped after ${redirectsMax} redirects`);
}
