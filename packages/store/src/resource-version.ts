import type { Revision } from './contract.ts';

/** A version as a client wrote it, understood, or why not (in upstream's words). */
export type ParsedVersion =
  | { readonly ok: true; readonly revision: Revision }
  | { readonly ok: false; readonly why: string };

const uint64Max = 2n ** 64n - 1n;
const digitsMax = 20;

/**
 * Reads a `resourceVersion` parameter. Unset, empty and `0` are 0. Any unsigned 64-bit number is
 * sound; one that a revision can never reach (above 2^53 - 1) comes back as Infinity, so that it
 * is "too large" like any other version from the future (LIST-7).
 */
export function parseResourceVersion(text: string | undefined): ParsedVersion {
  if (text === undefined || text === '' || text === '0') return { ok: true, revision: 0 };
  const shown = JSON.stringify(text.slice(0, 128));
  if (!/^[0-9]+$/.test(text)) {
    return { ok: false, why: `strconv.ParseUint: parsing ${shown}: invalid syntax` };
  }
  const digits = text.replace(/^0+(?=[0-9])/, '');
  if (digits.length > digitsMax || BigInt(digits) > uint64Max) {
    return { ok: false, why: `strconv.ParseUint: parsing ${shown}: value out of range` };
  }
  const revision = Number(digits);
  return { ok: true, revision: Number.isSafeInteger(revision) ? revision : Infinity };
}
