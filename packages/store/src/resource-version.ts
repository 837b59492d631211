import { decodeJson, JsonError, syntaxErrorOf } from '@wheelhouse/codec';
import {
  goValue,
  int64Max,
  int64Min,
  isObject,
  type JsonValue,
  problemText,
  uint64Max,
} from '@wheelhouse/machinery';
import type { Revision } from './contract.ts';

/** A parsed resourceVersion, or kube-apiserver's error text. */
type ParsedVersion =
  | { readonly ok: true; readonly revision: Revision }
  | { readonly ok: false; readonly why: string };

const digitsMax = 20;

/**
 * Parses a `resourceVersion` parameter. Unset, empty, and `0` yield 0. Any unsigned 64-bit number
 * is valid; one above 2^53 - 1, which no revision can reach, yields Infinity, so that it is "too
 * large" like any other future version (LIST-7).
 */
export function parseResourceVersion(text: string | undefined): ParsedVersion {
  if (text === undefined || text === '' || text === '0') return { ok: true, revision: 0 };
  if (!/^[0-9]+$/.test(text)) return invalidVersion(text, 'syntax');
  const digits = text.replace(/^0+(?=[0-9])/, '');
  if (digits.length > digitsMax || BigInt(digits) > uint64Max) return invalidVersion(text, 'range');
  const revision = Number(digits);
  return { ok: true, revision: Number.isSafeInteger(revision) ? revision : Infinity };
}

function invalidVersion(text: string, problem: 'syntax' | 'range'): ParsedVersion {
  const head = text.slice(0, 128);
  return {
    ok: false,
    why: problemText({ code: 'number', parser: 'ParseUint', text: head, problem }),
  };
}

/**
 * The position of the next chunk of a list. `revision` is that of the first chunk. It is
 * negative to continue with the newest state, which an expired list offers (LIST-3).
 */
export interface ContinuePoint {
  readonly revision: Revision;
  /** The first key that may be listed, relative to the list's own prefix (its namespace). */
  readonly start: string;
}

type DecodedContinue =
  | { readonly ok: true; readonly point: ContinuePoint }
  | { readonly ok: false; readonly why: string };

/** The revision of a token that continues with the newest state. */
export const inconsistentRevision = -1;

/** Far longer than two names of 253 bytes, even escaped for JSON and encoded as base64. */
const tokenLengthMax = 8192;

/**
 * Encodes a token: base64url of `{"v":…,"rv":N,"start":"…"}`.
 * @param apiVersion the dialect's `meta.…/v1`
 */
export function encodeContinue(point: ContinuePoint, apiVersion: string): string {
  const json = JSON.stringify({ v: apiVersion, rv: point.revision, start: point.start });
  return Buffer.from(json, 'utf8').toString('base64url');
}

/** Decodes a token from a client. `why` is kube-apiserver's message for a malformed token (400). */
export function decodeContinue(token: string, apiVersion: string): DecodedContinue {
  if (token.length > tokenLengthMax) return invalidToken(`${head}: too long`);
  // Go's decoder ignores line breaks anywhere in the text.
  const digits = token.replace(/[\r\n]/g, '');
  const illegal = token.search(/[^A-Za-z0-9_\-\r\n]/);
  if (illegal >= 0 || digits.length % 4 === 1) {
    const at = illegal >= 0 ? illegal : token.length - 1;
    return invalidToken(`${head}: ${problemText({ code: 'base64', at })}`);
  }
  const fields = tokenFields(Buffer.from(digits, 'base64url'));
  if (typeof fields === 'string') return invalidToken(`${head}: ${fields}`);
  if (fields.v !== apiVersion) {
    return invalidToken(`${head}: server does not recognize this encoded version ${fields.v}`);
  }
  return decodePoint(fields, apiVersion);
}

const head = 'continue key is not valid';

interface TokenFields {
  v: string;
  rv: number;
  start: string;
}

function decodePoint({ rv, start }: TokenFields, apiVersion: string): DecodedContinue {
  if (rv === 0) {
    return invalidToken(`${head}: incorrect encoded start resourceVersion (version ${apiVersion})`);
  }
  if (start === '') return invalidToken(`${head}: encoded start key empty (version ${apiVersion})`);
  const relative = start.startsWith('/') ? start.slice(1) : start;
  if (!isWithinPrefix(relative)) return invalidToken(`${head}: ${start}`);
  return { ok: true, point: { revision: rv, start: relative } };
}

/** Whether a start key has no empty, `.`, or `..` segments, so that it cannot leave its prefix. */
function isWithinPrefix(start: string): boolean {
  if (start === '') return true;
  return start.split('/').every((step) => step !== '' && step !== '.' && step !== '..');
}

/** Returns a token's fields, whose names match in any case as in Go, or an error text. */
function tokenFields(bytes: Buffer): TokenFields | string {
  const text = bytes.toString('utf8');
  const value = readJson(bytes, text);
  if (value instanceof JsonError) return value.message;
  const fields: TokenFields = { v: '', rv: 0, start: '' };
  if (value === null) return fields;
  if (!isObject(value)) {
    const type = 'storage.continueToken';
    return problemText({ code: 'misfit', what: goValue(value), type });
  }
  for (const [name, fieldValue] of Object.entries(value)) {
    const fieldName = name.toLowerCase();
    if (fieldValue === undefined || fieldValue === null || !Object.hasOwn(fields, fieldName))
      continue;
    const what = typeMismatch(fieldName as keyof TokenFields, { fieldValue, text });
    if (what === undefined) {
      Object.assign(fields, { [fieldName]: fieldName === 'rv' ? Number(fieldValue) : fieldValue });
      continue;
    }
    const field = `continueToken.${fieldName}`;
    const type = fieldName === 'rv' ? 'int64' : 'string';
    return problemText({ code: 'misfit', what, type, field });
  }
  return fields;
}

/** Go's error text for a value that does not fit its field; undefined if it fits. */
function typeMismatch(
  name: keyof TokenFields,
  { fieldValue, text }: { readonly fieldValue: JsonValue; readonly text: string },
): string | undefined {
  if (name !== 'rv') return typeof fieldValue === 'string' ? undefined : goValue(fieldValue);
  if (typeof fieldValue !== 'number' && typeof fieldValue !== 'bigint') return goValue(fieldValue);
  const digits =
    [...text.matchAll(/"rv"\s*:\s*(-?\d[\d.eE+-]*)/gi)].at(-1)?.[1] ?? String(fieldValue);
  const isWhole = /^-?\d+$/.test(digits);
  const fits = isWhole && BigInt(digits) >= int64Min && BigInt(digits) <= int64Max;
  return fits ? undefined : `number ${digits}`;
}

function readJson(bytes: Buffer, text: string): JsonValue | JsonError {
  try {
    // Bytes that are not UTF-8 become replacement characters.
    return decodeJson(Buffer.from(text)).value;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return syntaxErrorOf(bytes, tokenLengthMax) ?? error;
  }
}

function invalidToken(why: string): DecodedContinue {
  return { ok: false, why };
}
