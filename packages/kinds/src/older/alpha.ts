import {
  type ApiObject,
  type Dialect,
  type JsonObject,
  parseApiVersion,
} from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import { ensure, objectAt, objectsAt } from '../rules/fill.ts';
import type { Life } from '../rules/life.ts';
import type { OlderKind, OlderVersion } from './contract.ts';

const rbacGroup = 'rbac.authorization';

/** RuntimeClass had a spec in this version. */
const inSpec: Pick<OlderVersion, 'toStorage' | 'fromStorage' | 'defaulting'> = {
  defaulting: 'alone',
  toStorage(object) {
    const { runtimeHandler, overhead, scheduling } = objectAt(object, 'spec') ?? {};
    delete object['spec'];
    object['handler'] = runtimeHandler ?? '';
    if (overhead !== undefined) object['overhead'] = overhead;
    if (scheduling !== undefined) object['scheduling'] = scheduling;
    return object;
  },
  fromStorage(object: ApiObject) {
    const { handler, overhead, scheduling } = object;
    const spec = ensure(object, 'spec');
    spec['runtimeHandler'] = handler ?? '';
    if (overhead !== undefined) spec['overhead'] = overhead;
    if (scheduling !== undefined) spec['scheduling'] = scheduling;
    return object;
  },
};

/** Alpha versions of stable kinds of RBAC, scheduling, runtimes, and storage. */
export function olderAlpha(dialect: Dialect): readonly OlderKind[] {
  const version = 'v1alpha1';
  const until = (kind: string, group: string, life: Life): Life => ({
    ...life,
    replacement: { group, version: 'v1', kind },
  });
  const rbac = (kind: string, more: Partial<OlderVersion> = {}): OlderKind => {
    const life = until(kind, rbacGroup, { introduced: 5, deprecated: 17, removed: 23 });
    return { facts: 'rbac', kind, older: [{ facts: 'rbac', version, life, ...more }] };
  };
  const scheduling = until('PriorityClass', 'scheduling', {
    introduced: 8,
    deprecated: 14,
    removed: 23,
  });
  const node = until('RuntimeClass', 'node', { introduced: 12, deprecated: 20, removed: 23 });
  const storage = (kind: string): OlderKind => ({
    facts: 'storage',
    kind,
    older: [{ facts: 'storage', version }],
  });
  return [
    rbac('ClusterRole'),
    rbac('Role'),
    rbac('ClusterRoleBinding', subjects(dialect)),
    rbac('RoleBinding', subjects(dialect)),
    {
      facts: 'scheduling',
      kind: 'PriorityClass',
      older: [{ facts: 'scheduling', version, life: scheduling }],
    },
    {
      facts: 'node',
      kind: 'RuntimeClass',
      older: [{ facts: 'node', version, life: node, ...inSpec }],
    },
    storage('CSIStorageCapacity'),
    storage('VolumeAttachment'),
  ];
}

/** Subjects had an apiVersion in this version, and `*` meant any authenticated user. */
function subjects(dialect: Dialect): Pick<OlderVersion, 'toStorage' | 'fromStorage'> {
  const group = dialect.group(rbacGroup);
  const isOwn = (kind: string) => kind === 'User' || kind === 'Group';
  const groupOf = (subject: JsonObject): string => {
    const kind = textAt(subject, 'kind');
    if (isOwn(kind)) return group;
    if (kind === 'ServiceAccount') return '';
    return parseApiVersion(textAt(subject, 'apiVersion'))?.group ?? '';
  };
  const versionOf = (subject: JsonObject): string => {
    const [kind, apiGroup] = [textAt(subject, 'kind'), textAt(subject, 'apiGroup')];
    if (kind === 'ServiceAccount' && apiGroup === '') return 'v1';
    return isOwn(kind) && apiGroup === group ? `${group}/v1alpha1` : apiGroup;
  };
  return {
    toStorage(object) {
      for (const subject of objectsAt(object, 'subjects')) {
        const apiGroup = groupOf(subject);
        delete subject['apiVersion'];
        if (apiGroup !== '') subject['apiGroup'] = apiGroup;
        const isAnybody = subject['kind'] === 'User' && subject['name'] === '*';
        if (isAnybody) Object.assign(subject, { kind: 'Group', name: 'system:authenticated' });
      }
      return object;
    },
    fromStorage(object) {
      for (const subject of objectsAt(object, 'subjects')) {
        const apiVersion = versionOf(subject);
        delete subject['apiGroup'];
        if (apiVersion !== '') subject['apiVersion'] = apiVersion;
      }
      return object;
    },
  };
}
