import { beforeEach, describe, expect, test } from 'vitest';
import { auditFolder, named } from '../audit/audit-run.ts';
import { untilEnd } from '../support/cleanup.ts';
import { configMap, eventually, freshNamespace } from '../support/harness.ts';
import { skippingClock } from '../support/skipping-clock.ts';
import type { Reply } from '../support/webhook-service.ts';
import { withServer } from '../support/with-server.ts';
import {
  type AdmissionService,
  configure,
  hooksOf,
  patching,
  startAdmissionService,
  webhook,
} from './admission-service.ts';

let namespace: string;
let maps: string;
const { hooked, unhook } = hooksOf(() => ({ server, service, namespace }));

const service = await untilEnd(startAdmissionService());
const folder = untilEnd(auditFolder({ rules: [{ level: 'RequestResponse' }] }));
const server = await withServer({ audit: folder.settings });
beforeEach(async () => {
  await unhook();
  service.forget();
  namespace = await freshNamespace(server);
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
});

const create = (name = 'a', query = '') => server.post(`${maps}${query}`, configMap(name));
/** A JSON patch of 60,001 values. */
const manyValues = Buffer.from(`[${Array(60_000).fill('{}').join(',')}]`).toString('base64');
const deniedBy = 'admission webhook "a.example.com" denied the request';

describe('ADM-2: denials', () => {
  test.each<[string, object | undefined, object]>([
    ['nothing said', undefined, { code: 400, message: `${deniedBy} without explanation` }],
    ['a message', { message: 'no' }, { code: 400, message: `${deniedBy}: no` }],
    [
      'code, reason and details',
      { code: 403, reason: 'Forbidden', message: 'no', details: { name: 'x', causes: [] } },
      { code: 403, reason: 'Forbidden', message: `${deniedBy}: no`, details: { name: 'x' } },
    ],
    ['a reason alone', { reason: 'Gone', code: 410 }, { code: 410, message: `${deniedBy}: Gone` }],
    ['a code of a success', { code: 200, status: 'Success' }, { code: 400, status: 'Failure' }],
  ])('ADM-2: with %s', async (_, status, wanted) => {
    for (const type of ['mutating', 'validating'] as const) {
      await hooked(type, { path: `/${type}` });
      service.answer(`/${type}`, () => ({ allowed: false, status }));
      const answer = await create();
      expect(answer.body).toMatchObject({ kind: 'Status', ...wanted });
      expect(answer.status).toBe((wanted as { code: number }).code);
      service.answer(`/${type}`, () => ({}));
    }
    expect((await server.get(`${maps}/a`)).status).toBe(404);
  });

  test('ADM-2: a webhook may answer an apply with AlreadyExists', async () => {
    await hooked('validating', { path: '/exists' });
    const status = { code: 409, reason: 'AlreadyExists', message: 'no' };
    service.answer('/exists', () => ({ allowed: false, status }));
    const path = `${maps}/a?fieldManager=test`;
    const answer = await server.patch(path, configMap('a'), 'apply');
    expect(answer.status).toBe(409);
    expect(answer.body).toMatchObject({ reason: 'AlreadyExists', message: `${deniedBy}: no` });
    expect(service.at('/exists')).toHaveLength(1);
  });

  test('ADM-2: validating webhooks run in parallel, and the first refusal is reported', async () => {
    await hooked(
      'validating',
      ...['a', 'b', 'c'].map((name) => ({ name: `${name}.example.com`, path: `/${name}` })),
    );
    let waiting = 0;
    let release: () => void = () => {};
    const all = new Promise<void>((resolve) => {
      release = resolve;
    });
    for (const name of ['a', 'b', 'c']) {
      service.reply(`/${name}`, async ({ body: { apiVersion, kind, request } }) => {
        waiting += 1;
        if (waiting === 3) release();
        await all;
        const allowed = name === 'a';
        return {
          apiVersion,
          kind,
          response: { uid: request.uid, allowed, status: { message: name } },
        };
      });
    }
    const answer = await create();
    expect(answer.body.message).toBe('admission webhook "b.example.com" denied the request: b');
  });

  test('ADM-2: a denial by a mutating webhook stops the chain', async () => {
    await hooked('mutating', { path: '/first' }, { name: 'b.example.com', path: '/second' });
    service.answer('/first', () => ({ allowed: false }));
    expect((await create()).status).toBe(400);
    expect(service.at('/second')).toEqual([]);
  });
});

