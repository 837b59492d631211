import { isIP } from 'node:net';
import { showValue } from './field-error.ts';

/** An IP address. The parsers are as lenient as kube-apiserver's. */
export interface IpAddress {
  readonly family: 4 | 6;
  readonly bits: bigint;
}

/** A CIDR block: its first address and the number of fixed leading bits. */
export interface IpBlock {
  /** The address as written, including host bits. */
  readonly address: IpAddress;
  /** The first address of the block; IPv6 if the block extends beyond IPv4-mapped addresses. */
  readonly base: IpAddress;
  /** Number of fixed bits of `base`. */
  readonly prefixBits: number;
  /** The number as written, which counts all 128 bits of an IPv4-mapped address. */
  readonly writtenBits: number;
}

const widthOf = (family: 4 | 6): number => (family === 4 ? 32 : 128);

/**
 * Drops leading zeros in the parts, as older Go versions did; undefined for a malformed address.
 */
function v4Bits(text: string): bigint | undefined {
  const parts = text.split('.');
  if (parts.length !== 4 || !parts.every((part) => /^\d{1,24}$/.test(part))) return undefined;
  const octets = parts.map(Number);
  if (octets.some((octet) => octet > 255)) return undefined;
  return octets.reduce((bits, octet) => (bits << 8n) | BigInt(octet), 0n);
}

function v6Bits(text: string): bigint | undefined {
  const dotted = /^(.*:)([\d.]+)$/.exec(text);
  const low = text.includes('.') ? v4Bits(dotted?.[2] ?? '') : undefined;
  const plain =
    low === undefined
      ? text
      : `${dotted?.[1]}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`;
  const [left = [], right, ...more] = plain
    .split('::')
    .map((part) => (part === '' ? [] : part.split(':')));
  const groups = [...left, ...(right ?? [])];
  // Not `isIPv6`: the expression that it compiles takes a tenth of the server's start.
  if (!groups.every((group) => /^[\da-f]{1,4}$/i.test(group)) || more.length > 0) return undefined;
  const isWhole = right === undefined ? groups.length === 8 : groups.length < 8;
  if (!isWhole) return undefined;
  const zeros = Array.from({ length: 8 - groups.length }, () => '0');
  const all = [...left, ...zeros, ...(right ?? [])];
  return all.reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}

/**
 * The version of IP of a strictly written address, with or without a zone; 0 for other text. Unlike
 * `isIP` of Node.js, it does not compile a large expression for host names.
 */
export function ipVersion(text: string): 0 | 4 | 6 {
  const version = /^[\d.]+$/.test(text) || text.includes(':') ? isIP(text) : 0;
  return version === 4 || version === 6 ? version : 0;
}

/** Parses an address; an IPv4-mapped IPv6 address is IPv4. Undefined for a malformed one. */
export function parseIpAddress(text: string): IpAddress | undefined {
  if (!text.includes(':')) {
    const bits = v4Bits(text);
    return bits === undefined ? undefined : { family: 4, bits };
  }
  const bits = v6Bits(text);
  if (bits === undefined) return undefined;
  if (bits >> 32n === 0xffffn) return { family: 4, bits: bits & 0xffffffffn };
  return { family: 6, bits };
}

/** Number of leading bits that all IPv4-mapped addresses have in common. */
const mappedBits = 96;

/** Parses a block such as `10.0.0.0/24`; undefined for a malformed one. */
export function parseIpBlock(text: string): IpBlock | undefined {
  const slash = text.indexOf('/');
  const address = slash < 0 ? undefined : parseIpAddress(text.slice(0, slash));
  const length = text.slice(slash + 1);
  if (address === undefined || !/^0*\d{1,3}$/.test(length)) return undefined;
  const writtenBits = Number(length);
  const isMapped = address.family === 4 && text.includes(':');
  if (writtenBits > (isMapped ? 128 : widthOf(address.family))) return undefined;
  const isWide = isMapped && writtenBits < mappedBits;
  const start: IpAddress = isWide ? { family: 6, bits: (0xffffn << 32n) | address.bits } : address;
  const prefixBits = writtenBits - (isMapped && !isWide ? mappedBits : 0);
  const hostBits = BigInt(widthOf(start.family) - prefixBits);
  const base = { family: start.family, bits: (start.bits >> hostBits) << hostBits };
  return { address, base, prefixBits, writtenBits };
}

