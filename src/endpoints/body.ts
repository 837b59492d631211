import type { JsonValue } from '../base/json.ts';
import { decodeJson } from '../codec/json.ts';
/** A request body as bytes and as the value its Content-Type says. */
export interface DecodedBody { readonly bytes: Buffer; readonly value: JsonValue; readonly duplicates: readonly string[] }
export function decodeByMediaType(_type: string | undefined, bytes: Buffer): DecodedBody { return { bytes, ...decodeJson(bytes) }; }
