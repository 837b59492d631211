import type { JsonObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { eventually } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { type OpenApiPath, type OpenApiV2, openApiPart } from './openapi-part.ts';

/** OpenAPI documents of single types and paths (API-12). */

const server = await withServer({ dialect: 'kubernetes' });

const core = 'io.k8s.api.core.v1.';
const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1.';

const part = (name: string) => openApiPart(server, name);

test('API-12: connect operations have their own options, and proxies every method', async () => {
  const { paths } = await part('api/v1');
  const pod = '/api/v1/namespaces/{namespace}/pods/{name}';
  const namesOf = (list: OpenApiPath['parameters'] = []) => list.map(({ name }) => name);
  const shared = ['name', 'namespace'];
  // Parameters that all operations of a path share are listed at the path.
  for (const [rest, ofPath] of [
    ['attach', [...shared, 'container', 'stderr', 'stdin', 'stdout', 'tty']],
    ['portforward', [...shared, 'ports']],
    ['proxy', [...shared, 'path']],
    ['proxy/{path}', [...shared, 'path', 'path']],
  ] as const) {
    const item = paths[`${pod}/${rest}`];
    expect(item!.get.parameters, rest).toBeUndefined();
    expect(namesOf(item!.parameters), rest).toEqual(ofPath);
  }
  const log = paths[`${pod}/log`];
  expect(namesOf(log!.parameters)).toContain('tailLines');
  expect(namesOf(log!.parameters)).toContain('pretty');
  const proxy = paths['/api/v1/nodes/{name}/proxy/{path}'];
  const every = ['delete', 'get', 'head', 'options', 'patch', 'post', 'put'];
  expect(Object.keys(proxy ?? {}).sort()).toEqual([...every, 'parameters'].sort());
  expect(proxy?.head.operationId).toBe('connectCoreV1HeadNodeProxyWithPath');
});

test('API-12: the version and the service account issuer are described', async () => {
  const version = await part('version');
  expect(version.paths['/version/']?.get.operationId).toBe('getCodeVersion');
  const info = version.components.schemas['io.k8s.apimachinery.pkg.version.Info'];
  expect(info?.required).toHaveLength(9);
  for (const [name, id, type] of [
    ['openid/v1/jwks', 'getServiceAccountIssuerOpenIDKeyset', 'application/jwk-set+json'],
    [
      '.well-known/openid-configuration',
      'getServiceAccountIssuerOpenIDConfiguration',
      'application/json',
    ],
  ] as const) {
    const { paths, components } = await part(name);
    const operation = paths[`/${name}/`]?.get;
    expect(operation?.operationId).toBe(id);
    expect(operation?.responses['200']?.content).toEqual({
      [type]: { schema: { type: 'string' } },
    });
    expect(components).not.toHaveProperty('schemas');
  }
  const { body } = await server.get<OpenApiV2>('/openapi/v2');
  expect(body.paths['/version/']?.get.consumes).toEqual(['application/json']);
  expect(body.paths['/openid/v1/jwks/']!.get).not.toHaveProperty('consumes');
  const { caBundle } =
    body.definitions['io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceSpec']
      ?.properties ?? {};
  expect(caBundle).toEqual({
    description: expect.any(String),
    type: 'string',
    format: 'byte',
    'x-kubernetes-list-type': 'atomic',
  });
});

test('API-12: deleting a Namespace returns a Status, and unions and enums match', async () => {
  const { paths, components } = await part('api/v1');
  const removal = paths['/api/v1/namespaces/{name}']?.delete.responses['200'];
  expect(removal?.content['application/json']?.schema.$ref).toBe(
    `#/components/schemas/${meta}Status`,
  );
  expect(components.schemas[`${core}SeccompProfile`]?.['x-kubernetes-unions']).toEqual([
    { discriminator: 'type', 'fields-to-discriminateBy': { localhostProfile: 'LocalhostProfile' } },
  ]);
  const options = components.schemas[`${meta}DeleteOptions`]?.['x-kubernetes-group-version-kind'];
  expect(options).toHaveLength(61);
  const kind = 'DeleteOptions';
  expect(options).toContainEqual({ group: 'storage.k8s.io', version: 'v1alpha1', kind });
  const slices = (await part('apis/discovery.k8s.io/v1')).components.schemas;
  const slice = slices['io.k8s.api.discovery.v1.EndpointSlice'];
  expect(slice?.properties.addressType?.enum).toEqual(['FQDN', 'IPv4', 'IPv6']);
  const rules = (await part('apis/admissionregistration.k8s.io/v1')).components.schemas;
  const rule = rules['io.k8s.api.admissionregistration.v1.RuleWithOperations'];
  expect(rule!.properties.scope).not.toHaveProperty('enum');
});

test('API-12: definitions of custom and aggregated kinds match kube-apiserver’s', async () => {
  const packageName = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.';
  const { schemas } = (await part('apis/apiextensions.k8s.io/v1')).components;
  expect(schemas[`${packageName}CustomResourceDefinition`]?.required).toEqual(['spec']);
  expect(schemas[`${packageName}CustomResourceDefinitionStatus`]).not.toHaveProperty('required');
  expect(schemas[`${packageName}ValidationRule`]).toMatchObject({
    required: ['rule'],
    properties: { reason: { enum: expect.arrayContaining(['FieldValueInvalid']) } },
  });
  expect(schemas[`${packageName}CustomResourceDefinitionList`]?.properties).toMatchObject({
    items: { items: { default: {} } },
    metadata: { default: {} },
  });
  const services = (await part('apis/apiregistration.k8s.io/v1')).components.schemas;
  expect(Object.keys(services)).toContain(
    'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService',
  );
});

test('API-12: operations of custom kinds differ from those of built-in kinds', async () => {
  const group = 'tabs.example.com';
  const spec = { type: 'object', properties: { size: { type: 'integer', default: 4 } } };
  const openAPIV3Schema = { type: 'object', properties: { spec } };
  const scale = { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' };
  const made = await server.post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    metadata: { name: `tabs.${group}` },
    spec: {
      group,
      scope: 'Cluster',
      names: { plural: 'tabs', kind: 'Tab' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema },
          subresources: { scale },
        },
      ],
    },
  });
  expect(made.status, made.text).toBe(201);
  const name = `apis/${group}/v1`;
  await eventually(async () => (await server.get(`/openapi/v3/${name}`)).status === 200);
  const { info, paths, components } = await part(name);
  expect(info).toEqual({ title: 'Kubernetes CRD Swagger', version: 'v0.1.0' });
  expect(components).not.toHaveProperty('securitySchemes');
  const options = components.schemas[`${meta}DeleteOptions`]?.['x-kubernetes-group-version-kind'];
  expect(options).toHaveLength(54);
  const at = `/${name}/tabs`;
  expect(Object.keys(paths)).toEqual([at, `${at}/{name}`, `${at}/{name}/scale`]);
  const named = (list: OpenApiPath['parameters']) => list.map((parameter) => parameter.name);
  const all = paths[at];
  expect(named(all!.parameters)).toEqual(['pretty']);
  expect(all!.delete).not.toHaveProperty('requestBody');
  expect(named(all!.delete.parameters)).toEqual(named(all!.get.parameters));
  const single = paths[`${at}/{name}`];
  expect(named(single!.get.parameters)).toEqual(['resourceVersion']);
  expect(Object.keys(single?.patch.responses ?? {})).toEqual(['200', '401']);
  expect(Object.keys(single?.delete.requestBody.content ?? {})).toEqual([
    'application/json',
    'application/yaml',
  ]);
  const scaled = paths[`${at}/{name}/scale`]?.get;
  expect(scaled?.['x-kubernetes-group-version-kind']).toEqual({
    group,
    version: 'v1',
    kind: 'Tab',
  });
  const tab = components.schemas['com.example.tabs.v1.Tab'];
  expect(tab?.['x-kubernetes-selectable-fields']).toEqual([]);
  expect(tab?.properties.spec?.properties.size).toEqual({ type: 'integer', default: 4 });
  const { body } = await server.get<OpenApiV2>('/openapi/v2');
  const older = body.definitions['com.example.tabs.v1.Tab']?.properties.spec?.properties;
  expect(older?.size).toEqual({ type: 'integer' });
  expect(body.paths[at]?.get.consumes).toEqual(['application/json', 'application/yaml']);
});

