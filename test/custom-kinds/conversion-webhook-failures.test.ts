import { gzipSync } from 'node:zlib';
import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { beforeEach, describe, expect, test } from 'vitest';
import { configure, startAdmissionService, webhook } from '../admission/admission-service.ts';
import { untilEnd } from '../support/cleanup.ts';
import { type Answer, freshNamespace, itemNames } from '../support/harness.ts';
import { quickClock } from '../support/quick-clock.ts';
import type { Received } from '../support/webhook-service.ts';
import { withServer } from '../support/with-server.ts';
import {
  type CustomObject,
  conversionBy,
  converted,
  establishMulti,
  type MultiKind,
  startConversionService,
  swap,
} from './conversion-service.ts';
import { versionOf } from './custom-kinds.ts';

let namespace: string;
const service = await untilEnd(startConversionService());
const server = await withServer();
const multi = await establishMulti(server, conversionBy(service));
const older = await establishMulti(server, conversionBy(service, { versions: ['v1beta1', 'v1'] }));
beforeEach(async () => {
  namespace = await freshNamespace(server);
  service.reset();
});

/** Creates an object stored in v1beta1 whose other versions have not been requested. */
async function create(kind = multi, name = 'a', more: object = {}): Promise<ApiObject> {
  const answer = await server.post(
    kind.at('v1beta1', namespace),
    kind.object('v1beta1', name, more),
  );
  expect(answer.status).toBe(201);
  return answer.body;
}

/** The review that the service answers with. */
interface ConversionAnswer extends JsonObject {
  response: { convertedObjects: [CustomObject, ...CustomObject[]] };
}

/** The answer to a get in a version that requires conversion, with this reply of the webhook. */
async function answerTo(
  change: (response: JsonObject, whole: JsonObject) => unknown,
  kind = multi,
) {
  const made = await create(kind);
  service.reply = (call: Received) => {
    const answer = converted(call, service.convert) as ConversionAnswer;
    return change(answer.response, answer) ?? answer;
  };
  const answer = await server.get(`${kind.at('v1beta2', namespace)}/${made.metadata.name}`);
  service.reply = undefined;
  return answer;
}

const from = (kind: MultiKind) => `${kind.group}/v1beta1, Kind=Multi`;

function expectFailure(answer: Answer, why: string, kind = multi): void {
  const message = `conversion webhook for ${from(kind)} ${why}`;
  expect(answer.body).toEqual({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    code: 500,
  });
  expect(answer.status).toBe(500);
}

