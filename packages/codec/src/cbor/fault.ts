import { problemText } from '@wheelhouse/machinery';
import { majorName } from './cursor.ts';

/** What is wrong with an item. Decoding goes on behind it, and the first fault is told. */
export type Fault = Misfit | { readonly kind: 'unknown' | 'other'; readonly text: string };

/** An item that cannot be what Go wants there. */
interface Misfit {
  readonly kind: 'misfit';
  readonly item: string;
  readonly goType: string;
  readonly why: string;
  /** The outermost member that it is in. */
  readonly field: string | undefined;
}

export function misfit(type: number, goType: string, why?: string): Fault {
  const tail = why === undefined ? '' : ` (${why})`;
  return { kind: 'misfit', item: majorName(type), goType, why: tail, field: undefined };
}

export const otherFault = (text: string): Fault => ({ kind: 'other', text });

export const unknownMember = (index: number): Fault => ({
  kind: 'unknown',
  text: `cbor: found unknown field at map element index ${index}`,
});

export const doubleKey = (key: string, index: number): Fault =>
  otherFault(`cbor: found duplicate map key "${key}" at map element index ${index}`);

/** A fault found in a member of a struct. */
export function within(fault: Fault, field: string): Fault {
  return fault.kind === 'misfit' ? { ...fault, field } : fault;
}

export function textOfFault(fault: Fault): string {
  if (fault.kind !== 'misfit') return fault.text;
  const { item: what, goType: type, why, field } = fault;
  return problemText({ code: 'misfit', format: 'cbor', what, type, field }) + why;
}
