import { isAscii } from 'node:buffer';
import { ipVersion, parseGoUrl, showValue, type WorkBudget } from '@wheelhouse/machinery';
import { childrenOf, type DerElement, DerError, readSequence } from './der.ts';

/** The kinds of names for which constraints are evaluated, as in Go's verifier. */
type NameKind = 'email' | 'dns' | 'uri' | 'ip';

/** One alternative name: the bytes of an address, or ASCII text. */
export interface AlternativeName {
  readonly kind: NameKind;
  readonly content: Buffer;
}

/** The names that an authority may sign for. A kind without permitted subtrees allows any name. */
export interface NameConstraints {
  readonly permitted: ReadonlyMap<NameKind, Subtrees>;
  readonly excluded: ReadonlyMap<NameKind, Subtrees>;
}

/** Tags of GeneralName; names of other kinds are not compared. */
const kinds: ReadonlyMap<number, NameKind> = new Map([
  [0x81, 'email'],
  [0x82, 'dns'],
  [0x86, 'uri'],
  [0x87, 'ip'],
]);

/**
 * Parses the extension of alternative names; names of kinds that are not evaluated are omitted.
 * Throws DerError and WorkExceeded.
 */
export function parseAlternativeNames(
  value: Buffer,
  budget?: WorkBudget,
): readonly AlternativeName[] {
  const names: AlternativeName[] = [];
  const tags = /^([89a][0-9a-f]( |$))*$/;
  const what = 'alternative names';
  for (const { tag, content } of childrenOf(readSequence(value, budget), { tags, what })) {
    const kind = kinds.get(tag);
    if (kind === undefined) continue;
    const problem = kind === 'ip' ? addressProblem(content) : textProblem(kind, content);
    if (problem !== undefined) throw new DerError(problem);
    names.push({ kind, content });
  }
  return names;
}

/** The error in an address of an alternative name. */
function addressProblem({ length }: Buffer): string | undefined {
  return length === 4 || length === 16
    ? undefined
    : `x509: cannot parse IP address of length ${length}`;
}

const textNames = { email: 'rfc822Name', dns: 'dNSName', uri: 'uniformResourceIdentifier' };

/** The error in the text of an alternative name. */
function textProblem(kind: keyof typeof textNames, content: Buffer): string | undefined {
  if (!isAscii(content)) return `x509: SAN ${textNames[kind]} is malformed`;
  if (kind !== 'uri') return undefined;
  const text = content.toString('latin1');
  const url = parseGoUrl(text);
  if (typeof url === 'string') return `x509: cannot parse URI ${showValue(text)}: ${url}`;
  const host = url.host.replaceAll(/%([0-9a-f]{2})/gi, (_, hex) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return host === '' || isDomain(host)
    ? undefined
    : `x509: cannot parse URI ${showValue(text)}: invalid domain`;
}

/**
 * Parses the extension of name constraints; `unhandled` means that it has subtrees of a kind that
 * is not evaluated. Throws DerError if it is malformed, and WorkExceeded.
 */
export function parseNameConstraints(
  value: Buffer,
  budget?: WorkBudget,
): { readonly constraints: NameConstraints; readonly unhandled: boolean } {
  const what = 'name constraints';
  const lists = childrenOf(readSequence(value, budget), { tags: /^(a0|a1|a0 a1)$/, what });
  if (lists.every(({ children }) => children.length === 0)) {
    throw new DerError('empty name constraints');
  }
  let unhandled = false;
  const read = (list: DerElement | undefined): ReadonlyMap<NameKind, Subtrees> => {
    const subtreesByKind = new Map<NameKind, Subtrees>();
    if (list === undefined) return subtreesByKind;
    for (const subtree of childrenOf(list, { tags: /^(30( 30)*)?$/, what })) {
      const [base] = childrenOf(subtree, { tags: /^[89a][0-9a-f]$/, what });
      const kind = base && kinds.get(base.tag);
      if (base === undefined || kind === undefined) {
        unhandled = true;
        continue;
      }
      const subtrees = subtreesByKind.get(kind) ?? new Subtrees();
      subtrees.add(kind, base.content);
      subtreesByKind.set(kind, subtrees);
    }
    return subtreesByKind;
  };
  const permitted = read(lists.find(({ tag }) => tag === 0xa0));
  const excluded = read(lists.find(({ tag }) => tag === 0xa1));
  return { constraints: { permitted, excluded }, unhandled };
}

/**
 * The subtrees of one kind, indexed so that the cost of a lookup does not depend on their number.
 */
class Subtrees {
  /** Domains that include themselves and their subdomains; the empty one includes all. */
  readonly #domains = new Set<string>();
  /** Domains that include only their subdomains. */
  readonly #domainsBelow = new Set<string>();
  readonly #mailboxes = new Set<string>();
  /** Networks by their masks, both in hexadecimal. */
  readonly #networks = new Map<string, { readonly mask: Buffer; readonly bases: Set<string> }>();

  /** Throws DerError if the subtree is malformed. */
  add(kind: NameKind, content: Buffer): void {
    const text = content.toString('latin1');
    if (kind === 'ip') {
      if (!isAddressRange(content)) throw new DerError('malformed ip name constraint');
      const half = content.length / 2;
      const mask = content.subarray(half);
      const key = mask.toString('hex');
      const network = this.#networks.get(key) ?? { mask, bases: new Set() };
      network.bases.add(masked(content.subarray(0, half), mask));
      this.#networks.set(key, network);
    } else if (kind === 'email' && text.includes('@')) {
      const mailbox = parseMailbox(text);
      if (mailbox === undefined) throw new DerError('malformed email name constraint');
      this.#mailboxes.add(mailboxKey(mailbox));
    } else {
      const isValid = isDomainConstraint(text) && (kind !== 'uri' || ipVersion(text) === 0);
      if (!isAscii(content) || !isValid) throw new DerError(`malformed ${kind} name constraint`);
      if (text.startsWith('.')) this.#domainsBelow.add(text.slice(1).toLowerCase());
      else this.#domains.add(text.toLowerCase());
    }
  }

  hasAddress(address: Buffer): boolean {
    for (const { mask, bases } of this.#networks.values()) {
      if (mask.length === address.length && bases.has(masked(address, mask))) return true;
    }
    return false;
  }

  hasMailbox(mailbox: Mailbox): boolean {
    return this.#mailboxes.has(mailboxKey(mailbox)) || this.hasDomain(mailbox.domain);
  }

  hasDomain(domain: string): boolean {
    const name = domain.toLowerCase();
    if (this.#domains.has('') || this.#domains.has(name)) return true;
    for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
      const parent = name.slice(dot + 1);
      if (this.#domains.has(parent) || this.#domainsBelow.has(parent)) return true;
    }
    return false;
  }
}

function masked(address: Buffer, mask: Buffer): string {
  return Buffer.from(address.map((byte, index) => byte & (mask[index] ?? 0))).toString('hex');
}

const mailboxKey = ({ local, domain }: Mailbox) => `${local}@${domain.toLowerCase()}`;

/** An address and a mask whose ones all precede its zeros. */
function isAddressRange(content: Buffer): boolean {
  if (content.length !== 8 && content.length !== 32) return false;
  const mask = [...content.subarray(content.length / 2)];
  return /^1*0*$/.test(mask.map((byte) => byte.toString(2).padStart(8, '0')).join(''));
}

function isDomainConstraint(text: string): boolean {
  return text === '' || isDomain(text.replace(/^\./, ''));
}

/** The longest domain; a longer one cannot be compared and is not split into labels. */
const domainLengthMax = 255;

function isDomain(text: string): boolean {
  if (text === '' || text.length > domainLengthMax) return false;
  return text.split('.').every((label) => /^[!-~]+$/.test(label));
}

interface Mailbox {
  readonly local: string;
  readonly domain: string;
}

/** Splits `local@domain`, whose local part may be quoted; undefined if it is not a mailbox. */
function parseMailbox(text: string): Mailbox | undefined {
  const quoted = /^"((?:[^"\\\r\n\0]|\\[^\r\n\0])*)"@/.exec(text);
  const plain = quoted ?? /^((?:[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.]|\\.)+)@/.exec(text);
  if (plain === null) return undefined;
  const local = (plain[1] ?? '').replaceAll(/\\(.)/g, '$1');
  const domain = text.slice(plain[0].length);
  if (quoted === null && (/^\.|\.$/.test(local) || local.includes('..'))) return undefined;
  return isDomain(domain) ? { local, domain } : undefined;
}