describe('invalid answers', () => {
  test('TRUST-2: a text that takes long to decode is refused', async () => {
    const text = 'x'.repeat(16_777_217);
    const answer = await answerTo((response) => {
      response.convertedObjects = [{ spec: { text } }];
    });
    expectFailure(
      answer,
      "failed: couldn't get version/kind; json parse error: too many bytes of one text",
    );
  });

  test('CRD-4: a failure is reported in the webhook’s words', async () => {
    for (const kind of [multi, older]) {
      const answer = await answerTo((response) => {
        response.result = { status: 'Failure', message: 'custom webhook conversion error' };
      }, kind);
      expectFailure(answer, 'failed: custom webhook conversion error', kind);
    }
    const silent = await answerTo(
      (response) => {
        response.result = {};
      },
      await another(),
    );
    expect(silent.body.message).toContain("failed: response.result.status was '', not 'Success'");
  });

  test('CRD-4: an answer may be compressed, but must be a success with a type', async () => {
    const replyWith = async (status: number, headers: Record<string, string>) =>
      answerTo(
        (_, whole) => ({ status, headers, text: gzipSync(JSON.stringify(whole)) }),
        await another(),
      );
    const zip = { 'content-encoding': 'gzip' };
    expect((await replyWith(200, { ...zip, 'content-type': 'text/html' })).status).toBe(200);
    const odd = await replyWith(299, zip);
    expect(odd.status).toBe(500);
    expect(odd.body.message).toContain('failed: the server responded with the status code 299');
    const untyped = await replyWith(200, { ...zip, 'content-type': ';' });
    expect(untyped.body.message).toContain('failed: Internal error occurred: mime: no media type');
  });

  test('CRD-4: an answer must have the uid of its review', async () => {
    const uid = await answerTo((response) => {
      response.uid = 'other';
    });
    const asked = service.received[0]?.body.request.uid;
    expectFailure(uid, `failed: expected response.uid="${asked}", got "other"`);
    const kind = await answerTo(
      (_, whole) => {
        whole.kind = 'Other';
      },
      await another(),
    );
    expect(kind.body.message).toContain(
      'failed: no kind "Other" is registered for version "apiextensions.svc.io/v1" in scheme',
    );
    const none = await answerTo(
      (_, whole) => {
        delete whole.response;
      },
      await another(),
    );
    expect(none.body.message).toContain('failed: no response provided');
    // The earlier version of the review validated neither.
    const lenient = await answerTo((response, whole) => {
      response.uid = 'other';
      delete whole.kind;
      delete whole.apiVersion;
    }, older);
    expect(lenient.status).toBe(200);
  });

  test('CRD-4: an answer must have the same objects in the requested version', async () => {
    const cases: [(objects: [CustomObject, ...CustomObject[]]) => object[], string][] = [
      [() => [], 'returned 0 objects, expected 1'],
      [([object]) => [object, object], 'returned 2 objects, expected 1'],
      [
        ([object]) => [{ ...object, apiVersion: 'other.io/v1' }],
        'returned invalid object at index 0: invalid groupVersion (expected GROUP/v1beta2, ' +
          'received other.io/v1)',
      ],
      [
        ([object]) => [{ ...object, kind: 'Other' }],
        'returned invalid object at index 0: invalid kind (expected Multi, received Other)',
      ],
      [
        ([object]) => [{ ...object, metadata: { ...object.metadata, name: 'b' } }],
        'returned invalid object: must have the same name: a != b',
      ],
      [
        ([object]) => [{ ...object, metadata: { ...object.metadata, namespace: 'b' } }],
        'returned invalid object: must have the same namespace: NAMESPACE != b',
      ],
      [
        ([object]) => [{ ...object, metadata: { ...object.metadata, uid: 'b' } }],
        'returned invalid object: must have the same UID: UID != b',
      ],
      [
        ([{ metadata: _, ...object }]) => [object],
        'returned invalid object: must have the same name: a != ',
      ],
      [
        ([object]) => [{ ...object, metadata: { ...object.metadata, labels: 'x' } }],
        'returned invalid metadata: invalid metadata.labels of type string in converted object',
      ],
      [
        ([object]) => [{ ...object, metadata: { ...object.metadata, annotations: { a: 1 } } }],
        'returned invalid metadata: metadata.annotations[a] must be a string, but is int64 in ' +
          'converted object',
      ],
      [
        ([object]) => [{ ...object, metadata: { ...object.metadata, labels: { '/': 'x' } } }],
        'returned invalid metadata: [metadata.labels: Invalid value: "/": prefix part must be ' +
          'non-empty, metadata.labels: Invalid value: "/": name part must be non-empty, ',
      ],
    ];
    const { metadata } = await create();
    for (const [change, wanted] of cases) {
      service.reply = (call: Received) => {
        const answer = converted(call, swap) as ConversionAnswer;
        const convertedObjects = change(answer.response.convertedObjects);
        return { ...answer, response: { ...answer.response, convertedObjects } };
      };
      const answer = await server.get(`${multi.at('v1beta2', namespace)}/a`);
      const why = wanted
        .replace('GROUP', multi.group)
        .replace('NAMESPACE', namespace)
        .replace('UID !', `${metadata.uid} !`);
      expect(answer.body.message).toContain(`conversion webhook for ${from(multi)} ${why}`);
      expect(answer.status).toBe(500);
    }
  });

  test('CRD-4: a failed list names the object that was not converted', async () => {
    for (const name of ['a', 'b', 'c']) await create(multi, name);
    service.convert = (object, desired) =>
      object.metadata.name === 'b'
        ? { ...swap(object, desired), apiVersion: 'other.io/v1' }
        : swap(object, desired);
    const list = await server.get(multi.at('v1beta2', namespace));
    const why =
      'returned invalid converted object at index 1: invalid groupVersion ' +
      `(expected ${multi.group}/v1beta2, received other.io/v1)`;
    expectFailure(list, why);
    const selected = await server.get(`${multi.at('v1beta2', namespace)}?labelSelector=a=b`);
    expectFailure(selected, why);
    service.convert = swap;
    expect(itemNames(await server.get(multi.at('v1beta2', namespace)))).toEqual(['a', 'b', 'c']);
  });

  test('CRD-4: answers that no webhook may give', async () => {
    await create();
    const path = `${multi.at('v1beta2', namespace)}/a`;
    service.reply = () => ({ status: 400, text: 'nonsense' });
    expectFailure(
      await server.get(path),
      'failed: the server rejected our request for an unknown reason',
    );
    service.reply = () => ({ status: 200, text: '' });
    expectFailure(
      await server.get(path),
      'failed: 0-length response with status code: 200 and content type: application/json',
    );
    service.reply = () => ({ status: 200, text: '{"kind":' });
    const cut = await server.get(path);
    expect(cut.body.message).toContain("failed: couldn't get version/kind; json parse error: ");
    service.reply = () => ({ status: 200, text: '[]' });
    const list = await server.get(path);
    expect(list.body.message).toContain('json: cannot unmarshal array into Go value');
  });
});

