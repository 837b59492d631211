import type { CustomResourceDefinition } from '@wheelhouse/kinds/types/apiextensions/v1';
import type { APIGroup } from '@wheelhouse/kinds/types/meta/v1';
import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import protobuf from 'protobufjs';
import { describe, expect, test } from 'vitest';
import { adminToken, eventually, type ResponseOf } from '../support/harness.ts';
import { onceWithin } from '../support/once-within.ts';
import { withServer } from '../support/with-server.ts';
import {
  type DocumentV2,
  type DocumentV3,
  type Extensions,
  type Named,
  type OpenApiIndex,
  type OpenApiMethod,
  type OpenApiPath,
  type OpenApiV2,
  type OpenApiV3,
  openApiPart,
  operationsOf,
  valuesOf,
} from './openapi-part.ts';

const server = await withServer({ dialect: 'kubernetes' });
const core = 'io.k8s.api.core.v1.';
const machinery = 'io.k8s.apimachinery.pkg.';
const meta = `${machinery}apis.meta.v1.`;
const description = expect.any(String);
const metadataOfAll = { allOf: [{ $ref: `#/components/schemas/${meta}ObjectMeta` }], description };

const part = (name: string) => openApiPart(server, name);

async function index(): Promise<OpenApiIndex['paths']> {
  const answer = await server.get<OpenApiIndex>('/openapi/v3');
  expect(answer.status).toBe(200);
  return answer.body.paths;
}

const urlIn = (paths: Awaited<ReturnType<typeof index>>, name: string): string | undefined =>
  paths[name]?.serverRelativeURL;

const entryOf = <Value>({ name, value }: Named<Value>): [string, Value] => [name, value];
const schemaEntry = <Schema>({
  name,
  value,
}: Named<{ readonly schema: Schema }>): [string, Schema] => [name, value.schema];
const yamlEntry = ({ name, value }: Extensions[number]) => [name, value.yaml];

function crontabs(group: string, more: JsonObject = {}) {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `crontabs.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural: 'crontabs', singular: 'crontab', kind: 'CronTab', listKind: 'CronTabList' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          selectableFields: [{ jsonPath: '.spec.image' }],
          subresources: {
            status: {},
            scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
          },
          schema: { openAPIV3Schema: { ...tabSchema, ...more } },
        },
        {
          name: 'v1alpha1',
          served: true,
          storage: false,
          schema: {
            openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          },
        },
      ],
    },
  };
}

const tabSpec = {
  type: 'object',
  description: 'What is wanted.',
  required: ['image', 'parts'],
  properties: {
    when: { type: 'string', pattern: '^a', default: 'abc', title: 'When' },
    image: { type: 'string', nullable: true, maxLength: 9 },
    kind: { type: 'string', enum: ['a', 'b'] },
    replicas: { type: 'integer', format: 'int32', minimum: 0, maximum: 10, exclusiveMaximum: true },
    port: { 'x-kubernetes-int-or-string': true },
    either: { type: 'string', anyOf: [{ minLength: 3 }, { not: { enum: ['x'] } }] },
    raw: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    pod: {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      properties: { spec: { type: 'object' } },
    },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
    parts: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
    },
  },
};
const tabSchema = {
  type: 'object',
  description: 'A tab.',
  required: ['spec'],
  'x-kubernetes-validations': [{ rule: 'true', message: 'never' }],
  properties: { spec: tabSpec, status: { type: 'object' } },
};

async function establish(definition: ApiObject): Promise<string> {
  const created = await server.post(
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    definition,
  );
  expect(created.status, created.text).toBe(201);
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${definition.metadata.name}`;
  await eventually(async () => {
    const { body } = await server.get<ResponseOf<CustomResourceDefinition>>(path);
    const conditions = body.status?.conditions ?? [];
    return conditions.some(
      (condition) => condition.type === 'Established' && condition.status === 'True',
    );
  }, 'establishment');
  return path;
}

