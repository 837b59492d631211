import { describe, expect, test } from 'vitest';
import { type AddressPool, pickFree, readServiceRanges, type ServiceRanges } from './pools.ts';

function rangesOf(clusterIps: readonly string[], nodePorts = '30000-32767'): ServiceRanges {
  const ranges = readServiceRanges({ clusterIps, nodePorts });
  if ('error' in ranges) throw new Error(ranges.error);
  return ranges;
}
const poolOf = (block: string): AddressPool => rangesOf([block]).addresses[0];

describe('addresses', () => {
  test.each([
    ['10.0.0.0/24', 254, 16],
    ['10.0.0.0/28', 14, 0],
    ['10.0.0.0/27', 30, 16],
    ['10.0.0.0/16', 65534, 256],
    ['fd00::/112', 65535, 256],
    ['fd00::/108', 65535, 256],
  ])('%s contains %d addresses, of which %d are allocated last', (block, size, reserved) => {
    const pool = poolOf(block);
    expect([pool.size, pool.reservedBelow]).toEqual([size, reserved]);
  });

  test('the first address is the one after the network’s own', () => {
    expect(poolOf('10.0.0.0/24').addressOf(0)).toBe('10.0.0.1');
    expect(poolOf('fd00::/112').addressOf(1)).toBe('fd00::2');
  });

  test.each([
    ['10.0.0.0', undefined],
    ['10.0.0.1', 'ip:10.0.0.1'],
    ['010.0.0.1', 'ip:10.0.0.1'],
    ['10.0.0.254', 'ip:10.0.0.254'],
    ['10.0.0.255', undefined],
    ['10.0.1.1', undefined],
    ['fd00::1', undefined],
    ['x', undefined],
  ])('the key of %s is %s', (ip, key) => {
    expect(poolOf('10.0.0.0/24').keyOfAddress(ip)).toBe(key);
  });
});

describe('picking', () => {
  test('finds every member once, the reserved ones last', () => {
    const pool = poolOf('10.0.0.0/27');
    const taken = new Set<string>();
    const order: number[] = [];
    for (;;) {
      const index = pickFree(pool, (key) => taken.has(key));
      if (index === undefined) break;
      taken.add(pool.keyOf(index));
      order.push(index);
    }
    expect([...order].sort((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, at) => at));
    expect(Math.min(...order.slice(0, 14))).toBe(16);
  });
});

describe('ranges', () => {
  test.each([
    ['30000-32767', '30000-32767'],
    ['30000+10', '30000-30010'],
    ['8080', '8080-8080'],
  ])('ports %s are %s', (text, expected) => {
    expect(rangesOf(['10.0.0.0/24'], text).nodePorts.text).toBe(expected);
  });

  test.each([
    [[], '30000-32767', '--service-cluster-ip-range must contain at least one valid cidr'],
    [['10.0.0.0'], '1-2', '--service-cluster-ip-range[0] is not a valid cidr'],
    [['10.0.0.0/24', 'x'], '1-2', '--service-cluster-ip-range[1] is not a valid cidr'],
    [
      ['10.0.0.0/8'],
      '1-2',
      'specified --service-cluster-ip-range[0] is too large; for 32-bit addresses, the mask must be >= 12',
    ],
    [['10.0.0.0/30'], '1-2', 'the service cluster IP range must be at least 8 IP addresses'],
    [
      ['10.0.0.0/24', '10.1.0.0/24'],
      '1-2',
      '--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family',
    ],
    [
      ['10.0.0.0/24', 'fd00::/112', 'fd01::/112'],
      '1-2',
      '--service-cluster-ip-range must not contain more than two entries',
    ],
    [['10.0.0.0/24'], 'x', '--service-node-port-range "x" is not a port range'],
    [['10.0.0.0/24'], '9-8', '--service-node-port-range: the end of 9-8 is before its start'],
    [['10.0.0.0/24'], '0-8', '--service-node-port-range 0-8 must be within 1 and 65535, inclusive'],
  ])('%j with %s is rejected', (clusterIps, nodePorts, error) => {
    expect(readServiceRanges({ clusterIps, nodePorts })).toEqual({ error });
  });
});
