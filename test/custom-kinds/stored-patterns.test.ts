import { systemClock } from '@wheelhouse/machinery';
import { openEmbeddedStore } from '@wheelhouse/store';
import { expect, test } from 'vitest';
import { policies } from '../admission/admission-policies.ts';
import { temporaryFolder } from '../support/cleanup.ts';
import { eventually } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { definitionOf, definitions, establish } from './custom-kinds.ts';

/** Definitions and policies with patterns that earlier versions accepted, and this one refuses. */

const group = 'patterns.example.com';
const name = `olds.${group}`;
const path = `/apis/${group}/v1/namespaces/default/olds`;

const small = { choice: '^choice$', classes: '^classes$', literal: '^literal$' };
const large = {
  choice: `^(${'a|'.repeat(3500)}b)$`,
  // As JSON escapes it.
  classes: '\\\\p{L}'.repeat(200),
  literal: `^(${'c|'.repeat(3500)}d)$`,
};

const ruled = (literal: string) => ({
  type: 'string',
  maxLength: 20,
  default: 'd',
  'x-kubernetes-validations': [{ rule: `self.matches('${literal}')`, message: 'not matched' }],
});

const schema = {
  type: 'object',
  properties: {
    choice: { type: 'string', pattern: small.choice },
    classes: { type: 'string', pattern: small.classes },
    literal: { ...ruled(small.literal), default: 'literal' },
  },
};

const policy = {
  apiVersion: 'admissionregistration.svc.io/v1',
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name: 'olds' },
  spec: {
    matchConstraints: {
      resourceRules: [
        { apiGroups: [group], apiVersions: ['*'], operations: ['*'], resources: ['*'] },
      ],
    },
    validations: [{ expression: `!'x'.matches('${small.literal}')` }],
  },
};

/** Replaces texts in the stored bytes of objects. */
async function rewrite(directory: string): Promise<void> {
  const store = await openEmbeddedStore({ directory, clock: systemClock });
  const { records } = await store.range({ prefix: '/registry/' });
  const ends = [`/customresourcedefinitions/${name}`, '/validatingadmissionpolicies/olds'];
  for (const end of ends) {
    const record = records.find(({ key }) => key.endsWith(end));
    if (record === undefined) throw new Error(`nothing is stored under ${end}`);
    let text = Buffer.from(record.value).toString('latin1');
    for (const part of ['choice', 'classes', 'literal'] as const) {
      text = text.replaceAll(small[part], large[part]);
    }
    text = text.replaceAll('"default":"literal"', '"default":"d"');
    const value = Buffer.from(text, 'latin1');
    await store.put({ key: record.key, value, expect: record.modRevision });
  }
  await store.close();
}

test('CRD-3: patterns of many parts that an earlier version stored keep working', async () => {
  const directory = temporaryFolder();
  const store = { type: 'embedded', directory } as const;
  let server = await withServer({ store });
  await establish(server, { group, plural: 'olds', kind: 'Old', schema });
  const made = await server.post(policies, policy);
  expect(made.status, made.text).toBe(201);
  await server.stop();
  await rewrite(directory);

  server = await withServer({ store });
  await eventually(async () => (await server.get(path)).status === 200, 'the kind served');
  const post = (object: string, members: object) =>
    server.post(path, {
      apiVersion: `${group}/v1`,
      kind: 'Old',
      metadata: { name: object },
      ...members,
    });
  const classes = 'é'.repeat(200);
  const right = await post('right', { choice: 'a', classes, literal: 'c' });
  expect(right.status, right.text.slice(0, 500)).toBe(201);
  for (const wrong of [{ choice: 'c' }, { classes: 'é' }, { literal: 'a' }]) {
    const { status, text } = await post('wrong', wrong);
    expect(status, text.slice(0, 500)).toBe(422);
  }

  // Updates that keep the patterns are accepted; new patterns are not.
  const labels = { metadata: { labels: { kept: 'yes' } } };
  for (const kept of [`${definitions}/${name}`, `${policies}/olds`]) {
    const { status, text } = await server.patch(kept, labels, 'merge');
    expect(status, text.slice(0, 500)).toBe(200);
  }
  const { choice } = large;
  for (const property of [{ type: 'string', pattern: choice }, ruled(large.literal)]) {
    const more = { type: 'object', properties: { property } };
    const body = definitionOf({ group, plural: 'news', kind: 'New', schema: more });
    const { status, text } = await server.post(definitions, body);
    expect(status, text.slice(0, 500)).toBe(422);
  }
  const { body } = await server.get(`${policies}/olds`);
  const { resourceVersion: _, uid: __, ...metadata } = body.metadata;
  const copy = await server.post(policies, { ...body, metadata: { ...metadata, name: 'news' } });
  expect(copy.status, copy.text.slice(0, 500)).toBe(422);
});
