import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, systemClock } from '@wheelhouse/machinery';
import { readOptions } from '@wheelhouse/server/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { startAdmissionService } from '../admission/admission-service.ts';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { type ConfigChange, configMap, eventually, type TestServer } from '../support/harness.ts';
import { type CollectedSpan, startTraceCollector } from '../support/trace-collector.ts';
import { withServer } from '../support/with-server.ts';

let directory: string;
let collector: Awaited<ReturnType<typeof startTraceCollector>>;

beforeEach(async () => {
  directory = temporaryFolder();
  collector = await untilEnd(startTraceCollector());
});

/** A host clock on which periodic tasks, such as sending spans, run often. */
const busyClock: Clock = {
  ...systemClock,
  every: (periodMs, task) => systemClock.every(Math.max(5, periodMs / 100), task),
};
const maps = '/api/v1/namespaces/default/configmaps';

function configFile(members: object): string {
  const file = join(directory, 'tracing.json');
  const head = { apiVersion: 'apiserver.config.svc.io/v1beta1', kind: 'TracingConfiguration' };
  writeFileSync(file, JSON.stringify({ ...head, ...members }));
  return file;
}

/** Starts a server that sends its spans every few milliseconds. */
function tracedServer(members: object = {}, change: ConfigChange = {}): Promise<TestServer> {
  const endpoint = `127.0.0.1:${collector.port}`;
  const file = configFile({ endpoint, samplingRatePerMillion: 1_000_000, ...members });
  return withServer({ tracing: { file }, clock: busyClock, ...change });
}

/** The spans of the trace whose first span has this name, once that span has arrived. */
async function traceOf(name: string): Promise<readonly CollectedSpan[]> {
  const root = await eventually(
    async () => collector.spans.find((span) => span.name === name),
    () => `${name} among ${collector.spans.map((span) => span.name).join(', ')}`,
  );
  return collector.spans.filter(({ traceId }) => traceId === root.traceId);
}

const named = (spans: readonly CollectedSpan[], name: string) => {
  const found = spans.find((span) => span.name === name);
  if (found === undefined) throw new Error(`no ${name}: ${spans.map((span) => span.name).join()}`);
  return found;
};

