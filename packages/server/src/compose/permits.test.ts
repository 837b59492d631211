import { afterEach, expect, test } from 'vitest';
import { alwaysAllow, createAuthorization } from '../gates/authz/authorization.ts';
import { requireTarget } from '../registry/permit.ts';
import { serverContext } from '../registry/registry.ts';
import { write } from '../registry/write.ts';
import { attributesOf, parseRequest } from '../request/parse-request.ts';
import { openTestApi } from './testing.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** The registry of a server on a memory store, and a ConfigMap in it. */
async function setup() {
  const { api, def: defOf, close } = await openTestApi();
  closers.push(close);
  const def = defOf('configmaps');
  const target = {
    def,
    version: def.versions[0]!,
    namespace: 'default',
    name: '',
    subresource: '',
  };
  const object = map('one');
  const { registry } = api;
  const plan = { admission: 'done', target, context: serverContext } as const;
  await write(registry, { ...plan, operation: 'create', object });
  return { registry, target };
}

const map = (name: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
});

test('AUTHZ-1: the registry rejects a permit for another target', async () => {
  const { registry, target } = await setup();
  const { authorize } = createAuthorization({ chain: { list: [alwaysAllow] } });
  const user = { name: 'ada', uid: '', groups: [], extra: {} };
  const contextFor = async (method: string, url: string) => {
    const permit = await authorize(attributesOf(parseRequest(method, url), user, undefined));
    const { access } = permit;
    const { namespace, name } = access;
    const permitted = requireTarget(permit, access.verb, { ...target, namespace, name });
    return { ...serverContext, permit: permitted };
  };
  const maps = '/api/v1/namespaces/default/configmaps';
  const targetOne = { ...target, name: 'one' };
  const options = {
    gracePeriodSeconds: undefined,
    propagationPolicy: undefined,
    preconditions: undefined,
  };
  const otherTargets = ['GET one', 'PUT other', 'POST', 'DELETE other', 'DELETE', 'PATCH other'];
  for (const request of otherTargets) {
    const [method = '', name] = request.split(' ');
    const context = await contextFor(method, name === undefined ? maps : `${maps}/${name}`);
    const plans = {
      delete: { operation: 'delete', target: targetOne, context, options },
      update: {
        operation: 'update',
        target: targetOne,
        context,
        transform: () => ({ ...map('one'), data: { changed: 'yes' } }),
        source: 'body',
        onAbsent: 'refuse',
      },
      create: {
        operation: 'create',
        target: { ...target, namespace: 'elsewhere' },
        object: map('two'),
        context,
      },
    } as const;
    for (const plan of Object.values(plans)) {
      await expect(write(registry, plan)).rejects.toThrow('was used to');
    }
  }
  const context = await contextFor('DELETE', `${maps}/one`);
  const deletion = { operation: 'delete', admission: 'done', target: targetOne } as const;
  const { effect } = await write(registry, { ...deletion, context, options });
  expect(effect).toBe('removed');
});

test('AUTHZ-1: a PUT that creates needs a permit to create as well', async () => {
  const { registry, target } = await setup();
  const { authorize } = createAuthorization({ chain: { list: [alwaysAllow] } });
  const user = { name: 'ada', uid: '', groups: [], extra: {} };
  const info = parseRequest('PUT', '/api/v1/namespaces/default/configmaps/two');
  const two = { ...target, name: 'two' };
  const permitTo = async (verb: string) =>
    requireTarget(await authorize(attributesOf(info, user, undefined, verb)), verb, two);
  const context = { ...serverContext, permit: await permitTo('update') };
  const plan = {
    operation: 'update',
    admission: 'done',
    target: two,
    context,
    transform: () => map('two'),
    source: 'body',
    onAbsent: 'create',
  } as const;
  await expect(write(registry, plan)).rejects.toThrow('was used to create');
  const beforeCreate = () => permitTo('create');
  const { effect } = await write(registry, { ...plan, beforeCreate });
  expect(effect).toBe('created');
});
