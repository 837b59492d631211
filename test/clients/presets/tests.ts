import type { ManifestObject } from '@wheelhouse/server';
import type { TestPlane } from '@wheelhouse/server/vitest';

/** The tests that every runner of the presets' test runs. */
export function fixtureTests({
  fixture,
  equal,
}: {
  fixture: TestPlane;
  equal: (one: unknown, other: unknown) => void;
}): Readonly<Record<string, () => Promise<void>>> {
  const namespaces: string[] = [];
  const map = (name: string): ManifestObject => {
    const { namespace } = fixture;
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace } };
  };
  const makeOne = async () => {
    namespaces.push(fixture.namespace);
    await fixture.plane.client.create(map('same'));
    equal(new Set(namespaces).size, namespaces.length);
  };
  return {
    'the first test has a namespace': makeOne,
    'the second has another one, where the same name is free': makeOne,
    'the third fails': async () => {
      const { namespace } = fixture;
      const made = await fixture.plane.client.create(map('broken'));
      await fixture.plane.client.create({
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: 'small', namespace },
        involvedObject: { kind: 'ConfigMap', namespace, name: made.metadata?.name ?? '' },
        type: 'Warning',
        reason: 'TooSmall',
        message: 'it does not fit',
      });
      fixture.plane.faults.add({ effect: 'refuse', kind: 'Event', verb: 'list' });
      await fixture.plane.client.create(map('broken'));
    },
    'the fourth has no faults of the third': async () => {
      const events = { apiVersion: 'v1', kind: 'Event' };
      equal(Array.isArray(await fixture.plane.client.list(events)), true);
    },
  };
}
