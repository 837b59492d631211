import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { describe, expect, test } from 'vitest';
import type { PodSecuritySettings } from '../configuration/pod-security.ts';
import {
  admissionCall,
  admissionTools,
  dialect,
  refusalOf,
  type WriteFixture,
} from '../testing.ts';
import type { AdmissionTools } from '../tools.ts';
import { podSecurity } from './pod-security.ts';
import { openPolicy } from './pod-security-policy.ts';

const namespace = (levels: Readonly<Record<string, string>>): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name: 'default',
    labels: Object.fromEntries(
      Object.entries(levels).map(([mode, level]) => [dialect.label(mode, 'pod-security'), level]),
    ),
  },
});
const pod = (spec: JsonObject = {}, name = 'web'): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: { containers: [{ name: 'a', image: 'one' }], ...spec },
});
const onHost = { hostNetwork: true };
const none: ReadonlySet<string> = new Set();

interface Scene extends WriteFixture {
  readonly levels?: Readonly<Record<string, string>>;
  readonly stored?: readonly ApiObject[];
  readonly exempt?: Partial<PodSecuritySettings['exemptions']>;
  readonly clock?: FakeClock;
  readonly objects?: AdmissionTools['objects'];
}

/** The refusal of a write, and its warnings. */
async function admit({ levels = {}, stored = [], exempt = {}, clock, objects, ...write }: Scene) {
  const exemptions = { usernames: none, namespaces: none, runtimeClasses: none, ...exempt };
  const tools = admissionTools(
    { namespaces: [namespace(levels)], pods: stored },
    {
      configurations: { podSecurity: { defaults: openPolicy, exemptions } },
      ...(clock === undefined ? {} : { clock }),
      ...(objects === undefined ? {} : { objects }),
    },
  );
  const warnings: string[] = [];
  const context = { warn: (text: string) => void warnings.push(text) };
  const call = admissionCall({ ...write, context });
  return { why: await refusalOf(podSecurity(tools).validate, call), warnings };
}
const violation = 'host namespaces (hostNetwork=true)';

describe('ADM-1: a Pod under Pod Security', () => {
  const resource = 'pods';

  test('is refused when it violates the enforced standard', async () => {
    const levels = { enforce: 'baseline' };
    expect(await admit({ resource, levels, object: pod(onHost) })).toEqual({
      why: `violates PodSecurity "baseline:latest": ${violation}`,
      warnings: [],
    });
    expect(await admit({ resource, levels, object: pod() })).toEqual({
      why: undefined,
      warnings: [],
    });
  });

  test('gets a warning when only that is requested', async () => {
    const levels = { warn: 'baseline' };
    expect(await admit({ resource, levels, object: pod(onHost) })).toEqual({
      why: undefined,
      warnings: [`would violate PodSecurity "baseline:latest": ${violation}`],
    });
  });

  test.each<[string, Scene['exempt'], JsonObject]>([
    ['user', { usernames: new Set(['ada']) }, {}],
    ['namespace', { namespaces: new Set(['default']) }, {}],
    ['runtime class', { runtimeClasses: new Set(['vm']) }, { runtimeClassName: 'vm' }],
  ])('passes where its %s is exempt', async (_, exempt, more) => {
    const object = pod({ ...onHost, ...more });
    const scene: Scene = { resource, levels: { enforce: 'baseline' }, object };
    expect((await admit({ ...scene, ...(exempt === undefined ? {} : { exempt }) })).why).toBe(
      undefined,
    );
    expect((await admit(scene)).why).toBeDefined();
  });

  test('is checked again when an update has a new image or container', async () => {
    const levels = { enforce: 'baseline' };
    const old = pod(onHost);
    const update = { resource, levels, operation: 'UPDATE', old } as const;
    expect((await admit({ ...update, object: pod({ ...onHost, note: 1 }) })).why).toBeUndefined();
    const image = pod({ ...onHost, containers: [{ name: 'a', image: 'two' }] });
    expect((await admit({ ...update, object: image })).why).toBeDefined();
    const debug = pod({ ...onHost, ephemeralContainers: [{ name: 'd', image: 'debug' }] });
    const added = { ...update, subresource: 'ephemeralcontainers', object: debug };
    expect((await admit(added)).why).toBeDefined();
    expect((await admit({ ...update, subresource: 'status', object: image })).why).toBeUndefined();
  });

  test('as a template gets a warning and is not refused', async () => {
    const object: ApiObject = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace: 'default' },
      spec: { template: { spec: { containers: [{ name: 'a' }], ...onHost } } },
    };
    const levels = { enforce: 'baseline' };
    expect(await admit({ resource: 'deployments.apps', levels, object })).toEqual({
      why: undefined,
      warnings: [`would violate PodSecurity "baseline:latest": ${violation}`],
    });
  });
});

