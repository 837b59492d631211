import { isIPv4, isIPv6 } from 'node:net';
import { parseGoRequestUrl, parseGoUrl, printGoUrl } from '@wheelhouse/machinery';
import { type CallContext, type Library, noSuchOverload } from '../types/functions.ts';
import { CelError, EntryMap, List, Opaque, type Value } from '../values.ts';
import { asText, misfit } from './arguments.ts';
import { callCost, parsing, sizeCost, textSize } from './arithmetic.ts';

/** An address: its 32 or 128 bits as a number. */
interface Address {
  readonly bits: bigint;
  readonly width: 32 | 128;
}
interface Block extends Address {
  readonly prefix: number;
}

function v4Bits(text: string): bigint {
  return text.split('.').reduce((bits, part) => (bits << 8n) | BigInt(part), 0n);
}

function v6Bits(text: string): bigint {
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  let plain = text;
  if (dotted !== null) {
    const low = v4Bits(dotted[2] ?? '');
    plain = `${dotted[1]}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`;
  }
  const [head = '', tail] = plain.split('::');
  const groups = (part: string) => (part === '' ? [] : part.split(':'));
  const [left, right] = [groups(head), groups(tail ?? '')];
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length;
  const all = [...left, ...Array.from({ length: zeros }, () => '0'), ...right];
  return all.reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}

function parseAddress(text: string): Address {
  if (isIPv4(text)) return { bits: v4Bits(text), width: 32 };
  const plain = text.replace(/%.+$/, '');
  if (!isIPv6(plain)) {
    const shown = JSON.stringify(text);
    const why = `ParseAddr(${shown}): ${addressProblem(text)}`;
    throw new CelError(`IP Address ${shown} parse error during conversion from string: ${why}`);
  }
  if (plain !== text) throw new CelError(`IP address "${text}" with zone value is not allowed`);
  const bits = v6Bits(plain);
  if (bits >> 32n === 0xffffn) {
    throw new CelError(`IPv4-mapped IPv6 address "${text}" is not allowed`);
  }
  return { bits, width: 128 };
}

function showAddress({ bits, width }: Address): string {
  if (width === 32) return [24n, 16n, 8n, 0n].map((shift) => (bits >> shift) & 255n).join('.');
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((bits >> BigInt(112 - 16 * index)) & 0xffffn).toString(16),
  );
  let [best, length] = [-1, 1];
  for (let at = 0; at < 8; at += 1) {
    let end = at;
    while (groups[end] === '0') end += 1;
    if (end - at > length) [best, length] = [at, end - at];
  }
  if (best < 0) return groups.join(':');
  return `${groups.slice(0, best).join(':')}::${groups.slice(best + length).join(':')}`;
}

class Ip extends Opaque<Address> {}
class Cidr extends Opaque<Block> {}

function ipValue(address: Address): Opaque<Address> {
  const text = showAddress(address);
  return new Ip({ type: 'net.IP', value: address, key: text, text, size: address.width / 8 });
}

const cidrHead = 'network address parse error during conversion from string: ';

function parseBlock(text: string): Block {
  const fail = (why: string) =>
    new CelError(`${cidrHead}${cidrHead}netip.ParsePrefix(${JSON.stringify(text)}): ${why}`);
  const slash = text.lastIndexOf('/');
  if (slash < 0) throw fail("no '/'");
  const [host, length] = [text.slice(0, slash), text.slice(slash + 1)];
  if (host.includes('%')) throw fail('IPv6 zones cannot be present in a prefix');
  const isMapped = isIPv6(host) && v6Bits(host) >> 32n === 0xffffn;
  if (isMapped) throw new CelError(`${cidrHead}IPv4-mapped IPv6 address "${text}" is not allowed`);
  if (!isIPv4(host) && !isIPv6(host))
    throw fail(`ParseAddr(${JSON.stringify(host)}): ${addressProblem(host)}`);
  if (!/^(?:0|[1-9]\d{0,2})$/.test(length)) {
    throw fail(`bad bits after slash: ${JSON.stringify(length)}`);
  }
  const address = parseAddress(host);
  if (Number(length) > address.width) throw fail('prefix length out of range');
  return { ...address, prefix: Number(length) };
}

