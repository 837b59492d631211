import {
  blockSize,
  formatIpAddress,
  formatIpBlock,
  type IpBlock,
  parseIpAddress,
  parseIpBlock,
  randomBelow,
} from '@wheelhouse/machinery';
import type { Family } from './cluster-ips.ts';

/** The ranges in the form of flags. */
export interface ServiceRangeTexts {
  /** CIDR blocks, at most one per family; the first is the primary one. */
  readonly clusterIps: readonly string[];
  /** `30000-32767`, or `30000+2767`. */
  readonly nodePorts: string;
  /** `any`: blocks may have any size, because no bitmap of addresses is kept. */
  readonly sizes?: 'any';
}

/** The default values of the flags. */
export const defaultServiceRanges: ServiceRangeTexts = {
  clusterIps: ['10.0.0.0/24'],
  nodePorts: '30000-32767',
};

/** A finite range of numbers for Services. The ledger records which members are held. */
export interface Pool {
  /** The number of members. */
  readonly size: number;
  /**
   * Members below this index are allocated without a request only if all others are held, so that
   * manually chosen numbers are usually free.
   */
  readonly reservedBelow: number;
  /** The ledger's name of the member at an index. */
  keyOf(index: number): string;
  /** The index of the member with this name in the ledger; undefined for other names. */
  indexOf(key: string): number | undefined;
  /** Whether a name of the ledger belongs to a member. */
  has(key: string): boolean;
}

/** The service addresses of one family. */
export interface AddressPool extends Pool {
  readonly family: Family;
  /** `10.0.0.0/24`. */
  readonly text: string;
  /** The address that a dry run reports. */
  readonly dryAddress: string;
  addressOf(index: number): string;
  /** The ledger's name of an address in this pool; undefined for other addresses. */
  keyOfAddress(ip: string): string | undefined;
}

interface PortPool extends Pool {
  readonly first: number;
  /** `30000-32767`. */
  readonly text: string;
  keyOfPort(port: number): string | undefined;
}

/** The ranges to allocate from; the family of the first one is the primary family. */
export interface ServiceRanges {
  readonly addresses: readonly [AddressPool, ...AddressPool[]];
  readonly nodePorts: PortPool;
}

/** Parses the ranges, or returns a one-line error. */
export function readServiceRanges(texts: ServiceRangeTexts): ServiceRanges | { error: string } {
  const [first, second, ...more] = texts.clusterIps;
  if (first === undefined || first === '') {
    return { error: '--service-cluster-ip-range must contain at least one valid cidr' };
  }
  if (more.length > 0) {
    return { error: '--service-cluster-ip-range must not contain more than two entries' };
  }
  const primary = readBlock(first, 0, texts.sizes);
  if (typeof primary === 'string') return { error: primary };
  const secondary = second === undefined ? undefined : readBlock(second, 1, texts.sizes);
  if (typeof secondary === 'string') return { error: secondary };
  if (primary.family === secondary?.family) {
    const both = '--service-cluster-ip-range[0] and --service-cluster-ip-range[1]';
    return { error: `${both} must be of different IP family` };
  }
  const nodePorts = readPorts(texts.nodePorts);
  if (typeof nodePorts === 'string') return { error: nodePorts };
  return { addresses: secondary === undefined ? [primary] : [primary, secondary], nodePorts };
}

/** Maximum number of variable bits in an address of a range. */
const hostBitsMax = 20;
const addressesMin = 8n;

function readBlock(
  text: string,
  index: number,
  sizes: ServiceRangeTexts['sizes'],
): AddressPool | string {
  const block = parseIpBlock(text);
  if (block === undefined) return `--service-cluster-ip-range[${index}] is not a valid cidr`;
  const width = block.base.family === 4 ? 32 : 128;
  if (sizes !== 'any' && width - block.prefixBits > hostBitsMax) {
    return (
      `specified --service-cluster-ip-range[${index}] is too large; for ${width}-bit addresses, ` +
      `the mask must be >= ${width - hostBitsMax}`
    );
  }
  if (blockSize(block) < addressesMin) {
    return `the service cluster IP range must be at least ${addressesMin} IP addresses`;
  }
  return createAddressPool(block);
}

/** IPv6 ranges of the flags are huge, so only their first addresses are allocated. */
const v6AddressesMax = 65_536n;

/** The addresses of a block from the flags. */
function createAddressPool(block: IpBlock): AddressPool {
  const whole = blockSize(block);
  const isLimited = block.base.family === 6 && whole > v6AddressesMax;
  return poolOf(block, isLimited ? v6AddressesMax : whole);
}