describe('ADM-2: warnings and audit annotations', () => {
  test('ADM-2: warnings are returned with allowed and with denied requests', async () => {
    await hooked('mutating', { path: '/m' });
    await hooked('validating', { path: '/v' });
    service.answer('/m', () => ({ warnings: ['one', '', 'two "2"'] }));
    service.answer('/v', ({ name }) => ({ allowed: name === 'a', warnings: ['three', 'one'] }));
    expect((await create('a')).warnings).toEqual(['one', 'two "2"', 'three']);
    const denied = await create('b');
    expect(denied.status).toBe(400);
    expect(denied.warnings).toEqual(['one', 'two "2"', 'three']);
  });

  test('ADM-2: warnings have no control characters, and are dropped without any others', async () => {
    await hooked('validating', { path: '/v' });
    service.answer('/v', () => ({ warnings: ['\n\u0085\u0007'] }));
    expect((await create('a', '?dryRun=All')).headers['warning']).toBeUndefined();
    service.answer('/v', () => ({ warnings: ['\u0000', 'a\nb\u009f'] }));
    expect((await create()).warnings).toEqual(['ab']);
  });

  test('ADM-2, TRUST-3: excess warnings are dropped and counted', async () => {
    await hooked('validating', { path: '/v' });
    const texts = Array.from({ length: 30 }, (_, index) => `${index} ${'x'.repeat(400)}`);
    service.answer('/v', () => ({ warnings: texts }));
    const { warnings } = await create();
    expect(warnings).toHaveLength(17);
    expect(warnings[0]).toBe(texts[0]?.slice(0, 256));
    expect(warnings[16]).toMatch(/14 more warnings/);
  });

  test('ADM-2: the audit log has webhook annotations and mutations', async () => {
    await hooked('mutating', { path: '/m' }, { name: 'b.example.com', path: '/n' });
    await hooked(
      'validating',
      { path: '/v' },
      { name: 'open.example.com', path: '/open', failurePolicy: 'Ignore' },
    );
    const operations = [{ op: 'add', path: '/data/b', value: '2' }];
    service.answer('/m', () => ({
      ...patching(operations),
      auditAnnotations: { k: 'm', 'a/b': 'x' },
    }));
    service.answer('/v', () => ({ auditAnnotations: { k: 'v' } }));
    service.reply('/open', () => ({ status: 500 }));
    service.reply('/resets', () => 'reset');
    service.answer('/confuses', () => ({ uid: 'of another', allowed: true }));
    const { id, headers } = named();
    const answer = await server.post(maps, configMap('a'), { headers });
    expect(answer.status).toBe(201);
    const [configuration] = (
      await server.get('/apis/admissionregistration.svc.io/v1/mutatingwebhookconfigurations')
    ).body.items.map((item: { metadata: { name: string } }) => item.metadata.name);
    const done = (await folder.of(id)).find(({ stage }) => stage === 'ResponseComplete');
    expect(done?.annotations).toMatchObject({
      'a.example.com/k': 'm',
      'mutation.webhook.admission.svc.io/round_0_index_0': JSON.stringify({
        configuration,
        webhook: 'a.example.com',
        mutated: true,
      }),
      'mutation.webhook.admission.svc.io/round_0_index_1': expect.stringContaining('false'),
      'patch.webhook.admission.svc.io/round_0_index_0': JSON.stringify({
        configuration,
        webhook: 'a.example.com',
        patch: operations,
        patchType: 'JSONPatch',
      }),
      'failed-open.validating.webhook.admission.svc.io/round_0_index_1': 'open.example.com',
    });
    expect(Object.keys(done?.annotations ?? {})).not.toContain('a.example.com/a/b');
  });
});

