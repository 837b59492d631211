import {
  dialectOf,
  type FieldError,
  type JsonObject,
  validateObjectMeta,
} from '@wheelhouse/machinery';
import { decodeTyped, schemaFromOpenApi } from '@wheelhouse/schema';
import { describe, expect, test } from 'vitest';
import type { Crd, CrdVersion } from '../custom/definition.ts';
import { runPreparation } from '../kind.suite.ts';
import type { Findings, StrategyContext } from '../resource-def.ts';
import { errorSteps, foundErrors } from '../rules/checks.ts';
import { AcceptedNames, reconcileCrd } from './crd-status.ts';
import { customResourceDefinition } from './custom-resource-definition.ts';
import { validateDefaults } from './default-rules.ts';
import type { SchemaProps } from './schema-props.ts';
import { notStructural, validateStructural } from './structural.ts';

const def = customResourceDefinition(dialectOf('svc'));
const context: StrategyContext = {
  user: { name: 'a', uid: '', groups: [], extra: {} },
  nowMs: 0,
  dryRun: false,
  subresource: '',
};

const version = (more: JsonObject = {}): JsonObject => ({
  name: 'v1',
  served: true,
  storage: true,
  schema: { openAPIV3Schema: { type: 'object' } },
  ...more,
});
const withSchema = (openAPIV3Schema: JsonObject): JsonObject =>
  version({ schema: { openAPIV3Schema } });
const crdWith = (spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: 'apiextensions.svc.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.example.com', ...metadata },
  spec: {
    group: 'example.com',
    names: { plural: 'things', kind: 'Thing' },
    scope: 'Namespaced',
    versions: [version()],
    ...spec,
  },
});

function decode(input: JsonObject): Crd {
  const crd = decodeTyped(def.versions[0]!.schema)(input) as Crd;
  def.versions[0]!.defaults?.(crd);
  return crd;
}
function created(input: JsonObject): Crd {
  const crd = decode(input);
  runPreparation(def.strategy.prepareForCreate?.(context, crd));
  return crd;
}
function errorsOf(input: JsonObject): string[] {
  const crd = created(input);
  const rules = { namespaced: false, path: 'metadata', ...def.strategy.nameRules!(crd) };
  const errors = [
    ...validateObjectMeta(crd.metadata, rules),
    ...foundErrors(def.strategy.validateCreate?.(context, crd)),
  ];
  return errors.map((error) => `${error.field}: ${error.message}`);
}
const schemaErrors = (properties: JsonObject) =>
  errorsOf(crdWith({ versions: [withSchema({ type: 'object', properties })] }));

test('TRUST-2: a new schema that need not be structural has no patterns of many parts', () => {
  const pattern = '\\pL'.repeat(300);
  const properties = { a: { type: 'string', pattern } };
  const lenient = { ...context, version: 'v1beta1' };
  const spec = { preserveUnknownFields: true, versions: [withSchema({ properties })] };
  const [crd, old] = [created(crdWith(spec)), created(crdWith(spec))];
  const errors = foundErrors(def.strategy.validateCreate?.(lenient, crd));
  expect(errors.map(({ message }) => message)).toEqual([
    expect.stringContaining('at most 9000 parts'),
  ]);
  expect(foundErrors(def.strategy.validateUpdate?.(lenient, crd, old))).toEqual([]);
});