function cidrValue(block: Block): Opaque<Block> {
  const text = `${showAddress(block)}/${block.prefix}`;
  const size = Math.ceil(block.prefix / 8);
  return new Cidr({ type: 'net.CIDR', value: block, key: text, text, size });
}

function isValid(parse: (text: string) => unknown, text: Value | undefined): boolean {
  try {
    parse(asText(text));
    return true;
  } catch (error) {
    if (error instanceof CelError) return false;
    throw error;
  }
}

function inBlock(block: Block, address: Address): boolean {
  if (block.width !== address.width) return false;
  const shift = BigInt(block.width - block.prefix);
  return block.bits >> shift === address.bits >> shift;
}

/** The address of an IP, of a CIDR, or in a string. */
function address(value: Value | undefined): Address {
  if (value instanceof Ip || value instanceof Cidr) return value.value;
  return parseAddress(asText(value));
}

/** The address in a string; cel-go does not say why one is malformed here. */
function addressOf(text: Value | undefined): Address {
  if (!isValid(parseAddress, text)) throw noSuchOverload();
  return parseAddress(asText(text));
}

const block = (value: Value | undefined): Block =>
  value instanceof Cidr ? value.value : parseBlock(asText(value));

function masked(value: Block): Block {
  const shift = BigInt(value.width - value.prefix);
  return { ...value, bits: (value.bits >> shift) << shift };
}

const starts = (prefix4: string | undefined, prefix6: string | undefined) => {
  const blocks = [prefix4, prefix6].filter((prefix) => prefix !== undefined).map(parseBlock);
  return (ip: Address) => blocks.some((candidate) => inBlock(candidate, ip));
};
const isUnspecified = (ip: Address) => ip.bits === 0n;
const isLoopback = starts('127.0.0.0/8', '::1/128');
const isMulticast = starts('224.0.0.0/4', 'ff00::/8');
const isLinkLocalMulticast = (ip: Address) =>
  ip.width === 32
    ? ip.bits >> 8n === 0xe00000n
    : ip.bits >> 120n === 0xffn && ((ip.bits >> 112n) & 0xfn) === 2n;
const isLinkLocalUnicast = starts('169.254.0.0/16', 'fe80::/10');
const isBroadcast = (ip: Address) => ip.width === 32 && ip.bits === 0xffffffffn;
const isGlobalUnicast = (ip: Address) =>
  ![isUnspecified, isLoopback, isMulticast, isLinkLocalUnicast, isBroadcast].some((is) => is(ip));

const tests = {
  isUnspecified,
  isLoopback,
  isLinkLocalMulticast,
  isLinkLocalUnicast,
  isGlobalUnicast,
};

/** Number of bytes that a comparison of blocks reads. */
const prefixBytes = (value: Value | undefined) => Math.ceil(block(value).prefix / 8);

/** The cost of parsing an operand that is a text. */
const parsingCost = (value: Value | undefined) =>
  typeof value === 'string' ? sizeCost(textSize(value)) : 0;

function containsAddress([left, right]: readonly Value[], { spend }: CallContext): boolean {
  spend(callCost(2 * prefixBytes(left)) + parsingCost(right));
  return inBlock(block(left), typeof right === 'string' ? addressOf(right) : address(right));
}

function containsBlock([left, right]: readonly Value[], { spend }: CallContext): boolean {
  const size = prefixBytes(left);
  spend(sizeCost(2 * size) + sizeCost(size) + parsingCost(right));
  const [outer, inner] = [block(left), block(right)];
  return inner.prefix >= outer.prefix && inBlock(outer, inner);
}