describe('the index and the documents of OpenAPI v3', () => {
  test('API-12: the index has a document for every group version, with its hash', async () => {
    const paths = await index();
    const { body: groups } = await server.get('/apis');
    const versions: string[] = groups['groups'].flatMap((group: APIGroup) =>
      group.versions.map((version) => `apis/${version.groupVersion}`),
    );
    const names = ['api', 'api/v1', 'apis', 'apis/apps', ...versions];
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(names));
    for (const [name, { serverRelativeURL }] of Object.entries(paths)) {
      expect(serverRelativeURL).toMatch(new RegExp(`^/openapi/v3/${name}\\?hash=[0-9A-F]{128}$`));
    }
  });

  test('API-12: the index has an ETag and answers 304', async () => {
    const first = await server.get('/openapi/v3');
    expect(first.headers['content-type']).toBe('application/json');
    expect(first.headers['etag']).toMatch(/^"[0-9A-F]{128}"$/);
    const etag = String(first.headers['etag']);
    const again = await server.get('/openapi/v3', { headers: { 'if-none-match': etag } });
    expect([again.status, again.text]).toEqual([304, '']);
  });

  test('API-12: a document under its hash is cached forever', async () => {
    const url = urlIn(await index(), 'apis/apps/v1') ?? '';
    const digest = url.split('hash=')[1];
    const answer = await server.get(url);
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.headers['etag']).toBe(`"${digest}"`);
    expect(answer.headers['cache-control']).toBe('public, immutable');
    expect(answer.headers['vary']).toContain('Accept');
    const yearMs = 365 * 24 * 60 * 60 * 1000;
    const lastsMs = Date.parse(String(answer.headers['expires'])) - Date.now();
    expect(lastsMs).toBeGreaterThan(yearMs - 600_000);
    expect(lastsMs).toBeLessThanOrEqual(yearMs);
  });

  test('API-12: a document without a hash is not cached', async () => {
    const answer = await server.get('/openapi/v3/api/v1');
    expect(answer.status).toBe(200);
    expect(answer.headers['cache-control']).not.toContain('immutable');
    expect(answer.headers['expires']).toBeUndefined();
  });

  test('API-12: another hash redirects to the current document', async () => {
    const answer = await server.get('/openapi/v3/api/v1?hash=ABC');
    expect(answer.status).toBe(301);
    expect(answer.headers['location']).toBe(urlIn(await index(), 'api/v1'));
    expect(answer.text).toBe('');
  });

  test.each(['/openapi/v3/apis/none.example.com/v1', '/openapi/v3/apis/apps/v2', '/openapi/v3/x'])(
    'API-12: there is no %s',
    async (path) => {
      const answer = await server.get(path);
      expect([answer.status, answer.body.reason]).toEqual([404, 'NotFound']);
    },
  );

  test.each(['/openapi/v2', '/openapi/v3', '/openapi/v3/api/v1'])(
    'API-12: %s is read-only',
    async (path) => {
      const answer = await server.post(path, {});
      expect([answer.status, answer.body.reason]).toEqual([405, 'MethodNotAllowed']);
    },
  );

  test('API-12: an unsupported encoding is 406', async () => {
    for (const path of ['/openapi/v2', '/openapi/v3/api/v1']) {
      const answer = await server.get(path, { accept: 'text/html' });
      expect([answer.status, answer.body.reason]).toEqual([406, 'NotAcceptable']);
    }
  });

  test('API-12: gzip is used when accepted', async () => {
    const headers = { 'accept-encoding': 'gzip' };
    const answer = await server.get('/openapi/v3/api/v1', { headers });
    expect(answer.headers['content-encoding']).toBe('gzip');
    expect(answer.body).toBeUndefined();
  });

  test('API-12: reading requires a user', async () => {
    const answer = await server.get('/openapi/v3', { token: undefined });
    expect([answer.status, answer.body.reason]).toEqual([403, 'Forbidden']);
  });
});

