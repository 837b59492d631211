import { dialectOf, type JsonObject, runInOnePiece } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { defaultFeatures } from '../features/features.ts';
import { defaulted, plainPod } from '../rules/rules.suite.ts';
import { allowanceSteps } from './allowances.ts';
import { newlyAllowed } from './rules.ts';
import { templateRules, validatePodTemplate } from './template.ts';

const strict = {
  dialect: dialectOf('kubernetes'),
  features: {
    enabled: (name: Parameters<typeof defaultFeatures.enabled>[0]) =>
      name !== 'RelaxedEnvironmentVariableValidation' && defaultFeatures.enabled(name),
  },
};

const templateWith = (container: JsonObject): JsonObject => {
  const pod = plainPod();
  return defaulted({ ...pod, spec: { containers: [{ name: 'a', image: 'i', ...container }] } });
};

const named = (...names: string[]) => templateWith({ env: names.map((name) => ({ name })) });
const prefixed = (prefix: string) =>
  templateWith({ envFrom: [{ prefix, configMapRef: { name: 'c' } }] });

test.each<[string, JsonObject, JsonObject, number]>([
  ['no old name', named('A'), named('1'), 1],
  ['an old name', named('1'), named('1'), 0],
  ['an old name and new ones', named('1', 'A'), named('2', '1'), 0],
  ['only new names', named('1'), named('2', '3'), 2],
  ['an old prefix', prefixed('1 a'), prefixed('1 a'), 0],
  ['an old prefix as a name', prefixed('1'), named('1', '2'), 0],
  ['an old name that no rule allows', named('a=b'), named('a=b'), 1],
])('relaxed names of variables: %s', (_, old, next, errors) => {
  const rules = runInOnePiece(templateRules(strict, old));
  expect(runInOnePiece(validatePodTemplate(next, 'template', rules))).toHaveLength(errors);
});

const many = <Item>(make: (at: number) => Item, last: Item): Item[] => [
  ...Array.from({ length: 600 }, (_, at) => make(at)),
  last,
];
const container = (resources: JsonObject): JsonObject => ({ name: 'a', image: 'i', resources });
const term = (value: string): JsonObject => ({
  topologyKey: 'z',
  labelSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: [value] }] },
});
const preferred = (value: string): JsonObject => ({ weight: 1, podAffinityTerm: term(value) });
const constraint = (value: string): JsonObject => ({
  maxSkew: 1,
  topologyKey: 'z',
  whenUnsatisfiable: 'DoNotSchedule',
  labelSelector: { matchLabels: { a: value } },
});
const volume = (path: string): JsonObject => ({
  name: 'v',
  projected: { sources: [{ serviceAccountToken: { path } }] },
});
const sleeper = (seconds: number): JsonObject => ({
  ...container({}),
  lifecycle: { preStop: { sleep: { seconds } } },
});
const sidecar = (resizePolicy: JsonObject[]): JsonObject => ({
  ...container({}),
  restartPolicy: 'Always',
  resizePolicy,
});
const required = 'requiredDuringSchedulingIgnoredDuringExecution';
const optional = 'preferredDuringSchedulingIgnoredDuringExecution';
const pages = (last: string): JsonObject =>
  Object.fromEntries(many((at): [string, string] => [`a.io/${at}`, '1'], ['hugepages-2Mi', last]));

/** Specs of 600 items that break no rule and a last one that does, or does not, break one. */
const specs: Readonly<Record<string, (isBroken: boolean) => JsonObject>> = {
  indivisibleHugePages: (isBroken) => ({
    containers: [container({ limits: pages('4Mi') }), container({ limits: pages('2Mi') })],
    initContainers: [container({ requests: pages(isBroken ? '3Mi' : '4Mi') })],
  }),
  affinityLabelValues: (isBroken) => ({
    affinity: {
      podAffinity: { [required]: many(() => term('v'), term('v')) },
      podAntiAffinity: { [optional]: many(() => preferred('v'), preferred(isBroken ? '!' : 'v')) },
    },
  }),
  spreadSelectors: (isBroken) => ({
    topologySpreadConstraints: many(() => constraint('v'), constraint(isBroken ? '!' : 'v')),
  }),
  tokenPaths: (isBroken) => ({ volumes: many(() => volume('a'), volume(isBroken ? '../a' : 'a')) }),
  hostSysctls: (isBroken) => ({
    hostIPC: true,
    securityContext: {
      sysctls: many((at) => ({ name: `kernel.a${at}` }), { name: isBroken ? 'kernel/sem' : '!' }),
    },
  }),
  relaxedSearches: (isBroken) => ({
    dnsConfig: { searches: many((at) => `a${at}`, isBroken ? '_a' : 'a') },
  }),
  zeroSleep: (isBroken) => ({ containers: many(() => sleeper(1), sleeper(isBroken ? 0 : 1)) }),
  sidecarResizePolicies: (isBroken) => ({
    initContainers: many(() => sidecar([]), sidecar(isBroken ? [{}] : [])),
  }),
};

test.each(Object.entries(specs))('TRUST-2: a broken rule is found in steps: %s', (rule, specOf) => {
  const enabled = (name: Parameters<typeof defaultFeatures.enabled>[0]) =>
    !['RelaxedDNSSearchValidation', 'PodLifecycleSleepActionAllowZero'].includes(name) &&
    defaultFeatures.enabled(name);
  const ports = { ...strict, features: { enabled } };
  for (const isBroken of [true, false]) {
    const work = allowanceSteps({ spec: specOf(isBroken) }, ports);
    let steps = 1;
    let step = work.next();
    for (; step.done !== true; step = work.next()) steps += 1;
    expect(step.value).toEqual({ ...newlyAllowed(ports.features), [rule]: isBroken });
    expect(steps).toBeGreaterThan(6);
  }
});
