import { isIP, isIPv6 } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  blockContains,
  blockSize,
  formatIpAddress,
  formatIpBlock,
  type IpBlock,
  ipVersion,
  parseIpAddress,
  parseIpBlock,
  specialRanges,
  strictAddressProblem,
} from './ip-address.ts';

const normalize = (text: string) => {
  const address = parseIpAddress(text);
  return address === undefined ? undefined : formatIpAddress(address);
};

test.each([
  ['10.0.0.1', '10.0.0.1'],
  ['010.000.0.01', '10.0.0.1'],
  ['::', '::'],
  ['2001:DB8::0001', '2001:db8::1'],
  ['2001:db8:0:0:1:0:0:0', '2001:db8:0:0:1::'],
  ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
  ['::ffff:10.1.2.3', '10.1.2.3'],
  ['64:ff9b::1.2.3.4', '64:ff9b::102:304'],
])('%s is printed as %s', (text, printed) => {
  expect(normalize(text)).toBe(printed);
});

test.each(['', '10.0.0', '10.0.0.256', '10.0.0.1.2', 'a.b.c.d', '1::2::3', 'fe80::1%eth0', ':'])(
  '%j is not an address',
  (text) => {
    expect(parseIpAddress(text)).toBeUndefined();
  },
);

test('addresses with colons are those of Node.js', () => {
  const piece = fc.constantFrom(':', '::', '0', '1', 'ff', 'ABCD', '12345', 'g');
  const text = fc
    .array(piece, { minLength: 1, maxLength: 17 })
    .map((pieces) => `:${pieces.join('')}`);
  const groups = fc.array(fc.constantFrom('', '0', 'f00d', 'FF', '1'), { maxLength: 10 });
  fc.assert(
    fc.property(
      fc.oneof(
        text,
        groups.map((parts) => `${parts.join(':')}:1`),
      ),
      (address) => {
        expect(parseIpAddress(address) !== undefined).toBe(isIPv6(address));
      },
    ),
    { numRuns: 2000 },
  );
});

test.each(['1.2.3.4', '01.2.3.4', '1.2.3', '::1', 'fe80::1%eth0', '::ffff:1.2.3.4', ':', 'a', ''])(
  'the version of %j is that of Node.js',
  (text) => {
    expect(ipVersion(text)).toBe(isIP(text));
  },
);

describe('blocks', () => {
  test.each([
    ['10.0.0.9/24', '10.0.0.0/24', 256n],
    ['0.0.0.0/0', '0.0.0.0/0', 1n << 32n],
    ['fd00::5/112', 'fd00::/112', 65536n],
    ['1.2.3.4/32', '1.2.3.4/32', 1n],
  ])('%s is %s', (text, wanted, size) => {
    const block = parseIpBlock(text) as IpBlock;
    expect(formatIpBlock(block)).toBe(wanted);
    expect(blockSize(block)).toBe(size);
  });

  test.each(['10.0.0.0', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/-1', '::/129', 'x/8'])(
    '%j is not a block',
    (text) => {
      expect(parseIpBlock(text)).toBeUndefined();
    },
  );

  test.each([
    ['::ffff:10.0.0.1/64', '::/64'],
    ['::ffff:10.0.0.1/95', '::fffe:0:0/95'],
    ['::ffff:10.0.0.1/96', '0.0.0.0/0'],
    ['::ffff:10.0.0.1/0120', '10.0.0.0/24'],
  ])('the IPv4-mapped block %s is %s', (text, wanted) => {
    const block = parseIpBlock(text) as IpBlock;
    expect(formatIpBlock(block)).toBe(wanted);
    expect(block.writtenBits).toBe(Number(text.split('/')[1]));
  });

  test('only blocks of one family contain each other', () => {
    const block = (text: string) => parseIpBlock(text) as IpBlock;
    expect(blockContains(block('10.0.0.0/8'), block('10.9.0.0/16'))).toBe(true);
    expect(blockContains(block('10.9.0.0/16'), block('10.0.0.0/8'))).toBe(false);
    expect(blockContains(block('::/0'), block('10.0.0.0/8'))).toBe(false);
  });
});

test.each([
  ['0.0.0.0', 'isUnspecified'],
  ['::', 'isUnspecified'],
  ['127.9.9.9', 'isLoopback'],
  ['::1', 'isLoopback'],
  ['169.254.169.254', 'isLinkLocalUnicast'],
  ['fe80::1', 'isLinkLocalUnicast'],
  ['224.0.0.5', 'isLinkLocalMulticast'],
  ['ff02::5', 'isLinkLocalMulticast'],
  ['ff12::5', 'isLinkLocalMulticast'],
] as const)('%s %s', (text, range) => {
  const address = parseIpAddress(text);
  if (address === undefined) throw new Error('no address');
  const matching = Object.entries(specialRanges).filter(([, test]) => test(address));
  expect(matching.map(([name]) => name)).toEqual([range]);
});

test.each([
  ['1.2.3.4', undefined],
  ['::', undefined],
  ['fd00::1', undefined],
  ['::ffff:1.2.3.4', undefined],
  ['fe80::1%eth0', undefined],
  ['1:2:3:4:5:6:7:8', undefined],
  ['', 'unable to parse IP'],
  ['a-b', 'unable to parse IP'],
  ['%x', 'missing IPv6 address'],
  ['a.b', 'unexpected character (at "a.b")'],
  ['1.2.3 .4', 'unexpected character (at " .4")'],
  ['01.2.3.4', 'IPv4 field has octet with leading zero'],
  ['1.2.3.256', 'IPv4 field has value >255'],
  ['1..2.3', 'IPv4 field must have at least one digit (at ".2.3")'],
  ['1.2.3.4.5', 'IPv4 address too long'],
  ['1.2.3', 'IPv4 address too short'],
  ['fe80::1%', 'zone must be a non-empty string'],
  ['12345::', 'each group must have 4 or less digits (at "12345::")'],
  ['g::', 'each colon-separated field must have at least one digit (at "g::")'],
  ['1:2 ', 'unexpected character, want colon (at " ")'],
  ['1:', 'colon must be followed by more characters (at ":")'],
  ['1::2::3', 'multiple :: in address (at ":3")'],
  ['1:2:3:4:5:6:7:8:9', 'trailing garbage after address (at "9")'],
  ['1:2', 'address string too short'],
  ['1:2:3:4::5:6:7:8', 'the :: must expand to at least one field of zeros'],
  [
    '1:1.2.3.4',
    'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")',
  ],
])('%j is parsed as strictly as in Go', (address, wrong) => {
  const whole = wrong === undefined ? undefined : `ParseAddr(${JSON.stringify(address)}): ${wrong}`;
  expect(strictAddressProblem(address)).toBe(whole);
});