/** Defines a kind whose spec has a schema; returns that schema in both documents. */
async function publish(group: string, spec: JsonObject) {
  const openAPIV3Schema = { type: 'object', properties: { spec } };
  const made = await server.post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    metadata: { name: `tabs.${group}` },
    spec: {
      group,
      scope: 'Cluster',
      names: { plural: 'tabs', kind: 'Tab' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  });
  expect(made.status, made.text).toBe(201);
  const name = `${group.split('.').reverse().join('.')}.v1.Tab`;
  const v2 = await eventually(async () => {
    const { body } = await server.get<OpenApiV2>('/openapi/v2');
    return body.definitions[name]?.properties.spec;
  }, 'the definition');
  const v3 = (await part(`apis/${group}/v1`)).components.schemas[name]?.properties.spec;
  return { v2, v3 };
}

test('API-12: an integer or string of a custom kind names both types', async () => {
  const mark = { 'x-kubernetes-int-or-string': true };
  const types = [{ type: 'integer' }, { type: 'string' }];
  const low = { minimum: 1 };
  const { v3 } = await publish('either.example.com', {
    type: 'object',
    properties: {
      bare: mark,
      any: { ...mark, anyOf: [low] },
      all: { ...mark, allOf: [low] },
      both: { ...mark, anyOf: [{ maximum: 5 }], allOf: [low] },
      anyTypes: { ...mark, anyOf: types, allOf: [low] },
      allTypes: { ...mark, anyOf: [low], allOf: [{ anyOf: types }] },
    },
  });
  expect(v3?.properties).toEqual({
    bare: { ...mark, anyOf: types },
    any: { ...mark, anyOf: [low], allOf: [{ anyOf: types }] },
    all: { ...mark, anyOf: types, allOf: [low] },
    both: { ...mark, anyOf: [{ maximum: 5 }], allOf: [{ anyOf: types }, low] },
    anyTypes: { ...mark, anyOf: types, allOf: [low] },
    allTypes: { ...mark, anyOf: [low], allOf: [{ anyOf: types }] },
  });
});