describe('the contents of documents', () => {
  test.each([
    'application/com.github.proto-openapi.spec.v3@v1.0+protobuf',
    'application/com.github.proto-openapi.spec.v3.v1.0+protobuf',
  ])('API-12: %s has the same contents as JSON', async (accept) => {
    const json = await server.get<OpenApiV3>('/openapi/v3/api/v1');
    const answer = await raw('/openapi/v3/api/v1', accept);
    expect(answer.type).toBe('application/com.github.proto-openapi.spec.v3.v1.0+protobuf');
    expect(answer.etag).toBe(json.headers['etag']);
    const read = protobuf
      .parse(protoV3Text)
      .root.lookupType('Document')
      .decode(answer.bytes) as protobuf.Message & DocumentV3;
    expect(read.openapi).toBe('3.0.0');
    expect(read.paths.path.map(({ name }) => name)).toEqual(Object.keys(json.body.paths));
    const schemas = new Map(read.components.schemas.named.map((entry) => schemaEntry(entry)));
    const { schemas: written } = json.body.components;
    expect([...schemas.keys()]).toEqual(Object.keys(written));
    const properties = new Map(
      schemas.get(`${core}ContainerPort`)?.properties.named.map((entry) => schemaEntry(entry)),
    );
    expect([...properties.keys()]).toEqual(
      Object.keys(written[`${core}ContainerPort`]!.properties),
    );
    const protocol = properties.get('protocol');
    expect([protocol?.type, protocol?.standard.string]).toEqual(['string', 'TCP']);
    // A default of 0 is present.
    expect(properties.get('containerPort')?.standard.kind).toBe('number');
    const pod = schemas.get(`${core}Pod`);
    const metadata = pod?.properties.named.find(({ name }) => name === 'metadata');
    expect(metadata?.value.schema.allOf[0]?.reference.ref).toBe(
      `#/components/schemas/${meta}ObjectMeta`,
    );
    const [kind] = pod?.extension.map(yamlEntry) ?? [];
    expect(kind).toEqual([
      'x-kubernetes-group-version-kind',
      '- group: ""\n  kind: Pod\n  version: v1\n',
    ]);
  });

  test('API-12: every reference resolves, and every operation has a unique id', async () => {
    for (const name of Object.keys(await index())) {
      const document = await part(name);
      expect(document.openapi).toBe('3.0.0');
      for (const ref of valuesOf('$ref', document)) {
        const defined = ref.slice('#/components/schemas/'.length);
        expect(document.components.schemas, ref).toHaveProperty([defined]);
      }
      const ids = operationsOf(document).map(({ operation }) => operation.operationId);
      expect(new Set(ids).size).toBe(ids.length);
    }
  });

  test('API-12: paths name their parameters, and all accept pretty', async () => {
    const { paths } = await part('api/v1');
    for (const [path, item] of Object.entries(paths)) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();
      const given = item.parameters ?? [];
      const named = given.filter((parameter) => parameter.in === 'path');
      expect(named.map(({ name }) => name).sort(), path).toEqual(inPath);
      for (const parameter of named) expect(parameter.required).toBe(true);
    }
    const pod = paths['/api/v1/namespaces/{namespace}/pods/{name}'];
    expect(pod?.parameters.map((parameter) => parameter.name)).toEqual([
      'name',
      'namespace',
      'pretty',
    ]);
  });

  test('API-12: every verb in discovery has an operation', async () => {
    const actions: Record<string, [OpenApiMethod, string]> = {
      create: ['post', 'post'],
      delete: ['delete', 'delete'],
      deletecollection: ['delete', 'deletecollection'],
      get: ['get', 'get'],
      list: ['get', 'list'],
      patch: ['patch', 'patch'],
      update: ['put', 'put'],
    };
    const names = Object.keys(await index()).filter((name) => /^apis?\/.*v\d/.test(name));
    for (const name of names) {
      const { body: discovery } = await server.get(`/${name}`);
      const document = await part(name);
      for (const resource of discovery.resources) {
        const [plural, sub] = resource.name.split('/');
        const base = resource.namespaced ? `/${name}/namespaces/{namespace}` : `/${name}`;
        for (const verb of resource.verbs) {
          const found = actions[verb];
          if (found === undefined) continue;
          const isWhole = ['create', 'deletecollection', 'list'].includes(verb);
          const end = sub !== undefined ? `/{name}/${sub}` : isWhole ? '' : '/{name}';
          const operation = document.paths[`${base}/${plural}${end}`]?.[found[0]];
          const action = operation?.['x-kubernetes-action'];
          expect([found[1], 'connect'], `${verb} ${resource.name}`).toContain(action);
        }
      }
    }
  });

  test('API-12: operations declare kind, parameters, bodies, and answers', async () => {
    const { paths } = await part('apis/apps/v1');
    const item = paths['/apis/apps/v1/namespaces/{namespace}/deployments/{name}'];
    const names = (operation: OpenApiPath['get'] | undefined) =>
      operation?.parameters.map((parameter) => parameter.name);
    expect(item?.patch).toMatchObject({
      operationId: 'patchAppsV1NamespacedDeployment',
      tags: ['apps_v1'],
      'x-kubernetes-action': 'patch',
      'x-kubernetes-group-version-kind': { group: 'apps', version: 'v1', kind: 'Deployment' },
    });
    expect(names(item?.patch)).toEqual(['dryRun', 'fieldManager', 'fieldValidation', 'force']);
    expect(Object.keys(item?.patch.requestBody.content ?? {}).sort()).toEqual([
      'application/apply-patch+yaml',
      'application/json-patch+json',
      'application/merge-patch+json',
      'application/strategic-merge-patch+json',
    ]);
    expect(Object.keys(item?.patch.responses ?? {})).toEqual(['200', '201', '401']);
    expect(names(item?.put)).toEqual(['dryRun', 'fieldManager', 'fieldValidation']);
    expect(names(item?.delete)).toEqual([
      'dryRun',
      'gracePeriodSeconds',
      'ignoreStoreReadErrorWithClusterBreakingPotential',
      'orphanDependents',
      'propagationPolicy',
    ]);
    const collection = paths['/apis/apps/v1/namespaces/{namespace}/deployments'];
    expect(Object.keys(collection?.post.responses ?? {})).toEqual(['200', '201', '202', '401']);
    expect(names(collection?.get)).toEqual([
      'allowWatchBookmarks',
      'continue',
      'fieldSelector',
      'labelSelector',
      'limit',
      'resourceVersion',
      'resourceVersionMatch',
      'sendInitialEvents',
      'timeoutSeconds',
      'watch',
    ]);
    expect(collection?.delete.operationId).toBe('deleteAppsV1CollectionNamespacedDeployment');
    const everywhere = paths['/apis/apps/v1/deployments']?.get;
    expect(everywhere?.operationId).toBe('listAppsV1DeploymentForAllNamespaces');
    const scale = paths['/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale']?.put;
    expect(scale?.operationId).toBe('replaceAppsV1NamespacedDeploymentScale');
    expect(scale?.requestBody.content['*/*']?.schema.$ref).toBe(
      '#/components/schemas/io.k8s.api.autoscaling.v1.Scale',
    );
  });

  test('API-12: schemas of built-in kinds have kube-apiserver’s names and extensions', async () => {
    const { schemas } = (await part('api/v1')).components;
    const pod = schemas[`${core}Pod`];
    const podKind = { group: '', version: 'v1', kind: 'Pod' };
    expect(pod?.['x-kubernetes-group-version-kind']).toEqual([podKind]);
    expect(pod?.properties.metadata).toEqual({ ...metadataOfAll, default: {} });
    expect(schemas[`${core}ContainerPort`]).toMatchObject({
      required: ['containerPort'],
      properties: {
        containerPort: { type: 'integer', format: 'int32', default: 0 },
        protocol: { type: 'string', default: 'TCP', enum: ['SCTP', 'TCP', 'UDP'] },
        hostIP: { type: 'string' },
      },
    });
    expect(schemas[`${core}Container`]?.properties.ports).toMatchObject({
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['containerPort', 'protocol'],
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'containerPort',
    });
    expect(schemas[`${core}ConfigMap`]?.properties.binaryData?.additionalProperties).toEqual({
      type: 'string',
      format: 'byte',
    });
    expect(schemas[`${core}ObjectReference`]?.['x-kubernetes-map-type']).toBe('atomic');
    const time = { description, type: 'string', format: 'date-time' };
    expect([schemas[`${meta}Time`], schemas[`${meta}MicroTime`]]).toEqual([time, time]);
    expect(schemas[`${machinery}api.resource.Quantity`]).toEqual({
      description,
      oneOf: [{ type: 'string' }, { type: 'number' }],
    });
    expect(schemas[`${machinery}util.intstr.IntOrString`]).toEqual({
      description,
      oneOf: [{ type: 'integer' }, { type: 'string' }],
      format: 'int-or-string',
    });
    const raw = schemas[`${machinery}runtime.RawExtension`];
    expect(raw).toEqual({ description, type: 'object' });
    expect(schemas[`${meta}DeleteOptions`]?.['x-kubernetes-group-version-kind']).toContainEqual({
      group: 'apps',
      version: 'v1',
      kind: 'DeleteOptions',
    });
  });

  test('API-12: the schema of schemas is recursive', async () => {
    const { schemas } = (await part('apis/apiextensions.k8s.io/v1')).components;
    const prefix = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.';
    const props = schemas[`${prefix}JSONSchemaProps`]?.properties;
    expect(props?.not?.allOf).toEqual([{ $ref: `#/components/schemas/${prefix}JSONSchemaProps` }]);
    expect(schemas[`${prefix}JSONSchemaPropsOrBool`]).toEqual({ description });
    expect(schemas[`${prefix}CustomResourceDefinitionList`]?.properties.items?.items).toEqual({
      allOf: [{ $ref: `#/components/schemas/${prefix}CustomResourceDefinition` }],
      default: {},
    });
  });

  test('API-12: the default dialect names types after its own domain', async () => {
    const svcServer = await withServer();
    const { body } = await svcServer.get<OpenApiV3>(
      '/openapi/v3/apis/rbac.authorization.svc.io/v1',
    );
    expect(body.components.schemas).toHaveProperty(['io.svc.api.rbac.v1.Role']);
    const item =
      body.paths['/apis/rbac.authorization.svc.io/v1/namespaces/{namespace}/roles/{name}'];
    expect(item?.get.operationId).toBe('readRbacAuthorizationV1NamespacedRole');
    expect(JSON.stringify(body)).not.toContain('k8s');
  });
});

