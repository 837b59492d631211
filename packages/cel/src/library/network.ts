import {
  blockContains,
  blockHas,
  cut,
  formatIpAddress,
  type IpAddress,
  type IpBlock,
  parseGoRequestUrl,
  parseGoUrl,
  parseIpAddress,
  parseIpBlock,
  printGoUrl,
  specialRanges,
  strictAddressProblem,
} from '@wheelhouse/machinery';
import { type CallContext, type Library, noSuchOverload } from '../types/functions.ts';
import { CelError, EntryMap, List, Opaque, type Value } from '../values.ts';
import { asText, misfit } from './arguments.ts';
import { callCost, parsing, sizeCost, textSize } from './arithmetic.ts';

const isMapped = (text: string, { family }: IpAddress) => family === 4 && text.includes(':');

function parseAddress(text: string): IpAddress {
  const problem = strictAddressProblem(text);
  if (problem !== undefined) {
    const shown = JSON.stringify(text);
    throw new CelError(`IP Address ${shown} parse error during conversion from string: ${problem}`);
  }
  if (text.includes('%')) throw new CelError(`IP address "${text}" with zone value is not allowed`);
  const address = parseIpAddress(text);
  if (address === undefined || isMapped(text, address)) {
    throw new CelError(`IPv4-mapped IPv6 address "${text}" is not allowed`);
  }
  return address;
}

class Ip extends Opaque<IpAddress> {}
class Cidr extends Opaque<IpBlock> {}

function ipValue(address: IpAddress): Opaque<IpAddress> {
  const text = formatIpAddress(address);
  const size = address.family === 4 ? 4 : 16;
  const native = () => `(netip.Addr)${text}`;
  return new Ip({ type: 'net.IP', value: address, key: text, text, size, native });
}

const cidrHead = 'network address parse error during conversion from string: ';

function parseBlock(text: string): IpBlock {
  const fail = (why: string) =>
    new CelError(`${cidrHead}${cidrHead}netip.ParsePrefix(${JSON.stringify(text)}): ${why}`);
  const slash = text.lastIndexOf('/');
  if (slash < 0) throw fail("no '/'");
  const [host, length] = [text.slice(0, slash), text.slice(slash + 1)];
  const problem = strictAddressProblem(host);
  if (problem !== undefined) throw fail(problem);
  if (host.includes('%')) throw fail('IPv6 zones cannot be present in a prefix');
  const address = parseIpAddress(host);
  if (address === undefined || isMapped(host, address)) {
    throw new CelError(`${cidrHead}IPv4-mapped IPv6 address "${text}" is not allowed`);
  }
  if (!/^(?:0|[1-9]\d{0,2})$/.test(length)) {
    throw fail(`bad bits after slash: ${JSON.stringify(length)}`);
  }
  const block = parseIpBlock(text);
  if (block === undefined) throw fail('prefix length out of range');
  return block;
}

function cidrValue(block: IpBlock): Opaque<IpBlock> {
  const text = `${formatIpAddress(block.address)}/${block.prefixBits}`;
  const size = Math.ceil(block.prefixBits / 8);
  const native = () => `(netip.Prefix)${text}`;
  return new Cidr({ type: 'net.CIDR', value: block, key: text, text, size, native });
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

/** The address of an IP, of a CIDR, or in a string. */
function address(value: Value | undefined): IpAddress {
  if (value instanceof Ip) return value.value;
  if (value instanceof Cidr) return value.value.address;
  return parseAddress(asText(value));
}

/** The address in a string; cel-go does not say why one is malformed here. */
function addressOf(text: Value | undefined): IpAddress {
  if (!isValid(parseAddress, text)) throw noSuchOverload();
  return parseAddress(asText(text));
}

const block = (value: Value | undefined): IpBlock =>
  value instanceof Cidr ? value.value : parseBlock(asText(value));

const multicastBlocks = ['224.0.0.0/4', 'ff00::/8'].map(parseBlock);
const { isUnspecified, isLoopback, isLinkLocalUnicast, isLinkLocalMulticast } = specialRanges;
const isMulticast = (ip: IpAddress) => multicastBlocks.some((range) => blockHas(range, ip));
const isBroadcast = (ip: IpAddress) => ip.family === 4 && ip.bits === 0xffffffffn;
const isGlobalUnicast = (ip: IpAddress) =>
  ![isUnspecified, isLoopback, isMulticast, isLinkLocalUnicast, isBroadcast].some((is) => is(ip));

const tests = {
  isUnspecified,
  isLoopback,
  isLinkLocalMulticast,
  isLinkLocalUnicast,
  isGlobalUnicast,
};

const masked = (value: IpBlock): IpBlock => ({ ...value, address: value.base });

/** Number of bytes that a comparison of blocks reads. */
const prefixBytes = (value: Value | undefined) => Math.ceil(block(value).prefixBits / 8);

/** The cost of parsing an operand that is a text. */
const parsingCost = (value: Value | undefined) =>
  typeof value === 'string' ? sizeCost(textSize(value)) : 0;

function containsAddress([left, right]: readonly Value[], { spend }: CallContext): boolean {
  spend(callCost(2 * prefixBytes(left)) + parsingCost(right));
  return blockHas(block(left), typeof right === 'string' ? addressOf(right) : address(right));
}

function containsBlock([left, right]: readonly Value[], { spend }: CallContext): boolean {
  const size = prefixBytes(left);
  spend(sizeCost(2 * size) + sizeCost(size) + parsingCost(right));
  return blockContains(block(left), block(right));
}

/** The Kubernetes library for IP addresses and CIDR blocks. */
export const addresses: Library = [
  ['ip(string): net.IP', parsing((text) => ipValue(parseAddress(text)))],
  ['isIP(string): bool', parsing((text) => isValid(parseAddress, text))],
  ['ip.isCanonical(string): bool', parsing((text) => formatIpAddress(address(text)) === text, 2)],
  ['net.IP.family(): int', ([value]) => BigInt(address(value).family)],
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
  ['net.CIDR.prefixLength(): int', ([value]) => BigInt(block(value).prefixBits)],
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
  const key = printGoUrl(text);
  return new UrlValue({ type, value: url, key, native: () => `(*url.URL)${key}` });
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
    const [key, text = ''] = cut(pair, '=');
    const [name, item] = [decoded(key), decoded(text)];
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
