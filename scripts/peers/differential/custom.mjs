// Custom kinds: random definitions, and random objects of those that both servers accept.
import { call, eventually } from '../servers.mjs';

const group = (round) => `r${round}.example.com`;
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const objectsPerKind = 25;
const names = ['a', 'b', 'c', 'd', 'e'];
const patterns = ['^a+$', '[0-9]', '^.{2,3}$', '('];
const formats = [
  'date',
  'date-time',
  'uuid',
  'ipv4',
  'ipv6',
  'cidr',
  'email',
  'uri',
  'hostname',
  'byte',
  'duration',
  'int32',
  'int64',
  'double',
  'mac',
  'password',
  'nonsense',
];
const texts = [
  '',
  'a',
  'aaa',
  'b',
  '12',
  'x'.repeat(12),
  'é',
  '2024-01-01',
  '2024-01-02T03:04:05Z',
  '1h',
  '10.0.0.1',
  '::1',
  '10.0.0.0/8',
  'a@b.example',
  'https://example.com',
  'YQ==',
  '00000000-0000-4000-8000-000000000000',
];
const rules = [
  'self == oldSelf',
  'has(self.a)',
  'self.a == self.b',
  'size(self) < 3',
  'self.all(x, x > 0)',
  'self > 1',
  'self.startsWith("a")',
  '!has(self.b) || self.b != "a"',
  'self',
  'self.nope',
  '1 / (self - 1) > 0',
  'self.a.exists(x, x == self.b)',
  'type(self) == int',
  'self.matches("[")',
  'duration(self) > duration("1h")',
];

/**
 * @param options as for `builtinRounds`
 * @returns a function that runs one round: one definition, and some objects of it
 */
