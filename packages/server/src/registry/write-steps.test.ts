import { type ApiObject, cloneJson, isObject, type JsonObject } from '@wheelhouse/machinery';
import type { Store } from '@wheelhouse/store';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openTestApi } from '../compose/testing.ts';
import type { ObjectView, Target, UpdatePlan, WriteContext } from './contract.ts';
import { internalPermit } from './permit.ts';
import type { Registry } from './registry.ts';
import { write } from './write.ts';

/** The steps of every type of write, as observed by the ports of the registry. */

const user = { name: 'admin', uid: '', groups: ['system:masters'], extra: {} };
const context: WriteContext = {
  permit: internalPermit('test'),
  user,
  dryRun: false,
  fieldManager: 'test',
  warn: () => {},
  expired: () => false,
};

let steps: string[] = [];

/** Wraps a port so that calls of the named methods are recorded. */
function traced<T extends object>(port: T, names: Readonly<Record<string, string>>): T {
  return new Proxy(port, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        const step = names[String(name)];
        if (step !== undefined) steps.push(step);
        return Reflect.apply(value, target, args);
      };
    },
  });
}

interface Scene {
  readonly registry: Registry;
  readonly store: Store;
  readonly target: Target;
  close(): Promise<void>;
}

async function openScene(): Promise<Scene> {
  const {
    api,
    store: memory,
    def: defOf,
    close,
  } = await openTestApi({
    dialect: 'kubernetes',
    sharedObjects: 'frozen',
    admission: { disabled: ['NamespaceLifecycle'] },
  });
  const def = defOf('deployments', 'apps');
  const version = def.versions[0]!;
  const { caches } = api.registry;
  const store = traced<Store>(memory, { put: 'store', delete: 'store' });
  const registry: Registry = {
    ...api.registry,
    store,
    caches: { ...caches, of: () => traced(caches.of(def), { get: 'read' }) },
    fieldManager: traced(api.registry.fieldManager, {
      recordUpdate: 'record managers',
      applyPatch: 'merge managers',
    }),
    admission: traced(api.registry.admission, {
      mutate: 'mutate',
      validate: 'run validating admission',
    }),
  };
  const strategy = traced(def.strategy, {
    prepareForCreate: 'prepare',
    prepareForUpdate: 'prepare',
    validateCreate: 'validate',
    validateUpdate: 'validate',
    beforeDelete: 'transform',
  });
  const target = {
    def: { ...def, strategy },
    version,
    namespace: 'default',
    name: 'web',
    subresource: '',
  };
  return { registry, store, target, close };
}

const bare = (change: JsonObject = {}): ApiObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: { containers: [{ name: 'web', image: 'web' }] },
    },
    ...change,
  },
});

function defaulted(object: ApiObject): ApiObject {
  scene.target.version.defaults?.(object);
  return object;
}

const deployment = (change: JsonObject = {}) => defaulted(bare(change));

let scene: Scene;
beforeEach(async () => {
  scene = await openScene();
});
afterEach(() => scene.close());

async function create(change: Partial<ApiObject['metadata']> = {}) {
  const { registry, target } = scene;
  const object = deployment();
  Object.assign(object.metadata, change);
  const plan = { operation: 'create', target: { ...target, name: '' }, context, object } as const;
  return write(registry, plan);
}

const update = (
  plan: Pick<UpdatePlan, 'transform' | 'source'> & Partial<UpdatePlan>,
): Promise<unknown> => {
  const { registry, target } = scene;
  const transform: UpdatePlan['transform'] = (input) => {
    steps.push('transform');
    return plan.transform(input);
  };
  const rest = { operation: 'update', target, context, onAbsent: 'refuse' } as const;
  return write(registry, { ...rest, ...plan, transform });
};

const apply: UpdatePlan['transform'] = ({ live }) => {
  const { registry, target } = scene;
  const patch = bare({ minReadySeconds: 5 });
  const options = { target, live, patch, manager: 'test', force: true, nowMs: 0 };
  return Promise.resolve(registry.fieldManager.applyPatch(options)).then(cloneJson).then(defaulted);
};

const remaining = ['mutate', 'prepare', 'validate', 'run validating admission', 'store'];