test('API-12: OpenAPI 2 describes nullable embedded objects, and requires no null', async () => {
  const embedded = { type: 'object', 'x-kubernetes-embedded-resource': true, nullable: true };
  const open = { 'x-kubernetes-preserve-unknown-fields': true };
  const text = { type: 'string' };
  const map = { type: 'object', required: ['a'] };
  const { v2 } = await publish('nulls.example.com', {
    type: 'object',
    properties: {
      closed: { ...embedded, properties: { spec: { type: 'object' } } },
      open: { ...embedded, ...open, required: ['a'] },
      texts: { ...map, additionalProperties: text },
      nulls: { ...map, additionalProperties: { ...text, nullable: true } },
    },
  });
  const { type: _, nullable: __, ...mark } = embedded;
  expect(v2?.properties).toEqual({
    closed: {
      ...mark,
      required: ['kind', 'apiVersion'],
      properties: {
        apiVersion: { description: expect.any(String), type: 'string' },
        kind: { description: expect.any(String), type: 'string' },
        metadata: {
          description: expect.any(String),
          $ref: `#/definitions/${meta}ObjectMeta`,
        },
      },
    },
    open: { ...mark, ...open, required: ['a'] },
    texts: { ...map, additionalProperties: text },
    nulls: { type: 'object', additionalProperties: {} },
  });
});
