import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { clusterDefaultSelector } from '../configuration/plugins.ts';
import { admissionCall, admissionTools, dialect, refusalOf } from '../testing.ts';
import { podNodeSelector } from './pod-node-selector.ts';

const annotation = dialect.label('node-selector', 'scheduler.alpha');
const namespace = (selector?: string): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name: 'default',
    ...(selector === undefined ? {} : { annotations: { [annotation]: selector } }),
  },
});

interface Scene {
  /** The namespace's selector, in its annotation. */
  readonly selector?: string;
  /** The configured selectors, by namespace. */
  readonly configured?: Readonly<Record<string, string>>;
  readonly nodeSelector?: JsonObject;
}

/** The selector of an admitted Pod, or the reason of its rejection. */
async function admit({ selector, configured = {}, nodeSelector }: Scene) {
  const nodeSelectors = new Map(Object.entries(configured));
  const tools = admissionTools(
    { namespaces: [namespace(selector)] },
    { configurations: { nodeSelectors } },
  );
  const { mutate, validate } = podNodeSelector(tools);
  const object: ApiObject = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default' },
    spec: nodeSelector === undefined ? {} : { nodeSelector },
  };
  const call = admissionCall({ resource: 'pods', object });
  // Both phases apply the same rules; the first refuses before the Pod is validated.
  const why = await refusalOf(mutate, call);
  expect(await refusalOf(validate, call)).toBe(why);
  return why ?? object['spec'];
}

describe('ADM-1: the node selector of a namespace', () => {
  test('comes from its annotation, without spaces', async () => {
    expect(await admit({ selector: ' zone = a , disk=ssd ' })).toEqual({
      nodeSelector: { zone: 'a', disk: 'ssd' },
    });
  });

  test('comes from the configuration without an annotation', async () => {
    const configured = { [clusterDefaultSelector]: 'zone=b' };
    expect(await admit({ configured })).toEqual({ nodeSelector: { zone: 'b' } });
    expect(await admit({ configured, selector: 'zone=a' })).toEqual({
      nodeSelector: { zone: 'a' },
    });
    expect(await admit({ configured, selector: '' })).toEqual({});
  });

  test('is narrowed by the Pod, which may not contradict', async () => {
    expect(await admit({ selector: 'zone=a', nodeSelector: { disk: 'ssd' } })).toEqual({
      nodeSelector: { zone: 'a', disk: 'ssd' },
    });
    expect(await admit({ selector: 'zone=a', nodeSelector: { zone: 'b' } })).toBe(
      'pod node label selector conflicts with its namespace node label selector',
    );
  });

  test('must be within the configured whitelist', async () => {
    const configured = { default: 'zone=a' };
    expect(await admit({ configured, nodeSelector: { zone: 'a' } })).toBeTypeOf('object');
    expect(await admit({ configured, nodeSelector: { disk: 'ssd' } })).toBe(
      'pod node label selector labels conflict with its namespace whitelist',
    );
  });

  test.each(['zone', 'zone=a=b', 'zone=a,', '-zone=a', 'zone=-a'])(
    'is invalid in the annotation "%s"',
    async (selector) => {
      expect(await admit({ selector })).toMatch(/invalid selector: \[/);
    },
  );
});