/** Number of addresses in a block. */
export function blockSize({ base, prefixBits }: IpBlock): bigint {
  return 1n << BigInt(widthOf(base.family) - prefixBits);
}

/** Whether every address of `inner` is one of `outer`. */
export function blockContains(outer: IpBlock, inner: IpBlock): boolean {
  return outer.prefixBits <= inner.prefixBits && blockHas(outer, inner.base);
}

/** Whether a block contains an address. */
export function blockHas({ base, prefixBits }: IpBlock, address: IpAddress): boolean {
  const hostBits = BigInt(widthOf(base.family) - prefixBits);
  return address.family === base.family && address.bits >> hostBits === base.bits >> hostBits;
}

/** Formats an address as Go does: no leading zeros, the longest run of zero groups as `::`. */
export function formatIpAddress({ family, bits }: IpAddress): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (bits >> shift) & 255n).join('.');
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((bits >> BigInt(112 - 16 * index)) & 0xffffn).toString(16),
  );
  let [best, length] = [-1, 1];
  for (let start = 0; start < 8; start += 1) {
    let end = start;
    while (groups[end] === '0') end += 1;
    if (end - start > length) [best, length] = [start, end - start];
  }
  if (best < 0) return groups.join(':');
  return `${groups.slice(0, best).join(':')}::${groups.slice(best + length).join(':')}`;
}

/** Formats an address as Go's strict parser does, which keeps IPv4-mapped addresses. */
export function formatStrictly(text: string, address: IpAddress): string {
  const isMapped = address.family === 4 && text.includes(':');
  return isMapped ? `::ffff:${formatIpAddress(address)}` : formatIpAddress(address);
}

/** A host as it precedes a port: an IPv6 address is in brackets. */
export const hostInUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** Formats a block with host bits cleared, as Go prints a network. */
export function formatIpBlock({ base, prefixBits }: IpBlock): string {
  return `${formatIpAddress(base)}/${prefixBits}`;
}

/** Returns a function that tests whether an address is in one of some blocks. */
function inBlocks(...texts: readonly string[]): (address: IpAddress) => boolean {
  const blocks = texts.map((text) => {
    const { base, prefixBits } = parseIpBlock(text) as IpBlock;
    const hostBits = BigInt(widthOf(base.family) - prefixBits);
    return { family: base.family, hostBits, head: base.bits >> hostBits };
  });
  return ({ family, bits }) =>
    blocks.some((block) => block.family === family && bits >> block.hostBits === block.head);
}

/** Ranges with a special meaning in Go. */
export const specialRanges = {
  isUnspecified: (address: IpAddress) => address.bits === 0n,
  isLoopback: inBlocks('127.0.0.0/8', '::1/128'),
  isLinkLocalUnicast: inBlocks('169.254.0.0/16', 'fe80::/10'),
  /** The flags of an IPv6 address, its third hexadecimal digit, do not matter. */
  isLinkLocalMulticast: ({ family, bits }: IpAddress) =>
    family === 4 ? bits >> 8n === 0xe00000n : ((bits >> 112n) & 0xff0fn) === 0xff02n,
} as const;

/** Returns the error message of Go's strict parser for an address; undefined for a valid one. */
export function strictAddressProblem(address: string): string | undefined {
  const fault = addressFault(address);
  if (fault === undefined) return undefined;
  const where = fault.at === '' ? '' : ` (at ${showValue(fault.at)})`;
  return `ParseAddr(${showValue(address)}): ${fault.what}${where}`;
}