/** The Kubernetes library for IP addresses and CIDR blocks. */
export const addresses: Library = [
  ['ip(string): net.IP', parsing((text) => ipValue(parseAddress(text)))],
  ['isIP(string): bool', parsing((text) => isValid(parseAddress, text))],
  ['ip.isCanonical(string): bool', parsing((text) => showAddress(address(text)) === text, 2)],
  ['net.IP.family(): int', ([value]) => (address(value).width === 32 ? 4n : 6n)],
  ...Object.entries(tests).map(
    ([name, test]) =>
      [`net.IP.${name}(): bool`, ([value]: readonly Value[]) => test(address(value))] as const,
  ),
  ['cidr(string): net.CIDR', parsing((text) => cidrValue(parseBlock(text)))],
  ['isCIDR(string): bool', parsing((text) => isValid(parseBlock, text))],
  ['net.CIDR.containsIP(net.IP): bool', containsAddress],
  ['net.CIDR.containsIP(string): bool', containsAddress],
  ['net.CIDR.containsCIDR(net.CIDR): bool', containsBlock],
  ['net.CIDR.containsCIDR(string): bool', containsBlock],
  ['net.CIDR.ip(): net.IP', ([value]) => ipValue(address(value))],
  ['net.CIDR.masked(): net.CIDR', ([value]) => cidrValue(masked(block(value)))],
  ['net.CIDR.prefixLength(): int', ([value]) => BigInt(block(value).prefix)],
];

interface Url {
  readonly scheme: string;
  /** Host and port, decoded. */
  readonly host: string;
  readonly path: string;
  readonly query: string;
}

const type = 'kubernetes.URL';

/** Parses an absolute URL or path; returns Go's error text if it is malformed. */
function parse(text: string): Url | string {
  const requested = parseGoRequestUrl(text);
  const parsed = typeof requested === 'string' ? requested : parseGoUrl(text);
  return typeof parsed === 'string' ? parsed : { ...parsed, host: unescaped(parsed.host) };
}

