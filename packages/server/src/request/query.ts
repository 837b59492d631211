import { badRequest } from '@wheelhouse/machinery';
import { goDurationError, parseGoDuration } from '@wheelhouse/schema';

/** Query parameters as upstream converts them: the first of several of one name counts. */

/** Upstream's boolean: absent, `0` and `false` in any case are false, all else is true. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false';
}

/** As `isTrue`, undefined when the parameter is absent. */
export function optionalBoolean(query: URLSearchParams, name: string): boolean | undefined {
  const value = query.get(name);
  return value === null ? undefined : isTrue(value);
}

/** The parameter's text; undefined when it is absent or empty. */
export function optionalText(query: URLSearchParams, name: string): string | undefined {
  const value = query.get(name);
  return value === null || value === '' ? undefined : value;
}

/**
 * How long a request may take, milliseconds: what its client gives it (`timeout`), but no more than
 * the server does; 0 and less say nothing. Throws 400 in upstream's words for what is no Go duration.
 */
export function requestTimeMs(query: URLSearchParams, maxMs: number): number {
  const given = query.size === 0 ? null : query.get('timeout');
  if (given === null || given === '') return maxMs;
  const duration = parseGoDuration(given);
  if (duration === undefined) {
    const why = goDurationError(given);
    throw badRequest(`invalid timeout specified in the request URL - ${why}`);
  }
  return duration > 0n ? Math.min(Number(duration) / 1e6, maxMs) : maxMs;
}

const int64Max = 2n ** 63n - 1n;

/**
 * A whole number; undefined when the parameter is absent. Throws 400 in the words of Go's parser.
 * Beyond what a number holds exactly (2^53) the nearest one is given: no limit is that large.
 */
export function optionalInteger(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name);
  if (value === null) return undefined;
  const complaint = (why: string) =>
    badRequest(`strconv.ParseInt: parsing ${JSON.stringify(value)}: ${why}`);
  if (!/^[+-]?\d+$/.test(value)) throw complaint('invalid syntax');
  const digits = value.replace(/^[+-]/, '');
  const magnitude = digits.length > 400 ? int64Max * 2n : BigInt(digits);
  const isNegative = value.startsWith('-');
  if (magnitude > int64Max + (isNegative ? 1n : 0n)) throw complaint('value out of range');
  return Number(isNegative ? -magnitude : magnitude);
}
