import type { ObjectConverter } from '@wheelhouse/kinds';
import { type ApiObject, cloneJson, silentLogger } from '@wheelhouse/machinery';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openTestApi, type TestApi } from '../compose/testing.ts';
import type { FieldManagerPort, Target } from './contract.ts';
import { createFieldManager } from './field-managers.ts';

let opened: TestApi;
let fieldManager: FieldManagerPort;
beforeAll(async () => {
  opened = await openTestApi({ dialect: 'kubernetes' });
  const { api, dialect } = opened;
  const snapshot = () => api.catalogue.snapshot();
  fieldManager = createFieldManager({ dialect, logger: silentLogger, snapshot });
});
afterAll(() => opened.close());

/** Config maps in two versions, between which a webhook converts, and the number of its calls. */
function converted(): { readonly target: Target; readonly calls: () => number } {
  const def = opened.def('configmaps');
  const v1 = def.versions[0]!;
  let calls = 0;
  const converter: ObjectConverter = {
    changes: 'members',
    nowMs: () => 0,
    async convert(objects, apiVersion) {
      calls += 1;
      return objects.map((object) => ({ ...cloneJson(object), apiVersion }));
    },
  };
  const behavior = { ...def.behavior, converter };
  const versions = [v1, { ...v1, version: 'v2' }];
  const target = {
    def: { ...def, versions, behavior },
    version: v1,
    namespace: 'default',
    name: 'a',
    subresource: '',
  };
  return { target, calls: () => calls };
}

const keys = 5_000;
const configMap = (value: string): ApiObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a' },
  data: Object.fromEntries(Array.from({ length: keys }, (_, key) => [`k${key}`, value])),
});

/** The object with an owner of a key, who wrote it in a version. */
function ownedIn(apiVersion: string): ApiObject {
  const live = configMap('a');
  live.metadata.uid = 'u';
  live.metadata.managedFields = [
    {
      manager: 'other',
      operation: 'Apply',
      apiVersion,
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:data': { 'f:k7': {} } },
    },
  ];
  return live;
}

/** A pace that pauses after every step and counts the pauses. */
function slowPace() {
  const pace = {
    over: true,
    pauses: 0,
    async pause() {
      pace.pauses += 1;
    },
  };
  return pace;
}

describe.each([
  { apiVersion: 'v1', calls: 0 },
  { apiVersion: 'v2', calls: 2 },
])('with an owner in $apiVersion of a kind with a conversion webhook', ({ apiVersion, calls }) => {
  const nowMs = 1_700_000_000_000;

  test('TRUST-2, CRD-4: an update of many fields pauses between its steps', async () => {
    const results: ApiObject[] = [];
    for (const pace of [undefined, slowPace()]) {
      const kind = converted();
      const object = configMap('b');
      const live = ownedIn(apiVersion);
      const { target } = kind;
      await fieldManager.recordUpdate({ target, live, object, manager: 'm', nowMs, pace });
      expect(kind.calls()).toBe(calls);
      // Each pass over the fields handles at most 500 of them in a step.
      if (pace !== undefined) expect(pace.pauses).toBeGreaterThan((2 * keys) / 500);
      results.push(object);
    }
    expect(results[0]?.metadata.managedFields?.map(({ manager }) => manager)).toEqual(['m']);
    expect(results[1]).toEqual(results[0]);
  });

  test('TRUST-2, CRD-4: an apply of many fields pauses between its steps', async () => {
    const results: ApiObject[] = [];
    for (const pace of [undefined, slowPace()]) {
      const { target } = converted();
      const apply = { target, live: ownedIn(apiVersion), patch: configMap('b'), manager: 'm' };
      results.push(await fieldManager.applyPatch({ ...apply, force: true, nowMs, pace }));
      if (pace !== undefined) expect(pace.pauses).toBeGreaterThan((2 * keys) / 500);
      const conflicting = async () => fieldManager.applyPatch({ ...apply, force: false, nowMs });
      await expect(conflicting()).rejects.toThrow('conflict with "other": .data.k7');
    }
    expect(results[0]?.metadata.managedFields?.map(({ manager }) => manager)).toEqual(['m']);
    expect(results[1]).toEqual(results[0]);
  });
});
