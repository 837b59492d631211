import { decodeJson, JsonError } from '@wheelhouse/codec';
import { isObject, type JsonObject } from '@wheelhouse/machinery';

/** A parsed but unverified JSON web token in compact form. */
export interface CompactToken {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  /** The signed text. */
  readonly signed: string;
  readonly signature: Buffer;
}

const limits = { depthMax: 64, valuesMax: 20_000 };

/**
 * Parses a token in compact form, in its only encoding (TRUST-5): three parts in base64url without
 * padding, with zero unused bits, two of them objects without duplicate members. Undefined for
 * everything else, and for a header that requires unsupported extensions (RFC 7515 `crit`, RFC
 * 7797).
 */
export function readCompact(
  text: string,
  { lengthMax }: { readonly lengthMax: number },
): CompactToken | undefined {
  if (text.length > lengthMax) return undefined;
  const [head, body, tail, ...more] = text.split('.', 4);
  if (head === undefined || body === undefined || tail === undefined || more.length > 0) {
    return undefined;
  }
  const header = decodeObject(head);
  const claims = header && decodeObject(body);
  const signature = claims && decodeBase64url(tail);
  if (header === undefined || claims === undefined || signature === undefined) return undefined;
  if (Object.hasOwn(header, 'crit') || Object.hasOwn(header, 'b64')) return undefined;
  return { header, claims, signed: `${head}.${body}`, signature };
}

/** Decodes canonical base64url; undefined for any other text. */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return text !== '' && bytes.toString('base64url') === text ? bytes : undefined;
}

function decodeObject(part: string): JsonObject | undefined {
  const bytes = decodeBase64url(part);
  if (bytes === undefined) return undefined;
  try {
    const { value, duplicates } = decodeJson(bytes, limits);
    return isObject(value) && duplicates.length === 0 ? value : undefined;
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}