const failedFor = (why: string) =>
  `Internal error occurred: failed calling webhook "a.example.com": ${why}`;
/** Wraps a response in a whole answer. */
const whole = (make: (request: { uid: string }) => object, more: object = {}) =>
  ((call) => ({
    apiVersion: call.body.apiVersion,
    kind: call.body.kind,
    response: make(call.body.request),
    ...more,
  })) as (call: {
    readonly body: { apiVersion: string; kind: string; request: { uid: string } };
  }) => Reply;

const patch = (text: string) => Buffer.from(text).toString('base64');
const notJson = { status: 200, text: 'no json' };

test('ADM-2: an answer may be YAML, whatever its type', async () => {
  for (const headers of [{}, { 'content-type': 'application/yaml' }]) {
    service.reply('/w', ({ body }) => ({
      status: 200,
      text: [
        `apiVersion: ${body.apiVersion}`,
        `kind: ${body.kind}`,
        `response: {uid: ${body.request.uid}, allowed: false, status: {message: not today}}`,
      ].join('\n'),
      headers,
    }));
    await hooked('validating', { path: '/w' });
    const denied = await create();
    expect(denied.status, denied.text).toBe(400);
    expect(denied.body.message).toBe(`${deniedBy}: not today`);
    await unhook();
  }
});

