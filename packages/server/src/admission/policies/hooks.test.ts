import type { ApiObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { type CachePool, createComputedCache } from '../../registry/caches.ts';
import { admissionCall, admissionTools } from '../testing.ts';
import { type PolicyHook, policyPhase } from './hooks.ts';

const resources = {
  policies: 'validatingadmissionpolicies',
  bindings: 'validatingadmissionpolicybindings',
};

/** Caches of these objects, which count their subscribers; `fails` makes a list fail. */
function cachesOf(objects: Readonly<Record<string, readonly ApiObject[]>>) {
  const state = { open: 0, fails: '' };
  const of: CachePool['of'] = ({ resource, storage }) => ({
    ...createComputedCache({ storage, objects: async () => objects[resource] ?? [] }),
    ready: async () => {
      if (resource === state.fails) throw new Error('the store is unavailable');
    },
    subscribe() {
      state.open += 1;
      return {
        close() {
          state.open -= 1;
        },
      };
    },
  });
  return { state, caches: { of, drop() {}, *trimSteps() {}, close() {} } };
}

const object = (name: string, policyName = ''): ApiObject => ({
  apiVersion: 'admissionregistration.svc.io/v1',
  kind: 'Any',
  metadata: { name },
  spec: { policyName },
});

function phaseOf(caches: CachePool, seen: (hooks: readonly PolicyHook[]) => void = () => {}) {
  const load = async () => async (_: unknown, hooks: readonly PolicyHook[]) => seen(hooks);
  return policyPhase(admissionTools({}, { caches }), { ...resources, load });
}

const call = () => admissionCall({ resource: 'configmaps', object: object('a') });

test('ADM-3: a write that cannot load the policies leaves no subscription behind', async () => {
  const { state, caches } = cachesOf({});
  const phase = phaseOf(caches);
  state.fails = resources.policies;
  for (const _ of [1, 2, 3]) await expect(phase(call())).rejects.toThrow('unavailable');
  expect(state.open).toBe(0);
  state.fails = '';
  await phase(call());
  expect(state.open).toBe(2);
});

test('ADM-3: policies come with their own bindings, in the order of names', async () => {
  const { caches } = cachesOf({
    [resources.policies]: [object('p2'), object('p1'), object('unbound')],
    [resources.bindings]: [object('b2', 'p1'), object('b3', 'p2'), object('b1', 'p1')],
  });
  let seen: readonly PolicyHook[] = [];
  await phaseOf(caches, (hooks) => {
    seen = hooks;
  })(call());
  const names = seen.map(({ policy, bindings }) => [
    policy.name,
    ...bindings.map(({ name }) => name),
  ]);
  expect(names).toEqual([
    ['p1', 'b1', 'b2'],
    ['p2', 'b3'],
  ]);
});