/** Decodes the escapes of a valid URL. */
function unescaped(text: string): string {
  if (!text.includes('%')) return text;
  const bytes = Buffer.from(text).toString('latin1');
  const plain = bytes.replace(/%([0-9a-f]{2})/gi, (_, hex) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(plain, 'latin1').toString();
}

class UrlValue extends Opaque<Url> {}

function read(text: string): Value {
  const url = parse(text);
  if (typeof url === 'string') {
    throw new CelError(`URL parse error during conversion from string: ${url}`);
  }
  return new UrlValue({ type, value: url, key: printGoUrl(text) });
}

function url(value: Value | undefined): Url {
  if (!(value instanceof UrlValue)) throw misfit(value, type);
  return value.value;
}

const hostForm = /^(.*?)(?::(\d*))?$/s;

/** The host without port and brackets. */
const hostname = (value: Value | undefined) =>
  (hostForm.exec(url(value).host)?.[1] ?? '').replace(/^\[(.*)\]$/s, '$1');

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

function query([value]: readonly Value[]): Value {
  const valuesByName = new Map<string, Value[]>();
  for (const pair of url(value).query.split('&')) {
    if (pair === '' || pair.includes(';')) continue;
    const at = pair.indexOf('=');
    const name = decoded(at < 0 ? pair : pair.slice(0, at));
    const item = decoded(at < 0 ? '' : pair.slice(at + 1));
    if (name === undefined || item === undefined) continue;
    const values = valuesByName.get(name);
    if (values === undefined) valuesByName.set(name, [item]);
    else values.push(item);
  }
  const entries = [...valuesByName].map(
    ([name, items]) => [`s${name}`, [name, new List(items)] as const] as const,
  );
  return new EntryMap(new Map(entries));
}

function escapedPath([value]: readonly Value[]): Value {
  return url(value).path.replace(/[^A-Za-z0-9$&+,/:;=@\-_.~!*'()[\]%]/gu, (point) =>
    encodeURIComponent(point),
  );
}

/** The Kubernetes library for URLs. */
export const urls: Library = [
  [`url(string): ${type}`, parsing(read)],
  ['isURL(string): bool', ([text]) => typeof parse(asText(text)) !== 'string'],
  [`${type}.getScheme(): string`, ([value]) => url(value).scheme],
  [`${type}.getHost(): string`, ([value]) => url(value).host],
  [`${type}.getHostname(): string`, ([value]) => hostname(value)],
  [`${type}.getPort(): string`, ([value]) => hostForm.exec(url(value).host)?.[2] ?? ''],
  [`${type}.getEscapedPath(): string`, escapedPath],
  [`${type}.getQuery(): map(string, list(string))`, query],
];

const digit = /[0-9]/;
const hexDigits = /^[0-9a-fA-F]{0,5}/;

/** The text from which on an address is wrong. */
const from = (rest: string) => ` (at ${JSON.stringify(rest)})`;

/** Go's reason why a text is not an IP address. */
export function addressProblem(text: string): string {
  const unknown = 'unable to parse IP';
  const first = /[.:%]/.exec(text)?.[0];
  if (first === '.') return v4Problem(text) ?? unknown;
  if (first === ':') return v6Problem(text) ?? unknown;
  return first === undefined ? unknown : 'missing IPv6 address';
}

function v4Problem(text: string): string | undefined {
  let [value, digits, dots] = [0, 0, 0];
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (digit.test(character)) {
      if (digits === 1 && value === 0) return 'IPv4 field has octet with leading zero';
      value = value * 10 + Number(character);
      digits += 1;
      if (value > 255) return 'IPv4 field has value >255';
      continue;
    }
    if (character !== '.') return `unexpected character${from(text.slice(at))}`;
    if (digits === 0 || at === text.length - 1) {
      return `IPv4 field must have at least one digit${from(text.slice(at))}`;
    }
    if (dots === 3) return 'IPv4 address too long';
    [value, digits, dots] = [0, 0, dots + 1];
  }
  return dots < 3 ? 'IPv4 address too short' : undefined;
}

function v6Problem(text: string): string | undefined {
  const percent = text.indexOf('%');
  if (percent === text.length - 1) return 'zone must be a non-empty string';
  let rest = percent < 0 ? text : text.slice(0, percent);
  let groups = 0;
  let hasGap = rest.startsWith('::');
  if (hasGap) rest = rest.slice(2);
  while (groups < 8) {
    const { length } = hexDigits.exec(rest)?.[0] ?? '';
    if (length > 4) return `each group must have 4 or less digits${from(rest)}`;
    if (length === 0) {
      return `each colon-separated field must have at least one digit${from(rest)}`;
    }
    if (rest.charAt(length) === '.') return embeddedProblem(rest, { groups, hasGap });
    groups += 1;
    rest = rest.slice(length);
    if (rest === '') break;
    if (!rest.startsWith(':')) return `unexpected character, want colon${from(rest)}`;
    if (rest === ':') return `colon must be followed by more characters${from(rest)}`;
    rest = rest.slice(1);
    if (!rest.startsWith(':')) continue;
    if (hasGap) return `multiple :: in address${from(rest)}`;
    hasGap = true;
    rest = rest.slice(1);
    if (rest === '') break;
  }
  if (rest !== '') return `trailing garbage after address${from(rest)}`;
  return sizeProblem({ groups, hasGap });
}

interface Groups {
  readonly groups: number;
  readonly hasGap: boolean;
}

function sizeProblem({ groups, hasGap }: Groups): string | undefined {
  if (groups < 8) return hasGap ? undefined : 'address string too short';
  return hasGap ? 'the :: must expand to at least one field of zeros' : undefined;
}

/** The problem of an address of version 6 that ends with one of version 4. */
function embeddedProblem(rest: string, { groups, hasGap }: Groups): string | undefined {
  if (!hasGap && groups !== 6) {
    const rule = 'embedded IPv4 address must replace the final 2 fields of the address';
    return `${rule}${from(rest)}`;
  }
  if (groups > 6) {
    return `too many hex fields to fit an embedded IPv4 at the end of the address${from(rest)}`;
  }
  return v4Problem(rest) ?? sizeProblem({ groups: groups + 2, hasGap });
}