describe('ADM-2: webhook errors are 500, or ignored by failurePolicy', () => {
  test.each<[string, 'mutating' | 'validating', Parameters<AdmissionService['reply']>[1], string]>([
    [
      'another uid',
      'validating',
      whole(() => ({ uid: 'x', allowed: true })),
      'received invalid webhook response: expected response.uid=',
    ],
    [
      'no response',
      'validating',
      ({ body }) => ({ apiVersion: body.apiVersion, kind: body.kind }),
      'received invalid webhook response: webhook response was absent',
    ],
    [
      'no kind',
      'validating',
      ({ body }) => ({ response: { uid: body.request.uid, allowed: true } }),
      'received invalid webhook response: expected webhook response of admission.svc.io/v1, ' +
        'Kind=AdmissionReview, got /, Kind=',
    ],
    [
      'another version',
      'validating',
      whole(({ uid }) => ({ uid, allowed: true }), { apiVersion: 'admission.svc.io/v1beta1' }),
      'failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): ' +
        'unknown conversion',
    ],
    ['no JSON', 'validating', () => notJson, "failed to call webhook: couldn't get version/kind"],
    [
      'nothing',
      'validating',
      () => ({ status: 200 }),
      'failed to call webhook: 0-length response with status code: 200 and content type: application/json',
    ],
    [
      'a wrong type',
      'validating',
      whole(({ uid }) => ({ uid, allowed: 'yes' })),
      'failed to call webhook: json: cannot unmarshal string into Go struct field',
    ],
    [
      'a failure',
      'validating',
      () => ({ status: 500, text: 'it broke', headers: { 'content-type': 'text/plain' } }),
      'failed to call webhook: an error on the server ("it broke") has prevented the request from succeeding',
    ],
    [
      'a Status',
      'validating',
      () => ({ status: 403, text: '{"kind":"Status","status":"Failure","message":"go away"}' }),
      'failed to call webhook: go away',
    ],
    [
      'that there is nothing',
      'validating',
      () => ({ status: 404 }),
      'failed to call webhook: the server could not find the requested resource',
    ],
    [
      'a redirect to another server',
      'validating',
      () => ({ status: 307, headers: { location: 'https://127.0.0.2:1/elsewhere' } }),
      'failed to call webhook: the server responded with the status code 307 but did not return more information',
    ],
    [
      'a patch that validates',
      'validating',
      whole(({ uid }) => ({ uid, allowed: true, patch: patch('[]'), patchType: 'JSONPatch' })),
      'received invalid webhook response: validating webhook may not return response.patch',
    ],
    [
      'a type of patch that validates',
      'validating',
      whole(({ uid }) => ({ uid, allowed: true, patchType: '' })),
      'received invalid webhook response: validating webhook may not return response.patchType',
    ],
    [
      'a patch without its type',
      'mutating',
      whole(({ uid }) => ({ uid, allowed: true, patch: patch('[]') })),
      'received invalid webhook response: webhook returned response.patch but not response.patchType',
    ],
    [
      'a type without its patch',
      'mutating',
      whole(({ uid }) => ({ uid, allowed: true, patchType: 'JSONPatch' })),
      'received invalid webhook response: webhook returned response.patchType but not response.patch',
    ],
    [
      'a patch of an unknown type',
      'mutating',
      whole(({ uid }) => ({ uid, allowed: true, patch: patch('[{"op":"x"}]'), patchType: 'Odd' })),
      'unsupported patch type "Odd"',
    ],
    [
      'more values than an object may have',
      'validating',
      whole(({ uid }) => ({ uid, allowed: true, warnings: Array(60_001).fill('') })),
      "failed to call webhook: couldn't get version/kind; json parse error: too many values",
    ],
    ['a broken connection', 'validating', () => 'reset', 'failed to call webhook: Post "'],
  ])('ADM-2: %s', async (_, type, reply, why) => {
    const fails = failedFor(why);
    await hooked(type, { path: '/w' });
    service.reply('/w', reply);
    const refused = await create();
    expect(refused.body.message.slice(0, fails.length)).toBe(fails);
    expect(refused.status).toBe(500);
    expect(refused.body.reason).toBe('InternalError');
    await unhook();
    await hooked(type, { path: '/w', failurePolicy: 'Ignore' });
    expect((await create()).status).toBe(201);
    expect(service.at('/elsewhere')).toEqual([]);
  });

  test.each<[string, string, string]>([
    ['is no JSON', patch('{'), 'unexpected end of JSON input'],
    ['is no list', patch('{}'), 'json: cannot unmarshal'],
    ['has more values than an object may have', manyValues, 'too many values'],
    [
      'does not fit the object',
      patch(JSON.stringify([{ op: 'remove', path: '/data/none' }])),
      "error in remove for path: '/data/none': Unable to remove nonexistent key: none: missing value",
    ],
    [
      'changes the kind',
      patch(JSON.stringify([{ op: 'replace', path: '/kind', value: 'Secret' }])),
      'unable to convert from v1: unknown kind Secret',
    ],
    [
      'changes the version',
      patch(JSON.stringify([{ op: 'replace', path: '/apiVersion', value: 'v2' }])),
      'unable to convert from v2: unknown kind ConfigMap',
    ],
    [
      'makes no object of its kind',
      patch(JSON.stringify([{ op: 'add', path: '/data', value: [1] }])),
      'json: cannot unmarshal array into Go struct field ConfigMap.data',
    ],
  ])(
    'ADM-2: a patch that %s rejects the request regardless of the failure policy',
    async (_, encoded, why) => {
      await hooked('mutating', { path: '/m', failurePolicy: 'Ignore' });
      service.answer('/m', () => ({ allowed: true, patch: encoded, patchType: 'JSONPatch' }));
      const answer = await create();
      expect(answer.status).toBe(500);
      expect(answer.body.message).toContain(`Internal error occurred: ${why}`);
    },
  );

  test.each(['kind', 'apiVersion'])('ADM-2: a patch that removes the %s keeps it', async (name) => {
    await hooked('mutating', { path: '/m' });
    service.answer('/m', () => patching([{ op: 'remove', path: `/${name}` }]));
    const answer = await create();
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' });
  });

  test('ADM-2: the patch `null` changes nothing', async () => {
    await hooked('mutating', { path: '/m' });
    service.answer('/m', () => ({ allowed: true, patch: patch('null'), patchType: 'JSONPatch' }));
    const answer = await create();
    expect(answer.status, answer.text).toBe(201);
  });

  test('ADM-2: a patch for a request without an object', async () => {
    await create();
    await hooked('mutating', { path: '/m' });
    service.answer('/m', () => patching([{ op: 'add', path: '/a', value: 1 }]));
    const answer = await server.remove(`${maps}/a`);
    expect(answer.status).toBe(500);
    expect(answer.body.message).toBe(
      'Internal error occurred: admission webhook "a.example.com" attempted to modify the ' +
        'object, which is not supported for this operation',
    );
  });

  test('ADM-2: an endless answer is cut off', async () => {
    await hooked('validating', { path: '/v' });
    service.reply('/v', () => ({ status: 200, text: 'x'.repeat(9 * 1024 * 1024) }));
    const answer = await create();
    expect(answer.status).toBe(500);
    expect(answer.body.message).toContain('the answer is longer than 8388608 bytes');
  });

  test('ADM-2: a redirect within the same server is followed with its body', async () => {
    await hooked('validating', { path: '/v' });
    service.reply('/v', () => ({ status: 307, headers: { location: '/v/?slash=1' } }));
    service.answer('/v/', () => ({ allowed: false, status: { message: 'from behind it' } }));
    const answer = await create();
    expect(answer.status).toBe(400);
    expect(answer.body.message).toBe(`${deniedBy}: from behind it`);
    const paths = service.received.map(({ method, path }) => `${method} ${path.split('?')[0]}`);
    expect(paths).toEqual(['POST /v', 'POST /v/']);
  });

  test('ADM-2: endless redirects fail the call', async () => {
    await hooked('validating', { path: '/v' });
    service.reply('/v', () => ({ status: 308, headers: { location: '/v' } }));
    const answer = await create();
    expect(answer.status).toBe(500);
    expect(answer.body.message).toContain('stopped after 10 redirects');
    expect(service.received).toHaveLength(11);
  });

  test('ADM-2: Retry-After makes the server call again', async () => {
    await hooked('validating', { path: '/v' });
    let asked = 0;
    service.reply('/v', ({ body: { apiVersion, kind, request } }) => {
      asked += 1;
      if (asked === 1) return { status: 503, headers: { 'retry-after': '0' } };
      return { apiVersion, kind, response: { uid: request.uid, allowed: true } };
    });
    expect((await create()).status).toBe(201);
    expect(asked).toBe(2);
  });
});

