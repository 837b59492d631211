import { blockSize, parseIpBlock } from '@wheelhouse/machinery';
import type { ServiceRanges } from './allocator.ts';
import { type AddressPool, createAddressPool, createPortPool, type PortPool } from './pools.ts';

/** What the command line says of the ranges. */
export interface ServiceRangeTexts {
  /** CIDR blocks, one or one of each family; the first is the usual one. */
  readonly clusterIps: readonly string[];
  /** `30000-32767`, or `30000+2767`. */
  readonly nodePorts: string;
  /** `any`: blocks may be of any size, as nothing holds one bit for each address. */
  readonly sizes?: 'any';
}

export const defaultServiceRanges: ServiceRangeTexts = {
  clusterIps: ['10.0.0.0/24'],
  nodePorts: '30000-32767',
};

/** Bits of an address that may vary within a range. */
const hostBitsMax = 20;
const addressesMin = 8n;

/** The ranges of the texts, or in one line what is wrong with them. */
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

function readPorts(text: string): PortPool | string {
  const match = /^(\d{1,5})(?:([-+])(\d{1,5}))?$/.exec(text.replaceAll(' ', ''));
  if (match === null)
    return `--service-node-port-range ${JSON.stringify(text)} is not a port range`;
  const low = Number(match[1]);
  const other = match[3] === undefined ? low : Number(match[3]);
  const high = match[2] === '+' ? low + other : other;
  if (high < low) return `--service-node-port-range: the end of ${text} is before its start`;
  if (low < 1 || high > 65535) {
    return `--service-node-port-range ${text} must be within 1 and 65535, inclusive`;
  }
  return createPortPool({ first: low, size: high - low + 1 });
}