describe('a CustomResourceDefinition', () => {
  test('gets defaults, and the storage version in its status', () => {
    const crd = created(crdWith());
    expect(crd.spec.names).toMatchObject({ singular: 'thing', listKind: 'ThingList' });
    expect(crd.spec.conversion).toEqual({ strategy: 'None' });
    expect(crd.status?.storedVersions).toEqual(['v1']);
    expect(errorsOf(crdWith())).toEqual([]);
  });

  const refused: readonly (readonly [JsonObject, string])[] = [
    [
      crdWith({}, { name: 'x.example.com' }),
      'metadata.name: Invalid value: "x.example.com": must be spec.names.plural+"."+spec.group',
    ],
    [
      crdWith({ group: 'example' }, { name: 'things.example' }),
      'spec.group: Invalid value: "example": should be a domain with at least one dot',
    ],
    [
      crdWith({ scope: 'Galaxy' }),
      'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"',
    ],
    [
      crdWith({}, { generateName: 'thing-' }),
      'metadata.generateName: Invalid value: "thing-": must be spec.names.plural+"."+spec.group',
    ],
    [
      crdWith({ preserveUnknownFields: true }),
      'spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
    ],
    [
      crdWith({ names: { plural: 'things', kind: 'Thing', listKind: 'Thing' } }),
      'spec.names.listKind: Invalid value: "Thing": kind and listKind may not be the same',
    ],
    [
      crdWith({ versions: [{ name: 'v1', served: true, storage: true }] }),
      'spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required',
    ],
    [
      crdWith({ conversion: { strategy: 'Webhook' } }),
      'spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook',
    ],
    [
      crdWith({ versions: [version({ deprecationWarning: 'x' })] }),
      'spec.versions[0].deprecationWarning: Invalid value: "x": can only be set for deprecated versions',
    ],
    [
      crdWith({
        versions: [
          version({ additionalPrinterColumns: [{ name: 'a', type: 'string', jsonPath: 'x' }] }),
        ],
      }),
      'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "x": must be a simple json path starting with .',
    ],
    [
      crdWith({
        versions: [
          version({
            subresources: { scale: { specReplicasPath: '.a', statusReplicasPath: '.status.b' } },
          }),
        ],
      }),
      'spec.subresources.scale.specReplicasPath: Invalid value: ".a": should be a json path under .spec',
    ],
    [
      crdWith({ versions: [version({ selectableFields: [{ jsonPath: '.spec.x' }] })] }),
      'spec.selectableFields[0].jsonPath: Invalid value: ".spec.x": is an invalid path: does not refer to a valid field',
    ],
  ];
  test.each(refused)('rejected %#', (input, message) => {
    expect(errorsOf(input)).toContain(message);
  });

  test('must have exactly one storage version and unique version names', () => {
    const errors = errorsOf(crdWith({ versions: [version(), version()] }));
    expect(errors).toContainEqual(
      expect.stringMatching(/^spec\.versions: .*must contain unique version names$/),
    );
    expect(errors).toContainEqual(
      expect.stringMatching(
        /^spec\.versions: .*must have exactly one version marked as storage version$/,
      ),
    );
  });

  test('needs approval in protected groups', () => {
    const group = 'x.svc.io';
    const name = `things.${group}`;
    const approved = (text: string) => ({ name, annotations: { 'api-approved.svc.io': text } });
    expect(errorsOf(crdWith({ group }, { name }))).toContainEqual(
      expect.stringContaining(
        'metadata.annotations[api-approved.svc.io]: Required value: protected groups',
      ),
    );
    expect(errorsOf(crdWith({ group }, approved('https://example.com/1')))).toEqual([]);
    expect(errorsOf(crdWith({ group }, approved('unapproved, a test')))).toEqual([]);
    expect(errorsOf(crdWith({ group }, approved('https://example.com/1#2')))).toEqual([]);
    expect(errorsOf(crdWith({ group }, approved('https://example.com#2')))).toHaveLength(1);
    expect(errorsOf(crdWith({ group }, approved('yes')))).toHaveLength(1);
  });
});

const root = 'spec.validation.openAPIV3Schema';