/**
 * Why an authority may not sign, directly or indirectly, a certificate with these names; undefined
 * if it may. Throws WorkExceeded.
 */
export function constraintProblem(
  constraints: NameConstraints,
  names: readonly AlternativeName[],
  budget: WorkBudget,
): string | undefined {
  for (const name of names) {
    budget.spend();
    const problem = nameProblem(name, constraints);
    if (problem !== undefined) {
      return `a root or intermediate certificate is not authorized to sign for this name: ${problem}`;
    }
  }
  return undefined;
}

const kindNames: Readonly<Record<NameKind, string>> = {
  email: 'email address',
  dns: 'DNS name',
  uri: 'URI',
  ip: 'IP address',
};

/** Rejects names that cannot be compared, whether for exclusion or permission. */
function nameProblem(
  { kind, content }: AlternativeName,
  constraints: NameConstraints,
): string | undefined {
  const permitted = constraints.permitted.get(kind);
  const excluded = constraints.excluded.get(kind);
  const isIn = matcherOf(kind, content);
  if (isIn === undefined) {
    // Go parses mailboxes and domains before it compares any name, but the hosts of URIs one by
    // one.
    if (kind === 'uri' && permitted === undefined && excluded === undefined) return undefined;
    return `${kindNames[kind]} that cannot be matched against constraints`;
  }
  if (excluded !== undefined && isIn(excluded)) {
    return `${kindNames[kind]} is excluded by a constraint`;
  }
  if (permitted === undefined || isIn(permitted)) return undefined;
  return `${kindNames[kind]} is not permitted by any constraint`;
}

/** Looks a name up in subtrees of its kind; undefined for a name that cannot be compared. */
function matcherOf(kind: NameKind, content: Buffer): ((subtrees: Subtrees) => boolean) | undefined {
  if (kind === 'ip') return (subtrees) => subtrees.hasAddress(content);
  const text = content.toString('latin1');
  if (kind === 'email') {
    const mailbox = parseMailbox(text);
    return mailbox && ((subtrees) => subtrees.hasMailbox(mailbox));
  }
  const domain = kind === 'uri' ? hostOf(text) : text;
  if (domain === undefined || !isDomain(domain)) return undefined;
  return (subtrees) => subtrees.hasDomain(domain);
}

/** The host of a URI, if it is a domain name. */
function hostOf(uri: string): string | undefined {
  const authority = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(uri)?.[1];
  const host = authority?.slice(authority.lastIndexOf('@') + 1).replace(/:\d*$/, '');
  return host === undefined || host === '' || host.startsWith('[') || ipVersion(host) !== 0
    ? undefined
    : host;
}