interface Fault {
  readonly what: string;
  /** The text from the error to the end. */
  readonly at: string;
}

function addressFault(address: string): Fault | undefined {
  switch (/[.:%]/.exec(address)?.[0]) {
    case '.':
      return fieldsFault(address);
    case ':':
      return groupsFault(address);
    case '%':
      return { what: 'missing IPv6 address', at: '' };
    default:
      return { what: 'unable to parse IP', at: '' };
  }
}

/** Validates four numbers separated by dots. */
function fieldsFault(text: string): Fault | undefined {
  let [value, digits, place] = [0, 0, 0];
  for (let index = 0; index < text.length; index += 1) {
    const letter = text.charAt(index);
    const at = text.slice(index);
    if (/[0-9]/.test(letter)) {
      if (digits === 1 && value === 0) {
        return { what: 'IPv4 field has octet with leading zero', at: '' };
      }
      value = value * 10 + Number(letter);
      digits += 1;
      if (value > 255) return { what: 'IPv4 field has value >255', at: '' };
    } else if (letter === '.') {
      if (index === 0 || index === text.length - 1 || text[index - 1] === '.') {
        return { what: 'IPv4 field must have at least one digit', at };
      }
      if (place === 3) return { what: 'IPv4 address too long', at: '' };
      [value, digits, place] = [0, 0, place + 1];
    } else return { what: 'unexpected character', at };
  }
  return place < 3 ? { what: 'IPv4 address too short', at: '' } : undefined;
}

const addressBytes = 16;

/**
 * Validates groups of hexadecimal digits, with an optional `::` and an optional IPv4 address at the
 * end.
 */
function groupsFault(address: string): Fault | undefined {
  const percent = address.indexOf('%');
  if (percent === address.length - 1) return { what: 'zone must be a non-empty string', at: '' };
  let rest = percent < 0 ? address : address.slice(0, percent);
  let hasGap = rest.startsWith('::');
  if (hasGap) rest = rest.slice(2);
  let bytes = 0;
  while (rest !== '' && bytes < addressBytes) {
    const [digits = ''] = /^[0-9a-fA-F]*/.exec(rest) ?? [];
    const fault = groupFault(digits, rest);
    if (fault !== undefined) return fault;
    if (rest[digits.length] === '.') {
      const ending = endingFault(rest, { bytes, hasGap });
      if (ending !== undefined) return ending;
      [bytes, rest] = [bytes + 4, ''];
      break;
    }
    bytes += 2;
    rest = rest.slice(digits.length);
    if (rest === '') break;
    if (rest[0] !== ':') return { what: 'unexpected character, want colon', at: rest };
    if (rest.length === 1) return { what: 'colon must be followed by more characters', at: rest };
    rest = rest.slice(1);
    if (rest[0] !== ':') continue;
    if (hasGap) return { what: 'multiple :: in address', at: rest };
    hasGap = true;
    rest = rest.slice(1);
  }
  if (rest !== '') return { what: 'trailing garbage after address', at: rest };
  if (bytes < addressBytes) {
    return hasGap ? undefined : { what: 'address string too short', at: '' };
  }
  return hasGap ? { what: 'the :: must expand to at least one field of zeros', at: '' } : undefined;
}

function groupFault(digits: string, rest: string): Fault | undefined {
  if (digits.length > 4) return { what: 'each group must have 4 or less digits', at: rest };
  return digits === ''
    ? { what: 'each colon-separated field must have at least one digit', at: rest }
    : undefined;
}

function endingFault(
  rest: string,
  { bytes, hasGap }: { bytes: number; hasGap: boolean },
): Fault | undefined {
  if (!hasGap && bytes !== 12) {
    const what = 'embedded IPv4 address must replace the final 2 fields of the address';
    return { what, at: rest };
  }
  if (bytes + 4 > addressBytes) {
    const what = 'too many hex fields to fit an embedded IPv4 at the end of the address';
    return { what, at: rest };
  }
  return fieldsFault(rest);
}
