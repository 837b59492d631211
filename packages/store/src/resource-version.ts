import { problemText } from '@wheelhouse/machinery';
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
  if (!/^[0-9]+$/.test(text)) return refused(text, 'syntax');
  const digits = text.replace(/^0+(?=[0-9])/, '');
  if (digits.length > digitsMax || BigInt(digits) > uint64Max) return refused(text, 'range');
  const revision = Number(digits);
  return { ok: true, revision: Number.isSafeInteger(revision) ? revision : Infinity };
}

function refused(text: string, problem: 'syntax' | 'range'): ParsedVersion {
  const head = text.slice(0, 128);
  return {
    ok: false,
    why: problemText({ code: 'number', parser: 'ParseUint', text: head, problem }),
  };
}
