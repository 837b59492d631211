import type { ApiObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { admissionCall, admissionTools, dialect, refusalOf } from '../testing.ts';
import { podTolerationRestriction } from './pod-toleration-restriction.ts';

const own = { key: 'own', operator: 'Exists' };
const whitelist = dialect.label('tolerationsWhitelist', 'scheduler.alpha');

test.each([
  ['namespace', { [whitelist]: JSON.stringify([own]) }],
  ['cluster', {}],
])('ADM-1: PodTolerationRestriction names the whitelist of the %s', async (scope, annotations) => {
  const metadata = { name: 'default', annotations };
  const namespace: ApiObject = { apiVersion: 'v1', kind: 'Namespace', metadata };
  const tolerations = { defaults: [], allowed: [own] };
  const tools = admissionTools({ namespaces: [namespace] }, { configurations: { tolerations } });
  const object: ApiObject = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default' },
    spec: { tolerations: [{ key: 'other', operator: 'Exists' }] },
  };
  const { validate } = podTolerationRestriction(tools);
  expect(await refusalOf(validate, admissionCall({ resource: 'pods', object }))).toBe(
    `pod tolerations (possibly merged with namespace default tolerations) conflict with its ${scope} whitelist`,
  );
});
