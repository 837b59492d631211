import { decodeJson, JsonError, syntaxErrorOf } from '@wheelhouse/codec';
import { goValue, isObject, type JsonValue, problemText } from '@wheelhouse/machinery';
import type { Revision } from './contract.ts';

/**
 * Where the next chunk of a list begins. `revision` is the snapshot of the first chunk, or negative
 * to go on with the newest state, which an expired list may be offered (LIST-3).
 */
export interface ContinuePoint {
  readonly revision: Revision;
  /** The first key that may be listed, relative to the list's own prefix (its namespace). */
  readonly start: string;
}

export type DecodedContinue =
  | { readonly ok: true; readonly point: ContinuePoint }
  | { readonly ok: false; readonly why: string };

/** The revision of a token that continues at the newest state. */
export const inconsistentRevision = -1;

/** Two names of at most 253 bytes, escaped by JSON and grown by base64, stay far below this. */
const tokenLengthMax = 8192;

/**
 * Writes a token: base64url of `{"v":…,"rv":N,"start":"…"}`.
 * @param apiVersion the dialect's `meta.…/v1`
 */
export function encodeContinue(point: ContinuePoint, apiVersion: string): string {
  const json = JSON.stringify({ v: apiVersion, rv: point.revision, start: point.start });
  return Buffer.from(json, 'utf8').toString('base64url');
}

/** Reads a token a client sent; `why` says, in upstream's words, what is wrong with it (400). */
export function decodeContinue(token: string, apiVersion: string): DecodedContinue {
  if (token.length > tokenLengthMax) return refuse(`${head}: too long`);
  // Go's decoder passes over line breaks, wherever they are.
  const digits = token.replace(/[\r\n]/g, '');
  const illegal = token.search(/[^A-Za-z0-9_\-\r\n]/);
  if (illegal >= 0 || digits.length % 4 === 1) {
    const at = illegal >= 0 ? illegal : token.length - 1;
    return refuse(`${head}: ${problemText({ code: 'base64', at })}`);
  }
  const fields = tokenFields(Buffer.from(digits, 'base64url'));
  if (typeof fields === 'string') return refuse(`${head}: ${fields}`);
  if (fields.v !== apiVersion) {
    return refuse(`${head}: server does not recognize this encoded version ${fields.v}`);
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
    return refuse(`${head}: incorrect encoded start resourceVersion (version ${apiVersion})`);
  }
  if (start === '') {
    return refuse(`${head}: encoded start key empty (version ${apiVersion})`);
  }
  const relative = start.startsWith('/') ? start.slice(1) : start;
  if (!staysBelow(relative)) return refuse(`${head}: ${start}`);
  return { ok: true, point: { revision: rv, start: relative } };
}

/** No step up, no empty step: a start key cannot leave the prefix it is relative to. */
function staysBelow(start: string): boolean {
  if (start === '') return true;
  return start.split('/').every((step) => step !== '' && step !== '.' && step !== '..');
}

const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

/** A token's members as Go reads a struct, names in any case; or what is wrong with them. */
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
    const what = misfit(fieldName as keyof TokenFields, { fieldValue, text });
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

/** What Go's decoder calls a value that does not fit its field; undefined for one that fits. */
function misfit(
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
    // Bytes that are no UTF-8 are a sign of their own.
    return decodeJson(Buffer.from(text)).value;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return syntaxErrorOf(bytes, tokenLengthMax) ?? error;
  }
}

function refuse(why: string): DecodedContinue {
  return { ok: false, why };
}