/** Upper bound of the indexes that are allocated without a request; random numbers have 48 bits. */
const randomIndexMax = 2n ** 47n;

/** The first `whole` addresses of a block, without the network and the IPv4 broadcast address. */
function poolOf(block: IpBlock, whole: bigint): AddressPool {
  const { family, bits } = block.base;
  const usable = family === 4 ? whole - 2n : whole - 1n;
  const size = Number(usable < 0n ? 0n : usable > randomIndexMax ? randomIndexMax : usable);
  const addressOf = (index: number) => formatIpAddress({ family, bits: bits + 1n + BigInt(index) });
  const indexOfAddress = (ip: string) => {
    const address = parseIpAddress(ip);
    if (address === undefined || address.family !== family) return undefined;
    const index = address.bits - bits - 1n;
    return index >= 0n && index < usable ? Number(index) : undefined;
  };
  const indexOf = (key: string) =>
    key.startsWith('ip:') ? indexOfAddress(key.slice('ip:'.length)) : undefined;
  return {
    family: family === 4 ? 'IPv4' : 'IPv6',
    size,
    reservedBelow: reserved(blockSize(block), { step: 16n, max: 256n }),
    text: formatIpBlock(block),
    dryAddress: formatIpAddress(block.base),
    addressOf,
    keyOf: (index) => addressKey(addressOf(index)),
    keyOfAddress: (ip) => (indexOfAddress(ip) === undefined ? undefined : addressKey(ip)),
    indexOf,
    has: (key) => indexOf(key) !== undefined,
  };
}

/** The number of reserved members: a share of the range, from 16 to `max`; 0 for small ranges. */
function reserved(size: bigint, { step, max }: { step: bigint; max: bigint }): number {
  if (size <= 16n) return 0;
  const share = size / step;
  return Number(share < 16n ? 16n : share > max ? max : share);
}

/** The ledger's name of an address, in any spelling. */
export function addressKey(ip: string): string {
  const address = parseIpAddress(ip);
  return `ip:${address === undefined ? ip : formatIpAddress(address)}`;
}

function readPorts(text: string): PortPool | string {
  const match = /^(\d{1,5})(?:([-+])(\d{1,5}))?$/.exec(text.replaceAll(' ', ''));
  if (match === null)
    return `--service-node-port-range ${JSON.stringify(text)} is not a port range`;
  const low = Number(match[1]);
  const second = match[3] === undefined ? low : Number(match[3]);
  const high = match[2] === '+' ? low + second : second;
  if (high < low) return `--service-node-port-range: the end of ${text} is before its start`;
  if (low < 1 || high > 65535) {
    return `--service-node-port-range ${text} must be within 1 and 65535, inclusive`;
  }
  return createPortPool({ first: low, size: high - low + 1 });
}

function createPortPool(range: { first: number; size: number }): PortPool {
  const { first, size } = range;
  const keyOfPort = (port: number) =>
    port >= first && port < first + size ? portKey(port) : undefined;
  const indexOf = (key: string) => {
    const port = key.startsWith('port:') ? Number(key.slice('port:'.length)) : Number.NaN;
    return keyOfPort(port) === undefined ? undefined : port - first;
  };
  return {
    first,
    size,
    reservedBelow: reserved(BigInt(size), { step: 32n, max: 128n }),
    text: `${first}-${first + size - 1}`,
    keyOf: (index) => portKey(first + index),
    keyOfPort,
    indexOf,
    has: (key) => indexOf(key) !== undefined,
  };
}

/** The ledger's name of a node port. */
export const portKey = (port: number): string => `port:${port}`;

/** All addresses of a ServiceCIDR's block. */
export function createWholePool(block: IpBlock): AddressPool {
  return poolOf(block, blockSize(block));
}

/** The index of a free member, searched from a random one on; undefined if all are held. */
export function pickFree(pool: Pool, isHeld: (key: string) => boolean): number | undefined {
  const { size, reservedBelow } = pool;
  const bands = [
    { from: reservedBelow, count: size - reservedBelow },
    { from: 0, count: Math.min(reservedBelow, size) },
  ];
  for (const { from, count } of bands) {
    if (count <= 0) continue;
    const start = randomBelow(count);
    for (let step = 0; step < count; step += 1) {
      const index = from + ((start + step) % count);
      if (!isHeld(pool.keyOf(index))) return index;
    }
  }
  return undefined;
}