describe('ADM-2: time', () => {
  test('ADM-2: timeoutSeconds bounds a call and is sent to the webhook', async () => {
    await hooked('validating', { path: '/v', timeoutSeconds: 1 });
    service.reply('/v', () => 'stall');
    const answer = await create();
    expect(answer.status).toBe(500);
    expect(answer.body.message).toBe(
      failedFor(
        `failed to call webhook: Post "${service.url}/v?timeout=1s": context deadline exceeded`,
      ),
    );
    expect(service.received[0]?.path).toBe('/v?timeout=1s');
  });

  test('ADM-2: a late webhook with failurePolicy Ignore is skipped', async () => {
    await hooked('mutating', { path: '/m', timeoutSeconds: 1, failurePolicy: 'Ignore' });
    service.reply('/m', () => 'stall');
    expect((await create()).status).toBe(201);
  });

  test('ADM-2: a call ends when its client disconnects', async () => {
    await hooked('validating', { path: '/v', timeoutSeconds: 30 });
    let left = false;
    let heard: () => void = () => {};
    const asked = new Promise<void>((resolve) => {
      heard = resolve;
    });
    service.reply('/v', () => {
      heard();
      return 'stall';
    });
    service.onGone(() => {
      left = true;
    });
    const controller = new AbortController();
    const pending = fetchAborted(`${server.url}${maps}`, controller.signal);
    await asked;
    controller.abort();
    await pending;
    await eventually(async () => left, 'the call of the webhook did not end');
  });

  test('ADM-2: the request deadline bounds the calls', async () => {
    const clock = skippingClock();
    const requestTimeoutMs = 20_000;
    const short = await withServer({ clock, limits: { requestTimeoutMs } });
    const made = webhook(service, { path: '/v', timeoutSeconds: 30 });
    await configure(short, 'validating', [made]);
    service.reply('/v', () => 'stall');
    const pending = short.post('/api/v1/namespaces/default/configmaps', configMap('a'));
    await eventually(async () => service.received.length === 1, 'the call of the webhook');
    // The remaining time of the request, in whole seconds.
    expect(service.received[0]?.path).toMatch(/^\/v\?timeout=(1\d|20)s$/);
    clock.skip(requestTimeoutMs);
    const answer = await pending;
    expect([answer.status, answer.body.reason]).toEqual([504, 'Timeout']);
  });
});

