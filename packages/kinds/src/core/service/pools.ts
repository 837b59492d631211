import {
  blockSize,
  formatIpAddress,
  formatIpBlock,
  type IpBlock,
  parseIpAddress,
  randomBelow,
} from '@wheelhouse/machinery';
import type { Family } from './cluster-ips.ts';

/**
 * The finite ranges that Services are given numbers of. A pool knows its members and in which order
 * they are tried; who holds one is the ledger's to know.
 */
export interface Pool {
  /** How many members there are. */
  readonly size: number;
  /**
   * Members below this index are left to those who ask for one by name, as long as others are free:
   * a number written down by hand is then seldom given away before.
   */
  readonly reservedBelow: number;
  /** The member of an index, as the ledger names it. */
  keyOf(index: number): string;
  /** The index of the member that the ledger names so; undefined for any other. */
  indexOf(key: string): number | undefined;
  /** Whether what the ledger names so is a member. */
  has(key: string): boolean;
}

/** The service addresses of one family. */
export interface AddressPool extends Pool {
  readonly family: Family;
  /** `10.0.0.0/24`. */
  readonly text: string;
  /** What a dry run is shown instead of an address of its own. */
  readonly dryAddress: string;
  addressOf(index: number): string;
  /** The ledger's name of an address of this pool; undefined for any other. */
  keyOfAddress(ip: string): string | undefined;
}

export interface PortPool extends Pool {
  readonly first: number;
  /** `30000-32767`. */
  readonly text: string;
  keyOfPort(port: number): string | undefined;
}

/** IPv6 blocks of the command line are vast: only their first addresses are given. */
const v6AddressesMax = 65_536n;

/** How many addresses of one block are given without being asked for; a random index has 48 bits. */
const givenMax = 2n ** 47n;

/** The ledger's name of an address, however it is spelt. */
export function addressKey(ip: string): string {
  const address = parseIpAddress(ip);
  return `ip:${address === undefined ? ip : formatIpAddress(address)}`;
}

export const portKey = (port: number): string => `port:${port}`;

/** The addresses of a block of the command line. */
export function createAddressPool(block: IpBlock): AddressPool {
  const whole = blockSize(block);
  const isLimited = block.base.family === 6 && whole > v6AddressesMax;
  return poolOf(block, isLimited ? v6AddressesMax : whole);
}

/** All addresses of a ServiceCIDR's block. */
export function createWholePool(block: IpBlock): AddressPool {
  return poolOf(block, blockSize(block));
}

/** The first `whole` addresses of a block but for the network's own and IPv4's broadcast. */
function poolOf(block: IpBlock, whole: bigint): AddressPool {
  const { family, bits } = block.base;
  const usable = family === 4 ? whole - 2n : whole - 1n;
  const size = Number(usable < 0n ? 0n : usable > givenMax ? givenMax : usable);
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

export function createPortPool(range: { first: number; size: number }): PortPool {
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

/** A share of the range, between 16 and `max`; none of a range so small that it would be all. */
function reserved(size: bigint, { step, max }: { step: bigint; max: bigint }): number {
  if (size <= 16n) return 0;
  const share = size / step;
  return Number(share < 16n ? 16n : share > max ? max : share);
}

/** A free member's index, looked for from a random one; undefined when all are held. */
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
