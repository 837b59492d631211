import { readFeatureGates, readOptions } from '@wheelhouse/server/testing';
import { expect, test } from 'vitest';
import { withServer } from '../support/with-server.ts';

const gates = ['ComponentFlagz=true', 'ComponentStatusz=true'];

test('VER-5: /flagz and /statusz are text pages behind their gates', async () => {
  const outcome = readOptions([
    '--max-requests-inflight=123',
    `--feature-gates=${gates.join(',')}`,
  ]);
  if (outcome.kind !== 'options') throw new Error(outcome.kind);
  const { flags = new Map() } = outcome.options.config;
  const featureGates = readFeatureGates(gates).gates;
  const server = await withServer({ dialect: 'kubernetes', featureGates, flags });
  const text = { accept: 'text/plain' };
  const page = await server.get('/flagz', text);
  expect(page.status).toBe(200);
  expect(page.headers['content-type']).toBe('text/plain; charset=utf-8');
  expect(page.text).toContain('\nkube-apiserver flags\nWarning: This endpoint is not meant');
  expect(page.text).toContain('\nmax-requests-inflight: 123\n');
  expect(page.text).toContain('\nrequest-timeout: 1m0s\n');
  const status = await server.get('/statusz', { accept: '*/*' });
  expect(status.text).toMatch(/Up: {2}0 hr 0\d min \d\d sec\n/);
  expect(status.text).toContain('Binary version:  1.32\n');
  const refused = await server.get('/statusz', { accept: 'application/json' });
  expect([refused.status, refused.text]).toEqual([
    406,
    'media type not acceptable, must be: text/plain\n',
  ]);
  const { paths } = (await server.get('/')).body;
  expect(paths).toEqual(expect.arrayContaining(['/flagz', '/statusz']));
});

test('VER-5: both pages are off by default', async () => {
  const server = await withServer();
  expect((await server.get('/flagz', { accept: 'text/plain' })).status).toBe(404);
  expect((await server.get('/statusz', { accept: 'text/plain' })).status).toBe(404);
});