describe('OpenAPI v2', () => {
  const protobufType = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';

  test('API-12: the whole API is one document with an ETag', async () => {
    const answer = await server.get<OpenApiV2>('/openapi/v2');
    expect(answer.status).toBe(200);
    const document = answer.body;
    expect(document.swagger).toBe('2.0');
    for (const ref of valuesOf('$ref', document)) {
      expect(document.definitions, ref).toHaveProperty([ref.slice('#/definitions/'.length)]);
    }
    const ids = operationsOf(document).map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const etag = String(answer.headers['etag']);
    const again = await server.get('/openapi/v2', { headers: { 'if-none-match': etag } });
    expect([again.status, again.text]).toEqual([304, '']);
  });

  test('API-12: it has nothing that OpenAPI v2 cannot express', async () => {
    const { definitions, paths } = (await server.get<OpenApiV2>('/openapi/v2')).body;
    const text = JSON.stringify(definitions);
    for (const word of ['"oneOf":[', '"anyOf":[', '"allOf":[', '"nullable":true']) {
      expect(text.includes(word), word).toBe(false);
    }
    expect(definitions[`${machinery}util.intstr.IntOrString`]).toEqual({
      description,
      type: 'string',
      format: 'int-or-string',
    });
    const post = paths['/api/v1/namespaces/{namespace}/pods']?.post;
    expect(post?.parameters[0]).toEqual({
      name: 'body',
      in: 'body',
      required: true,
      schema: { $ref: `#/definitions/${core}Pod` },
    });
    expect(post?.parameters[1]).toEqual({
      name: 'dryRun',
      in: 'query',
      type: 'string',
      uniqueItems: true,
    });
  });

  test.each([protobufType, 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'])(
    'API-12: %s has the same contents as JSON',
    async (accept) => {
      const json = await server.get<OpenApiV2>('/openapi/v2');
      const answer = await raw('/openapi/v2', accept);
      expect(answer.type).toBe('application/com.github.proto-openapi.spec.v2.v1.0+protobuf');
      expect(answer.etag).toBe(json.headers['etag']);
      const document = protobuf.parse(protoText).root.lookupType('Document').decode(answer.bytes);
      const read = document as protobuf.Message & DocumentV2;
      expect(read.swagger).toBe('2.0');
      const paths = new Map(read.paths.path.map((entry) => entryOf(entry)));
      expect([...paths.keys()]).toEqual(Object.keys(json.body.paths));
      const patch = paths.get('/api/v1/namespaces/{namespace}/pods/{name}')?.patch;
      expect(patch?.operationId).toBe('patchCoreV1NamespacedPod');
      const query = patch?.parameters.map((parameter) => parameter.parameter.nonBody?.query?.name);
      expect(query).toEqual([undefined, 'dryRun', 'fieldManager', 'fieldValidation', 'force']);
      const extensions = patch?.extension.map(yamlEntry);
      expect(extensions).toContainEqual(['x-kubernetes-action', 'patch\n']);
      const definitions = new Map(read.definitions.named.map((entry) => entryOf(entry)));
      expect([...definitions.keys()]).toEqual(Object.keys(json.body.definitions));
      const port = definitions.get(`${core}ContainerPort`);
      expect(port?.type.value).toEqual(['object']);
      expect(port?.required).toEqual(['containerPort']);
      expect(port?.properties.named.map(({ name }) => name)).toEqual(
        Object.keys(json.body.definitions[`${core}ContainerPort`]!.properties),
      );
    },
  );
});

const protoText = `syntax = "proto3";
message Any { string yaml = 2; }
message NamedAny { string name = 1; Any value = 2; }
message Document { string swagger = 1; Paths paths = 8; Definitions definitions = 9; }
message Paths { repeated NamedPathItem path = 2; }
message NamedPathItem { string name = 1; PathItem value = 2; }
message PathItem { Operation get = 2; Operation patch = 8; repeated ParametersItem parameters = 9; }
message Operation {
  repeated string tags = 1; string operationId = 5; repeated ParametersItem parameters = 8;
  repeated NamedAny extension = 13;
}
message ParametersItem { Parameter parameter = 1; }
message Parameter { BodyParameter body = 1; NonBodyParameter nonBody = 2; }
message BodyParameter { string name = 2; Schema schema = 5; }
message NonBodyParameter { QueryParameter query = 3; QueryParameter path = 4; }
message QueryParameter { string name = 4; }
message Definitions { repeated NamedSchema named = 1; }
message NamedSchema { string name = 1; Schema value = 2; }
message TypeItem { repeated string value = 1; }
message Properties { repeated NamedSchema named = 1; }
message Schema {
  string ref = 1; repeated string required = 19; TypeItem type = 22; Properties properties = 25;
  repeated NamedAny extension = 31;
}`;

const protoV3Text = `syntax = "proto3";
message Any { string yaml = 2; }
message NamedAny { string name = 1; Any value = 2; }
message Document { string openapi = 1; Paths paths = 4; Components components = 5; }
message Paths { repeated NamedPathItem path = 1; }
message NamedPathItem { string name = 1; }
message Components { Schemas schemas = 1; }
message Schemas { repeated NamedSchema named = 1; }
message NamedSchema { string name = 1; SchemaOrReference value = 2; }
message SchemaOrReference { Schema schema = 1; Reference reference = 2; }
message Reference { string ref = 1; }
message DefaultType { oneof kind { double number = 1; bool boolean = 2; string string = 3; } }
message Schema {
  string type = 25; repeated SchemaOrReference allOf = 26; Schemas properties = 31;
  DefaultType standard = 33; repeated NamedAny extension = 36;
}`;

async function raw(path: string, accept: string) {
  const { get } = await import('node:https');
  return new Promise<{ bytes: Buffer; type: string; etag: string }>((resolve, reject) => {
    const headers = { accept, authorization: `Bearer ${adminToken}` };
    get(`${server.url}${path}`, { headers, rejectUnauthorized: false, agent: false }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () =>
        resolve({
          bytes: Buffer.concat(chunks),
          type: String(answer.headers['content-type']),
          etag: String(answer.headers.etag),
        }),
      );
    }).on('error', reject);
  });
}