describe('the steps of a write', () => {
  test('a create reads nothing', async () => {
    steps = [];
    expect(await create()).toMatchObject({ effect: 'created' });
    expect(steps).toEqual(['record managers', ...remaining]);
  });

  test('many warnings about a large object pause', async () => {
    const { registry, target } = scene;
    const pausesWith = async (warnings: readonly string[]) => {
      let pauses = 0;
      const pause = async () => {
        pauses += 1;
      };
      const warned: string[] = [];
      const object = deployment();
      object.metadata.name = `web-${warnings.length}`;
      const strategy = { ...target.def.strategy, warnings: () => warnings };
      const warn = (text: string) => warned.push(text);
      await write(registry, {
        operation: 'create',
        target: { ...target, def: { ...target.def, strategy }, name: '' },
        context: { ...context, warn, pace: { over: true, pause } },
        object,
      });
      expect(warned).toEqual(warnings);
      return pauses;
    };
    const texts = Array.from({ length: 2_000 }, (_, index) => `warning ${index}`);
    expect(await pausesWith(texts)).toBe((await pausesWith([])) + 4);
  });

  test('TRUST-2: preparing a large object pauses', async () => {
    const { registry, target } = scene;
    const pausesWith = async (count: number) => {
      let pauses = 0;
      const pause = async () => {
        pauses += 1;
      };
      let isPrepared = false;
      const strategy = {
        ...target.def.strategy,
        *prepareForCreate() {
          for (let step = 0; step < count; step += 1) yield;
          isPrepared = true;
        },
        validateCreate: () => {
          expect(isPrepared).toBe(true);
          return [];
        },
      };
      const object = deployment();
      object.metadata.name = `web-${count}`;
      await write(registry, {
        operation: 'create',
        target: { ...target, def: { ...target.def, strategy }, name: '' },
        context: { ...context, pace: { over: true, pause } },
        object,
      });
      expect(isPrepared).toBe(true);
      return pauses;
    };
    expect(await pausesWith(50)).toBe((await pausesWith(0)) + 50);
  });

  test('TRUST-2: validating the metadata of a large object pauses', async () => {
    const { registry, target } = scene;
    await create();
    for (const operation of ['create', 'update'] as const) {
      let pauses = 0;
      const pause = async () => {
        pauses += 1;
      };
      const object = deployment();
      const name = operation === 'create' ? 'wide' : 'web';
      const finalizers = Array.from({ length: 2_000 }, (_, index) => `-${index}`);
      object.metadata = { ...object.metadata, name, finalizers };
      const paced = { ...context, pace: { over: true, pause } };
      const plan =
        operation === 'create'
          ? ({ operation, target: { ...target, name: '' }, context: paced, object } as const)
          : ({
              operation,
              target,
              context: paced,
              source: 'body',
              transform: () => object,
              onAbsent: 'refuse',
            } as const);
      await expect(write(registry, plan)).rejects.toThrow(
        /metadata\.finalizers: .* more errors\]$/,
      );
      expect(pauses).toBeGreaterThan(40);
    }
  });

  test('a PUT', async () => {
    await create();
    steps = [];
    await update({ source: 'body', transform: () => deployment({ replicas: 2 }) });
    expect(steps).toEqual(['read', 'transform', 'record managers', ...remaining]);
  });

  test('a merge patch', async () => {
    await create();
    steps = [];
    const transform: UpdatePlan['transform'] = ({ current }) => ({
      ...deployment({ replicas: 3 }),
      metadata: { ...current?.metadata, labels: { patched: 'yes' } },
    });
    await update({ source: 'patched', transform });
    expect(steps).toEqual(['read', 'transform', 'record managers', ...remaining]);
  });

  test('an apply that creates is authorized to create first', async () => {
    steps = [];
    const beforeCreate = async () => {
      steps.push('authorize');
      return internalPermit('test');
    };
    const plan = { source: 'merged', transform: apply, onAbsent: 'create', beforeCreate } as const;
    expect(await update(plan)).toMatchObject({ effect: 'created' });
    expect(steps).toEqual(['read', 'authorize', 'transform', 'merge managers', ...remaining]);
  });

  test('an apply that updates', async () => {
    await create();
    steps = [];
    await update({ source: 'merged', transform: apply });
    expect(steps).toEqual(['read', 'transform', 'merge managers', ...remaining]);
  });

  test('a deletion is admitted before it marks an object with a finalizer', async () => {
    const { registry, target } = scene;
    const { entry } = await create({ finalizers: ['example.com/keep'] });
    steps = [];
    const options = {
      gracePeriodSeconds: undefined,
      propagationPolicy: undefined,
      preconditions: { uid: entry.index.uid },
    };
    const plan = { operation: 'delete', target, context, options } as const;
    expect(await write(registry, plan)).toMatchObject({ effect: 'changed' });
    expect(steps).toEqual(['read', 'mutate', 'run validating admission', 'store']);
    steps = [];
    expect(await write(registry, plan)).toMatchObject({ effect: 'unchanged' });
    expect(steps).toEqual(['read', 'mutate', 'run validating admission']);
  });

  test('a deletion that releases a marked Pod does not mark it again', async () => {
    const { def } = scene.target;
    const strategy = { ...def.strategy, gracePeriod: () => 0 };
    const target = { ...scene.target, def: { ...def, strategy } };
    await create({ finalizers: ['orphan'] });
    const remove = (propagationPolicy: 'Background' | undefined) => {
      const options = {
        gracePeriodSeconds: undefined,
        propagationPolicy,
        preconditions: undefined,
      };
      return write(scene.registry, { operation: 'delete', target, context, options });
    };
    expect(await remove(undefined)).toMatchObject({ effect: 'changed' });
    steps = [];
    const { effect, entry } = await remove('Background');
    expect(effect).toBe('removed');
    expect(steps).toEqual(['read', 'mutate', 'run validating admission', 'store']);
    expect(JSON.parse(entry.json.toString()).metadata.finalizers).toEqual(['orphan']);
  });

  test('the update that removes the last finalizer deletes the object', async () => {
    const { registry, target } = scene;
    await create({ finalizers: ['example.com/keep'] });
    const options = {
      gracePeriodSeconds: undefined,
      propagationPolicy: undefined,
      preconditions: undefined,
    };
    await write(registry, { operation: 'delete', target, context, options });
    steps = [];
    const transform: UpdatePlan['transform'] = ({ current }) => {
      if (current === undefined) throw new Error('the object is gone');
      delete current.metadata.finalizers;
      return current;
    };
    expect(await update({ source: 'patched', transform })).toMatchObject({ effect: 'removed' });
    expect(steps).toEqual(['read', 'transform', 'record managers', ...remaining]);
  });

  test('a scale changes a view, and then the object behind it', async () => {
    await create();
    steps = [];
    const { target } = scene;
    const scaleOf = (object: ApiObject): ApiObject => {
      const { name = '', namespace = '' } = object.metadata;
      const spec = isObject(object.spec) ? { replicas: object.spec.replicas ?? 0 } : {};
      return { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name, namespace }, spec };
    };
    const view: ObjectView = {
      target,
      show: scaleOf,
      *showOwned(object) {
        yield;
        return scaleOf(object);
      },
      *merge(object, changed) {
        yield;
        steps.push('merge view');
        if (isObject(object.spec) && isObject(changed.spec)) {
          object.spec.replicas = changed.spec.replicas ?? 0;
        }
      },
    };
    const transform: UpdatePlan['transform'] = ({ current }) => ({
      ...(current as ApiObject),
      spec: { replicas: 7 },
    });
    await update({ source: 'body', view, transform });
    const [mutate, ...rest] = remaining;
    const first = ['read', 'transform', 'record managers', mutate];
    expect(steps).toEqual([...first, 'merge view', ...rest]);
  });

  test('an unchanged object is not stored', async () => {
    await create();
    steps = [];
    const transform: UpdatePlan['transform'] = ({ current }) => current as ApiObject;
    expect(await update({ source: 'patched', transform })).toMatchObject({ effect: 'unchanged' });
    expect(steps).not.toContain('store');
  });

  test('a lost race restarts at the transform with the stored object', async () => {
    await create();
    let isFirst = true;
    const transform: UpdatePlan['transform'] = async ({ current }) => {
      if (isFirst) {
        isFirst = false;
        await update({ source: 'body', transform: () => deployment({ replicas: 9 }) });
        steps = [];
      }
      const { metadata } = current as ApiObject;
      return { ...(current as ApiObject), metadata: { ...metadata, labels: { late: 'yes' } } };
    };
    const { registry, target } = scene;
    const plan = { operation: 'update', source: 'patched', onAbsent: 'refuse' } as const;
    const result = await write(registry, { ...plan, target, context, transform });
    const part = ['record managers', ...remaining];
    expect(steps).toEqual([...part, ...part]);
    expect(JSON.parse(result.entry.json.toString())).toMatchObject({
      metadata: { labels: { late: 'yes' } },
      spec: { replicas: 9 },
    });
  });

  test('a write that admission already validated does not call it again', async () => {
    await create();
    steps = [];
    const transform = () => deployment({ replicas: 4 });
    await update({ source: 'merged', admission: 'done', transform });
    expect(steps).toEqual(['read', 'transform', 'prepare', 'validate', 'store']);
  });
});
