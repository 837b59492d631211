import type { WorkBudget } from '@wheelhouse/machinery';
import { childrenOf, type DerElement, DerError, derTag, oidText, readDer } from './der.ts';

/** One extension of a certificate, or one that a request asks for. */
export interface Extension {
  /** Dotted. */
  readonly oid: string;
  readonly isCritical: boolean;
  /** The DER inside. */
  readonly value: Buffer;
}

export const extensionOids = {
  keyUsage: '2.5.29.15',
  alternativeNames: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  extendedKeyUsage: '2.5.29.37',
} as const;

/** Reads a list of extensions. Throws DerError, also for one that the list has twice. */
export function readExtensions(list: DerElement | undefined): ReadonlyMap<string, Extension> {
  const extensions = new Map<string, Extension>();
  for (const element of childrenOf(list, { shape: /^(30( 30)*)?$/, what: 'extensions' })) {
    const parts = childrenOf(element, { shape: /^06 (01 )?04$/, what: 'extension' });
    const [id, flag] = parts;
    const value = parts.at(-1)?.content;
    if (id === undefined || value === undefined) throw new DerError('malformed extension');
    const oid = oidText(id);
    if (extensions.has(oid)) throw new DerError(`extension given twice: ${oid}`);
    const isCritical = flag?.tag === derTag.boolean && flag.content[0] !== 0;
    extensions.set(oid, { oid, isCritical, value });
  }
  return extensions;
}

export interface BasicConstraints {
  readonly isAuthority: boolean;
  /** Most intermediates allowed below this authority; undefined: any number. */
  readonly pathLength: number | undefined;
}

/** Throws DerError. */
export function readBasicConstraints(value: Buffer): BasicConstraints {
  const parts = childrenOf(readSequence(value), {
    shape: /^(01)?( ?02)?$/,
    what: 'basic constraints',
  });
  const flag = parts.find(({ tag }) => tag === derTag.boolean);
  const length = parts.find(({ tag }) => tag === derTag.integer)?.content;
  const isAuthority = flag !== undefined && flag.content[0] !== 0;
  if (length === undefined) return { isAuthority, pathLength: undefined };
  const [pathLength = 0x80] = length;
  if (length.length !== 1 || pathLength >= 0x80) throw new DerError('path length out of range');
  return { isAuthority, pathLength };
}

/** The dotted identifiers of what a certificate may be used for. Throws DerError. */
export function readExtendedKeyUsages(value: Buffer): readonly string[] {
  const shape = /^06( 06)*$/;
  return childrenOf(readSequence(value), { shape, what: 'extended key usage' }).map(oidText);
}

/** Reads DER that must be a sequence. Throws DerError, and WorkExceeded. */
export function readSequence(bytes: Buffer, budget?: WorkBudget): DerElement {
  const element = readDer(bytes, budget);
  if (element.tag !== derTag.sequence) throw new DerError('not a sequence');
  return element;
}
