import { type Dialect, dnsSubdomain } from '@wheelhouse/machinery';
import { selectorText } from '../apps/workload.ts';
import { ageColumn, column, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { NetworkPolicy } from '../gen/types/networking/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { toldTwice } from '../rules/checks.ts';
import { ensure, fillAbsent, objectAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { validateNetworkPolicy } from './network-policy-rules.ts';

/** Without a word on it a policy is about what comes in, and about what goes out if it has rules. */
function fillDefaults(object: Stored<NetworkPolicy>): void {
  const spec = ensure(object, 'spec');
  for (const direction of ['ingress', 'egress'] as const) {
    for (const rule of spec[direction] ?? []) {
      for (const port of rule.ports ?? []) fillAbsent(port, { protocol: 'TCP' });
    }
  }
  if ((spec.policyTypes ?? []).length > 0) return;
  spec.policyTypes = (spec.egress ?? []).length > 0 ? ['Ingress', 'Egress'] : ['Ingress'];
}

/** NetworkPolicy: who may talk to whom. */
export function networkPolicy(dialect: Dialect): ResourceDef {
  const podSelector = column(
    'Pod-Selector',
    (object) => selectorText(objectAt(object, 'spec', 'podSelector')),
    { description: 'Pods it is about.' },
  );
  return defineKind<NetworkPolicy>({
    dialect,
    facts: 'networking',
    kind: 'NetworkPolicy',
    resource: 'networkpolicies',
    scope: 'Namespaced',
    shortNames: ['netpol'],
    versions: [
      { version: 'v1', defaults: fillDefaults, columns: [nameColumn, podSelector, ageColumn] },
    ],
    generation: true,
    strategy: {
      metadataTold: { '': ['whole', 'change'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validateNetworkPolicy(object),
      validateUpdate: (_, object) => toldTwice(validateNetworkPolicy(object)),
    },
    example: () => ({
      apiVersion: `${dialect.group('networking')}/v1`,
      kind: 'NetworkPolicy',
      metadata: { name: 'example', namespace: 'default' },
      spec: { podSelector: { matchLabels: { app: 'example' } } },
    }),
  });
}
