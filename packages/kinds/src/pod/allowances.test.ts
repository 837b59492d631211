import { dialectOf, type JsonObject, runInOnePiece } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { defaultFeatures } from '../features/features.ts';
import { defaulted, plainPod } from '../rules/rules.suite.ts';
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
  const rules = templateRules(strict, old);
  expect(runInOnePiece(validatePodTemplate(next, 'template', rules))).toHaveLength(errors);
});
