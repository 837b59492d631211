import type { CustomResourceDefinition } from '@wheelhouse/kinds/types/apiextensions/v1';
import type { JsonObject } from '@wheelhouse/machinery';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Answer, ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import {
  causesOf,
  type DefinitionResponse,
  definitionOf,
  definitions,
  establish,
  versionOf,
} from './custom-kinds.ts';

const server = await withServer();

/** The errors of a definition with these members in `spec`. */
async function complaints(properties: object, more: object = {}): Promise<readonly string[]> {
  const spec = { type: 'object', properties };
  const schema = { type: 'object', properties: { spec } };
  const names = { group: 'refused.example.com', plural: 'snails', kind: 'Snail' };
  const body = definitionOf({ ...names, schema, ...more });
  return causesOf(await server.post(`${definitions}?dryRun=All`, body));
}

const root = 'spec.validation.openAPIV3Schema.properties[spec].properties';
const rules = (...list: readonly JsonObject[]) => ({ 'x-kubernetes-validations': list });
const text = { type: 'string' };

describe('defaults', () => {
  test('CRD-3: a default must satisfy the rules of its schema', async () => {
    const short = { ...text, maxLength: 9, ...rules({ rule: 'self.size() < 3' }) };
    expect(await complaints({ a: { ...short, default: 'ab' } })).toEqual([]);
    expect(await complaints({ a: { ...short, default: 'abc' } })).toEqual([
      `${root}[a].default: Invalid value: "string": failed rule: self.size() < 3`,
    ]);
    const fresh = { rule: 'oldSelf.hasValue()', optionalOldSelf: true, message: 'no change' };
    expect(await complaints({ a: { ...text, ...rules(fresh), default: 'x' } })).toEqual([
      `${root}[a].default: Invalid value: "string": no change`,
    ]);
  });

  test('CRD-2: a wrong default of an int-or-string names its format', async () => {
    const either = { 'x-kubernetes-int-or-string': true, default: [1] };
    expect(await complaints({ a: either })).toEqual([]);
    const odd = { ...text, format: 'nonsense', default: {} };
    expect(await complaints({ a: odd })).toEqual([
      `${root}[a].default: Invalid value: "":  in body must be of type nonsense: ""`,
    ]);
  });

  test('CRD-2: an error in an embedded default has its own path', async () => {
    const embedded = {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
    };
    const list = { type: 'array', items: embedded };
    const value = { kind: 'A', metadata: { name: 'a', generation: -1 } };
    expect(await complaints({ a: { ...list, default: [value] } })).toEqual([
      `${root}[a].default[0].apiVersion: Required value: must not be empty`,
      `${root}[a].default[0].metadata.generation: Invalid value: -1: ` +
        'must be greater than or equal to 0',
    ]);
    const wrong = { apiVersion: 'v1', kind: 'A', metadata: { labels: [] } };
    const [complaint] = await complaints({ a: { ...embedded, default: wrong } });
    expect(complaint).toContain(
      '.default.metadata: Invalid value: map[string]interface {}{"labels":[]interface {}{}}: json:',
    );
  });

  test('CRD-2: integers compare with integers, and fractions print as in Go', async () => {
    const multiple = { type: 'integer', multipleOf: 0.5, default: 3 };
    expect(await complaints({ a: multiple })).toEqual([
      `${root}[a].default: Invalid value: 0: factor MultipleOf declared for  must be positive: 0`,
    ]);
    const large = { type: 'number', minimum: 1e10, default: 1.5e-7 };
    expect(await complaints({ a: large })).toEqual([
      `${root}[a].default: Invalid value: 1.5e-07:  in body should be greater than or equal to 1e+10`,
    ]);
    const many = { type: 'array', items: text, maxItems: 1, default: ['a', 'b'] };
    expect(await complaints({ a: many })).toEqual([
      `${root}[a].default: Too many: 2: must have at most 1 items`,
    ]);
  });
});

