import { type JsonObject, runInOnePiece } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { addressOf, hooksOf } from './hooks.ts';

const configuration = (...webhooks: JsonObject[]) =>
  runInOnePiece(
    hooksOf({
      apiVersion: 'admissionregistration/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'checks' },
      webhooks,
    }),
  );

describe('ADM-2: the webhooks of a configuration', () => {
  test('are distinguished when several have one name', () => {
    const hooks = configuration({ name: 'a' }, { name: 'b' }, { name: 'a' });
    expect(hooks.map(({ uid }) => uid)).toEqual(['checks/a/0', 'checks/b/0', 'checks/a/1']);
  });

  test('have the reference’s defaults when a stored object lacks fields', () => {
    expect(configuration({ name: 'a' })[0]).toMatchObject({
      configuration: 'checks',
      matchPolicy: 'Equivalent',
      failurePolicy: 'Fail',
      timeoutMs: 10_000,
      knowsDryRuns: false,
      isReinvocable: false,
      conditions: [],
      reviewVersions: [],
    });
  });

  test.each<[JsonObject, object]>([
    [{ matchPolicy: 'Exact' }, { matchPolicy: 'Exact' }],
    [{ failurePolicy: 'Ignore' }, { failurePolicy: 'Ignore' }],
    [{ timeoutSeconds: 3 }, { timeoutMs: 3000 }],
    [{ sideEffects: 'None' }, { knowsDryRuns: true }],
    [{ sideEffects: 'NoneOnDryRun' }, { knowsDryRuns: true }],
    [{ sideEffects: 'Some' }, { knowsDryRuns: false }],
    [{ sideEffects: 'Unknown' }, { knowsDryRuns: false }],
    [{ reinvocationPolicy: 'IfNeeded' }, { isReinvocable: true }],
    [{ reinvocationPolicy: 'Never' }, { isReinvocable: false }],
    [
      { matchConditions: [{ name: 'n', expression: 'true' }] },
      { conditions: [{ name: 'n', expression: 'true' }] },
    ],
  ])('%j is read as %j', (webhook, expected) => {
    expect(configuration({ name: 'a', ...webhook })[0]).toMatchObject(expected);
  });
});

test('TRUST-2: the webhooks of a configuration are read one by one', () => {
  const webhooks = Array.from({ length: 500 }, (_, index) => ({ name: `w${index % 7}` }));
  const work = hooksOf({
    apiVersion: 'admissionregistration/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'checks' },
    webhooks,
  });
  expect([...work]).toHaveLength(webhooks.length);
  expect(configuration(...webhooks)[499]?.uid).toBe('checks/w2/71');
});

describe('ADM-2: the address of a webhook', () => {
  const caBundle = Buffer.from('-----BEGIN').toString('base64');

  test('is a URL', () => {
    expect(addressOf({ url: 'https://example.com/check', caBundle })).toEqual({
      url: 'https://example.com/check',
      caPem: '-----BEGIN',
    });
  });

  test('is a Service, on port 443 by default', () => {
    const service = { namespace: 'ns', name: 'checks' };
    expect(addressOf({ service })).toEqual({
      service: { ...service, path: '', port: 443 },
      caPem: undefined,
    });
    expect(addressOf({ service: { ...service, path: '/v1', port: 8443 } })).toMatchObject({
      service: { path: '/v1', port: 8443 },
    });
  });

  test('treats a bundle of white space as absent', () => {
    const blank = Buffer.from(' \n\t').toString('base64');
    expect(addressOf({ url: 'https://example.com', caBundle: blank }).caPem).toBeUndefined();
    expect(addressOf({ url: 'https://example.com', caBundle: '' }).caPem).toBeUndefined();
  });

  test('is empty for a configuration without one', () => {
    expect(addressOf(undefined)).toEqual({ url: '', caPem: undefined });
  });
});
