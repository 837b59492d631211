import { beforeEach, expect, test } from 'vitest';
import type { OpenApiIndex } from '../documents/openapi-part.ts';
import { eventually } from '../support/harness.ts';
import { apiServices, handOver, withExtension } from './extension-server.ts';

const { server, extension } = await withExtension();
beforeEach(() => {
  extension.reset();
  extension.answerOwn = (got) => extension.answer(got);
});

interface WholeDocument {
  readonly info: { readonly title: string };
  readonly paths: Readonly<Record<string, { readonly post: { readonly operationId: string } }>>;
  readonly parameters: { readonly pretty: { readonly in: string } };
}

/** An OpenAPI 2 document about kinds of a group, and about kinds outside of it. */
function document(group: string) {
  const name = `com.${group}.Thing`;
  const thing = { $ref: `#/definitions/${name}` };
  return {
    swagger: '2.0',
    info: { title: 'theirs', version: 'v7' },
    paths: {
      [`/apis/${group}/v1/things`]: {
        parameters: [{ $ref: '#/parameters/pretty' }],
        post: {
          operationId: 'createThing',
          consumes: ['application/json'],
          produces: ['application/json'],
          parameters: [{ name: 'body', in: 'body', required: true, schema: thing }],
          responses: {
            '201': { description: 'Created', schema: thing },
            '401': { description: 'No' },
          },
          'x-kubernetes-action': 'post',
        },
      },
      '/apis/stray.example.com/v1/things': { get: { responses: {} } },
    },
    definitions: {
      [name]: { type: 'object', properties: { next: { ...thing, description: 'Another.' } } },
      'io.svc.api.apps.v1.Deployment': { type: 'string' },
    },
    parameters: { pretty: { name: 'pretty', in: 'query', type: 'string' } },
  };
}

/** Answers documents by their paths, and everything else as usual. */
function serve(documents: Record<string, unknown>, etag = ''): string[] {
  const asked: string[] = [];
  extension.answer = ({ path, request, response }) => {
    if (!path.startsWith('/openapi/')) return false;
    asked.push(`${path} ${request.headers['x-remote-user']}`);
    const found = Object.hasOwn(documents, path) ? documents[path] : undefined;
    const isKnown = etag !== '' && request.headers['if-none-match'] === etag;
    const status = found === undefined ? 404 : isKnown ? 304 : 200;
    response.writeHead(status, etag === '' ? {} : { etag });
    response.end(typeof found === 'string' ? found : JSON.stringify(found ?? {}));
    return true;
  };
  return asked;
}

test('ADM-4: only paths of the APIService’s group version are merged from another server', async () => {
  const group = 'schema.example.com';
  const name = `apis/${group}/v1`;
  const asked = serve({
    '/openapi/v2': document(group),
    '/openapi/v3': {
      paths: {
        [name]: { serverRelativeURL: `/openapi/v3/${name}?hash=AB` },
        'apis/apps/v1': { serverRelativeURL: '/openapi/v3/apis/apps/v1?hash=EVIL' },
      },
    },
    [`/openapi/v3/${name}`]: { openapi: '3.0.0', mine: true },
  });
  await handOver(server, extension, { group });
  const { body: index } = await server.get<OpenApiIndex>('/openapi/v3');
  expect(index.paths[name]).toEqual({ serverRelativeURL: `/openapi/v3/${name}?hash=AB` });
  expect(index.paths['apis/apps/v1']!.serverRelativeURL).not.toContain('EVIL');
  expect((await server.get(`/openapi/v3/${name}?hash=AB`)).body).toEqual({
    openapi: '3.0.0',
    mine: true,
  });
  expect(asked).toContain('/openapi/v3 system:aggregator');
  expect(asked).toContain(`/openapi/v3/${name} system:admin`);
  const { body: whole } = await server.get<WholeDocument>('/openapi/v2');
  expect(whole.info.title).toBe('svc');
  expect(whole.paths[`/apis/${group}/v1/things`]?.post.operationId).toBe('createThing');
  expect(whole.paths['/apis/stray.example.com/v1/things']).toBeUndefined();
  expect(whole.parameters.pretty.in).toBe('query');
  expect((await server.get('/openapi/v3/apis/apps/v1')).body.mine).toBeUndefined();
  await server.remove(`${apiServices}/v1.${group}`);
  await eventually(async () => {
    const { body } = await server.get('/openapi/v3');
    return body.paths[name] === undefined;
  }, 'the document to go');
  expect((await server.get('/openapi/v2')).body.paths[`/apis/${group}/v1/things`]).toBeUndefined();
});