/** Creates another kind like the others, in its own group. */
function another(): Promise<MultiKind> {
  return establishMulti(server, conversionBy(service));
}

test('CRD-4, CRD-2: an embedded object without a kind is reported', async () => {
  const embedded = {
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    'x-kubernetes-preserve-unknown-fields': true,
  };
  const schema = { type: 'object', properties: { inner: embedded } };
  const versions = [versionOf('v1beta1', schema, { storage: true }), versionOf('v1beta2', schema)];
  const kind = await establishMulti(server, conversionBy(service), versions);
  const inner = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } };
  await create(kind, 'a', { inner });
  service.convert = (object, desired) => ({ ...object, apiVersion: desired, inner: { kind: 1 } });
  const { status, body } = await server.get(`${kind.at('v1beta2', namespace)}/a`);
  expect(status).toBe(500);
  expect(body.message).toContain('inner.');
});

describe('requests that need the webhook', () => {
  test('CRD-4: every verb fails with the webhook’s error, and nothing is written', async () => {
    const made = await create();
    service.convert = () => {
      throw new Error('custom webhook conversion error');
    };
    const all = multi.at('v1beta2', namespace);
    const object = multi.object('v1beta2', 'a');
    const spec = { contentv2: { key: 'x' } };
    const answers = [
      await server.get(`${all}/a`),
      await server.get(all),
      await server.get(`${all}?watch=1`),
      await server.get(`${all}?watch=1&resourceVersion=${made.metadata.resourceVersion}`),
      await server.get(`${all}/a/scale`),
      await server.put(`${all}/a`, { ...object, metadata: made.metadata }),
      await server.put(`${all}/a/status`, { ...object, metadata: made.metadata }),
      await server.patch(`${all}/a`, { spec }, 'merge'),
      await server.patch(`${all}/a?fieldManager=me`, { ...object, spec }, 'apply'),
      await server.patch(`${all}/a/scale`, { spec: { replicas: 2 } }, 'merge'),
      await server.remove(`${all}/a`),
      await server.remove(all),
    ];
    for (const answer of answers) expectFailure(answer, 'failed: custom webhook conversion error');
    const added = multi.object('v1beta2', 'b');
    for (const query of ['', '?dryRun=All']) {
      const { status, body } = await server.post(all + query, added);
      expect(status).toBe(500);
      expect(body.message).toBe(
        `conversion webhook for ${multi.group}/v1beta2, Kind=Multi failed: ` +
          'custom webhook conversion error',
      );
    }
    const list = await server.get(multi.at('v1beta1', namespace));
    expect(list.body.items).toEqual([made]);
    service.convert = swap;
    expect((await server.get(`${all}/a`)).status).toBe(200);
    expect((await server.remove(`${all}/a`)).status).toBe(200);
  });

  test('CRD-4: requests that need no conversion work without the webhook', async () => {
    const made = await create();
    service.convert = () => {
      throw new Error('broken');
    };
    const all = multi.at('v1beta1', namespace);
    expect((await server.put(`${all}/a`, { ...made, status: { a: 1 } })).status).toBe(200);
    expect((await server.patch(`${all}/a`, { spec: { num: null } }, 'merge')).status).toBe(200);
    expect((await server.patch(`${all}/a/scale`, { spec: { replicas: 2 } }, 'merge')).status).toBe(
      200,
    );
    expect(itemNames(await server.get(all))).toEqual(['a']);
    const watch = await server.watch(`${all}?watch=1`);
    await watch.until((events) => events.length === 1);
    watch.close();
    expect((await server.remove(`${all}/a`)).status).toBe(200);
    expect(service.received).toEqual([]);
  });

  test('CRD-4, ADM-2: admission never sees unconverted objects', async () => {
    const admission = await startAdmissionService();
    const rule = {
      operations: ['CREATE'],
      apiGroups: [multi.group],
      apiVersions: ['v1beta2'],
      resources: ['*'],
    };
    const hook = webhook(admission, { path: '/validate', namespace, rules: [rule] });
    const { remove } = await configure(server, 'validating', [hook]);
    try {
      const path = multi.at('v1beta1', namespace);
      service.convert = () => {
        throw new Error('broken');
      };
      let answer: Answer;
      do {
        answer = await server.post(`${path}?dryRun=All`, multi.object('v1beta1', 'a'));
      } while (answer.status === 201);
      expect(answer.status).toBe(500);
      expect(answer.body.reason).toBe('InternalError');
      expect(answer.body.message).toBe(
        `Internal error occurred: conversion webhook for ${from(multi)} failed: broken`,
      );
      service.convert = swap;
      expect((await server.post(path, multi.object('v1beta1', 'a'))).status).toBe(201);
      const request = admission.at('/validate').at(-1)?.request;
      expect(request?.object['spec'].contentv2).toEqual({ key: 'value' });
      expect(request?.kind.version).toBe('v1beta2');
      expect(request?.requestKind.version).toBe('v1beta1');
    } finally {
      await remove();
      await admission.stop();
    }
  });
});