export async function customRounds({ both, random, send }) {
  const maybe = (share, object, name, make) => {
    if (random.chance(share)) object[name] = make();
  };

  function schema(depth) {
    const draw = random.below(depth > 3 ? 5 : 9);
    const made = [text, integer, number, boolean, intOrString, object, object, list, map][draw](
      depth,
    );
    maybe(0.08, made, 'nullable', () => true);
    maybe(0.1, made, 'default', () => value(made, 3));
    maybe(0.06, made, 'enum', () => [value(made, 3), value(made, 3)]);
    maybe(0.1, made, 'x-kubernetes-validations', () => [rule()]);
    maybe(0.06, made, random.pick(['oneOf', 'anyOf', 'allOf']), () => [
      junctor(made),
      junctor(made),
    ]);
    maybe(0.03, made, 'not', () => junctor(made));
    return made;
  }

  function rule() {
    const made = { rule: random.pick(rules) };
    maybe(0.3, made, 'message', () => random.pick(['no', '', 'two\nlines']));
    maybe(0.2, made, 'messageExpression', () => random.pick(['"x" + string(self)', 'self.a', '1']));
    maybe(0.2, made, 'reason', () =>
      random.pick(['FieldValueForbidden', 'FieldValueRequired', 'Nope']),
    );
    maybe(0.1, made, 'fieldPath', () => random.pick(['.a', '.a.b', '.nope', 'a', '.']));
    maybe(0.1, made, 'optionalOldSelf', () => true);
    return made;
  }

  function junctor({ type }) {
    const options = {
      string: [{ minLength: 2 }, { pattern: '^a' }, { enum: ['a'] }, { format: 'ipv4' }],
      integer: [{ minimum: 1 }, { maximum: 3 }, { multipleOf: 2 }],
      object: [{ required: ['a'] }, { minProperties: 1 }, { properties: { a: { minLength: 1 } } }],
      array: [{ minItems: 1 }, { maxItems: 1 }],
    };
    return random.pick(options[type] ?? [{}, { type: 'string' }]);
  }

  function text() {
    const made = { type: 'string' };
    maybe(0.15, made, 'pattern', () => random.pick(patterns));
    maybe(0.15, made, 'minLength', () => random.pick([0, 1, 3, -1]));
    maybe(0.3, made, 'maxLength', () => random.pick([0, 2, 10]));
    maybe(0.2, made, 'format', () => random.pick(formats));
    return made;
  }
  function integer() {
    const made = { type: 'integer' };
    maybe(0.2, made, 'minimum', () => random.pick([0, 1, -5]));
    maybe(0.2, made, 'maximum', () => random.pick([0, 3, 100]));
    maybe(0.1, made, 'exclusiveMinimum', () => random.chance(0.5));
    maybe(0.1, made, 'multipleOf', () => random.pick([2, 3, 0]));
    maybe(0.2, made, 'format', () => random.pick(['int32', 'int64']));
    return made;
  }
  const number = () => ({ ...integer(), type: 'number', format: undefined });
  const boolean = () => ({ type: 'boolean' });
  function intOrString() {
    const made = { 'x-kubernetes-int-or-string': true };
    maybe(0.2, made, 'anyOf', () => [{ type: 'integer' }, { type: 'string' }]);
    return made;
  }
  function object(depth) {
    const made = { type: 'object', properties: {} };
    for (const name of names) if (random.chance(0.45)) made.properties[name] = schema(depth + 1);
    maybe(0.25, made, 'required', () => [random.pick(names)]);
    maybe(0.08, made, 'x-kubernetes-preserve-unknown-fields', () => true);
    maybe(0.08, made, 'x-kubernetes-map-type', () => random.pick(['atomic', 'granular', 'x']));
    maybe(0.05, made, 'maxProperties', () => 2);
    maybe(0.03, made, 'x-kubernetes-embedded-resource', () => true);
    return made;
  }
  function list(depth) {
    const made = { type: 'array', items: schema(depth + 1) };
    const draw = random.below(6);
    if (draw === 0) made['x-kubernetes-list-type'] = 'set';
    if (draw === 1) made['x-kubernetes-list-type'] = 'atomic';
    if (draw <= 2 && made.items.properties?.a !== undefined) {
      made['x-kubernetes-list-type'] = 'map';
      made['x-kubernetes-list-map-keys'] = random.pick([['a'], ['a', 'b'], ['z'], ['a', 'a']]);
      if (random.chance(0.8))
        made.items.required = ['a', 'b'].slice(0, made['x-kubernetes-list-map-keys'].length);
    }
    maybe(0.4, made, 'maxItems', () => random.pick([1, 3, 10]));
    maybe(0.1, made, 'minItems', () => 1);
    maybe(0.05, made, 'uniqueItems', () => random.chance(0.5));
    return made;
  }
  function map(depth) {
    const made = {
      type: 'object',
      additionalProperties: random.chance(0.2) ? true : schema(depth + 1),
    };
    maybe(0.3, made, 'maxProperties', () => random.pick([1, 3]));
    return made;
  }

  /** A value for a schema, with errors at random places. */
  function value(of, depth) {
    if (of === undefined || of === true || depth > 7)
      return random.pick([1, 'a', true, {}, [], null]);
    if (random.chance(0.04))
      return random.pick([1, 1.5, 'a', true, {}, [], null, [1], { a: 1 }, -1]);
    if (of.enum !== undefined && random.chance(0.6)) return random.pick(of.enum);
    if (of['x-kubernetes-int-or-string']) return random.pick([1, '50%', 2 ** 31, 0.5, '']);
    switch (of.type) {
      case 'string':
        return random.pick(texts);
      case 'integer':
        return random.pick([0, 1, 2, 3, 4, 6, 100, -5, 2 ** 31, 2 ** 40]);
      case 'number':
        return random.pick([0, 1, 2, 3, 0.5, 1e10, -5]);
      case 'boolean':
        return random.chance(0.5);
      case 'array':
        return Array.from({ length: random.pick([0, 1, 2, 2, 4]) }, () =>
          value(of.items, depth + 1),
        );
      default:
        return objectValue(of, depth);
    }
  }
  function objectValue(of, depth) {
    const made = {};
    for (const [name, member] of Object.entries(of.properties ?? {})) {
      if (random.chance(of.required?.includes(name) ? 0.93 : 0.5))
        made[name] = value(member, depth + 1);
    }
    if (of.additionalProperties !== undefined) {
      for (const name of names)
        if (random.chance(0.3)) made[name] = value(of.additionalProperties, depth + 1);
    } else if (random.chance(0.06))
      made[random.pick(['a', 'b', 'zz'])] = random.pick([1, 'x', null, { q: 1 }]);
    return made;
  }

  function definition(round) {
    const openAPIV3Schema = { type: 'object', properties: { spec: object(1), status: object(3) } };
    maybe(0.15, openAPIV3Schema, 'x-kubernetes-validations', () => [rule()]);
    const version = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } };
    maybe(0.4, version, 'subresources', () => subresources());
    maybe(0.2, version, 'additionalPrinterColumns', () => [
      {
        name: 'A',
        type: random.pick(['string', 'integer', 'date', 'x']),
        jsonPath: random.pick([
          '.spec.a',
          '.spec.b[0]',
          '.metadata.creationTimestamp',
          '{',
          'spec',
        ]),
      },
    ]);
    maybe(0.1, version, 'selectableFields', () => [
      { jsonPath: random.pick(['.spec.a', '.spec.nope', '.metadata.name', 'x']) },
    ]);
    return {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `things.${group(round)}` },
      spec: {
        group: group(round),
        scope: 'Namespaced',
        names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
        versions: [version],
      },
    };
  }
  function subresources() {
    const made = { status: {} };
    maybe(0.3, made, 'scale', () => ({
      specReplicasPath: random.pick(['.spec.a', 'spec.a', '.status.a']),
      statusReplicasPath: random.pick(['.status.a', '.spec.a']),
    }));
    return made;
  }

  const subject = 'Thing';
  const base = (round) => `/apis/${group(round)}/v1/namespaces/default/things`;

  async function play(round) {
    const crd = definition(round);
    const answers = await send({ subject: 'CRD', method: 'POST', path: definitions, body: crd });
    const at = `${definitions}/${crd.metadata.name}`;
    if (answers.every(({ status }) => status === 201)) {
      const served = async () => {
        const lists = await Promise.all(both.map((server) => call(server, { path: base(round) })));
        return lists.every(({ status }) => status === 200);
      };
      const isServed = await eventually(served, { withinMs: 15_000, everyMs: 20 });
      if (isServed) for (let i = 0; i < objectsPerKind; i++) await live(crd, round, `t${i}`);
    }
    await Promise.all(both.map((server) => call(server, { method: 'DELETE', path: at })));
  }

  async function live(crd, round, name) {
    const [version] = crd.spec.versions;
    const { properties } = version.schema.openAPIV3Schema;
    const body = () => ({
      apiVersion: `${group(round)}/v1`,
      kind: 'Thing',
      metadata: { name },
      spec: value(properties.spec, 0),
      ...(random.chance(0.3) ? { status: value(properties.status, 0) } : {}),
    });
    const validation = () => `fieldValidation=${random.pick(['Warn', 'Ignore', 'Strict'])}`;
    await send({ subject, method: 'POST', path: `${base(round)}?${validation()}`, body: body() });
    const path = `${base(round)}/${name}`;
    for (let step = 0; step < 3; step++) {
      const part = version.subresources !== undefined && random.chance(0.3) ? '/status' : '';
      const current = await Promise.all(both.map((server) => call(server, { path: path + part })));
      if (current.some(({ status }) => status !== 200)) return;
      await send(changeOf({ path: path + part, body: body(), current }));
    }
  }

  function changeOf({ path, body, current }) {
    const draw = random.below(3);
    if (draw === 0) {
      const bodies = current.map((answer) => ({
        ...body,
        metadata: { ...body.metadata, resourceVersion: answer.body.metadata.resourceVersion },
      }));
      return { subject, method: 'PUT', path, bodies };
    }
    const isApply = draw === 1;
    const type = isApply ? 'application/apply-patch+yaml' : 'application/merge-patch+json';
    const query = isApply
      ? `?fieldManager=${random.pick(['one', 'two'])}&force=${random.chance(0.5)}`
      : '';
    const headers = { 'content-type': type };
    const patch = isApply ? body : { spec: body.spec, status: body.status };
    return { subject, method: 'PATCH', path: path + query, body: patch, headers };
  }

  return play;
}
