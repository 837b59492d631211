import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { admissionCall, admissionTools, refusalOf } from '../testing.ts';
import { runtimeClass } from './runtime-class.ts';

/** The spec of an admitted Pod of a class, or the reason of its rejection. */
async function admit(ofClass: JsonObject, spec: JsonObject) {
  const metadata = { name: 'vm' };
  const found: ApiObject = {
    apiVersion: 'node.svc.io/v1',
    kind: 'RuntimeClass',
    metadata,
    ...ofClass,
  };
  const { mutate, validate } = runtimeClass(admissionTools({ 'runtimeclasses.node': [found] }));
  const object: ApiObject = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default' },
    spec: { runtimeClassName: 'vm', ...spec },
  };
  const call = admissionCall({ resource: 'pods', object });
  const why = (await refusalOf(mutate, call)) ?? (await refusalOf(validate, call));
  return why ?? object['spec'];
}

describe('ADM-1: RuntimeClass', () => {
  test('sets the overhead of a Pod whose own is empty', async () => {
    const podFixed = { cpu: '100m' };
    expect(await admit({ overhead: { podFixed } }, { overhead: {} })).toMatchObject({
      overhead: podFixed,
    });
  });

  test('sets no overhead of a class without amounts', async () => {
    expect(await admit({ overhead: {} }, {})).not.toHaveProperty('overhead');
  });

  test('drops covered tolerations, even if the class adds none', async () => {
    const all = { operator: 'Exists' };
    const scheduling = { nodeSelector: { vm: 'yes' } };
    const tolerations = [all, { key: 'a', operator: 'Exists' }];
    expect(await admit({ scheduling }, { tolerations })).toMatchObject({ tolerations: [all] });
  });
});
