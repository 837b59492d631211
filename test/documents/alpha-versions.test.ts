import { dialectOf } from '@wheelhouse/machinery';
import { inVersion, knownKind } from '@wheelhouse/svcctl/testing';
import { expect, test } from 'vitest';

const dialect = dialectOf('svc');

/** Converts the object to another version, and back. */
function converted(object: { apiVersion: string; kind: string; [name: string]: unknown }): {
  there: object;
  back: object;
} {
  const from = knownKind(dialect, object);
  if (from === undefined) throw new Error(`no ${object.kind}`);
  const there = inVersion(structuredClone(object) as never, { dialect, from });
  const type = { apiVersion: String(there.apiVersion), kind: object.kind };
  const current = knownKind(dialect, type);
  if (current === undefined) throw new Error(`no ${type.apiVersion}`);
  const outputVersion = object.apiVersion;
  return { there, back: inVersion(there, { dialect, from: current, outputVersion }) };
}

const rbac = 'rbac.authorization.svc.io';

test('subjects of the first bindings have the version of their group', () => {
  const roleRef = { apiGroup: rbac, kind: 'Role', name: 'r' };
  const user = { kind: 'User', apiVersion: `${rbac}/v1alpha1`, name: 'u' };
  const account = { kind: 'ServiceAccount', apiVersion: 'v1', name: 's', namespace: 'n' };
  const object = {
    apiVersion: `${rbac}/v1alpha1`,
    kind: 'RoleBinding',
    metadata: { name: 'a' },
    roleRef,
  };
  const { there, back } = converted({ ...object, subjects: [user, account] });
  expect(there).toMatchObject({
    apiVersion: `${rbac}/v1`,
    subjects: [
      { kind: 'User', apiGroup: rbac, name: 'u' },
      { kind: 'ServiceAccount', name: 's', namespace: 'n' },
    ],
  });
  expect(back).toMatchObject({ subjects: [user, account] });
  const anybody = converted({ ...object, subjects: [{ ...user, name: '*' }] });
  expect(anybody.there).toMatchObject({
    subjects: [{ kind: 'Group', apiGroup: rbac, name: 'system:authenticated' }],
  });
});

test('the first RuntimeClass version has a spec', () => {
  const spec = { runtimeHandler: 'h', scheduling: { nodeSelector: { a: 'b' } } };
  const { there, back } = converted({
    apiVersion: 'node.svc.io/v1alpha1',
    kind: 'RuntimeClass',
    metadata: { name: 'a' },
    spec,
  });
  expect(there).toMatchObject({
    apiVersion: 'node.svc.io/v1',
    handler: 'h',
    scheduling: { nodeSelector: { a: 'b' } },
  });
  expect(back).toMatchObject({ apiVersion: 'node.svc.io/v1alpha1', spec });
});
