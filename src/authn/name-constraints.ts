import { isIP } from 'node:net';
import { type DerElement, DerError, derElements } from './der.ts';

/** The kinds of names that constraints are evaluated for, as upstream's verifier does. */
type NameKind = 'email' | 'dns' | 'uri' | 'ip';

/** One name a certificate is for: an address's bytes, or an ASCII text. */
export interface AlternativeName {
  readonly kind: NameKind;
  readonly content: Buffer;
}

interface Subtree {
  readonly kind: NameKind;
  readonly content: Buffer;
}

/** What an authority may sign for. A kind of which no name is permitted may have any. */
export interface NameConstraints {
  readonly permitted: readonly Subtree[];
  readonly excluded: readonly Subtree[];
}

/** Tags of GeneralName; kinds that are not listed are known to nobody here. */
const kinds: ReadonlyMap<number, NameKind> = new Map([
  [0x81, 'email'],
  [0x82, 'dns'],
  [0x86, 'uri'],
  [0x87, 'ip'],
]);

/** Names of one certificate against constraints of its authorities: a hostile chain stays cheap. */
const comparisonsMax = 250_000;

/** Reads the extension of alternative names, those of unknown kinds left out. Throws DerError. */
export function parseAlternativeNames(value: Buffer): readonly AlternativeName[] {
  const names: AlternativeName[] = [];
  for (const { tag, content } of derElements(single(value).content)) {
    const kind = kinds.get(tag);
    if (kind === undefined) continue;
    if (kind === 'ip' ? content.length !== 4 && content.length !== 16 : !isAscii(content)) {
      throw new DerError('malformed alternative name');
    }
    names.push({ kind, content });
  }
  return names;
}

/**
 * Reads the extension of name constraints; `unhandled` tells of subtrees of a kind that is not
 * evaluated. Throws DerError for what is malformed.
 */
export function parseNameConstraints(value: Buffer): {
  readonly constraints: NameConstraints;
  readonly unhandled: boolean;
} {
  const found = { permitted: [] as Subtree[], excluded: [] as Subtree[] };
  let unhandled = false;
  const lists = derElements(single(value).content);
  for (const [index, { tag, content }] of lists.entries()) {
    const name = tag === 0xa0 && index === 0 ? 'permitted' : tag === 0xa1 ? 'excluded' : undefined;
    if (name === undefined || index > 1) throw new DerError('malformed name constraints');
    for (const subtree of derElements(content)) {
      const [base] = derElements(subtree.content);
      if (base === undefined) throw new DerError('empty subtree in name constraints');
      const kind = kinds.get(base.tag);
      if (kind === undefined) unhandled = true;
      else found[name].push(checkedSubtree({ kind, content: base.content }));
    }
  }
  if (lists.every(({ content }) => content.length === 0)) {
    throw new DerError('empty name constraints');
  }
  return { constraints: found, unhandled };
}

function single(value: Buffer): DerElement {
  const [element, ...more] = derElements(value);
  if (element === undefined || more.length > 0) throw new DerError('not one DER element');
  return element;
}

function isAscii(content: Buffer): boolean {
  return content.every((byte) => byte < 0x80);
}

function checkedSubtree(subtree: Subtree): Subtree {
  const { kind, content } = subtree;
  const text = content.toString('latin1');
  const isRight =
    kind === 'ip'
      ? isAddressRange(content)
      : isAscii(content) &&
        (kind === 'email' && text.includes('@')
          ? parseMailbox(text) !== undefined
          : isDomainConstraint(text) && (kind !== 'uri' || isIP(text) === 0));
  if (!isRight) throw new DerError(`malformed ${kind} name constraint`);
  return subtree;
}

/** An address and a mask whose ones all stand before its zeros. */
function isAddressRange(content: Buffer): boolean {
  if (content.length !== 8 && content.length !== 32) return false;
  const mask = [...content.subarray(content.length / 2)];
  return /^1*0*$/.test(mask.map((byte) => byte.toString(2).padStart(8, '0')).join(''));
}

function isDomainConstraint(text: string): boolean {
  const domain = text.replace(/^\./, '');
  return domain === '' ? text === '' : labelsOf(domain) !== undefined;
}

/** A domain's labels, the last first; undefined for what is no domain. */
function labelsOf(domain: string): readonly string[] | undefined {
  if (domain === '') return [];
  const labels = domain.toLowerCase().split('.').reverse();
  return labels.every((label) => /^[!-~]+$/.test(label)) ? labels : undefined;
}

interface Mailbox {
  readonly local: string;
  readonly domain: string;
}

