import type { ManifestObject } from '@wheelhouse/server';
import type { TestPlane } from '@wheelhouse/server/vitest';

const definition = `apiVersion: apiextensions.svc.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { plural: widgets, kind: Widget }
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: { size: { type: integer } }
            x-kubernetes-validations: [{ rule: self.size <= 5, message: at most 5 }]
`;

/** The tests that every runner of the presets' test runs. */
export function fixtureTests({
  fixture,
  equal,
}: {
  fixture: TestPlane;
  equal: (left: unknown, right: unknown) => void;
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
    'the fifth has kinds of its own, until it restores a snapshot': async () => {
      const { plane, namespace } = fixture;
      const before = await plane.snapshot();
      await plane.apply(definition);
      const sized = (name: string, size: number) => {
        const metadata = { name, namespace };
        return { apiVersion: 'example.com/v1', kind: 'Widget', metadata, spec: { size } };
      };
      await plane.apply(sized('small', 1));
      const refusal = await plane.apply(sized('large', 9)).catch((error: unknown) => error);
      equal(String(refusal).includes('at most 5'), true);
      // The globals of a runner that gives each test file its own are also those of the package.
      equal(refusal instanceof Error, true);
      await plane.restore(before);
      const gone = await plane.apply(sized('small', 1)).catch((error: unknown) => error);
      equal(String(gone).includes('serves no kind Widget'), true);
    },
  };
}
