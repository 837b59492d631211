import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { secureAgent } from '@wheelhouse/client';
import { ByteCollector, type Clock, listen, trustOptions } from '@wheelhouse/machinery';

/** How to reach providers. */
export interface ProviderAccess {
  /** PEM; undefined: Node's root certificates. */
  readonly authorities: string | readonly string[] | undefined;
  /** For timeouts. */
  readonly clock: Clock;
  /** Returns the URL of the proxy for a URL; undefined for none. */
  readonly proxyOf?: ((url: URL) => string | undefined) | undefined;
}

/** A provider's answer. */
interface Fetched {
  readonly status: number;
  readonly text: string;
  /** Milliseconds for which it may be cached, if the provider states it. */
  readonly maxAgeMs: number | undefined;
}

/** A provider could not be reached; the message is for the log, not for clients. */
export class FetchError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'FetchError';
  }
}

/** Timeout in milliseconds from connecting to a provider to the last byte of its answer. */
export const fetchTimeoutMs = 10_000;
const bytesMax = 1024 * 1024;
const redirectsMax = 5;

/**
 * Fetches a document over TLS with limits on time, size, and redirects; a bearer token is not sent
 * to other hosts. Rejects with FetchError, also for a URL that is not https.
 */
export async function fetchText(
  address: string,
  access: ProviderAccess,
  bearer?: string,
): Promise<Fetched> {
  let url = httpsUrl(address);
  const { origin } = url;
  for (let redirects = 0; redirects <= redirectsMax; redirects += 1) {
    const token = url.origin === origin ? bearer : undefined;
    const { status, headers, text } = await get(url, access, token);
    const { location } = headers;
    if (!redirections.has(status) || location === undefined) {
      return { status, text, maxAgeMs: maxAgeOf(headers['cache-control']) };
    }
    url = httpsUrl(location, url.href);
  }
  throw new FetchError(`stopped after ${redirectsMax} redirects`);
}

const redirections = new Set([301, 302, 303, 307, 308]);

/** An absolute URL, or one relative to `base`. Throws FetchError unless it is https. */
export function httpsUrl(address: string, base?: string): URL {
  const url = URL.canParse(address, base) ? new URL(address, base) : undefined;
  if (url?.protocol !== 'https:') throw new FetchError('not an https URL');
  return url;
}

function get(
  url: URL,
  { authorities, clock, proxyOf }: ProviderAccess,
  bearer: string | undefined,
): Promise<{ status: number; headers: IncomingMessage['headers']; text: string }> {
  return new Promise((resolve, reject) => {
    const request = https.request(url, {
      agent: secureAgent(trustOptions(authorities), proxyOf?.(url)),
      headers: {
        accept: 'application/json',
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      },
    });
    const timer = clock.after(fetchTimeoutMs, () =>
      fail(new FetchError(`no complete answer within ${fetchTimeoutMs} ms`)),
    );
    const fail = (error: Error) => {
      timer.stop();
      request.destroy();
      reject(error instanceof FetchError ? error : new FetchError(error.message));
    };
    const end = (error: unknown) => fail(new FetchError(String(error)));
    const containment = { where: 'client', end } as const;
    const onResponse = (response: IncomingMessage) => {
      const bytes = new ByteCollector();
      listen(response, containment, {
        error: fail,
        data(chunk: Buffer) {
          bytes.add(chunk);
          if (bytes.length > bytesMax)
            fail(new FetchError(`the answer is larger than ${bytesMax} bytes`));
        },
        aborted: () => fail(new FetchError('the connection ended before the answer was complete')),
        end() {
          timer.stop();
          const text = bytes.take().toString('utf8');
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
        },
      });
    };
    listen(request, containment, { error: fail, response: onResponse });
    request.end();
  });
}

function maxAgeOf(cacheControl: string | undefined): number | undefined {
  const seconds = /(?:^|[\s,])max-age=(\d{1,9})(?:$|[\s,])/i.exec(cacheControl ?? '')?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
