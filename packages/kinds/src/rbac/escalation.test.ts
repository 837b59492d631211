import { isDeepStrictEqual } from 'node:util';
import { randomOf, WorkExceeded } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { boundedEscalation, escalationMessage, piecesOf, ruleEscalation } from './escalation.ts';
import { type PolicyRule, policyRule } from './policy-rule.ts';

/** Whether a rule covers a piece, by a direct translation of the specification. */
function covers(own: PolicyRule, piece: PolicyRule): boolean {
  const has = (list: readonly string[], value: string) =>
    list.includes('*') || list.includes(value);
  const unnamed = own.resourceNames.length === 0;
  const { verbs, apiGroups, resources, resourceNames, nonResourceURLs } = piece;
  if (!verbs.every((verb) => has(own.verbs, verb))) return false;
  if (!resourceNames.every((name) => unnamed || own.resourceNames.includes(name))) return false;
  if (resourceNames.length === 0 && !unnamed) return false;
  const [url] = nonResourceURLs;
  if (url !== undefined) {
    return own.nonResourceURLs.some(
      (pattern) =>
        pattern === url || (pattern.endsWith('*') && url.startsWith(pattern.replace(/\*+$/, ''))),
    );
  }
  const [resource = ''] = resources;
  const sub = resource.includes('/') ? `*/${resource.split('/')[1]}` : resource;
  return (
    apiGroups.every((group) => has(own.apiGroups, group)) &&
    (has(own.resources, resource) || own.resources.includes(sub))
  );
}

function randomRule(random: () => number): PolicyRule {
  const some = (values: readonly string[], share = 0.4) => values.filter(() => random() < share);
  if (random() < 0.3) {
    const nonResourceURLs = some(['/a', '/a/*', '/a/b', '/*', '*', '/c**'], 0.3);
    return policyRule({ verbs: some(['get', 'post', '*'], 0.5), nonResourceURLs });
  }
  return policyRule({
    verbs: some(['get', 'list', 'watch', '*']),
    apiGroups: some(['', 'apps', 'batch', '*']),
    resources: some(['pods', 'pods/log', 'x/scale', '*/scale', '*']),
    resourceNames: random() < 0.6 ? [] : some(['a', 'b', '*']),
  });
}

describe('comparison of rules', () => {
  test('AUTHZ-5: agrees with checking each piece on its own', () => {
    const seed = Math.floor(Math.random() * 2 ** 32);
    const { fraction: random } = randomOf(seed);
    for (let round = 0; round < 2000; round += 1) {
      const list = () => Array.from({ length: Math.floor(random() * 4) }, () => randomRule(random));
      const [own, granted] = [list(), list()];
      const missing = granted
        .flatMap(piecesOf)
        .filter((piece) => !own.some((rule) => covers(rule, piece)));
      const found = ruleEscalation(own, granted);
      const expected = { covered: missing.length === 0, missing, omitted: 0 };
      if (isDeepStrictEqual(found, expected)) continue;
      expect(found, `seed ${seed}, round ${round}`).toEqual(expected);
    }
  });

  const names = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, index) => `${prefix}${index}`);
  const wide = (count: number) =>
    policyRule({
      verbs: names('v', count),
      apiGroups: names('g', count),
      resources: names('r', count),
    });
  const stepsOf = (own: readonly PolicyRule[], granted: readonly PolicyRule[]) => {
    const work = boundedEscalation(own, granted);
    for (let steps = 1; ; steps += 1) {
      const step = work.next();
      if (step.done === true) return { steps, ...step.value };
    }
  };

  test('TRUST-2: takes as many steps for a large rule as for a small one', () => {
    const own = [policyRule({ verbs: ['v0'], apiGroups: ['*'], resources: ['r0'] })];
    const small = stepsOf(own, [wide(10)]);
    const large = stepsOf(own, [wide(1200)]);
    expect(large.steps).toBe(small.steps);
    expect(large.missing).toHaveLength(1000);
    expect(large.omitted).toBe(1200 ** 3 - 1200 - 1000);
    expect(stepsOf([wide(1200)], [wide(1200)]).covered).toBe(true);
  });

  test('TRUST-2: stops when the own rules differ in too many ways', () => {
    const own = names('r', 2500).map((resource, index) =>
      policyRule({ verbs: [`v${index}`], apiGroups: [`g${index}`], resources: [resource] }),
    );
    expect(() => stepsOf(own, [wide(2500)])).toThrow(WorkExceeded);
  });

  test('TRUST-3: the message lists at most 100 rules in 64 KB and counts the rest', () => {
    const user = { name: 'u', uid: '', groups: [], extra: {} };
    for (const rule of [wide(300), policyRule({ ...wide(1), verbs: names('verb', 9000) })]) {
      const coverage = stepsOf([], [rule]);
      const text = escalationMessage({ user, coverage, resolutionErrors: [] });
      expect(text.length).toBeLessThan(66_000);
      const lines = text.split('\n').slice(1);
      expect(lines.length).toBeLessThanOrEqual(101);
      const shown = lines.flatMap((line) => (/Verbs:\[(.*)\]/.exec(line)?.[1] ?? '').split(' '));
      const counted = shown.filter((verb) => verb !== '').length;
      const total = rule.verbs.length * rule.apiGroups.length * rule.resources.length;
      expect(lines.at(-1)).toBe(`and ${total - counted} more`);
    }
  });
});
