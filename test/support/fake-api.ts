import http from 'node:http';
import { isObject, type JsonObject } from '@wheelhouse/machinery';
import { listenLocally } from './local-server.ts';

/** A request that the fake server received, for tests to inspect. */
export interface ReceivedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

export interface FakeApi {
  readonly url: string;
  readonly received: ReceivedRequest[];
  readonly objects: Map<string, JsonObject>;
  close(): Promise<void>;
}

const group = {
  items: [
    {
      metadata: { name: 'apps' },
      versions: [{ version: 'v1', resources: [resource('deployments', 'Deployment', ['deploy'])] }],
    },
  ],
};
const core = {
  items: [
    {
      metadata: { name: '' },
      versions: [
        {
          version: 'v1',
          resources: [
            resource('configmaps', 'ConfigMap', ['cm']),
            resource('secrets', 'Secret', []),
            { ...resource('namespaces', 'Namespace', ['ns']), scope: 'Cluster' },
          ],
        },
      ],
    },
  ],
};

function resource(name: string, kind: string, shortNames: string[]): JsonObject {
  return {
    resource: name,
    singularResource: kind.toLowerCase(),
    responseKind: { group: '', version: 'v1', kind },
    scope: 'Namespaced',
    shortNames,
    categories: name === 'configmaps' ? ['all'] : [],
    verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  };
}

function statusOf(code: number, reason: string, message: string, kind: string): JsonObject {
  const details = { kind };
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message, details };
}

/** Starts a fake server for tests that serves discovery and objects by path, without any rules. */
export async function startFakeApi(): Promise<FakeApi> {
  const received: ReceivedRequest[] = [];
  const objects = new Map<string, JsonObject>();
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = '', url = '', headers } = request;
    const body = Buffer.concat(chunks).toString();
    received.push({ method, url, headers, body });
    const { status, answer } = answerTo({ method, url, body, objects });
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer));
  });
  const port = await listenLocally(server);
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    objects,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

interface FakeRequest {
  readonly method: string;
  readonly url: string;
  readonly body: string;
  readonly objects: Map<string, JsonObject>;
}

function answerTo(request: FakeRequest): { status: number; answer: JsonObject } {
  const { method, objects } = request;
  const { pathname, searchParams } = new URL(request.url, 'http://fake');
  const head = { kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.svc.io/v2' };
  if (pathname === '/api') return { status: 200, answer: { ...head, ...core } };
  if (pathname === '/apis') return { status: 200, answer: { ...head, ...group } };
  const parts = pathname.split('/');
  const stored = objects.get(pathname);
  if (method === 'GET' && stored === undefined && !hasName(parts)) {
    const items = [...objects]
      .filter(([path]) => path.startsWith(`${pathname}/`))
      .map(([, object]) => object);
    return { status: 200, answer: { kind: 'ConfigMapList', apiVersion: 'v1', items } };
  }
  if (method === 'POST') return create(request, pathname);
  if (stored === undefined && !request.url.includes('force=')) {
    const [kind = '', name = ''] = parts.slice(-2);
    const message = `${kind} ${JSON.stringify(name)} not found`;
    return { status: 404, answer: statusOf(404, 'NotFound', message, kind) };
  }
  if (method === 'GET') return { status: 200, answer: stored! };
  if (method === 'DELETE') {
    objects.delete(pathname);
    return { status: 200, answer: { kind: 'Status', apiVersion: 'v1', status: 'Success' } };
  }
  const change = JSON.parse(request.body) as JsonObject;
  const changed = method === 'PATCH' ? merged(stored ?? {}, change) : change;
  if (searchParams.get('dryRun') !== 'All') objects.set(pathname, changed);
  return { status: 200, answer: changed };
}

/** Collections have an odd number of segments: `/api/v1/namespaces/a/configmaps`. */
function hasName(parts: readonly string[]): boolean {
  const below = parts.slice(parts[1] === 'api' ? 3 : 4);
  return (below[0] === 'namespaces' && below.length > 2 ? below.slice(2) : below).length > 1;
}

function create({ body, objects }: FakeRequest, pathname: string) {
  const object = JSON.parse(body) as JsonObject;
  const name = isObject(object.metadata) ? String(object.metadata.name) : '';
  const path = `${pathname}/${name}`;
  if (objects.has(path)) {
    const kind = pathname.split('/').at(-1) ?? '';
    const message = `${kind} ${JSON.stringify(name)} already exists`;
    return { status: 409, answer: statusOf(409, 'AlreadyExists', message, kind) };
  }
  objects.set(path, object);
  return { status: 201, answer: object };
}

function merged(target: JsonObject, patch: JsonObject): JsonObject {
  const result: JsonObject = { ...target };
  for (const [name, value] of Object.entries(patch)) {
    const previous = result[name];
    if (value === null) delete result[name];
    else
      result[name] = isObject(value) ? merged(isObject(previous) ? previous : {}, value) : value!;
  }
  return result;
}
