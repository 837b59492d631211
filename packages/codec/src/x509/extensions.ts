import type { WorkBudget } from '@wheelhouse/machinery';
import {
  childrenOf,
  type DerElement,
  DerError,
  derTag,
  isMinimalInteger,
  oidText,
  readDer,
  readSequence,
} from './der.ts';
import {
  type AlternativeName,
  type NameConstraints,
  parseAlternativeNames,
  parseNameConstraints,
} from './name-constraints.ts';

/** An extension of a certificate or certificate request. */
export interface Extension {
  /** Dotted identifier. */
  readonly oid: string;
  readonly isCritical: boolean;
  /** The DER value. */
  readonly value: Buffer;
}

/** The identifiers of the extensions that are evaluated. */
const extensionOids = {
  keyUsage: '2.5.29.15',
  alternativeNames: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  extendedKeyUsage: '2.5.29.37',
} as const;

/** Parses a list of extensions. Throws DerError, also for duplicates. */
export function readExtensions(list: DerElement | undefined): ReadonlyMap<string, Extension> {
  const extensions = new Map<string, Extension>();
  for (const element of childrenOf(list, { tags: /^(30( 30)*)?$/, what: 'extensions' })) {
    const parts = childrenOf(element, { tags: /^06 (01 )?04$/, what: 'extension' });
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

/** What the extensions of a certificate say. */
export interface CertificateExtensions {
  /** Undefined: no basic constraints. */
  readonly isAuthority: boolean | undefined;
  /** Maximum number of intermediates below this authority; undefined: any number. */
  readonly pathLength: number | undefined;
  /** Dotted identifiers; undefined: no restriction. */
  readonly extendedKeyUsages: readonly string[] | undefined;
  readonly alternativeNames: readonly AlternativeName[];
  /** The names that an authority may sign for; undefined: any. */
  readonly nameConstraints: NameConstraints | undefined;
  /** Critical extensions that are not evaluated; a chain with one must be rejected. */
  readonly unknownCritical: readonly string[];
}

/**
 * Evaluates the extensions of a certificate. Throws DerError if any that Go parses is malformed, and
 * WorkExceeded.
 */
export function evaluateExtensions(
  extensions: ReadonlyMap<string, Extension>,
  budget: WorkBudget | undefined,
): CertificateExtensions {
  for (const extension of extensions.values()) syntaxes.get(extension.oid)?.(extension, budget);
  const contentOf = (oid: string) => extensions.get(oid)?.value;
  const basic = contentOf(extensionOids.basicConstraints);
  const usages = contentOf(extensionOids.extendedKeyUsage);
  const constraints = contentOf(extensionOids.nameConstraints);
  const alternativeNames = readAlternativeNames(extensions, budget);
  const parsed = constraints === undefined ? undefined : parseNameConstraints(constraints, budget);
  const handled = new Set<string>(Object.values(extensionOids));
  // Names and subtrees of kinds that are never compared are dropped.
  if (alternativeNames.length === 0) handled.delete(extensionOids.alternativeNames);
  if (parsed?.unhandled === true) handled.delete(extensionOids.nameConstraints);
  return {
    isAuthority: undefined,
    pathLength: undefined,
    ...(basic === undefined ? {} : readBasicConstraints(basic)),
    extendedKeyUsages: usages === undefined ? undefined : readExtendedKeyUsages(usages),
    alternativeNames,
    nameConstraints: parsed?.constraints,
    unknownCritical: [...extensions.values()]
      .filter(({ oid, isCritical }) => isCritical && !handled.has(oid))
      .map(({ oid }) => oid),
  };
}

/**
 * The alternative names that extensions contain; none if there is no such extension. Throws
 * DerError and WorkExceeded.
 */
export function readAlternativeNames(
  extensions: ReadonlyMap<string, Extension>,
  budget?: WorkBudget,
): readonly AlternativeName[] {
  const names = extensions.get(extensionOids.alternativeNames)?.value;
  return names === undefined ? [] : parseAlternativeNames(names, budget);
}

/** Whether there is an extension of alternative names, which may be of any kind. */
export const hasAlternativeNames = (extensions: ReadonlyMap<string, Extension>): boolean =>
  extensions.has(extensionOids.alternativeNames);

interface BasicConstraints {
  readonly isAuthority: boolean;
  readonly pathLength: number | undefined;
}

function readBasicConstraints(value: Buffer): BasicConstraints {
  const parts = childrenOf(readSequence(value), {
    tags: /^(01)?( ?02)?$/,
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

function readExtendedKeyUsages(value: Buffer): readonly string[] {
  const tags = /^06( 06)*$/;
  return childrenOf(readSequence(value), { tags, what: 'extended key usage' }).map(oidText);
}

/** Checks the value of one extension. Throws DerError and WorkExceeded. */
type Syntax = (extension: Extension, budget: WorkBudget | undefined) => void;

/** The extensions that Go parses although they are not evaluated here. */
const syntaxes: ReadonlyMap<string, Syntax> = new Map<string, Syntax>([
  [extensionOids.keyUsage, ({ value }) => checkTag(value, derTag.bitString)],
  ['2.5.29.14', uncritical(({ value }) => checkTag(value, derTag.octetString))],
  ['2.5.29.35', uncritical(({ value }) => checkTag(value, derTag.sequence))],
  ['2.5.29.31', listOf('distribution points', checkDistributionPoint)],
  ['2.5.29.32', listOf('certificate policies', checkPolicy, { areUnique: true })],
  ['2.5.29.33', listOf('policy mappings', checkPolicyMapping)],
  ['2.5.29.36', checkPolicyConstraints],
  ['2.5.29.54', ({ value }) => checkNumber(checkTag(value, derTag.integer))],
  ['1.3.6.1.5.5.7.1.1', uncritical(listOf('authority info access', checkAccess))],
]);

function checkTag(value: Buffer, tag: number): DerElement {
  const element = readDer(value);
  if (element.tag !== tag) throw new DerError('malformed extension');
  return element;
}

function uncritical(check: Syntax): Syntax {
  return (extension, budget) => {
    if (extension.isCritical) throw new DerError(`${extension.oid} must not be critical`);
    check(extension, budget);
  };
}

/** The syntax of a sequence of sequences. */
function listOf(
  what: string,
  check: (entry: DerElement) => void,
  { areUnique = false } = {},
): Syntax {
  const tags = /^(30( 30)*)?$/;
  return ({ value }, budget) => {
    const entries = childrenOf(readSequence(value, budget), { tags, what });
    entries.forEach(check);
    const firsts = entries.map(({ children: [first] }) => first?.content.toString('latin1'));
    if (areUnique && new Set(firsts).size < firsts.length) throw new DerError(`repeated ${what}`);
  };
}

function checkDistributionPoint(point: DerElement): void {
  const tags = /^(a0( |$))?(81( |$))?(a2)?$/;
  const what = 'distribution point';
  const [name] = childrenOf(point, { tags, what });
  if (name?.tag === 0xa0) childrenOf(name, { tags: /^a0$/, what });
}

function checkPolicy(policy: DerElement): void {
  childrenOf(policy, { tags: /^06( |$)/, what: 'certificate policy' });
}

function checkPolicyMapping(mapping: DerElement): void {
  childrenOf(mapping, { tags: /^06 06$/, what: 'policy mapping' });
}

function checkAccess(access: DerElement): void {
  const [method] = childrenOf(access, { tags: /^06 [89a][0-9a-f]$/, what: 'access description' });
  if (method !== undefined) oidText(method);
}

function checkPolicyConstraints({ value }: Extension): void {
  const tags = /^(80)?( ?81)?$/;
  childrenOf(readSequence(value), { tags, what: 'policy constraints' }).forEach(checkNumber);
}

/** Maximum number of octets of a number in an extension. */
const numberBytesMax = 8;

function checkNumber({ content }: DerElement): void {
  if (!isMinimalInteger(content) || content.length > numberBytesMax) {
    throw new DerError('malformed number in an extension');
  }
}