/** Splits `local@domain`, the local part quoted or plain; undefined for what is no mailbox. */
function parseMailbox(text: string): Mailbox | undefined {
  const quoted = /^"((?:[^"\\\r\n\0]|\\[^\r\n\0])*)"@/.exec(text);
  const plain = quoted ?? /^((?:[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.]|\\.)+)@/.exec(text);
  if (plain === null) return undefined;
  const local = (plain[1] ?? '').replaceAll(/\\(.)/g, '$1');
  const domain = text.slice(plain[0].length);
  if (quoted === null && (/^\.|\.$/.test(local) || local.includes('..'))) return undefined;
  return domain === '' || labelsOf(domain) === undefined ? undefined : { local, domain };
}

/**
 * Why an authority may not have signed for a chain of certificates below it, each with its names;
 * undefined when it may.
 */
export function constraintProblem(
  constraints: NameConstraints,
  below: readonly { readonly alternativeNames: readonly AlternativeName[] }[],
): string | undefined {
  let comparisons = 0;
  for (const { alternativeNames } of below) {
    for (const name of alternativeNames) {
      comparisons += constraints.permitted.length + constraints.excluded.length;
      if (comparisons > comparisonsMax) return 'too many name constraints to check';
      const problem = nameProblem(name, constraints);
      if (problem !== undefined) {
        return `a root or intermediate certificate is not authorized to sign for this name: ${problem}`;
      }
    }
  }
  return undefined;
}

const shownKinds: Readonly<Record<NameKind, string>> = {
  email: 'email address',
  dns: 'DNS name',
  uri: 'URI',
  ip: 'IP address',
};

/** What cannot be compared is refused, whether it is excluded or not permitted. */
function nameProblem(
  { kind, content }: AlternativeName,
  { permitted, excluded }: NameConstraints,
): string | undefined {
  const allowed = permitted.filter((subtree) => subtree.kind === kind);
  const forbidden = excluded.filter((subtree) => subtree.kind === kind);
  const matches = matcherOf(kind, content);
  if (matches === undefined) {
    // Upstream reads mailboxes and domains before it compares, the hosts of URIs as it does.
    if (kind === 'uri' && allowed.length + forbidden.length === 0) return undefined;
    return `${shownKinds[kind]} that cannot be matched against constraints`;
  }
  if (forbidden.some((subtree) => matches(subtree.content))) {
    return `${shownKinds[kind]} is excluded by a constraint`;
  }
  if (allowed.length === 0 || allowed.some((subtree) => matches(subtree.content))) return undefined;
  return `${shownKinds[kind]} is not permitted by any constraint`;
}

/** Compares a name with subtrees of its kind; undefined for a name that cannot be. */
function matcherOf(kind: NameKind, content: Buffer): ((subtree: Buffer) => boolean) | undefined {
  if (kind === 'ip') return (subtree) => isAddressWithin(content, subtree);
  const text = content.toString('latin1');
  if (kind === 'email') {
    const mailbox = parseMailbox(text);
    return mailbox && ((subtree) => isMailboxWithin(mailbox, subtree.toString('latin1')));
  }
  const domain = kind === 'uri' ? hostOf(text) : text;
  const labels = domain === undefined || domain === '' ? undefined : labelsOf(domain);
  return labels && ((subtree) => isDomainWithin(labels, subtree.toString('latin1')));
}

function isAddressWithin(address: Buffer, subtree: Buffer): boolean {
  if (subtree.length !== address.length * 2) return false;
  return address.every((byte, index) => {
    const mask = subtree[address.length + index] ?? 0;
    return (byte & mask) === ((subtree[index] ?? 0) & mask);
  });
}

function isMailboxWithin(mailbox: Mailbox, subtree: string): boolean {
  const exact = subtree.includes('@') ? parseMailbox(subtree) : undefined;
  if (exact === undefined) return isDomainWithin(labelsOf(mailbox.domain) ?? [], subtree);
  const isSameDomain = mailbox.domain.toLowerCase() === exact.domain.toLowerCase();
  return isSameDomain && mailbox.local === exact.local;
}

/** An empty subtree holds every domain; one that begins with a dot only those below it. */
function isDomainWithin(labels: readonly string[], subtree: string): boolean {
  if (subtree === '') return true;
  const isBelow = subtree.startsWith('.');
  const wanted = labelsOf(isBelow ? subtree.slice(1) : subtree) ?? [];
  if (labels.length < wanted.length + (isBelow ? 1 : 0)) return false;
  return wanted.every((label, index) => label === labels[index]);
}

/** The host of a URI, if it is a name. */
function hostOf(uri: string): string | undefined {
  const authority = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(uri)?.[1];
  const host = authority?.slice(authority.lastIndexOf('@') + 1).replace(/:\d*$/, '');
  return host === undefined || host === '' || host.startsWith('[') || isIP(host) !== 0
    ? undefined
    : host;
}