describe('its schema', () => {
  const string = { type: 'string' };
  const refused: readonly (readonly [JsonObject, string])[] = [
    [
      { a: {} },
      `${root}.properties[a].type: Required value: must not be empty for specified object fields`,
    ],
    [{ a: { type: 'array' } }, `${root}.properties[a].items: Required value: must be specified`],
    [
      { a: { type: 'bogus' } },
      `${root}.properties[a].type: Unsupported value: "bogus": supported values: "array", "boolean", "integer", "number", "object", "string"`,
    ],
    [
      { a: { ...string, anyOf: [{ type: 'string' }] } },
      `${root}.properties[a].anyOf[0].type: Forbidden: must be empty to be structural`,
    ],
    [
      { a: { ...string, uniqueItems: true } },
      `${root}.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic`,
    ],
    [
      { a: { type: 'object', properties: { b: string }, additionalProperties: string } },
      `${root}.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive`,
    ],
    [
      { a: { ...string, default: 1 } },
      `${root}.properties[a].default: Invalid value: "integer":  in body must be of type string: "integer"`,
    ],
    [
      { a: { type: 'object', default: { b: 1 } } },
      `${root}.properties[a].default: Invalid value: map[string]interface {}{"b":1}: must not have unknown fields`,
    ],
    [
      { a: { ...string, pattern: '(' } },
      `${root}.properties[a].pattern: Invalid value: "(": must be a valid regular expression, but isn't: `,
    ],
    [
      { a: { type: 'array', items: string, 'x-kubernetes-list-type': 'map' } },
      `${root}.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map`,
    ],
    [
      {
        a: {
          type: 'array',
          items: { type: 'object', properties: { k: string } },
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['k'],
        },
      },
      `${root}.properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
    ],
    [
      {
        a: {
          type: 'array',
          items: { type: 'object', required: ['k'], properties: { k: string } },
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['k', 'k'],
        },
      },
      `${root}.properties[a].x-kubernetes-list-map-keys: Invalid value: []string{"k", "k"}: must not contain duplicate entries`,
    ],
    [
      { metadata: { type: 'object', properties: { labels: { type: 'object' } } } },
      `${root}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified`,
    ],
    [
      { a: { ...string, 'x-kubernetes-validations': [{ rule: ' ' }] } },
      `${root}.properties[a].x-kubernetes-validations[0].rule: Required value: rule is not specified`,
    ],
  ];
  test.each(refused)('rejected %#', (properties, message) => {
    expect(schemaErrors(properties)).toContainEqual(expect.stringContaining(message));
  });

  test('must declare properties that a nested schema mentions', () => {
    const schema = { type: 'object', not: { properties: { b: { minLength: 1 } } } };
    expect(errorsOf(crdWith({ versions: [withSchema(schema)] }))).toEqual([
      `${root}.properties[b]: Required value: because it is defined in ${root}.not.properties[b]`,
    ]);
  });

  const accepted: readonly JsonObject[] = [
    { a: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] } },
    {
      a: {
        'x-kubernetes-int-or-string': true,
        anyOf: [{ type: 'integer', additionalProperties: false }, { type: 'string' }],
      },
    },
    { a: { type: 'object', additionalProperties: true } },
    { a: { ...string, default: 'x', enum: ['x'] } },
    { metadata: { type: 'object', properties: { name: { ...string, maxLength: 3 } } } },
    { a: { ...string, 'x-kubernetes-validations': [{ rule: 'self != ""', message: 'no' }] } },
  ];
  test.each(accepted)('accepted %#', (properties) => {
    expect(schemaErrors(properties)).toEqual([]);
  });

  test('errors name the version when versions differ', () => {
    const second = withSchema({ type: 'object', properties: { a: {} } });
    const versions = [version(), { ...second, name: 'v2', storage: false }];
    expect(errorsOf(crdWith({ versions }))).toEqual([
      'spec.versions[1].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields',
    ]);
  });

  test('a schema that is nested too deeply is rejected, not traversed', () => {
    let schema: JsonObject = { type: 'object' };
    for (let level = 0; level < 10_000; level += 1) schema = { type: 'object', not: schema };
    expect(() => decode(crdWith({ versions: [withSchema(schema)] }))).toThrow('exceeded max depth');
  });
});

describe('its status', () => {
  const namesOf = (others: readonly Crd[]) => {
    const taken = new AcceptedNames();
    for (const { status } of others) taken.replace(undefined, status?.acceptedNames);
    return taken;
  };
  const establish = (crd: Crd, others: readonly Crd[] = []): Crd => {
    const status = reconcileCrd(crd, namesOf(others), { dialect: dialectOf('svc'), nowMs: 0 });
    return status === undefined ? crd : { ...crd, status };
  };

  test('accepts free names and becomes established; a second run changes nothing', () => {
    const crd = establish(created(crdWith()));
    expect(crd.status?.conditions).toMatchObject([
      {
        type: 'NamesAccepted',
        status: 'True',
        reason: 'NoConflicts',
        message: 'no conflicts found',
      },
      {
        type: 'Established',
        status: 'True',
        reason: 'InitialNamesAccepted',
        lastTransitionTime: '1970-01-01T00:00:00Z',
      },
    ]);
    expect(crd.status?.acceptedNames).toEqual(crd.spec.names);
    const later = { dialect: dialectOf('svc'), nowMs: 5_000 };
    expect(reconcileCrd(crd, namesOf([crd]), later)).toBeUndefined();
  });

  test('reports a name that another definition of the group uses', () => {
    const first = establish(created(crdWith()));
    const names = { plural: 'others', kind: 'Thing', shortNames: ['things'] };
    const second = created(crdWith({ names }, { name: 'others.example.com' }));
    const taken = establish(second, [first, second]);
    expect(taken.status?.conditions).toMatchObject([
      { status: 'False', reason: 'ListKindConflict', message: '"ThingList" is already in use' },
      { status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' },
    ]);
    expect(taken.status?.acceptedNames?.plural).toBe('others');
    expect(establish(taken, [taken]).status?.conditions).toMatchObject([
      { status: 'True' },
      { status: 'True' },
    ]);
  });

  test('an established definition does not change its scope, kind, group, or plural', () => {
    const old = establish(created(crdWith()));
    const next = decode(crdWith({ scope: 'Cluster', names: { plural: 'things', kind: 'Other' } }));
    runPreparation(def.strategy.prepareForUpdate?.(context, next, old));
    const errors = foundErrors(def.strategy.validateUpdate?.(context, next, old));
    expect(errors.map((error) => error.field)).toEqual(['spec.scope', 'spec.names.kind']);
  });

  test('a stored version must stay until the status no longer lists it', () => {
    const old = establish(created(crdWith()));
    const next = decode(crdWith({ versions: [version({ name: 'v2' })] }));
    runPreparation(def.strategy.prepareForUpdate?.(context, next, old));
    expect(next.status?.storedVersions).toEqual(['v1', 'v2']);
    expect(next.metadata.generation).toBe(2);
    const errors = foundErrors(def.strategy.validateUpdate?.(context, next, old));
    expect(errors).toMatchObject([{ field: 'status.storedVersions[0]' }]);
  });

  test('a deletion removes the objects first', () => {
    const crd = establish(created(crdWith()));
    def.strategy.beforeDelete?.(context, crd);
    expect(crd.metadata.finalizers).toEqual(['customresourcecleanup.apiextensions.svc.io']);
    const versions: readonly CrdVersion[] = crd.spec.versions;
    expect(versions).toHaveLength(1);
  });
});

/** The number of steps in which rules run. */
function stepsOf(findings: Findings | undefined): number {
  const work = errorSteps(findings);
  let steps = 0;
  while (work.next().done === false) steps += 1;
  return steps;
}

test('TRUST-2: the rules of a schema of many properties run in steps', () => {
  const names = Array.from({ length: 5_000 }, (_, at) => `p${at}`);
  const propertiesOf = (last: JsonObject) => ({
    ...Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
    last,
  });
  const schemaOf = (last: JsonObject): SchemaProps => ({
    type: 'object',
    properties: propertiesOf(last),
  });
  const stepped = (work: Generator<void, readonly FieldError[]>) => {
    for (let steps = 1; ; steps += 1) {
      const step = work.next();
      if (step.done === true) return { steps, fields: step.value.map(({ field }) => field) };
    }
  };
  let steps = 0;
  for (const _ of notStructural(schemaOf({ id: 'i' }))) steps += 1;
  expect(steps).toBeGreaterThan(8);
  const structural = stepped(validateStructural(schemaOf({}), 's', 'new'));
  expect(structural.steps).toBeGreaterThan(10);
  expect(structural.fields).toEqual(['s.properties[last].type']);
  const schema = schemaFromOpenApi(schemaOf({ type: 'string', default: 1 }));
  const embedded = { objectMeta: {}, validateMeta: () => [], validateLabel: () => [] };
  const defaults = stepped(
    validateDefaults(schema, 's', { embedded, validateDefault: undefined, patterns: 'new' }),
  );
  expect(defaults.steps).toBeGreaterThan(10);
  expect(defaults.fields).toEqual(['s.properties[last].default']);
});

test('TRUST-2: a definition with many versions is validated in steps', () => {
  const versions = Array.from({ length: 5_000 }, (_, at) =>
    version({
      name: `v${at}`,
      storage: at === 0,
      selectableFields: [{ jsonPath: `.spec.a${at}` }],
    }),
  );
  const old = created(crdWith({ versions }));
  const object = created(crdWith({ versions }));
  const at = { ...context, version: 'v1' };
  expect(stepsOf(def.strategy.validateUpdate?.(at, object, old))).toBeGreaterThan(50);
});

test('TRUST-2: a definition with many selectable fields is validated in steps', () => {
  const selectableFields = Array.from({ length: 4_000 }, () => ({ jsonPath: '.metadata.name' }));
  const object = created(crdWith({ versions: [version({ selectableFields })] }));
  expect(stepsOf(def.strategy.validateCreate?.(context, object))).toBeGreaterThan(40);
});

test('many fields of a schema with many properties are looked up in linear time', () => {
  const names = Array.from({ length: 20_000 }, (_, at) => `p${at}`);
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
  const items = { type: 'object', properties: {} };
  const list = {
    type: 'array',
    items,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': names,
  };
  const schema = { type: 'object', properties: { ...properties, list } };
  const selectableFields = names.map((name) => ({ jsonPath: `.${name}` }));
  const object = created(crdWith({ versions: [{ ...withSchema(schema), selectableFields }] }));
  const start = performance.now();
  const errors = foundErrors(def.strategy.validateCreate?.(context, object));
  expect(performance.now() - start).toBeLessThan(15_000);
  expect(errors.at(-1)?.message).toBe('Too many: 20000: must have at most 8 items');
  const keyErrors = errors.filter(({ field }) => field.endsWith('x-kubernetes-list-map-keys'));
  expect(keyErrors).toHaveLength(names.length);
});

test('TRUST-2: a definition with many printer columns is validated in steps', () => {
  const column = (at: number) => ({ name: `c${at}`, type: 'odd', jsonPath: '.spec' });
  const columns = Array.from({ length: 4_000 }, (_, at) => column(at));
  const object = created(crdWith({ versions: [version({ additionalPrinterColumns: columns })] }));
  expect(stepsOf(def.strategy.validateCreate?.(context, object))).toBeGreaterThan(20);
});
