import { describe, expect, test } from 'vitest';
import { configMap, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer();

const configMaps = '/api/v1/configmaps';
const values = (count: number) => Array.from({ length: count }, (_, at) => `v${at}`);
const query = (selectors: Readonly<Record<string, string>>) =>
  `${configMaps}?${new URLSearchParams(selectors)}`;

describe('TRUST-4: selectors in queries are bounded', () => {
  const tooMany = /^invalid selector: more than 1000 terms and values$/;
  const tooLong = /^invalid selector: more than 32768 characters$/;
  const cases = {
    values: { name: 'labelSelector', text: `x in (${values(1000).join(',')})`, message: tooMany },
    keys: { name: 'labelSelector', text: values(1001).join(','), message: tooMany },
    'a long label': { name: 'labelSelector', text: `x=${'y'.repeat(40_000)}`, message: tooLong },
    fields: {
      name: 'fieldSelector',
      text: values(1001)
        .map((value) => `metadata.name!=${value}`)
        .join(','),
      message: tooMany,
    },
    'a long field': {
      name: 'fieldSelector',
      text: `metadata.name=${'y'.repeat(40_000)}`,
      message: tooLong,
    },
  };
  test.each(Object.entries(cases))('%s', async (_, { name, text, message }) => {
    const namespace = await freshNamespace(server);
    const collection = `/api/v1/namespaces/${namespace}/configmaps`;
    const kept = await server.post(collection, configMap('kept'));
    expect(kept.status).toBe(201);
    const url = query({ [name]: text });
    const watched = query({ [name]: text, watch: 'true' });
    const deleted = `${collection}?${new URLSearchParams({ [name]: text })}`;
    for (const answer of [
      await server.get(url),
      await server.get(watched),
      await server.remove(deleted),
    ]) {
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({ kind: 'Status', reason: 'BadRequest', code: 400 });
      expect(answer.body.message).toMatch(message);
    }
    expect((await server.get(`${collection}/kept`)).status).toBe(200);
  });

  test('selectors at the limit work', async () => {
    const namespace = await freshNamespace(server);
    const collection = `/api/v1/namespaces/${namespace}/configmaps`;
    const metadata = { name: 'a', labels: { x: 'v500' } };
    await server.post(collection, configMap('a', { metadata }));
    await server.post(collection, configMap('b'));
    const names = async (selectors: Readonly<Record<string, string>>) => {
      const answer = await server.get(`${collection}?${new URLSearchParams(selectors)}`);
      return answer.body.items.map((item: { metadata: { name: string } }) => item.metadata.name);
    };
    expect(await names({ labelSelector: `x in (${values(999).join(',')})` })).toEqual(['a']);
    expect(await names({ labelSelector: `x notin (${values(999).join(',')})` })).toEqual(['b']);
    const terms = values(1000).map((value) => `metadata.name!=${value}`);
    expect(await names({ fieldSelector: terms.join(',') })).toEqual(['a', 'b']);
    terms[0] = 'metadata.name!=a';
    expect(await names({ fieldSelector: terms.join(',') })).toEqual(['b']);
    expect(await names({ fieldSelector: 'metadata.name=a,metadata.name=b' })).toEqual([]);
  });
});

describe('TRUST-4: selectors in bodies are bounded', () => {
  const expressions = [{ key: 'x', operator: 'In', values: values(1000) }];
  const matchLabels = Object.fromEntries(values(1001).map((value) => [value, 'y']));
  const group = '/apis/admissionregistration.svc.io/v1';

  async function refused(path: string, body: unknown, field: string): Promise<void> {
    const answer = await server.post(path, body);
    expect(answer.status).toBe(422);
    const { causes } = answer.body.details;
    expect(causes).toContainEqual({
      reason: 'FieldValueTooMany',
      message: 'Too many: 1001: must have at most 1000 items',
      field,
    });
  }

  test.each([
    ['objectSelector', { matchExpressions: expressions }],
    ['namespaceSelector', { matchLabels }],
  ])('the %s of a webhook', async (name, selector) => {
    await refused(
      `${group}/validatingwebhookconfigurations`,
      {
        metadata: { name: 'bounded' },
        webhooks: [
          {
            name: 'bounded.example.com',
            sideEffects: 'None',
            admissionReviewVersions: ['v1'],
            clientConfig: { url: 'https://127.0.0.1:1/' },
            rules: [
              { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['pods'] },
            ],
            [name]: selector,
          },
        ],
      },
      `webhooks[0].${name}`,
    );
  });

  test('the selectors of a policy', async () => {
    await refused(
      `${group}/validatingadmissionpolicies`,
      {
        metadata: { name: 'bounded' },
        spec: {
          matchConstraints: {
            objectSelector: { matchExpressions: expressions },
            resourceRules: [
              { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['pods'] },
            ],
          },
          validations: [{ expression: 'true' }],
        },
      },
      'spec.matchConstraints.objectSelector',
    );
  });

  test('the requirements of an access review', async () => {
    const answer = await server.post('/apis/authorization.svc.io/v1/selfsubjectaccessreviews', {
      spec: {
        resourceAttributes: {
          verb: 'list',
          resource: 'pods',
          labelSelector: { requirements: expressions },
        },
      },
    });
    expect(answer.status).toBe(422);
    expect(answer.body.message).toContain('labelSelector.requirements: Too many: 1001');
  });
});