describe('the address of the webhook', () => {
  test('CRD-4: the webhook needs a certificate that the bundle trusts', async () => {
    const { url } = service;
    const conversion = conversionBy(service, { clientConfig: { url: `${url}/convert` } });
    const kind = await establishMulti(server, conversion);
    await create(kind);
    const answer = await server.get(`${kind.at('v1beta2', namespace)}/a`);
    expectFailure(
      answer,
      `failed: Post "${url}/convert?timeout=30s": tls: failed to verify certificate: ` +
        'x509: certificate signed by unknown authority',
      kind,
    );
  });

  test('CRD-4: a Service is resolved and called by its DNS name', async () => {
    const host = `convert.${namespace}.svc`;
    const named = await untilEnd(startConversionService([host]));
    const port = Number(new URL(named.url).port);
    const at = { namespace, name: 'convert', path: '/crd', port };
    const clientConfig = { service: at, caBundle: named.caBundle };
    const kind = await establishMulti(server, conversionBy(named, { clientConfig }));
    await create(kind);
    const path = `${kind.at('v1beta2', namespace)}/a`;
    const post = `failed: Post "https://${host}:${port}/crd?timeout=30s": `;
    expectFailure(await server.get(path), `${post}service "convert" not found`, kind);
    await server.post(`/api/v1/namespaces/${namespace}/services`, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'convert' },
      spec: { type: 'ExternalName', externalName: 'localhost' },
    });
    const found = await server.get(path);
    expect(found.text).toContain('contentv2');
    expect(named.received[0]?.path).toBe('/crd?timeout=30s');
    expect(named.received[0]?.headers['host']).toBe(`${host}:${port}`);
  });
});

describe('time', () => {
  test('CRD-4: a call times out after 30 seconds', async () => {
    const quick = await withServer({ clock: quickClock(100) });
    const kind = await establishMulti(quick, conversionBy(service));
    await quick.post(kind.at('v1beta1'), kind.object('v1beta1', 'a'));
    service.reply = () => 'stall';
    const answer = await quick.get(`${kind.at('v1beta2')}/a`);
    const post = `Post "${service.url}/convert?timeout=30s"`;
    expectFailure(answer, `failed: ${post}: context deadline exceeded`, kind);
  });
});

describe('metrics', () => {
  test('CRD-4: conversions are counted by outcome', async () => {
    const kind = await another();
    await create(kind);
    const path = `${kind.at('v1beta2', namespace)}/a`;
    service.reply = () => ({ status: 500, text: 'broken' });
    await server.get(path);
    service.reply = undefined;
    await server.get(path);
    const { text } = await server.get('/metrics');
    const labels = (succeeded: boolean) =>
      `crd_name="${kind.name}",from_version="v1beta1",` +
      `succeeded="${succeeded}",to_version="v1beta2"`;
    const name = 'apiserver_crd_conversion_webhook_duration_seconds_count';
    expect(text).toContain(`${name}{${labels(true)}} 1`);
    expect(text).toContain(`${name}{${labels(false)}} 1`);
    const total = 'apiserver_conversion_webhook_request_total';
    expect(text).toMatch(new RegExp(`${total}{failure_type="",result="success"} [1-9]`));
    const failed = 'failure_type="conversion_webhook_call_failure",result="failure"';
    expect(text).toMatch(new RegExp(`${total}{${failed}} [1-9]`));
    expect(text).toContain('apiserver_conversion_webhook_duration_seconds_bucket');
  });
});
