import { expect, test } from 'vitest';
import { decodeContinue, encodeContinue } from './continue-token.ts';

const version = 'meta.test/v1';
const raw = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

test('reads what it wrote', () => {
  const point = { revision: 77, start: 'default/wéb\0' };
  const token = encodeContinue(point, version);
  expect(token).toMatch(/^[A-Za-z0-9_-]+$/);
  expect(decodeContinue(token, version)).toEqual({ ok: true, point });
});

const head = 'continue key is not valid';
const bad: readonly [string, string][] = [
  ['=', `${head}: illegal base64 data at input byte 0`],
  ['abcde', `${head}: illegal base64 data at input byte 5`],
  [raw('not json'), `${head}: not a continue token`],
  [raw('[1]'), `${head}: not a continue token`],
  [raw({ rv: 1, start: 'a' }), `${head}: server does not recognize this encoded version `],
  [
    raw({ v: 'meta.other/v1', rv: 1, start: 'a' }),
    `${head}: server does not recognize this encoded version meta.other/v1`,
  ],
  [
    raw({ v: version, rv: 0, start: 'a' }),
    `${head}: incorrect encoded start resourceVersion (version ${version})`,
  ],
  [
    raw({ v: version, rv: 1.5, start: 'a' }),
    `${head}: incorrect encoded start resourceVersion (version ${version})`,
  ],
  [raw({ v: version, rv: 1, start: '' }), `${head}: encoded start key empty (version ${version})`],
  [raw({ v: version, rv: 1, start: '../secrets/a' }), `${head}: ../secrets/a`],
  [raw({ v: version, rv: 1, start: 'a/../../b' }), `${head}: a/../../b`],
  [raw({ v: version, rv: 1, start: '/' }), `${head}: /`],
  [raw({ v: version, rv: 1, start: 'a//b' }), `${head}: a//b`],
  ['a'.repeat(100_000), `${head}: too long`],
];

test.each(bad)('refuses %.40s', (token, why) => {
  expect(decodeContinue(token, version)).toEqual({ ok: false, why });
});
