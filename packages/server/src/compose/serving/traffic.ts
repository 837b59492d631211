import {
  type Exchange,
  errorText,
  type OnExchange,
  type ResponseHeaders,
} from '@wheelhouse/machinery';
import { Pattern } from '@wheelhouse/schema';
import { auditIdOf } from '../../request/request-state.ts';
import type { ServerConfig } from '../config.ts';
import { FlagError } from '../flags/flags.ts';

/**
 * Puts before `answer` what flags want of every request. Where they want nothing `answer` itself is
 * given back, so that nothing is paid for what is off. Throws FlagError for bad patterns.
 */
export function withFilters(config: ServerConfig, answer: OnExchange): OnExchange {
  const { strictTransport, allowedOrigins } = config.traffic ?? {};
  let filtered = answer;
  if (allowedOrigins !== undefined) {
    const answered = createCrossOrigin(allowedOrigins);
    filtered = (exchange) => (answered(exchange) ? undefined : answer(exchange));
  }
  if (strictTransport === undefined || config.listen.tls === 'plaintext') return filtered;
  const headers = { 'strict-transport-security': strictTransport };
  return (exchange) => {
    exchange.addHeaders?.(headers);
    return filtered(exchange);
  };
}

/** Paths that are answered to the end of a stop, and when memory is short. */
const servedToTheEnd = ['/readyz', '/livez', '/healthz', '/metrics'];
const body = Buffer.from('The apiserver is shutting down, please try again later.\n');

/** Whether a path is answered whatever state the server is in. */
export function isAlwaysServed(url: string): boolean {
  return servedToTheEnd.some((path) => url.startsWith(path));
}

/** The answer to what comes while the server stops; undefined for what is served all the same. */
export function refusalWhileStopping(exchange: Exchange) {
  if (isAlwaysServed(exchange.url)) return undefined;
  const headers = {
    'audit-id': auditIdOf(exchange),
    'content-type': 'text/plain; charset=utf-8',
    'retry-after': '5',
    'x-content-type-options': 'nosniff',
  };
  return { status: 429, headers, body };
}

const shared: ResponseHeaders = {
  'access-control-allow-methods': 'POST, GET, OPTIONS, PUT, DELETE, PATCH',
  'access-control-allow-headers':
    'Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since',
  'access-control-expose-headers': 'Date',
  'access-control-allow-credentials': 'true',
};

const noBytes = Buffer.alloc(0);

/**
 * Lets pages of other origins use the API: requests that come from one that a pattern allows are
 * answered with what a browser wants to read, and its question beforehand (OPTIONS) is answered here,
 * before anybody is asked who it is. Gives a filter, which tells whether it has answered. Throws
 * FlagError for patterns that are none, or might match more hosts than they name.
 */
function createCrossOrigin(patterns: readonly string[]): (exchange: Exchange) => boolean {
  const isAllowed = originTest(patterns);
  return (exchange) => {
    const origin = exchange.header('origin');
    if (origin === undefined || origin === '' || !isAllowed(origin)) return false;
    const headers = { 'access-control-allow-origin': origin, ...shared };
    if (exchange.method !== 'OPTIONS') {
      exchange.addHeaders?.(headers);
      return false;
    }
    const always = { 'audit-id': auditIdOf(exchange), 'cache-control': 'no-cache, private' };
    exchange.send({ status: 204, headers: { ...always, ...headers }, body: noBytes });
    return true;
  };
}

/** Tells which origins the patterns allow. Throws FlagError as `createCrossOrigin` does. */
export function originTest(patterns: readonly string[]): (origin: string) => boolean {
  const tests = patterns.map(readPattern);
  return (origin) => tests.some((test) => test(origin));
}

function readPattern(pattern: string): (origin: string) => boolean {
  if (pattern === '') throw new FlagError('empty value in --cors-allowed-origins');
  const wrong = (what: string) =>
    new FlagError(`--cors-allowed-origins has an invalid regular expression: ${what}`);
  let compiled: Pattern;
  try {
    compiled = new Pattern(pattern);
  } catch (error) {
    throw wrong(errorText(error));
  }
  if (/\^|\/\//.test(pattern) && /[$:]/.test(pattern)) return (origin) => compiled.test(origin);
  throw wrong('regular expression does not pin to start/end of host in the origin header');
}