describe('rules', () => {
  const at = (name: string) => `${root}[${name}].x-kubernetes-validations`;

  test('CRD-3: the error includes the rule that does not compile', async () => {
    expect(await complaints({ a: { ...text, ...rules({ rule: '1 + 1' }) } })).toEqual([
      `${at('a')}[0].rule: Invalid value: {"rule":"1 + 1"}: ` +
        'cel expression must evaluate to a bool',
    ]);
  });

  test('CRD-3: rules may use functions and macros of later releases', async () => {
    const list = { type: 'array', items: text, maxItems: 3 };
    const newer = ['self.distinct() == self', "self.all(i, x, x != '')", 'isSemver(self[0])'];
    for (const rule of newer) {
      expect(await complaints({ a: { ...list, ...rules({ rule }) } }), rule).toEqual([]);
    }
  });

  test('CRD-3: rules over untyped values are refused with a reason', async () => {
    const any = { 'x-kubernetes-preserve-unknown-fields': true };
    expect(await complaints({ a: { ...any, ...rules({ rule: 'true' }) } })).toEqual([
      `${at('a')}: Internal error: internal error: failed to construct type information for ` +
        'x-kubernetes-validations rules: unable to convert structural schema to CEL declarations',
    ]);
  });

  test('CRD-3: type names in errors follow the path from the rule', async () => {
    const inner = { type: 'object', properties: { x: { type: 'object' } } };
    const [complaint] = await complaints({ 'a-b': { ...inner, ...rules({ rule: 'self.x' }) } });
    expect(complaint).toContain('cel expression must evaluate to a bool');
    const [named] = await complaints({
      'a-b': { ...inner, ...rules({ rule: 'size(self.x) > 0' }) },
    });
    expect(named).toContain("no matching overload for 'size' applied to '(selfType.x)'");
  });

  test('CRD-3: atomic maps still have old values', async () => {
    const atomic = { type: 'object', 'x-kubernetes-map-type': 'atomic' };
    const member = { type: 'integer', ...rules({ rule: 'self >= oldSelf' }) };
    expect(await complaints({ a: { ...atomic, properties: { b: member } } })).toEqual([]);
  });
});

describe('the rest of a definition', () => {
  test('CRD-1: an error shows the stored value', async () => {
    const versions = [versionOf('v1', { type: 'object' })];
    expect(await complaints({}, { versions })).toContain(
      'status.storedVersions: Invalid value: []string(nil): must have at least one stored version',
    );
  });

  test('CRD-4: versions that share the top-level schema cannot have selectable fields', async () => {
    const schema = {
      type: 'object',
      properties: { spec: { type: 'object', properties: { a: text } } },
    };
    const selectableFields = [{ jsonPath: '.spec.a' }];
    const versions = [
      versionOf('v1', schema, { storage: true, selectableFields }),
      versionOf('v2', schema),
    ];
    expect(await complaints({}, { versions })).toEqual([
      'spec.versions[0].selectableFields: Invalid value: "": ' +
        'selectableFields may only be set when version.schema.openAPIV3Schema is not included',
    ]);
  });

  test('CRD-1: why a schema with selectable fields is not structural is reported', async () => {
    const schema = { type: 'object', properties: {}, definitions: { a: text } };
    const selectableFields = [{ jsonPath: 'a' }];
    const versions = [versionOf('v1', schema, { storage: true, selectableFields })];
    expect(await complaints({}, { versions })).toEqual([
      'spec.validation.openAPIV3Schema.definitions: Forbidden: definitions is not supported',
      'spec.schema.openAPIV3Schema: Invalid value: "": ' +
        "OpenAPIV3Schema 'definitions' is not supported",
      'spec.selectableFields[0].jsonPath: Invalid value: "a": ' +
        'is an invalid path: expected [ or . but got: a',
    ]);
  });

  test.each([
    [':', 'Required value: url must be a valid URL: parse ":": missing protocol scheme'],
    ['https:///x', 'Invalid value: "": host must be specified'],
    ['https://x%zz', 'Required value: url must be a valid URL: parse "https://x%zz": invalid URL'],
  ])('CRD-4: the conversion webhook at %s is refused', async (url, message) => {
    const webhook = { conversionReviewVersions: ['v1'], clientConfig: { url } };
    const more = { conversion: { strategy: 'Webhook', webhook } };
    const [complaint] = await complaints({}, { more });
    expect(complaint).toContain(`spec.conversion.webhookClientConfig.url: ${message}`);
  });

  test('CRD-1: errors inside of JSON-typed members name those members', async () => {
    const names = { group: 'misfit.example.com', plural: 'snails', kind: 'Snail' };
    const frame =
      'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: ';
    const place = 'JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.items';
    const post = (items: unknown) => {
      const list = { type: 'array', items };
      const schema = { type: 'object', properties: { list } };
      return server.post(`${definitions}?dryRun=All`, definitionOf({ ...names, schema }));
    };
    const deep = await post({ type: 'object', properties: { a: { ...text, enum: 5 } } });
    expect(deep.body.message).toBe(
      `${frame}json: cannot unmarshal number into Go struct field ${place} of type []v1.JSON`,
    );
    const deeper = await post({ type: 'array', items: { type: 'array', maxLength: 'x' } });
    expect(deeper.body.message).toBe(
      `${frame}json: cannot unmarshal string into Go struct field ${place} of type int64`,
    );
  });

  test('CRD-1: an empty list of item schemas is no schema', async () => {
    const names = { group: 'none.example.com', plural: 'snails', kind: 'Snail' };
    const schema = { type: 'object', properties: { a: { ...text, items: [] } } };
    const body = definitionOf({ ...names, schema });
    const made = await server.post<DefinitionResponse>(`${definitions}?dryRun=All`, body);
    expect(made.status).toBe(201);
    const pruned = made.body.spec.versions[0].schema.openAPIV3Schema.properties;
    expect(pruned).toEqual({ a: text });
  });

  test('CRD-1: JSON-typed members may have unknown members', async () => {
    const names = { group: 'lenient.example.com', plural: 'moths', kind: 'Moth' };
    const spec = { type: 'object', additionalProperties: { ...text, odd: 1 } };
    const body = definitionOf({
      ...names,
      schema: { type: 'object', odd: 1, properties: { spec } },
    });
    const answer = await server.post(`${definitions}?dryRun=All&fieldValidation=Strict`, body);
    expect([answer.status, answer.body.message]).toEqual([
      400,
      expect.stringMatching(/unknown field "spec.versions\[0\].schema.openAPIV3Schema.odd"$/),
    ]);
  });
});