describe('custom kinds', () => {
  test('API-12: appear in full within a second of being established, and disappear', async () => {
    const group = 'stable.example.com';
    const before = await index();
    const path = await establish(crontabs(group));
    const appeared = async (round: number) => {
      const own = round === 0 ? group : `stable${round}.example.com`;
      if (round > 0) await establish(crontabs(own));
      const establishedMs = performance.now();
      await eventually(async () => urlIn(await index(), `apis/${own}/v1`), 'the document');
      return performance.now() - establishedMs;
    };
    expect(await onceWithin(1000, appeared)).toBe(true);
    const after = await index();
    expect(urlIn(after, 'api/v1')).toBe(urlIn(before, 'api/v1'));
    const { components, paths } = await part(`apis/${group}/v1`);
    const tab = components.schemas['com.example.stable.v1.CronTab'];
    expect(tab?.['x-kubernetes-group-version-kind']).toEqual([
      { group, version: 'v1', kind: 'CronTab' },
    ]);
    expect(tab?.['x-kubernetes-selectable-fields']).toEqual([{ fieldPath: 'spec.image' }]);
    const { spec, apiVersion, kind, metadata } = tab?.properties ?? {};
    const typeMetaSchema = { description, type: 'string' };
    expect([apiVersion, kind, metadata]).toEqual([typeMetaSchema, typeMetaSchema, metadataOfAll]);
    expect(tab).toMatchObject({
      description: 'A tab.',
      required: ['spec'],
      'x-kubernetes-validations': [{ rule: 'true', message: 'never' }],
    });
    expect(spec).toMatchObject({
      ...tabSpec,
      properties: {
        ...tabSpec.properties,
        port: {
          'x-kubernetes-int-or-string': true,
          anyOf: [{ type: 'integer' }, { type: 'string' }],
        },
        pod: { required: ['kind', 'apiVersion'], properties: { metadata: metadataOfAll } },
      },
    });
    const patch = paths[`/apis/${group}/v1/namespaces/{namespace}/crontabs/{name}`]?.patch;
    expect(patch?.operationId).toBe('patchStableExampleComV1NamespacedCronTab');
    expect(Object.keys(patch!.requestBody.content)).not.toContain(
      'application/strategic-merge-patch+json',
    );
    expect(paths).toHaveProperty([
      `/apis/${group}/v1/namespaces/{namespace}/crontabs/{name}/scale`,
    ]);
    const alpha = await part(`apis/${group}/v1alpha1`);
    expect(alpha.paths).not.toHaveProperty([
      `/apis/${group}/v1alpha1/namespaces/{namespace}/crontabs/{name}/scale`,
    ]);
    expect((await server.remove(path)).status).toBe(200);
    await eventually(async () => urlIn(await index(), `apis/${group}/v1`) === undefined, 'removal');
    expect((await server.get(`/openapi/v3/apis/${group}/v1`)).status).toBe(404);
    const { body } = await server.get('/openapi/v2');
    expect(body.definitions).not.toHaveProperty(['com.example.stable.v1.CronTab']);
  });

  test('API-12: a changed schema has a new hash', async () => {
    const group = 'changing.example.com';
    const path = await establish(crontabs(group));
    const name = `apis/${group}/v1`;
    const first = await eventually(async () => urlIn(await index(), name), 'the document');
    const { body } = await server.get(path);
    const spec = { ...body.spec, ...crontabs(group, { description: 'Another tab.' }).spec };
    expect((await server.put(path, { ...body, spec })).status).toBe(200);
    await eventually(async () => urlIn(await index(), name) !== first, 'the new digest');
    const tab = (await part(name)).components.schemas['com.example.changing.v1.CronTab'];
    expect(tab?.description).toBe('Another tab.');
    const old = await server.get(first);
    expect([old.status, old.headers['location']]).toEqual([301, urlIn(await index(), name)]);
    await server.remove(path);
  });

  test('API-12: OpenAPI v2 omits what it cannot express', async () => {
    const group = 'older.example.com';
    const path = await establish(crontabs(group));
    const { definitions } = await eventually(async () => {
      const { body } = await server.get<OpenApiV2>('/openapi/v2');
      return body.definitions['com.example.older.v1.CronTab'] === undefined ? undefined : body;
    }, 'the definition');
    const { spec } = definitions['com.example.older.v1.CronTab']?.properties ?? {};
    expect(spec?.properties.port).toEqual({ 'x-kubernetes-int-or-string': true });
    expect(spec?.properties.image).toEqual({ maxLength: 9 });
    expect(spec?.required).toEqual(['parts']);
    expect(spec?.properties.either).toEqual({ type: 'string' });
    expect(spec?.properties.raw).toEqual({ 'x-kubernetes-preserve-unknown-fields': true });
    expect(definitions['com.example.older.v1alpha1.CronTab']).toEqual({
      type: 'object',
      'x-kubernetes-group-version-kind': [{ group, version: 'v1alpha1', kind: 'CronTab' }],
      'x-kubernetes-selectable-fields': [],
    });
    expect(definitions['com.example.older.v1.CronTabList']?.properties.items?.items).toEqual({
      $ref: '#/definitions/com.example.older.v1.CronTab',
    });
    await server.remove(path);
  });
});