test('TRUST-2: other requests are answered while thousands of definitions are merged', async () => {
  const group = 'wide.example.com';
  const names = Array.from({ length: 1_500 }, (_, index) => `com.wide.Thing${index}`);
  const properties = Object.fromEntries(
    names.map((name, index) => [`p${index}`, { $ref: `#/definitions/${name}` }]),
  );
  const definitions = Object.fromEntries(
    names.map((name) => [name, { type: 'object', description: 'x'.repeat(300), properties: {} }]),
  );
  const first = `com.${group}.Thing`;
  const { paths } = document(group);
  const wide = { type: 'object', properties };
  serve({
    '/openapi/v2': { ...document(group), paths, definitions: { ...definitions, [first]: wide } },
  });
  await handOver(server, extension, { group });
  for (const accept of [
    'application/json',
    `application/com.github.proto-openapi.spec.v2.v1.0+protobuf`,
  ]) {
    let isOver = false;
    const merging = server.get('/openapi/v2', { accept }).finally(() => {
      isOver = true;
    });
    let answered = 0;
    await eventually(async () => {
      expect((await server.get('/version')).status).toBe(200);
      answered += 1;
      return isOver;
    }, 'the merged document');
    const { status, text } = await merging;
    expect(status).toBe(200);
    const found = new Set(text.match(/com\.wide\.Thing\d+/g));
    expect(names.filter((name) => !found.has(name))).toEqual([]);
    expect(answered).toBeGreaterThan(3);
  }
  await server.remove(`${apiServices}/v1.${group}`);
});

test('ADM-4: a server with OpenAPI 2 only is published in OpenAPI 3 too', async () => {
  const group = 'old.example.com';
  const name = `apis/${group}/v1`;
  const asked = serve({ '/openapi/v2': document(group) }, '"7"');
  await handOver(server, extension, { group });
  const { body: index } = await server.get<OpenApiIndex>('/openapi/v3');
  const { serverRelativeURL } = index.paths[name]!;
  expect(serverRelativeURL).toMatch(new RegExp(`^/openapi/v3/${name}\\?hash=[0-9A-F]+$`));
  const { body, headers } = await server.get(serverRelativeURL);
  expect(headers['cache-control']).toBe('public, immutable');
  const $ref = `#/components/schemas/com.${group}.Thing`;
  const content = { 'application/json': { schema: { $ref } } };
  expect(body).toEqual({
    openapi: '3.0.0',
    info: { title: 'theirs', version: 'v7' },
    paths: {
      [`/apis/${group}/v1/things`]: {
        parameters: [{ name: 'pretty', in: 'query', schema: { type: 'string' } }],
        post: {
          operationId: 'createThing',
          requestBody: { content },
          responses: { '201': { description: 'Created', content }, '401': { description: 'No' } },
          'x-kubernetes-action': 'post',
        },
      },
    },
    components: {
      schemas: {
        [`com.${group}.Thing`]: {
          type: 'object',
          properties: { next: { description: 'Another.', allOf: [{ $ref }] } },
        },
      },
    },
  });
  expect((await server.get(`/openapi/v3/${name}?hash=0`)).headers['location']).toBe(
    serverRelativeURL,
  );
  const count = asked.length;
  await server.get('/openapi/v3');
  await server.get('/openapi/v2');
  expect(asked.length).toBe(count);
});

test.each([
  ['garbage', 'x{'],
  ['lists', '[]'],
  ['wrong', '{"paths":[]}'],
  ['deep', `{"paths":{"/apis/deep.example.com/v1/x":${'{"a":'.repeat(500)}1${'}'.repeat(500)}}}`],
  ['large', `{"a":"${'x'.repeat(17 * 1024 * 1024)}"}`],
])('ADM-4: OpenAPI that is %s does not affect the local documents', async (what, text) => {
  const group = `${what}.example.com`;
  serve({ '/openapi/v2': text, '/openapi/v3': text });
  await handOver(server, extension, { group });
  const whole = await server.get('/openapi/v2');
  expect(whole.status).toBe(200);
  expect(whole.body.paths['/api/v1/pods']).toBeDefined();
  const index = await server.get('/openapi/v3');
  expect(index.body.paths['apis/apps/v1']).toBeDefined();
  expect(index.body.paths[`apis/${group}/v1`]).toBeUndefined();
  expect((await server.get(`/openapi/v3/apis/${group}/v1`)).status).toBe(404);
  await server.remove(`${apiServices}/v1.${group}`);
});

test('ADM-4: what protobuf cannot express is omitted from protobuf only', async () => {
  const group = 'numbers.example.com';
  const served = document(group);
  Object.assign(served.definitions[`com.${group}.Thing`] ?? {}, { minLength: 'many' });
  serve({ '/openapi/v2': served });
  await handOver(server, extension, { group });
  const { body } = await server.get('/openapi/v2');
  expect(body.paths[`/apis/${group}/v1/things`]).toBeDefined();
  const accept = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';
  const binary = await server.get('/openapi/v2', { accept });
  expect(binary.status).toBe(200);
  expect(binary.text).toContain('io.svc.api.core.v1.Pod');
  expect(binary.text).not.toContain(group);
});