describe('objects', () => {
  const group = 'objects.example.com';
  const path = `/apis/${group}/v1/namespaces/default/newts`;
  const newt = (more: object) => ({
    apiVersion: `${group}/v1`,
    kind: 'Newt',
    metadata: { name: 'a' },
    ...more,
  });
  const create = (more: object): Promise<Answer> => server.post(`${path}?dryRun=All`, newt(more));

  beforeAll(async () => {
    const anyOf = [{ anyOf: [{ required: ['x'] }] }];
    const ratio = { type: 'number', ...rules({ rule: 'self / 0.0 > 1.0' }) };
    const keyed = {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k'],
      items: { type: 'object', required: ['k'], properties: { k: text } },
    };
    const some = { type: 'object', properties: { x: text }, anyOf };
    const spec = { 'x-kubernetes-preserve-unknown-fields': true };
    const properties = { spec, some, ratio, keyed };
    const columns = ['.spec.a ', '.spec["b"]', '.spec.c'].map((jsonPath, index) => ({
      name: `C${index}`,
      type: 'string',
      jsonPath,
    }));
    const version = versionOf(
      'v1',
      { type: 'object', properties },
      {
        storage: true,
        deprecated: true,
        subresources: {
          scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
        },
        additionalPrinterColumns: columns,
      },
    );
    await establish(server, { group, plural: 'newts', kind: 'Newt', versions: [version] });
  });

  test('CRD-4: replicas of a wrong type are reported with their type', async () => {
    const path = '.spec.replicas: Invalid value: 0: .spec.replicas accessor error:';
    expect(causesOf(await create({ spec: { replicas: { a: [1] } } }))).toEqual([
      `${path} map[a:[1]] is of the type map[string]interface {}, expected int64`,
    ]);
    expect(causesOf(await create({ spec: 'x' }))).toEqual([
      `${path} x is of the type string, expected map[string]interface{}`,
    ]);
  });

  test('CRD-4: an object whose replicas are unreadable cannot be scaled', async () => {
    const names = { group: 'scaled.example.com', plural: 'efts', kind: 'Eft' };
    const properties = { spec: { 'x-kubernetes-preserve-unknown-fields': true } };
    const plain = versionOf('v1', { type: 'object', properties }, { storage: true });
    await establish(server, { ...names, versions: [plain] });
    const efts = `/apis/${names.group}/v1/namespaces/default/efts`;
    const eft = { apiVersion: `${names.group}/v1`, kind: 'Eft', metadata: { name: 'a' } };
    expect((await server.post(efts, { ...eft, spec: 'x' })).status).toBe(201);
    const definition = `${definitions}/efts.${names.group}`;
    const scale = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' };
    const versions = [{ ...plain, subresources: { scale } }];
    const changed = await server.patch(definition, { spec: { versions } }, 'merge');
    expect(changed.status, changed.text).toBe(200);
    const message =
      'Internal error occurred: .spec.replicas accessor error: x is of the type string, ' +
      'expected map[string]interface{}';
    const body = {
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: { name: 'a', namespace: 'default' },
      spec: { replicas: 3 },
    };
    await expect.poll(async () => (await server.get(`${efts}/a/scale`)).body.message).toBe(message);
    expect((await server.put(`${efts}/a/scale`, body)).body.message).toBe(message);
    expect((await server.get(`${efts}/a`)).body.spec).toBe('x');
  });

  test('CRD-4: replicas beyond 2^53 are too many', async () => {
    expect(causesOf(await create({ spec: { replicas: 2 ** 60 } }))).toEqual([
      `.spec.replicas: Invalid value: ${2 ** 60}: should be less than or equal to ${2 ** 31 - 1}`,
    ]);
  });

  test('CRD-2: an error that several combinators find is reported once', async () => {
    expect(causesOf(await create({ some: {} }))).toEqual([
      '<nil>: Invalid value: "": "some" must validate at least one schema (anyOf)',
      'some.x: Required value',
      '<nil>: Invalid value: "null": some validation rules were not checked because the object ' +
        'was invalid; correct the existing errors to complete validation',
    ]);
  });

  test('CRD-2: a keyed list item that is not an object is refused', async () => {
    expect(causesOf(await create({ keyed: [['a', null], { k: 'b' }] }))).toContain(
      'keyed[0]: Invalid value: []interface {}{"a", interface {}(nil)}: ' +
        'must be an object for an array of list-type map',
    );
  });

  test('CRD-3: a value that is not a number satisfies no numeric bound', async () => {
    expect(causesOf(await create({ ratio: 0 }))).toEqual([
      'ratio: Invalid value: "number": NaN values cannot be ordered evaluating rule: ' +
        'self / 0.0 > 1.0',
    ]);
  });

  test('CRD-4: a deprecated version warns even for objects that do not exist', async () => {
    const { status, headers } = await server.get(`${path}/a/status`);
    expect([status, headers.warning]).toEqual([404, `299 - "${group}/v1 Newt is deprecated"`]);
  });

  test('CRD-4: unreadable column paths end a row, and paged tables continue', async () => {
    expect((await server.post(path, newt({ spec: { a: 'x', c: 'y' } }))).status).toBe(201);
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
    const { body } = await server.get(path, {
      accept: accept.replace('meta.k8s.io', 'meta.svc.io'),
    });
    expect(body.rows[0].cells).toEqual(['a', 'x']);
    const list = await server.get(path);
    expect(list.body.metadata.continue).toBe('');
  });
});

describe('status and the end of a definition', () => {
  test('CRD-1: a status write updates metadata as kube-apiserver does', async () => {
    const names = { group: 'moved.example.com', plural: 'crabs', kind: 'Crab' };
    const { metadata } = await establish(server, names);
    const at = `${definitions}/${metadata.name}`;
    const labels = { a: 'b' };
    const patch = { metadata: { labels } };
    const answer = await server.patch<ResponseOf<CustomResourceDefinition>>(
      `${at}/status`,
      patch,
      'merge',
    );
    expect([answer.status, answer.body.metadata.labels]).toEqual([200, labels]);
    const odd = { type: 'NonStructuralSchema', status: 'True', reason: 'R', message: 'm' };
    const conditions = [...answer.body.status.conditions, odd];
    await server.patch(`${at}/status`, { status: { conditions } }, 'merge');
    const gone = await server.remove(at);
    expect(gone.body.metadata).toMatchObject({ generation: 1 });
    expect(gone.body.metadata.deletionGracePeriodSeconds).toBeUndefined();
    expect(gone.body.status.conditions).toContainEqual(
      expect.objectContaining({ type: 'Terminating', reason: 'InstanceDeletionPending' }),
    );
  });
});
