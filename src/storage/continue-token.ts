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
  if (token.length > tokenLengthMax) return refuse('continue key is not valid: too long');
  const illegal = token.search(/[^A-Za-z0-9_-]/);
  if (illegal >= 0 || token.length % 4 === 1) {
    const at = illegal >= 0 ? illegal : token.length;
    return refuse(`continue key is not valid: illegal base64 data at input byte ${at}`);
  }
  const fields = parseFields(Buffer.from(token, 'base64url').toString('utf8'));
  if (fields === undefined) return refuse('continue key is not valid: not a continue token');
  if (fields.v !== apiVersion) {
    const shown = typeof fields.v === 'string' ? ` ${fields.v}` : ' ';
    const why = 'continue key is not valid: server does not recognize this encoded version';
    return refuse(why + shown);
  }
  return decodePoint(fields, apiVersion);
}

function decodePoint(fields: Record<string, unknown>, apiVersion: string): DecodedContinue {
  const { rv, start } = fields;
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv === 0) {
    return refuse(
      `continue key is not valid: incorrect encoded start resourceVersion (version ${apiVersion})`,
    );
  }
  if (typeof start !== 'string' || start === '') {
    return refuse(`continue key is not valid: encoded start key empty (version ${apiVersion})`);
  }
  const relative = start.startsWith('/') ? start.slice(1) : start;
  if (!staysBelow(relative)) return refuse(`continue key is not valid: ${start}`);
  return { ok: true, point: { revision: rv, start: relative } };
}

/** No step up, no empty step: a start key cannot leave the prefix it is relative to. */
function staysBelow(start: string): boolean {
  return start.split('/').every((step) => step !== '' && step !== '.' && step !== '..');
}

function parseFields(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return value as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

function refuse(why: string): DecodedContinue {
  return { ok: false, why };
}
