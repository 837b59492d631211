import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { admissionCall, refusalOf } from '../testing.ts';
import { alwaysPullImages } from './always-pull-images.ts';

const pod = (spec: JsonObject): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'default' },
  spec: { containers: [{ name: 'a', image: 'one', imagePullPolicy: 'Always' }], ...spec },
});
const volumes = (pullPolicy: string) => [
  { name: 'data', emptyDir: {} },
  { name: 'model', image: { reference: 'models/small', pullPolicy } },
];

describe('ADM-1: AlwaysPullImages', () => {
  test('pulls the images of volumes too', async () => {
    const object = pod({ volumes: volumes('IfNotPresent') });
    await alwaysPullImages.mutate?.(admissionCall({ resource: 'pods', object }));
    expect(object).toMatchObject({ spec: { volumes: volumes('Always') } });
  });

  test('refuses a pull policy that another plugin has set', async () => {
    const object = pod({ volumes: volumes('Never') });
    const call = admissionCall({ resource: 'pods', object });
    expect(await refusalOf(alwaysPullImages.validate, call)).toBe(
      'spec.volumes[1].image.pullPolicy: Unsupported value: "Never": supported values: "Always"',
    );
  });

  test('leaves an update without a new image unchanged', async () => {
    const old = pod({});
    const object = pod({ volumes: volumes('IfNotPresent') });
    const update = admissionCall({ resource: 'pods', operation: 'UPDATE', object, old });
    await alwaysPullImages.mutate?.(update);
    expect(object).toMatchObject({ spec: { volumes: volumes('IfNotPresent') } });
  });
});