/** Posts a ConfigMap and stops waiting for the answer when the signal aborts. */
async function fetchAborted(url: string, signal: AbortSignal): Promise<void> {
  const { request } = await import('node:https');
  await new Promise<void>((resolve) => {
    const headers = {
      authorization: 'Bearer test-admin-token',
      'content-type': 'application/json',
    };
    const sent = request(url, { method: 'POST', headers, signal, rejectUnauthorized: false });
    sent.on('error', () => resolve());
    sent.on('response', () => resolve());
    sent.end(JSON.stringify(configMap('a')));
  });
}

describe('ADM-2: dry runs', () => {
  test.each<[string, number]>([
    ['None', 201],
    ['NoneOnDryRun', 201],
  ])('ADM-2: sideEffects %s lets a dry run through', async (sideEffects, status) => {
    await hooked('validating', { path: '/v', sideEffects });
    await hooked('mutating', { path: '/m', sideEffects });
    expect((await create('a', '?dryRun=All')).status).toBe(status);
    expect(service.at('/v')[0]?.request.dryRun).toBe(true);
    expect(service.at('/m')[0]?.request.dryRun).toBe(true);
    expect((await server.get(`${maps}/a`)).status).toBe(404);
  });
});

describe('ADM-2: metrics', () => {
  test('ADM-2: calls, rejections, and failures have kube-apiserver’s metric names', async () => {
    const hook = (name: string, more: object = {}) => ({
      name: `${name}.metrics.example.com`,
      path: `/${name}`,
      ...more,
    });
    await hooked('mutating', hook('m'));
    await hooked(
      'validating',
      hook('denies'),
      hook('fails'),
      hook('open', { failurePolicy: 'Ignore' }),
      hook('resets'),
      hook('confuses'),
    );
    service.answer('/denies', () => ({ allowed: false, status: { code: 403 } }));
    service.reply('/fails', () => ({ status: 500 }));
    service.reply('/open', () => ({ status: 500 }));
    service.reply('/resets', () => 'reset');
    service.answer('/confuses', () => ({ uid: 'of another', allowed: true }));
    await create();
    const { text } = await server.get('/metrics');
    const name = 'apiserver_admission_webhook';
    const of = (who: string) => `name="${who}.metrics.example.com",operation="CREATE"`;
    const [admitted, denied] = ['rejected="false",type="admit"', 'type="validating"'];
    for (const line of [
      `${name}_request_total{code="200",${of('m')},${admitted}} 1`,
      `${name}_admission_duration_seconds_count{${of('m')},${admitted}} 1`,
      `${name}_request_total{code="403",${of('denies')},rejected="true",${denied}} 1`,
      `${name}_rejection_count{error_type="no_error",${of('denies')},rejection_code="403",${denied}} 1`,
      `${name}_rejection_count{error_type="calling_webhook_error",${of('fails')},rejection_code="500",${denied}} 1`,
      `${name}_rejection_count{error_type="calling_webhook_error",${of('resets')},rejection_code="400",${denied}} 1`,
      `${name}_rejection_count{error_type="calling_webhook_error",${of('confuses')},rejection_code="503",${denied}} 1`,
      `${name}_fail_open_count{name="open.metrics.example.com",type="validating"} 1`,
    ]) {
      expect(text).toContain(line);
    }
  });
});
