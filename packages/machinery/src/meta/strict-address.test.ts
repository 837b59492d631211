import { expect, test } from 'vitest';
import { strictAddressProblem } from './ip-address.ts';

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