describe('ADM-1: a namespace under Pod Security', () => {
  const resource = 'namespaces';
  const update = (from: Scene['levels'] = {}, to: Scene['levels'] = {}) =>
    ({
      resource,
      operation: 'UPDATE',
      name: 'default',
      old: namespace(from),
      object: namespace(to),
    }) as const;

  test('cannot get unreadable labels, but may keep them', async () => {
    const object = namespace({ enforce: 'none' });
    expect((await admit({ resource, object })).why).toMatch(/must be one of privileged, baseline/);
    expect((await admit(update({ enforce: 'none' }, { enforce: 'none' }))).why).toBeUndefined();
    expect((await admit(update({ enforce: 'none' }, { warn: 'none' }))).why).toBeDefined();
  });

  test('that becomes stricter warns of violating Pods, equal ones together', async () => {
    const stored = [pod(onHost, 'b'), pod(onHost, 'a'), pod({ hostPID: true }, 'c'), pod({}, 'd')];
    const { warnings } = await admit({ ...update({}, { enforce: 'baseline' }), stored });
    expect(warnings).toEqual([
      'existing pods in namespace "default" violate the new PodSecurity enforce level "baseline:latest"',
      'a (and 2 other pods): host namespaces',
    ]);
  });

  test('with more Pods than are checked warns of those without a controller first', async () => {
    const replica = (index: number): ApiObject => {
      const made = pod({}, `a-${index}`);
      const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'a', uid: 'a' };
      const ownerReferences = [{ ...owner, controller: true }];
      return { ...made, metadata: { ...made.metadata, uid: `uid-${index}`, ownerReferences } };
    };
    const replicas = Array.from({ length: 3_000 }, (_, index) => replica(index));
    const stored = [...replicas, pod(onHost, 'z')];
    const { warnings } = await admit({ ...update({}, { enforce: 'baseline' }), stored });
    expect(warnings).toEqual([
      'new PodSecurity enforce level only checked against the first 3000 of 3001 existing pods',
      'existing pods in namespace "default" violate the new PodSecurity enforce level "baseline:latest"',
      'z: host namespaces',
    ]);
  });

  test('whose Pods take longer than a second to check warns of the first ones', async () => {
    const clock = new FakeClock();
    const stored = [pod(onHost, 'a'), pod({ hostPID: true }, 'b'), pod(onHost, 'c')];
    const objects = {
      ...admissionTools().objects,
      async *each() {
        for (const one of stored) {
          clock.advance(600);
          yield one;
        }
      },
    };
    const scene = { ...update({}, { enforce: 'baseline' }), clock, objects };
    const partly = (count: number) =>
      `new PodSecurity enforce level only checked against the first ${count} of 3 existing pods`;
    const head =
      'existing pods in namespace "default" violate the new PodSecurity enforce level "baseline:latest"';
    expect((await admit(scene)).warnings).toEqual([
      partly(2),
      head,
      'a (and 1 other pod): host namespaces',
    ]);
  });

  test('that is exempt gets a warning about the labels that have no effect', async () => {
    const exempt = { namespaces: new Set(['default']) };
    const text = (policy: string) =>
      `namespace "default" is exempt from Pod Security, and the policy (${policy}) will be ignored`;
    const levels = { enforce: 'baseline', audit: 'privileged', 'warn-version': 'v1.20' };
    const object = namespace(levels);
    const create = { resource, object, exempt };
    const shown = 'enforce=baseline:latest, warn=baseline:v1.20';
    expect((await admit(create)).warnings).toEqual([text(shown)]);
    expect((await admit({ ...update({}, levels), exempt })).warnings).toEqual([text(shown)]);
    expect((await admit({ ...update(levels, levels), exempt })).warnings).toEqual([]);
    const open = namespace({ enforce: 'privileged' });
    expect((await admit({ ...create, object: open })).warnings).toEqual([]);
    expect((await admit({ resource, object })).warnings).toEqual([]);
  });

  test('that becomes less restrictive gets no warnings', async () => {
    const stored = [pod(onHost)];
    const less = update({ enforce: 'restricted' }, { enforce: 'baseline' });
    expect((await admit({ ...less, stored })).warnings).toEqual([]);
    const older = update(
      { enforce: 'baseline' },
      { enforce: 'baseline', 'enforce-version': 'v1.0' },
    );
    expect((await admit({ ...older, stored })).warnings).toHaveLength(2);
  });
});
