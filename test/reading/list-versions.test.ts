import { describe, expect, test } from 'vitest';
import { type Answer, configMap, freshNamespace, itemNames } from '../support/harness.ts';
import { passing, skippingClock } from '../support/skipping-clock.ts';
import { withServer } from '../support/with-server.ts';

const clock = skippingClock();
const server = await withServer({ clock });

const path = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`;

/**
 * Creates a namespace with ConfigMaps `a` to `d`; returns the versions at which there were 0, 1, …
 * of them.
 */
async function fourMaps(): Promise<{ namespace: string; versions: string[] }> {
  const namespace = await freshNamespace(server);
  const before = await server.get(path(namespace));
  const versions = [before.body.metadata.resourceVersion];
  for (const name of 'abcd') {
    const answer = await server.post(path(namespace), configMap(name));
    versions.push(answer.body.metadata.resourceVersion);
  }
  return { namespace, versions };
}

function list(namespace: string, query: Readonly<Record<string, string>>): Promise<Answer> {
  return server.get(`${path(namespace)}?${new URLSearchParams(query)}`);
}

describe('the list table', () => {
  test('LIST-5: match unset', async () => {
    const { namespace, versions } = await fourMaps();
    const at2 = versions[2] as string;
    expect(itemNames(await list(namespace, {}))).toEqual(['a', 'b', 'c', 'd']);
    expect(itemNames(await list(namespace, { resourceVersion: '' }))).toEqual(['a', 'b', 'c', 'd']);
    expect((await list(namespace, { resourceVersion: '0' })).status).toBe(200);
    const notOlder = await list(namespace, { resourceVersion: at2 });
    expect(itemNames(notOlder)).toEqual(['a', 'b', 'c', 'd']);
    expect(Number(notOlder.body.metadata.resourceVersion)).toBeGreaterThanOrEqual(Number(at2));
  });

  test('LIST-5: match unset with a limit', async () => {
    const { namespace, versions } = await fourMaps();
    const at3 = versions[3] as string;
    const newest = await list(namespace, { limit: '3' });
    expect(itemNames(newest)).toEqual(['a', 'b', 'c']);
    expect(newest.body.metadata.remainingItemCount).toBe(1);
    const any = await list(namespace, { limit: '3', resourceVersion: '0' });
    expect(any.status).toBe(200);
    const exact = await list(namespace, { limit: '2', resourceVersion: at3 });
    expect(itemNames(exact)).toEqual(['a', 'b']);
    expect(exact.body.metadata).toMatchObject({ resourceVersion: at3, remainingItemCount: 1 });
    const rest = await list(namespace, { limit: '2', continue: exact.body.metadata.continue });
    expect(itemNames(rest)).toEqual(['c']);
    expect(rest.body.metadata.resourceVersion).toBe(at3);
  });

  test('LIST-5: match unset with a token', async () => {
    const { namespace, versions } = await fourMaps();
    const first = await list(namespace, { limit: '2' });
    const token = first.body.metadata.continue as string;
    for (const more of [{}, { resourceVersion: '' }, { resourceVersion: '0' }]) {
      const answer = await list(namespace, { limit: '2', continue: token, ...more });
      expect(itemNames(answer)).toEqual(['c', 'd']);
      expect(answer.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion);
    }
    const withVersion = { limit: '2', continue: token, resourceVersion: versions[4] as string };
    const refused = await list(namespace, withVersion);
    expect(refused.status).toBe(400);
    expect(refused.body).toMatchObject({
      reason: 'BadRequest',
      message: 'specifying resource version is not allowed when using continue',
    });
  });

  test('LIST-5: Exact', async () => {
    const { namespace, versions } = await fourMaps();
    const at2 = versions[2] as string;
    const exact = { resourceVersionMatch: 'Exact', resourceVersion: at2 };
    for (const more of [{}, { limit: '0' }, { limit: '5' }]) {
      const answer = await list(namespace, { ...exact, ...more });
      expect(itemNames(answer)).toEqual(['a', 'b']);
      expect(answer.body.metadata).toEqual({ resourceVersion: at2 });
    }
    const page = await list(namespace, { ...exact, limit: '1' });
    expect(itemNames(page)).toEqual(['a']);
    const rest = await list(namespace, { limit: '1', continue: page.body.metadata.continue });
    expect(itemNames(rest)).toEqual(['b']);
  });

  test('LIST-5: NotOlderThan', async () => {
    const { namespace, versions } = await fourMaps();
    const at2 = versions[2] as string;
    for (const version of ['0', at2]) {
      const query = { resourceVersionMatch: 'NotOlderThan', resourceVersion: version };
      const whole = await list(namespace, query);
      expect(itemNames(whole)).toEqual(['a', 'b', 'c', 'd']);
      const page = await list(namespace, { ...query, limit: '3' });
      // Version 0 requests the content of the watch cache, which is not paged.
      expect(itemNames(page)).toEqual(version === '0' ? ['a', 'b', 'c', 'd'] : ['a', 'b', 'c']);
      expect(Number(page.body.metadata.resourceVersion)).toBeGreaterThanOrEqual(Number(at2));
    }
  });

  const forbidden = (message: string) => ({
    reason: 'FieldValueForbidden',
    message: `Forbidden: ${message}`,
    field: 'resourceVersionMatch',
  });
  const unlessGiven = forbidden(
    'resourceVersionMatch is forbidden unless resourceVersion is provided',
  );
  const withContinue = forbidden('resourceVersionMatch is forbidden when continue is provided');
  const exactZero = forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"');
  const unknown = {
    reason: 'FieldValueNotSupported',
    message: 'Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""',
    field: 'resourceVersionMatch',
  };
  const initialEvents = {
    reason: 'FieldValueForbidden',
    message: 'Forbidden: sendInitialEvents is forbidden for list',
    field: 'sendInitialEvents',
  };
  const exact = { resourceVersionMatch: 'Exact' };
  const notOlder = { resourceVersionMatch: 'NotOlderThan' };
  const cases: readonly [string, Record<string, string>, readonly object[]][] = [
    ['Exact, unset', exact, [unlessGiven]],
    ['Exact, unset, limit', { ...exact, limit: '2' }, [unlessGiven]],
    ['Exact, 0', { ...exact, resourceVersion: '0' }, [exactZero]],
    ['Exact, 0, limit', { ...exact, resourceVersion: '0', limit: '2' }, [exactZero]],
    ['NotOlderThan, unset', notOlder, [unlessGiven]],
    ['NotOlderThan, unset, limit', { ...notOlder, limit: '2' }, [unlessGiven]],
    ['Exact and a token', { ...exact, resourceVersion: '1', continue: 'x' }, [withContinue]],
    ['NotOlderThan and a token', { ...notOlder, continue: 'x' }, [unlessGiven, withContinue]],
    ['unknown', { resourceVersionMatch: 'Newest', resourceVersion: '1' }, [unknown]],
    ['sendInitialEvents', { sendInitialEvents: 'true' }, [initialEvents]],
    ['sendInitialEvents=false', { sendInitialEvents: 'false' }, [initialEvents]],
  ];
  test.each(cases)('LIST-5: refused with 422: %s', async (_, query, causes) => {
    const answer = await list('default', query);
    expect(answer.status).toBe(422);
    const lines = causes.map((cause) => {
      const { field, message } = cause as { field: string; message: string };
      return `${field}: ${message}`;
    });
    expect(answer.body).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      reason: 'Invalid',
      message: `ListOptions.meta.svc.io "" is invalid: ${
        lines.length === 1 ? lines[0] : `[${lines.join(', ')}]`
      }`,
      details: { group: 'meta.svc.io', kind: 'ListOptions', causes },
      code: 422,
    });
    const removal = await server.remove(`${path('default')}?${new URLSearchParams(query)}`);
    expect(removal.body).toEqual(answer.body);
  });
});

describe('unavailable versions', () => {
  test('LIST-7: a future version is 504 after a short wait', async () => {
    const { namespace, versions } = await fourMaps();
    const wanted = String(Number(versions[4]) + 1000);
    const queries = [
      `${path(namespace)}?resourceVersion=${wanted}`,
      `${path(namespace)}?resourceVersion=${wanted}&limit=1`,
      `${path(namespace)}?resourceVersion=${wanted}&resourceVersionMatch=Exact`,
      `${path(namespace)}/a?resourceVersion=${wanted}`,
    ];
    const startMs = clock.monotonic();
    const sent = Promise.all(queries.map((query) => server.get(query)));
    const answers = await passing(clock, sent);
    expect(clock.monotonic() - startMs).toBeGreaterThan(2500);
    for (const answer of answers) {
      expect(answer.status).toBe(504);
      expect(answer.headers['retry-after']).toBe('1');
      expect(answer.body).toMatchObject({
        reason: 'Timeout',
        message: expect.stringMatching(
          `^Timeout: Too large resource version: ${wanted}, current: \\d+$`,
        ),
        details: {
          causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
          retryAfterSeconds: 1,
        },
        code: 504,
      });
    }
  });

  test('LIST-7: a version that arrives during the wait is served', async () => {
    const { namespace, versions } = await fourMaps();
    const next = String(Number(versions[4]) + 1);
    const reading = list(namespace, { resourceVersion: next });
    await server.post(path(namespace), configMap('e'));
    const answer = await reading;
    expect(answer.status).toBe(200);
    expect(itemNames(answer)).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  test.each([
    ['abc', 'strconv.ParseUint: parsing "abc": invalid syntax'],
    ['-1', 'strconv.ParseUint: parsing "-1": invalid syntax'],
    ['1.5', 'strconv.ParseUint: parsing "1.5": invalid syntax'],
    [
      '99999999999999999999',
      'strconv.ParseUint: parsing "99999999999999999999": value out of range',
    ],
  ])('LIST-8: the malformed version %s', async (version, why) => {
    const message = `invalid resource version: resourceVersion: Invalid value: "${version}": ${why}`;
    for (const url of [
      `${path('default')}?resourceVersion=${version}`,
      `${path('default')}?resourceVersion=${version}&limit=1`,
      `${path('default')}/a?resourceVersion=${version}`,
    ]) {
      const answer = await server.get(url);
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({ reason: 'BadRequest', message, code: 400 });
    }
    const watch = await server.get(`${path('default')}?watch=true&resourceVersion=${version}`);
    expect(watch.status).toBe(422);
    expect(watch.body).toMatchObject({
      reason: 'Invalid',
      message: `configmaps "" is invalid: resourceVersion: Invalid value: "${version}": ${why}`,
      details: { kind: 'configmaps', causes: [{ field: 'resourceVersion' }] },
    });
  });

  test.each([
    ['limit=x', 'strconv.ParseInt: parsing "x": invalid syntax'],
    ['limit=1.5', 'strconv.ParseInt: parsing "1.5": invalid syntax'],
    ['timeoutSeconds=soon', 'strconv.ParseInt: parsing "soon": invalid syntax'],
  ])('LIST-8: the malformed option %s is 400', async (query, message) => {
    const answer = await server.get(`${path('default')}?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ reason: 'BadRequest', message });
  });
});