describe('spans', () => {
  test('OPS-1: a create is traced from its gates to the store', async () => {
    const server = await tracedServer();
    const made = await server.post(maps, configMap('a'), { headers: { 'user-agent': 'tester' } });
    expect(made.status).toBe(201);
    const spans = await traceOf('POST /api/v1/namespaces/{:namespace}/configmaps');
    const root = named(spans, 'POST /api/v1/namespaces/{:namespace}/configmaps');
    expect(root).toMatchObject({ kind: 2, parentSpanId: '', links: [], status: 0 });
    expect(root.attributes).toMatchObject({
      'http.method': 'POST',
      'http.target': maps,
      'http.status_code': 201,
      'user_agent.original': 'tester',
      'audit-id': made.headers['audit-id'],
    });
    const create = named(spans, 'Create');
    expect(create.parentSpanId).toBe(root.spanId);
    expect(create.attributes).toMatchObject({
      accept: expect.any(String),
      'audit-id': made.headers['audit-id'],
      client: '127.0.0.1',
      'api-group': '',
      'api-version': 'v1',
      name: '',
      namespace: 'default',
      protocol: 'HTTP/2.0',
      resource: 'configmaps',
      scope: 'namespace',
      url: maps,
      'user-agent': 'tester',
      verb: 'CREATE',
    });
    const stored = named(spans, 'Create memory');
    expect(stored.parentSpanId).toBe(create.spanId);
    expect(stored.attributes).toEqual({ key: '/registry/configmaps/default/a' });
    for (const gate of ['authentication', 'priorityandfairness', 'authorization']) {
      expect(named(spans, gate).parentSpanId).toBe(root.spanId);
    }
    for (const { startNs, endNs } of spans) {
      expect(endNs >= startNs && startNs >= root.startNs && endNs <= root.endNs).toBe(true);
    }
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
    expect(collector.paths[0]).toBe('/opentelemetry.proto.collector.trace.v1.TraceService/Export');
    expect(collector.resources[0]).toMatchObject({
      'service.name': 'apiserver',
      'service.instance.id': expect.stringMatching(/^apiserver-/),
    });
  });

  test('OPS-1: other verbs, paths, and failures have their own names', async () => {
    const server = await tracedServer();
    await server.post(maps, configMap('a'));
    await server.get(`${maps}/a`);
    named(await traceOf('GET /api/v1/namespaces/{:namespace}/configmaps/{:name}'), 'Get');
    await server.get('/apis/apps/v1/deployments');
    named(await traceOf('GET /apis/apps/v1/deployments'), 'List');
    await server.patch(`${maps}/a`, { data: { a: '2' } }, 'merge');
    const patched = await traceOf('PATCH /api/v1/namespaces/{:namespace}/configmaps/{:name}');
    named(patched, 'GuaranteedUpdate memory');
    await server.remove(`${maps}/a`);
    const removed = await traceOf('DELETE /api/v1/namespaces/{:namespace}/configmaps/{:name}');
    named(removed, 'Delete');
    await server.get('/version?access_token=hidden&a=b');
    const [version, ...others] = (await traceOf('GET')).filter(({ kind }) => kind === 2);
    expect(others).toEqual([]);
    expect(version?.attributes['http.target']).toBe('/version?access_token=REDACTED&a=b');
    await server.get('/api/v1/configmaps', { token: 'nobody' });
    const refused = named(await traceOf('GET /api/v1/configmaps'), 'GET /api/v1/configmaps');
    expect(refused.attributes['http.status_code']).toBe(401);
    expect(refused.status).toBe(0);
  });

  test('OPS-1: long texts are truncated', async () => {
    const server = await tracedServer();
    const long = 'x'.repeat(5_000);
    await server.get(`${maps}/${long}`, { headers: { 'user-agent': long } });
    await server.get(`/apis/${long}/v1/a`);
    const short = 'x'.repeat(2048);
    const get = named(
      await traceOf('GET /api/v1/namespaces/{:namespace}/configmaps/{:name}'),
      'Get',
    );
    expect(get.attributes).toMatchObject({ name: short, 'user-agent': short });
    await traceOf(`GET /apis/${long}`.slice(0, 2048));
  });

  test('OPS-1: a webhook receives the trace context, and its call is a span', async () => {
    const service = await untilEnd(startAdmissionService());
    const server = await tracedServer();
    const hook = {
      name: 'h.example.com',
      clientConfig: { url: service.url, caBundle: service.caBundle },
      rules: [
        { apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['*'] },
      ],
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
    };
    await server.post('/apis/admissionregistration.svc.io/v1/validatingwebhookconfigurations', {
      apiVersion: 'admissionregistration.svc.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'c' },
      webhooks: [hook],
    });
    await eventually(async () => {
      await server.post(`${maps}?dryRun=All`, configMap('a'));
      return service.received.length > 0;
    }, 'the call');
    const traceparent = String(service.received[0]?.headers['traceparent']);
    expect(traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    const [, traceId, spanId] = traceparent.split('-');
    await eventually(
      async () => collector.spans.some((span) => span.spanId === spanId),
      'the span',
    );
    const spans = collector.spans.filter((span) => span.traceId === traceId);
    const post = named(spans, 'HTTP POST');
    expect(post).toMatchObject({ kind: 3, spanId });
    const call = named(spans, 'Call validating webhook');
    expect(post.parentSpanId).toBe(call.spanId);
    expect(call.attributes).toMatchObject({
      configuration: 'c',
      webhook: 'h.example.com',
      resource: '/v1, Resource=configmaps',
      subresource: '',
      operation: 'CREATE',
      UID: expect.any(String),
    });
  });
});

describe('sampling', () => {
  const parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

  test('OPS-1: a client’s trace is linked, and an invalid one ignored', async () => {
    const server = await tracedServer();
    await server.get(`${maps}/a`, { headers: { traceparent: parent } });
    const name = 'GET /api/v1/namespaces/{:namespace}/configmaps/{:name}';
    const linked = named(await traceOf(name), name);
    expect(linked.traceId).not.toBe('0af7651916cd43dd8448eb211c80319c');
    expect(linked.links).toEqual(['0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331']);
    const wrong = [
      'x',
      parent.slice(0, -1),
      `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
      `00-0af7651916cd43dd8448eb211c80319c-${'0'.repeat(16)}-01`,
    ];
    for (const traceparent of wrong) {
      await server.get('/api/v1/nodes/n', { headers: { traceparent } });
    }
    const isNode = (span: CollectedSpan) => span.name === 'GET /api/v1/nodes/{:name}';
    await eventually(async () => collector.spans.filter(isNode).length === wrong.length, 'all');
    expect(collector.spans.filter(isNode).flatMap(({ links }) => links)).toEqual([]);
  });

  test('OPS-1: nothing is sampled by default, even if a client requests it', async () => {
    const server = await tracedServer({ samplingRatePerMillion: undefined });
    await server.get(`${maps}/a`, { headers: { traceparent: parent } });
    await server.stop();
    expect(collector.spans).toEqual([]);
  });

  test('OPS-1: a fraction of requests is sampled', async () => {
    const server = await tracedServer({ samplingRatePerMillion: 500_000 });
    for (let count = 0; count < 200; count += 1) await server.get('/version');
    await server.stop();
    const roots = collector.spans.filter(({ kind }) => kind === 2);
    // The probability of a share outside these bounds is below one in ten million.
    expect(roots.length).toBeGreaterThan(60);
    expect(roots.length).toBeLessThan(140);
  });
});

describe('the collector', () => {
  test('OPS-1: pending spans are sent at shutdown; the endpoint may be a socket', async () => {
    const socket = await untilEnd(startTraceCollector(join(directory, 'otel.sock')));
    const endpoint = `unix://${directory}/otel.sock`;
    const server = await tracedServer({ endpoint }, { clock: systemClock });
    await server.get('/version');
    await server.stop();
    expect(socket.spans.some(({ kind }) => kind === 2)).toBe(true);
    expect(collector.spans).toEqual([]);
  });

  test('OPS-1: a missing or failing collector loses only spans', async () => {
    collector.state.answer = { status: 8, message: 'full' };
    const server = await tracedServer();
    await server.get('/version');
    await eventually(async () => collector.paths.length > 0, 'the refused call');
    expect((await server.get('/readyz')).status).toBe(200);
    collector.state.answer = Buffer.alloc(0);
    await server.get(`${maps}/a`);
    await traceOf('GET /api/v1/namespaces/{:namespace}/configmaps/{:name}');
    const nowhere = await tracedServer({ endpoint: `unix://${directory}/absent.sock` });
    expect((await nowhere.post(maps, configMap('b'))).status).toBe(201);
    await nowhere.stop();
  });
});

describe('the configuration', () => {
  test.each<[string, object, string]>([
    ['a negative share', { samplingRatePerMillion: -1 }, 'sampling rate must be positive'],
    [
      'too large a share',
      { samplingRatePerMillion: 1_000_001 },
      'sampling rate per million must be less than or equal to one million',
    ],
    ['a share that is a text', { samplingRatePerMillion: 'all' }, 'samplingRatePerMillion'],
    [
      'two unusable members',
      { samplingRatePerMillion: -1, endpoint: 'https://h:1' },
      'sampling rate must be positive, endpoint: Invalid value: "https://h:1": unsupported scheme',
    ],
    ['another scheme', { endpoint: 'https://h:1' }, 'unsupported scheme: https'],
    ['no address', { endpoint: 'a b' }, 'endpoint: Invalid value: "a b"'],
    ['another kind', { kind: 'Other' }, 'failed to read tracing config'],
    ['another member', { rate: 1 }, 'unknown field "rate"'],
  ])('OPS-1: %s ends the start', async (_, members, message) => {
    await expect(tracedServer(members)).rejects.toThrow(message);
  });

  test('OPS-1: the flag names the file, and its gate must be on', () => {
    const read = (...args: string[]) => {
      const outcome = readOptions(args);
      return outcome.kind === 'options' ? outcome.options.config.tracing : undefined;
    };
    const flag = '--tracing-config-file=/t.yaml';
    expect(read(flag)).toEqual({ file: '/t.yaml' });
    expect(read()).toBeUndefined();
    expect(() => read(flag, '--feature-gates=APIServerTracing=false')).toThrow(
      'APIServerTracing feature is not enabled, but tracing config file was provided',
    );
  });
});
